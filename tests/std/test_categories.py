"""What kind of work a call is: by the tool's name, and a shell's by its command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.formats.std.categories import tool_category
from harken.formats.std.commands import only_looks
from harken.formats.std.models import CATEGORIES

LOOKING = [
    "ls",
    "ls -la /tmp 2>/dev/null",
    "cd src && grep -rn 'rm -rf' . | head -20",
    "cat a.py; wc -l a.py",
    "FOO=1 BAR='x y' rg --files",
    "env FOO=1 printenv FOO",
    "sudo -u www-data ls /var/www",
    "timeout -k 5 10s git log --oneline -5",
    "git -C /repo --no-pager log -p",
    "git -c core.pager=cat diff HEAD~1 -- src",
    "git branch -a",
    "git branch --show-current",
    "git branch --contains abc",
    "git tag -l 'v*'",
    "git stash list",
    "git remote -v",
    "git config --get user.name",
    "git config user.name",
    "git worktree list",
    "sed -n '1,20p' notes.md",
    "sed 's/a/b/g' notes.md",
    "awk '{ print $(NF-1) }' table",
    "find . -name '*.py' -not -path './.git/*'",
    "find . -type f -exec grep -l TODO {} +",
    "find . -name '*.md' | xargs -n 1 wc -l",
    "diff <(sort a) <(sort b)",
    'for f in *.py; do echo $f; head -1 "$f"; done',
    "if [ -f x ]; then cat x; else echo none; fi",
    "echo $(git rev-parse HEAD) `date`",
    "echo $(dirname $(which python))",
    "echo $((1 + 2))",
    "command -v node",
    "python --version",
    "curl -s https://example.org/x#part",
    "curl -sSL -X GET https://example.org -o /dev/null",
    "gh pr view 12 --json title",
    "gh api repos/a/b/issues",
    "gh run list --limit 3",
    "docker ps -a",
    "docker compose logs web",
    "kubectl -n prod get pods",
    "npm ls --depth 0",
    "# what's here\nls",
    "cat <<'EOF'\nrm -rf /\n> x\nEOF\nls",
    "grep x y <<< 'rm z'",
    "jq . a.json &> /dev/null",
    "source .venv/bin/activate && pip list",
    "bash -lc 'ls -l'",
    "echo hello >&2",
    "! grep -q x y || exit 1",
    "Get-ChildItem -Recurse",
    "aws s3 ls",
    "bd update --help | head",
    "hostname",
    "gh gist view abc",
    "echo 'never closed",
]
DOING = [
    "",
    "   ",
    "npm test",
    "python -c 'print(1)'",
    "rm -rf build",
    "ls > files.txt",
    "echo x >> notes.md",
    "echo x > version",
    "rm help",
    "hostname x",
    "ls &> log",
    "cat <<EOF > a.py\nx\nEOF",
    "cat a | tee b",
    "cd src && make",
    "ls && rm x",
    "ls\nrm x",
    "ls & rm x",
    "FOO=1 npm run build",
    "sudo rm x",
    "sudo -u root systemctl restart nginx",
    "env -u FOO make",
    "git commit -m 'log'",
    "git -C log commit",
    "git branch new",
    "git branch -D old",
    "git tag v1",
    "git stash",
    "git config user.name me",
    "git fetch --prune",
    "git diff --output=x",
    "git remote add origin x",
    "sed -i 's/a/b/' x",
    "sed -i.bak 's/a/b/' x",
    "sed -ne 'p' -i x",
    "sed -n 's/a/b/w out' x",
    "awk '{ print > \"out\" }' x",
    "awk 'BEGIN { system(\"rm x\") }'",
    "find . -name '*.pyc' -delete",
    "find . -exec rm {} \\;",
    "find . | xargs rm",
    "sort -o a a",
    "curl -X POST https://example.org",
    "curl -d x=1 https://example.org",
    "curl -LO https://example.org/x.tgz",
    "curl https://example.org > x",
    "gh pr create --fill",
    "gh api -X DELETE repos/a/b",
    "gh api repos/a/b -f title=x",
    "docker run ls",
    "npm run list",
    "kubectl delete pod x",
    "echo $(rm x)",
    "echo \"$(git commit)\"",
    "echo `rm x`",
    "bash -c 'ls; rm x'",
    "bash script.sh",
    "source deploy.sh",
    "if true; then rm x; fi",
    "for f in *; do rm $f; done",
    "find . -exec bash -c 'rm $1' _ {} \\;",
    "sudo " * 40 + "ls",
    "$(" * 40 + "ls" + ")" * 40,
    "x" * 100_000,
]  # fmt: skip


class TestAShellsCommand:
    @pytest.mark.parametrize("command", LOOKING)
    def test_one_that_only_looks_is_perception(self, command: str) -> None:
        assert "perception" == tool_category("Bash", {"command": command})

    @pytest.mark.parametrize("command", DOING, ids=lambda command: command[:40])
    def test_any_other_is_action(self, command: str) -> None:
        assert "action" == tool_category("Bash", {"command": command})

    def test_it_is_found_wherever_a_runtime_puts_it(self) -> None:
        assert "perception" == tool_category("exec_command", {"cmd": "rg --files"})
        assert "perception" == tool_category("shell", {"command": ["bash", "-lc", "git status"]})
        assert "action" == tool_category("shell", {"command": ["bash", "-lc", "git push"]})
        assert "perception" == tool_category("shell", {"command": ["git", "log", "a > b; rm x"]})
        assert "perception" == tool_category("local_shell_call", {"action": {"command": ["ls"]}})
        assert "perception" == tool_category("container.exec", {"cmd": ["cat", "x"]})

    @pytest.mark.parametrize("params", [{}, {"command": 7}, {"command": ["ls", 7]}, {"command": []}, {"cmd": None}])
    def test_without_a_command_it_may_have_done_anything(self, params: dict[str, object]) -> None:
        assert "action" == tool_category("Bash", params)

    @given(st.text("$(`)'\"\\ \n;&|<>#x1-=", max_size=60))
    def test_no_text_is_too_odd(self, command: str) -> None:
        assert only_looks(command) in (True, False)

    @given(st.text("$(`)'\"\\ \n;&|<>#x1-=", max_size=40))
    def test_what_stands_behind_a_deed_does_not_undo_it(self, words: str) -> None:
        assert not only_looks(f"ls\nrm x\n{words}")


class TestATool:
    @pytest.mark.parametrize(
        ("category", "names"),
        [
            (
                "perception",
                "Read Glob Grep LS LSP WebFetch WebSearch NotebookRead BashOutput TaskOutput ToolSearch Skill",
            ),
            ("perception", "view_image web_search web_search_call tool_search_call read_mcp_resource read_file"),
            ("action", "Write Edit MultiEdit NotebookEdit KillShell KillBash TaskStop apply_patch ApplyPatch"),
            ("interaction", "Task Agent AskUserQuestion SendMessage spawn_agent wait_agent send_input close_agent"),
            ("interaction", "request_user_input whisper report ask_expert collaboration.spawn_agent"),
            ("planning", "EnterPlanMode ExitPlanMode exit_plan_mode"),
            ("task_management", "TaskCreate TaskUpdate TaskList TaskGet TodoWrite TodoRead update_plan"),
        ],
    )
    def test_that_is_known_has_its_category(self, category: str, names: str) -> None:
        assert dict.fromkeys(names.split(), category) == {name: tool_category(name, {}) for name in names.split()}

    @pytest.mark.parametrize(
        ("category", "name"),
        [
            ("perception", "mcp__linear-server__list_issues"),
            ("perception", "mcp__plugin_playwright_playwright__browser_take_screenshot"),
            ("perception", "mcp__db__getTableInfo"),
            ("action", "mcp__linear-server__create_issue"),
            ("action", "mcp__browser__navigate"),
            ("action", "mcp__x__task"),
            ("action", "mcp__x__"),
            ("action", "mcp__"),
            ("interaction", "mcp__oracle__ask"),
            ("perception", "mcp__server__with__search_docs"),
        ],
    )
    def test_of_a_server_goes_by_its_verb(self, category: str, name: str) -> None:
        assert category == tool_category(name, {})

    def test_that_edits_and_views_goes_by_what_it_was_told(self) -> None:
        assert "perception" == tool_category("str_replace_based_edit_tool", {"command": "view", "path": "x"})
        assert "action" == tool_category("str_replace_based_edit_tool", {"command": "create", "path": "x"})

    def test_that_waits_for_a_command_looks_and_one_that_types_into_it_acts(self) -> None:
        assert "perception" == tool_category("write_stdin", {"session_id": 1, "chars": ""})
        assert "action" == tool_category("write_stdin", {"session_id": 1, "chars": "y\n"})

    @given(st.text(), st.dictionaries(st.text(), st.none() | st.text() | st.lists(st.text())))
    def test_any_other_has_one_of_the_five(self, name: str, params: dict[str, object]) -> None:
        assert tool_category(name, params) in CATEGORIES
