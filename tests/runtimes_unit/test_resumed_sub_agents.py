"""A sub-agent that is resumed goes on as itself: with its own title, told as a continuation of its own conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from harken.context.names import begun_elsewhere
from harken.repo import Repo
from harken.store import SessionRow
from harken.store.memory import MemoryStore
from support import copilot_lines, qwen_lines
from support.double_counting import SONNET, Used, answered, claude, name, said

ASKED = "SUB: look"


def a_session_of_qwen_code(home: Path) -> None:
    chats = home / ".qwen" / "projects" / "-home-me-proj" / "chats"
    beside = chats.parent / "subagents" / qwen_lines.SESSION
    beside.mkdir(parents=True)
    chats.mkdir(parents=True)
    (chats / f"{qwen_lines.SESSION}.jsonl").write_bytes(qwen_lines.busy_session().data)
    (beside / "agent-general-purpose-c3.jsonl").write_bytes(qwen_lines.agent_session().data)


def a_session_of_claude_code(home: Path) -> None:
    used = Used(SONNET, 10, 20)
    claude(home, name(1), said(name(1), 1), answered(name(1), 2, used, "msg_1"))
    side = {"isSidechain": True, "agentId": "a1"}
    asked = said(name(1), 11, **side)
    asked["message"] = {"role": "user", "content": ASKED}
    agent = [asked, answered(name(1), 12, used, "msg_2", **side)]
    claude(home, name(1), *agent, below=f"{name(1)}/subagents/agent-a1.jsonl")


def a_session_of_copilot_cli(home: Path) -> None:
    session = copilot_lines.everything()
    folder = home / ".copilot" / "session-state" / copilot_lines.SESSION
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(session.data)


MADE = {
    "claude-code": a_session_of_claude_code,
    "qwen-code": a_session_of_qwen_code,
    "copilot-cli": a_session_of_copilot_cli,
}


@pytest.fixture
def repo(tmp_path: Path, request: pytest.FixtureRequest) -> Repo:
    repo = Repo(MemoryStore())
    MADE[request.getfixturevalue("runtime")](tmp_path)
    list(repo.import_sessions([str(tmp_path)]))
    return repo


def rows(repo: Repo) -> tuple[SessionRow, SessionRow]:
    """The session and its sub-agent."""
    [main] = [row for row in repo.sessions() if not row.parent]
    [agent] = [row for row in repo.sessions() if row.parent]
    return main, agent


def calls_of_tools(repo: Repo) -> dict[str, int]:
    """As `stats --by tool` counts them."""
    return {group.key: group.spending.calls for group in repo.usage()[0].groups("tool")}


@pytest.mark.parametrize("runtime", MADE)
class TestASubAgentThatIsResumed:
    def test_goes_on_under_its_own_title(self, repo: Repo, tmp_path: Path, runtime: str) -> None:
        main, agent = rows(repo)
        ready = repo.resume(agent.session, runtime, cwd=tmp_path, home=tmp_path / "home")
        list(repo.import_sessions([ready.path]))

        [row] = repo.sessions(ready.session)
        assert agent.title != main.title
        assert agent.title == row.title

    @pytest.mark.parametrize("target", ["codex", "gemini-cli", "pi"])
    def test_has_its_calls_and_words_once(self, repo: Repo, tmp_path: Path, runtime: str, target: str) -> None:
        # A name that Gemini CLI is given stands in a notice of its.
        is_spoken = "role NOT IN ('title', 'system')"
        asked = f"SELECT (SELECT count(*) FROM calls), (SELECT count(*) FROM messages WHERE {is_spoken})"
        [before] = repo.sql(asked).rows
        _, agent = rows(repo)
        ready = repo.resume(agent.session, target, cwd=tmp_path, home=tmp_path / ".gemini")
        list(repo.import_sessions([ready.path]))

        [after] = repo.sql(asked).rows
        assert 0 < before[1]
        assert before == after

    def test_has_them_once_in_its_own_runtime(self, repo: Repo, tmp_path: Path, runtime: str) -> None:
        asked = "SELECT (SELECT count(*) FROM calls), (SELECT count(*) FROM messages WHERE role = 'assistant')"
        by_tool = calls_of_tools(repo)
        [before] = repo.sql(asked).rows
        _, agent = rows(repo)
        ready = repo.resume(agent.session, runtime, cwd=tmp_path, home=tmp_path / "home")
        for _ in range(2):  # and again as it was: a tail is told anew
            list(repo.import_sessions([ready.path]))
            assert [before] == repo.sql(asked).rows
            assert by_tool == calls_of_tools(repo)

    def test_is_told_as_what_it_goes_on_from(self, repo: Repo, tmp_path: Path, runtime: str) -> None:
        main, agent = rows(repo)
        ready = repo.resume(agent.session, runtime, cwd=tmp_path, home=tmp_path / "home")
        other = repo.resume(main.session, runtime, cwd=tmp_path, home=tmp_path / "home")
        told = repo.resumed_sessions()
        list(repo.import_sessions([ready.path, other.path]))

        assert (agent.session, main.session) == (told[ready.session].session, told[other.session].session)
        by_file = begun_elsewhere(repo.sessions(ready.session))
        assert agent.session == by_file[ready.session].session
