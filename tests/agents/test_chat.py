"""`harken chat`, through a pipe and at a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harken import Session, load_session
from harken.agents import Hook, ModelOptions, ask_person
from harken.errors import Waiting

HARKEN = [sys.executable, "-m", "harken", "chat"]
CAFE = {
    "agents": {
        "root": {
            "lines": [
                {"call": {"tool": "task", "arguments": {"name": "Jack", "prompt": "Who are you?"}}},
                "Jack is here.",
            ],
            "rules": [
                {"when": "wait", "say": "too late", "delay": 60},
                {"when": "fail", "error": "out of order"},
            ],
            "otherwise": "Go on.",
        },
        "Jack": ["I am Jack, \x1b[31mred\x1b[0m."],
    }
}


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "script.json").write_text(json.dumps(CAFE))
    return "scripted:script.json"


def chat(folder: Path, typed: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HARKEN, *options], input=typed, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


class TestThroughAPipe:
    def test_a_file_of_something_else_is_refused_and_left_alone(self, tmp_path: Path, script: str) -> None:
        """#1"""
        (tmp_path / "README").write_text("# Harken\n")

        done = chat(tmp_path, "Hello\n", "--model", script, "--resume", "README")

        assert (2, "") == (done.returncode, done.stdout)
        assert "README is not a session log" in done.stderr
        assert "# Harken\n" == (tmp_path / "README").read_text()

    def test_a_new_chat_is_kept_in_this_folder_and_can_be_resumed(self, tmp_path: Path, script: str) -> None:
        done = chat(tmp_path, "make Jack\n", "--model", script)

        (file,) = tmp_path.glob("session_*.jsonl")
        assert re.fullmatch(r"session_\d{8}_\d{6}\.jsonl", file.name)
        assert (0, "Jack is here.\n") == (done.returncode, done.stdout)
        assert f"harken chat --resume {file.name}" in done.stderr
        again = chat(tmp_path, "and?\n/quit\nnever said\n", "--resume", file.name)
        assert "Go on.\n" == again.stdout

    def test_what_was_said_before_is_shown_when_it_is_resumed(self, tmp_path: Path, script: str) -> None:
        chat(tmp_path, "make Jack\nand?\n", "--model", script, "--file", "x.jsonl")

        again = chat(tmp_path, "", "--resume", "x.jsonl")

        assert "" == again.stdout
        assert ["you> make Jack", "Jack is here.", "you> and?", "Go on."] == again.stderr.splitlines()[:4]

    def test_an_answer_that_broke_off_is_shown_as_partial(self, tmp_path: Path) -> None:
        broken = {"agents": {"root": [{"say": "I am about to", "error": "cut off", "breaks": 3}]}}
        (tmp_path / "broken.json").write_text(json.dumps(broken))
        (tmp_path / "whole.json").write_text(json.dumps({"agents": {"root": ["I have said it."]}}))

        first = chat(tmp_path, "Speak.\n", "--model", "scripted:broken.json", "--file", "x.jsonl")
        again = chat(tmp_path, "", "--resume", "x.jsonl", "--model", "scripted:whole.json")

        assert (1, "I am about \n") == (first.returncode, first.stdout)
        assert "(root: the model failed, it is not asked again: cut off)" in first.stderr
        assert "partial, it broke off here:\nI am about \n" in again.stderr
        assert (0, "I have said it.\n") == (again.returncode, again.stdout)

    def test_the_default_model_needs_nothing_and_says_what_it_is(self, tmp_path: Path) -> None:
        done = chat(tmp_path, "café\n/dialog Jack Jill\n")

        assert 0 == done.returncode
        assert "not a language model" in done.stderr
        assert done.stdout.splitlines()[1:] == [
            "root: You share a table in a crowded café. Introduce yourselves.",
            "Jack: Hello, I'm Jack. Is this seat really free?",
            "Jill: It is now. I'm Jill; mind the manuscript.",
        ]

    def test_commands_show_the_session_from_its_sides(self, tmp_path: Path, script: str) -> None:
        typed = "make Jack\n/agents\n/perspective Jack\n/dialog\n/help\n/nonsense\n/perspective\n/perspective Bob\n\n"
        done = chat(tmp_path, typed, "--model", script, "--file", "my.jsonl")

        assert "root (agent_001, 4 entries, root)\n  Jack (agent_002, 2 entries)\n" in done.stdout
        assert "[Heard]: Who are you?\n[Said]: I am Jack" in done.stdout
        assert "/perspective NAME" in done.stdout
        for problem in ("there is no /nonsense", "whose perspective?", "there is no agent 'Bob'"):
            assert problem in done.stderr

    def test_nothing_an_agent_says_reaches_the_terminal_as_a_command(self, tmp_path: Path, script: str) -> None:
        done = chat(tmp_path, "make Jack\n/dialog\n/perspective Jack\n", "--model", script)

        assert "\\x1b[31mred" in done.stdout
        assert "\x1b" not in done.stdout + done.stderr

    def test_a_model_that_fails_keeps_the_session_and_is_told_by_the_exit_code(
        self, tmp_path: Path, script: str
    ) -> None:
        done = chat(tmp_path, "make Jack\nfail\nhello\n", "--model", script, "--file", "x.jsonl")

        assert 1 == done.returncode
        assert "out of order" in done.stderr
        assert "Go on." in done.stdout

    def test_a_file_that_is_there_is_not_begun_again(self, tmp_path: Path, script: str) -> None:
        (tmp_path / "x.jsonl").touch()

        assert 2 == chat(tmp_path, "", "--file", "x.jsonl").returncode
        assert 3 == chat(tmp_path, "", "--resume", "y.jsonl").returncode
        assert 3 == chat(tmp_path, "hello\n", "--file", "z.jsonl", "--model", "scripted:none.json").returncode
        assert not (tmp_path / "z.jsonl").exists()

    def test_a_session_is_kept_in_one_file(self, tmp_path: Path, script: str) -> None:
        chat(tmp_path, "make Jack\n", "--model", script, "--file", "x.jsonl")
        before = (tmp_path / "x.jsonl").read_bytes()

        done = chat(tmp_path, "hello\n", "--resume", "x.jsonl", "--file", "y.jsonl")

        assert 2 == done.returncode
        assert "--file is for a new session" in done.stderr
        assert before == (tmp_path / "x.jsonl").read_bytes()
        assert not (tmp_path / "y.jsonl").exists()

    @pytest.mark.parametrize("option", ["--resume", "--file"])
    def test_a_folder_is_no_session(self, tmp_path: Path, option: str) -> None:
        done = chat(tmp_path, "", option, ".")

        assert (2, "error: . is a folder\nhint: name the session's log file in it\n") == (done.returncode, done.stderr)

    def test_functions_that_are_not_here_are_told_in_plain_words(self, tmp_path: Path) -> None:
        guard = Hook(name="Guard", points=("tool",), function=lambda _: None)
        _, session = load_session(tmp_path / "x.jsonl", hooks=[guard])
        session.close()

        done = chat(tmp_path, "hello\n", "--resume", "x.jsonl")

        assert 0 == done.returncode
        assert "warning: this session was watched by functions of the program that began it (Guard)" in done.stderr
        assert "let through" in done.stderr
        for raw in ("MissingHook", "chat.py", "load_session"):
            assert raw not in done.stderr

    def test_hints_are_for_the_terminal(self, tmp_path: Path) -> None:
        with Session(tmp_path / "x.jsonl"):
            held = chat(tmp_path, "", "--resume", "x.jsonl")
        lost = chat(tmp_path, "", "--model", "replay:none.jsonl")

        assert 4 == held.returncode
        assert "`harken view dialog x.jsonl`" in held.stderr
        assert 3 == lost.returncode
        assert "replay: takes a session log" in lost.stderr
        for python in ("readonly", "Session("):
            assert python not in held.stderr + lost.stderr

    def test_hints_of_a_compaction_are_for_the_terminal_too(self, tmp_path: Path) -> None:
        parts = {"root": {"rules": [{"when": "Sum up", "error": "no"}, {"when": "fail", "error": "no"}]}}
        parts["root"] |= {"otherwise": "yes"}
        (tmp_path / "script.json").write_text(json.dumps({"agents": parts}))

        done = chat(tmp_path, "a\nb\nc\n/compact\nfail\n/compact Short.\n", "--model", "scripted:script.json")

        assert "hint: /compact TEXT takes a summary of your own" in done.stderr
        assert "the oldest turns are folded" in done.stderr, "in the middle of a turn too (#9)"

    def test_an_unfinished_turn_is_finished_first(self, tmp_path: Path, script: str) -> None:
        chat(tmp_path, "make Jack\n", "--model", script, "--file", "x.jsonl")
        lines = (tmp_path / "x.jsonl").read_bytes().splitlines(keepends=True)
        (tmp_path / "x.jsonl").write_bytes(b"".join(lines[:6]))

        done = chat(tmp_path, "", "--resume", "x.jsonl")

        assert "Jack is here.\n" == done.stdout
        assert "going on with it" in done.stderr

    def test_a_system_prompt_is_for_the_root(self, tmp_path: Path, script: str) -> None:
        chat(tmp_path, "", "--model", script, "--file", "x.jsonl", "--system-prompt", "Be brief.")

        with Session.load(tmp_path / "x.jsonl", readonly=True) as session:
            assert [{"role": "system", "content": "Be brief."}] == session.transcript("agent_001")


