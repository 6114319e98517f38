"""Which agent asks the context socket: the one whose tool it is. #28"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harken.runtimes.callers import Caller, find_caller
from harken.runtimes.run import SOCKETS
from support.rollouts import THREAD as AGENT_THREAD
from support.sessions import rollout
from support.stream_lines import THREAD, calls, init, item, result, says, thread, turn_completed

from .conftest import Bench
from .test_run import said

ONE = {"parent_tool_use_id": "t1", "agent_id": "a1"}
TWO = {"parent_tool_use_id": "t2", "agent_id": "a2"}
HERE = "harken current-context # {}"


def shell(command: str) -> dict[str, list[str]]:
    """A tool as Claude Code runs it: a shell that is given the command in quotes of its own."""
    return {"tool": ["bash", "-c", f"true && eval '{command}' < /dev/null"]}


def parallel(*tools: dict[str, list[str]], commands: tuple[str, str]) -> list[dict[str, object]]:
    """Two sub-agents, each in the middle of a command."""
    return [
        init(),
        calls("Agent", "t1", input={"prompt": "One."}),
        calls("Agent", "t2", input={"prompt": "Two."}),
        says("I am one.", 2, **ONE),
        says("I am two.", 3, **TWO),
        calls("Bash", "t3", 2, input={"command": commands[0]}, **ONE),
        calls("Bash", "t4", 3, input={"command": commands[1]}, **TWO),
        *tools,
        result("Done."),
    ]


class TestParallelSubAgents:
    def test_are_told_apart_by_the_command_that_asks(self, bench: Bench) -> None:
        commands = (HERE.format("one"), HERE.format('"two"'))
        bench.run(parallel(*map(shell, commands), commands=commands), "claude-code", "--", "-p", "go")

        (_, one, _), (_, two, _) = bench.notes["tools"]
        assert ["One.", "I am one.", "Bash"] == said(bench.events(one.strip()))
        assert ["Two.", "I am two.", "Bash"] == said(bench.events(two.strip()))

    def test_that_run_the_same_command_cannot_be_told_apart_and_that_is_said(self, bench: Bench) -> None:
        command = HERE.format("same")
        bench.run(parallel(shell(command), commands=(command, command)), "claude-code", "--", "-p", "go")

        [[status, out, err]] = bench.notes["tools"]
        assert (0, "") == (status, out)
        assert "2 agents are running the same command, and which of them asks cannot be told" in err

    def test_whose_tools_are_no_commands_cannot_be_told_apart_either(self, bench: Bench) -> None:
        steps = parallel({"tool": ["harken", "current-context", "--json"]}, commands=("x y z", "z y x"))
        bench.run(steps, "claude-code", "--", "-p", "go")

        [[status, out, _]] = bench.notes["tools"]
        assert (0, True) == (status, "2 agents are running tools" in out)


def test_an_agent_that_runs_alone_is_meant_whatever_it_runs(bench: Bench) -> None:
    steps = parallel({"tool": ["harken", "current-context"]}, commands=("x", "y"))
    bench.run([*steps[:6], *steps[7:]], "claude-code", "--", "-p", "go")

    [[_, out, _]] = bench.notes["tools"]
    assert ["One.", "I am one.", "Bash"] == said(bench.events(out.strip()))


class TestAThreadOfCodex:
    ASK = ("harken", "current-context")

    def run(self, bench: Bench, asking: str) -> str:
        tool = {"tool": ["env", f"CODEX_THREAD_ID={asking}", *self.ASK]}
        waits = item("collab_tool_call", 1, state="started", tool="wait", prompt=None, agents_states={})
        said = item("agent_message", 0, text="I wait.")
        bench.run([thread(), said, waits, tool, turn_completed()], "codex", "--", "exec", "go")
        [[status, out, err]] = bench.notes["tools"]
        assert 0 == status
        return str(out.strip() or err)

    def test_that_is_a_sub_agents_is_read_from_its_file(self, bench: Bench) -> None:
        folder = bench.folder / ".codex" / "sessions" / "2026" / "01" / "01"
        folder.mkdir(parents=True)
        (folder / f"rollout-2026-01-01T00-00-00-{AGENT_THREAD}.jsonl").write_bytes(rollout(AGENT_THREAD))

        answer = self.run(bench, AGENT_THREAD)

        assert said(bench.events(AGENT_THREAD)) == said(bench.events(answer))

    def test_that_asks_before_the_line_of_its_call_is_printed_is_answered_with_the_call(self, bench: Bench) -> None:
        """Codex starts the tool and prints the line side by side; other lines may come between."""
        asked = bench.folder / "asked"
        tool = "import socket, os, pathlib; line = socket.socket(socket.AF_UNIX)"
        tool += f"; line.connect(os.environ['{SOCKETS[0]}'])"
        tool += "; line.send(b'GET /current-context HTTP/1.1\\r\\n\\r\\n')"
        tool += f"; pathlib.Path({str(asked)!r}).touch(); print(line.recv(4096).decode())"
        call = item("command_execution", 1, state="started", command="bash -lc ask", status="in_progress")
        steps = [
            thread(),
            {"start": ["env", f"CODEX_THREAD_ID={THREAD}", sys.executable, "-c", tool]},
            {"wait": str(asked)},
            item("agent_message", 0, text="I ask."),
            call,
            {"end": True},
            turn_completed(),
        ]
        bench.run(steps, "codex", "--", "exec", "go")

        [[_, out, _]] = bench.notes["tools"]
        answer = json.loads(out.rpartition("\n")[0].rpartition("\n")[2])
        assert ["go", "I ask.", "exec_command"] == said(bench.events(answer["context_id"]))

    def test_that_is_the_main_one_is_the_streams(self, bench: Bench) -> None:
        assert "I wait." in said(bench.events(self.run(bench, THREAD)))

    def test_that_nobody_knows_is_told(self, bench: Bench) -> None:
        assert "of which nothing is kept yet" in self.run(bench, "01a1deb4-0000-7cc3-bb2a-e6fd2a2a0c2c")

    @pytest.mark.parametrize("name", ["../../x", "*", "", "a/b"])
    def test_may_be_called_anything(self, bench: Bench, name: str) -> None:
        assert self.run(bench, name)


class TestACaller:
    def test_is_known_by_its_ancestors_up_to_the_runtime(self, tmp_path: Path) -> None:
        for process, parent, command in ((9, 7, "harken current-context"), (7, 5, "bash -c x"), (5, 3, "claude")):
            (tmp_path / str(process)).mkdir()
            (tmp_path / str(process) / "stat").write_text(f"{process} (a) (odd name) S {parent} 1 1")
            (tmp_path / str(process) / "cmdline").write_text(command.replace(" ", "\0") + "\0")
            (tmp_path / str(process) / "environ").write_text(f"A={process}\0B=c=d\0")

        assert Caller(environ={"A": "9", "B": "c=d"}, commands=("bash -c x ",)) == find_caller(9, 5, tmp_path)

    def test_of_whom_nothing_is_told_is_nobody(self, tmp_path: Path) -> None:
        assert Caller() == find_caller(9, 5, tmp_path)

    @pytest.mark.parametrize("command", ["echo 'it' \"is\"; harken x", "a\nb", "x\\y"])
    def test_runs_what_its_shell_was_given(self, command: str) -> None:
        quoted = command.replace("'", "'\"'\"'")

        assert Caller(commands=(f"bash -c eval '{quoted}' < /dev/null",)).runs(command)
        assert not Caller(commands=("bash -c true",)).runs(command)
        assert not Caller(commands=("bash -c true",)).runs(" ")
