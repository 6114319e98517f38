"""Runtimes that speak for native agents, with a stand-in for the program; `tests/runtimes/test_cafe.py` has the real
ones."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import BadRequest, load_session
from harken.agents import RunLimits
from harken.errors import LimitReached, ModelFailed
from harken.runtimes.as_model import digest, take_apart
from support.fake_runtime import STEPS
from support.stream_lines import SESSION, init, result, says
from support.voices import Desk, say


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with harken.open(tmp_path / "store.db") as repo:
        yield Desk(repo, tmp_path)


def test_it_is_told_what_the_agent_was_told_and_goes_on_with_its_session(desk: Desk) -> None:
    desk.answers("Hello.")
    root, session = desk.open(runtimes=desk.use(arguments={"claude-code": ("--max-turns", "3")}))
    with session:
        assert "Hello." == say(root, "Who are you?")
        assert "Who are you?" == desk.notes["stdin"]
        argv = desk.notes["argv"]
        assert "You are Jill." == argv[argv.index("--append-system-prompt") + 1]
        assert "3" == argv[argv.index("--max-turns") + 1]
        assert "--resume" not in argv

        assert "Hello." == say(root, "-p is no option here")
        assert "-p is no option here" == desk.notes["stdin"]
        assert SESSION == desk.notes["argv"][desk.notes["argv"].index("--resume") + 1]
        begun, over, *_ = desk.turns(session)
    assert {"runtime": "claude-code", "asked": over["asked"]} == begun
    assert (SESSION, "Hello.") == (over["session"], over["text"])
    assert f"{session.session_id}/{root.agent_id}" == desk.repo.commit(over["commit"]).thread_id


def test_an_answer_that_came_before_a_crash_is_not_asked_for_again(desk: Desk) -> None:
    desk.answers("Hello.")
    root, session = desk.open()
    with session:
        say(root, "Who are you?")
    lines = desk.log.read_bytes().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if b'"role":"assistant"' in line)
    desk.log.write_bytes(b"".join(lines[:place]))
    desk.steps({"exit": 9})

    root, session = desk.open()
    with session:
        assert "Hello." == asyncio.run(root.resume())


def test_a_log_cut_after_any_line_comes_to_the_same_end(desk: Desk) -> None:
    """A turn that was over is taken from the log, or from the store where the log does not know it yet."""
    desk.answers("Hello.")
    root, session = desk.open()
    with session:
        for text in ("One?", "Two?"):
            say(root, text)
        expected = [(entry["role"], entry["content"]) for entry in root.transcript]
    lines = desk.log.read_bytes().splitlines(keepends=True)
    begun = {number for number, line in enumerate(lines) if b'"runtime_turn"' in line and b'"session"' not in line}
    for cut in range(len(lines)):
        desk.log.write_bytes(b"".join(lines[:cut]))
        (desk.folder / "notes.json").unlink(missing_ok=True)

        root, session = desk.open()
        with session:
            asyncio.run(root.resume())
            if cut - 1 in begun and (desk.folder / "notes.json").exists():
                # What the program's session holds of this turn is not gone on with.
                assert SESSION not in desk.notes["argv"], f"cut after line {cut}"
            asked = [entry["content"] for entry in root.transcript if entry["role"] == "user"]
            for text in ("One?", "Two?")[len(asked) :]:
                say(root, text)
            assert expected == [(entry["role"], entry["content"]) for entry in root.transcript], f"cut after {cut}"


def test_what_was_heard_while_the_program_spoke_is_not_passed_over(desk: Desk) -> None:
    go, begun = desk.folder / "go", desk.folder / "begun"
    desk.steps({"stdin": True}, {"touch": str(begun)}, {"wait": str(go)}, init(), says("Hello."), result("Hello."))
    root, session = desk.open()

    async def whisper() -> None:
        turn = asyncio.ensure_future(root.response())
        while not begun.exists():
            await asyncio.sleep(0.02)
        root.harken("Psst.")
        go.touch()
        await turn

    with session:
        root.harken("Who are you?")
        asyncio.run(whisper())
        say(root, "And now?")
        argv = desk.notes["argv"]
        assert SESSION != argv[argv.index("--resume") + 1]
        (written,) = desk.folder.rglob(f"{argv[argv.index('--resume') + 1]}.jsonl")
        assert ["Psst." in written.read_text(), "And now?" in written.read_text()] == [True, False]
        assert "And now?" == desk.notes["stdin"]


def test_a_program_that_fails_leaves_the_turn_open(desk: Desk) -> None:
    desk.steps({"stderr": "no key"}, {"exit": 3})
    root, session = desk.open()
    with session:
        with pytest.raises(ModelFailed, match=r"Claude Code ended with 3: .*no key"):
            say(root, "Who are you?")
        desk.answers("Hello.")
        assert "Hello." == asyncio.run(root.resume())


def test_what_a_program_used_counts_towards_limits_and_in_its_own_session_alone(desk: Desk) -> None:
    root, session = desk.open()
    with session:
        root.limits = RunLimits(tokens=20)
        for number in (1, 2):
            desk.steps({"stdin": True}, init(), says("Hello.", number), result("Hello.", session_id=SESSION))
            say(root, f"{number}?")
        with pytest.raises(LimitReached, match="limit of root on tokens is 20, and 26 is used"):
            say(root, "3?")
        used = [turn["tokens"] for turn in desk.turns(session) if turn.get("session")]
        *_, total = desk.repo.stats()
        desk.answers("Hello again.")
        root.limits = RunLimits(tokens=100)
        assert "Hello again." == asyncio.run(root.resume())

    assert [13, 13] == used
    assert (20, 6) == (total.figures.usage.input, total.figures.usage.output)


def test_a_turn_that_failed_counts_towards_limits_too(desk: Desk) -> None:
    desk.steps({"stdin": True}, init(), says("I will n"), {"exit": 3})
    root, session = desk.open()
    with session:
        with pytest.raises(ModelFailed):
            say(root, "Who are you?")
        root.limits = RunLimits(tokens=10)  # how much it would have said in all nobody knows
        with pytest.raises(LimitReached):
            asyncio.run(root.resume())


def test_whoever_gives_a_turn_up_ends_the_program(desk: Desk) -> None:
    desk.steps({"touch": str(desk.folder / "begun")}, {"wait": str(desk.folder / "never")})
    root, session = desk.open()

    async def give_up() -> None:
        turn = asyncio.ensure_future(root.response())
        while not (desk.folder / "begun").exists():
            await asyncio.sleep(0.02)
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)

    with session:
        root.harken("Who are you?")
        asyncio.run(give_up())
        assert [] == left_behind(desk.folder)
        assert root.is_pending


def test_a_program_does_not_outlive_us(desk: Desk) -> None:
    desk.steps({"touch": str(desk.folder / "begun")}, {"wait": str(desk.folder / "never")})
    child = os.fork()
    if not child:
        root, _ = desk.open()
        root.harken("Who are you?")
        asyncio.run(root.response())
        os._exit(0)
    latest = time.monotonic() + 30
    while not (desk.folder / "begun").exists() and time.monotonic() < latest:
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while left_behind(desk.folder) and time.monotonic() < latest:
        time.sleep(0.05)
    assert [] == left_behind(desk.folder)


def left_behind(folder: Path) -> list[str]:
    """The stand-ins that still run."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and f"{STEPS}={folder}/".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