class Terminal:
    """A chat at a terminal of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ["TERM"] = "dumb"
            os.execv(sys.executable, [*HARKEN, *options])
        self.seen = ""

    def wait_for(self, text: str, *, after: int = 0) -> None:
        assert self.look(text, after, 30.0), f"{text!r} did not come; seen: {self.seen!r}"

    def look(self, text: str, after: int, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while text not in self.seen[after:] and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.fd, 4096).decode(errors="replace")
                except OSError:
                    break
        return text in self.seen[after:]

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait_for_prompt(self, *, after: int = 0) -> None:
        """Until the prompt is drawn and the program waits for a key: one that comes earlier is lost, as for a person.

        Whoever edits a line has taken the terminal out of its line mode, and sleeps."""
        self.wait_for("you> ", after=after)
        wait_until(lambda: not termios.tcgetattr(self.fd)[3] & termios.ICANON and "S" == self._state())

    def _state(self) -> str:
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def press(self, key: str, until: str) -> None:
        """Press a key once, and see what comes of it. Twice would be too often: a second Ctrl-C strikes wherever the
        program is by then."""
        place = len(self.seen)
        self.type(key)
        self.wait_for(until, after=place)

    def leave(self) -> int:
        """Read to the end, since a program that nobody listens to waits with its last words; then its exit status."""
        self.look("\0 never said", 0, 30.0)
        wait_until(lambda: os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


class TestAtATerminal:
    def test_ctrl_c_stops_the_turn_and_keeps_the_session(self, tmp_path: Path, script: str) -> None:
        terminal = Terminal(tmp_path, "--model", script, "--file", "x.jsonl")
        terminal.wait_for_prompt()
        terminal.type("make Jack\n")
        terminal.wait_for("Jack is here.")
        place = len(terminal.seen)
        terminal.type("please wait\n")
        wait_until(lambda: b"please wait" in (tmp_path / "x.jsonl").read_bytes())
        terminal.press("\x03", "stopped; the session is kept")
        place = terminal.seen.index("stopped; the session is kept")
        terminal.wait_for_prompt(after=place)
        terminal.type("hello\n")
        terminal.wait_for("Go on.", after=place)
        terminal.wait_for_prompt(after=terminal.seen.index("Go on.", place))
        terminal.press("\x04", "resume it with")

        assert 0 == terminal.leave()
        assert "too late" not in terminal.seen

    def test_history_can_be_called_up_and_ctrl_c_at_the_prompt_does_not_leave(
        self, tmp_path: Path, script: str
    ) -> None:
        chat(tmp_path, "make Jack\nsay it again\n", "--model", script, "--file", "x.jsonl")
        terminal = Terminal(tmp_path, "--resume", "x.jsonl")
        terminal.wait_for_prompt()
        terminal.press("\x03", "Ctrl-D leaves")
        terminal.wait_for_prompt(after=terminal.seen.index("Ctrl-D leaves"))
        terminal.type("\x1b[A\n")  # the arrow up: what was said last, before the resume
        terminal.wait_for("Go on.")
        terminal.type("/quit\n")
        terminal.wait_for("resume it with")

        assert 0 == terminal.leave()
        with Session.load(tmp_path / "x.jsonl", readonly=True) as session:
            said = [m["content"] for m in session.transcript("agent_001") if m["role"] == "user"]
        assert ["make Jack", "say it again", "say it again"] == said


def wait_until(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_chat_that_is_killed_is_resumed_where_it_stopped(tmp_path: Path, script: str) -> None:
    process = subprocess.Popen(
        [*HARKEN, "--model", script, "--file", "x.jsonl"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    process.stdin.write(b"make Jack\nwait\n")
    process.stdin.flush()
    wait_until(lambda: (tmp_path / "x.jsonl").exists() and b'"wait"' in (tmp_path / "x.jsonl").read_bytes())
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    CAFE_NOW = CAFE | {"agents": CAFE["agents"] | {"root": {"otherwise": "Here I am."}}}
    (tmp_path / "script.json").write_text(json.dumps(CAFE_NOW))

    done = chat(tmp_path, "", "--resume", "x.jsonl")

    assert "Here I am.\n" == done.stdout


class TestQuestions:
    ASKING: ClassVar[dict[str, Any]] = {
        "agents": {
            "root": {
                "lines": [
                    {
                        "call": [
                            {"tool": "ask_person", "arguments": {"question": f"{what}?"}} for what in ("Tea", "Cake")
                        ]
                    },
                    "So be it.",
                ],
                "otherwise": "Go on.",
            }
        }
    }

    @pytest.fixture
    def asked(self, tmp_path: Path) -> Path:
        """A session in which an agent of some program has asked two things."""
        (tmp_path / "script.json").write_text(json.dumps(self.ASKING))
        root, session = load_session(
            tmp_path / "log.jsonl", language_model=f"scripted:{tmp_path / 'script.json'}", tools=[ask_person]
        )
        with session:
            root.harken("Go.")
            with pytest.raises(Waiting):
                asyncio.run(root.response())
        return tmp_path

    def test_are_shown_and_answered_and_the_turn_goes_on(self, asked: Path) -> None:
        done = chat(asked, "/answer 2 no thanks\nHello?\n/questions\n/answer Earl  Grey\n", "--resume", "log.jsonl")

        assert 0 == done.returncode
        assert [
            *("1. root asks: Tea?", "2. root asks: Cake?"),  # when it begins
            *["1. root asks: Tea?"] * 3,  # behind the first answer, behind what was not said, when asked for
            "So be it.",
        ] == done.stdout.splitlines()
        assert "that was not said" in done.stderr
        with Session(asked / "log.jsonl", readonly=True) as session:
            results = [line["content"] for line in session.records() if line.get("role") == "tool"]
            assert {"no thanks", "Earl Grey"} == set(results)

    def test_may_stay_open_and_leaving_is_no_failure(self, asked: Path) -> None:
        done = chat(asked, "", "--resume", "log.jsonl")

        assert (0, 2) == (done.returncode, len(done.stdout.splitlines()))

    def test_keep_their_numbers_until_all_are_answered(self, asked: Path) -> None:
        done = chat(asked, "/answer 1 Tea\n/answer 1 Coffee\n/answer 2 yes\n", "--resume", "log.jsonl")
        assert 1 == done.stderr.count("which question?")
        with Session.load(asked / "log.jsonl", readonly=True) as session:
            given = [answer.text for answer in session.registry.questions.answers.values()]
        assert ["Tea", "yes"] == given

    @pytest.mark.parametrize(
        ("typed", "told"),
        [("/answer Tea", "which question?"), ("/answer 3 x", "which question?"), ("/answer 1", "text")],
    )
    def test_that_cannot_be_answered_so_say_why(self, asked: Path, typed: str, told: str) -> None:
        done = chat(asked, f"{typed}\n", "--resume", "log.jsonl")

        assert told in done.stderr
        with Session(asked / "log.jsonl", readonly=True) as session:
            assert 2 == len(session.open_questions())

    def test_are_gone_when_the_turn_is_given_up(self, asked: Path) -> None:
        done = chat(asked, "/stop\n/questions\n/answer x\nAnd now?\n", "--resume", "log.jsonl")

        assert "So be it." == done.stdout.splitlines()[-1]
        assert 2 == done.stderr.count("nobody asks anything")


class TestSettings:
    def test_are_kept_with_the_session_and_what_is_given_later_takes_their_place(self, tmp_path: Path) -> None:
        parts = {"agents": {"root": [{"call": {"tool": "task", "arguments": {"name": "Ann"}}}, "Done."]}}
        (tmp_path / "script.json").write_text(json.dumps(parts))
        first = ["--limit-steps", "1", "--limit-cost", "2.5", "--temperature", "0.5", "--fallback", "demo"]
        stopped = chat(tmp_path, "Go.\n", "--model", "scripted:script.json", "--file", "log.jsonl", *first)
        assert "the limit of the session on steps is 1" in stopped.stderr
        again = chat(tmp_path, "", "--resume", "log.jsonl", "--limit-steps", "9", "--seed", "4")
        assert "Done.\n" == again.stdout

        root, session = load_session(tmp_path / "log.jsonl")
        with session:
            assert ModelOptions(temperature=0.5, seed=4, fallbacks=("demo",)) == root.options
            found = [one["metadata"] for one in session.records() if one.get("subtype") == "session_limits"]
        assert [{"cost_usd": 2.5, "steps": 1}, {"cost_usd": 2.5, "steps": 9}] == found

    @pytest.mark.parametrize(
        ("given", "told"),
        [(("--fallback", "scripted:none.json"), "none.json"), (("--limit-steps", "-1"), "not in the range")],
    )
    def test_that_cannot_be_had_are_told_before_a_file_is_made(
        self, given: tuple[str, ...], told: str, tmp_path: Path
    ) -> None:
        done = chat(tmp_path, "Go.\n", "--file", "log.jsonl", *given)
        assert done.returncode
        assert told in done.stderr
        assert not (tmp_path / "log.jsonl").exists()