class TestRefused:
    def test_nothing_is_started_for_a_log_that_only_says_so_itself(self, desk: Desk) -> None:
        root, session = desk.open(runtimes=None)
        with session, pytest.raises(BadRequest, match="nobody has said that Claude Code may be started"):
            say(root, "Who are you?")

    def test_a_session_without_a_store_has_no_runtimes(self, tmp_path: Path) -> None:
        root, session = load_session(tmp_path / "log", language_model="runtime:codex")
        with session, pytest.raises(BadRequest, match="session that a store keeps"):
            say(root, "Who are you?")

    def test_a_runtime_that_cannot_is_named(self, desk: Desk) -> None:
        root, session = desk.open()
        root.language_model = "runtime:pi"
        with session, pytest.raises(BadRequest, match="pi cannot speak for an agent"):
            say(root, "Who are you?")


class TestTakingApart:
    def test_what_was_said_since_the_last_answer_is_the_prompt(self) -> None:
        messages = [
            {"role": "system", "content": "You are Jill."},
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "[Jack]: One."},
            {"role": "user", "content": "[Ann]: Two."},
        ]
        told = take_apart(messages)
        assert ("You are Jill.", "[Jack]: One.\n\n[Ann]: Two.") == (told.instructions, told.prompt)
        assert messages[1:3] == told.past
        assert digest(messages[1:3]) == digest(told.past) != digest(messages)

    def test_results_belong_to_what_came_before(self) -> None:
        messages = [{"role": "assistant", "content": None}, {"role": "tool", "content": "4"}]
        assert ("Go on.", messages) == (take_apart(messages).prompt, take_apart(messages).past)

    @pytest.mark.parametrize("words", ["/clear", " !rm -r .", "# remember"])
    def test_words_of_others_are_no_orders_to_the_program(self, words: str) -> None:
        assert f"You are told: {words}" == take_apart([{"role": "user", "content": words}]).prompt
