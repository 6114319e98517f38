"""A turn of a runtime that was over when the process died is taken as it was, wherever the process died."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.files import SPOOL, find_beside
from harken.repo import voices
from harken.runtimes.recording import Recording
from harken.runtimes.spool import SpoolFile, SpoolNote, spools
from harken.runtimes.spooled import store_spools
from support.stream_lines import SESSION, answers, calls, init, result, says
from support.voices import Desk, say


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(harken.open(tmp_path / "store.db"), tmp_path)
    yield made
    made.repo.close()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, name: str, when: Callable[..., bool] = lambda *_: True) -> Callable[[], None]:
    """Lets the process die before it calls a function."""

    def plant() -> None:
        whole = getattr(owner, name)
        setattr(owner, name, lambda *given, **more: die() if when(*given) else whole(*given, **more))

    return plant


def behind(owner: Any, name: str) -> Callable[[], None]:
    """Lets the process die when a function is done."""

    def plant() -> None:
        whole = getattr(owner, name)
        setattr(owner, name, lambda *given, **more: (whole(*given, **more), die()))

    return plant


def ends(_: object, note: SpoolNote) -> bool:
    return note.status is not None


POINTS = {
    "the program has ended": before(SpoolFile, "note", ends),
    "everything is stored": before(SpoolFile, "discard"),
    "the spool is gone": behind(SpoolFile, "discard"),
    "the recording is over": behind(Recording, "end"),
    "its figures are asked for": before(voices, "spent_by"),
    "the answer is to be logged": before(voices.RuntimeModel, "_note", lambda _, agent, turn: bool(turn.session)),
}
POINTS_BEFORE = {
    "the turn is to be logged": before(voices.RuntimeModel, "_note"),
    "the turn is logged": behind(voices.RuntimeModel, "_note"),
    "the program is to be started": before(voices, "play"),
}


def tools_run(desk: Desk) -> int:
    path = desk.folder / "ran"
    return len(path.read_text().splitlines()) if path.exists() else 0


def works(desk: Desk, *more: dict[str, Any]) -> None:
    """The program's tool does something that may be done once."""
    tool = {"tool": ["sh", "-c", f"echo x >> {desk.folder}/ran"]}
    told = [init(), says("Let me look."), calls("Bash", "c1"), tool, answers("c1", "done")]
    desk.steps({"stdin": True}, *told, says("Hello.", 2), result("Hello."), *more)


def played_until(desk: Desk, plant: Callable[[], None], text: str) -> None:
    """Another process says something to the agent, and dies somewhere."""
    assert signal.SIGKILL == os.waitpid(elsewhere(desk, plant, text), 0)[1]
    desk.repo = harken.open(desk.folder / "store.db")


def elsewhere(desk: Desk, plant: Callable[[], None], text: str) -> int:
    """A process in which something is said to the agent. No store survives a fork, so ours is closed."""
    desk.repo.close()
    if not (child := os.fork()):
        try:
            plant()
            desk.repo = harken.open(desk.folder / "store.db")
            say(desk.open()[0], text)
        finally:
            os._exit(1)
    return child


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("continued", [False, True], ids=["first turn", "later turn"])
def test_a_turn_that_was_over_is_not_played_again(desk: Desk, point: str, continued: bool) -> None:
    works(desk)
    if continued:
        root, session = desk.open()
        with session:
            say(root, "Hi.")
    played_until(desk, POINTS[point], "Who are you?")
    expected = tools_run(desk)

    root, session = desk.open()
    with session:
        assert "Hello." == asyncio.run(root.resume())
        assert expected == tools_run(desk)
        assert [] == spools(desk.repo.store)
        *_, over = desk.turns(session)
        assert (SESSION, "Hello.") == (over["session"], over["text"])
        assert 0 < over["tokens"]
        desk.answers("Still me.")
        assert "Still me." == say(root, "And now?")
        assert knows(desk, "Who are you?", "Hello.")


@pytest.mark.parametrize("point", POINTS_BEFORE)
def test_one_that_was_not_begun_is_played(desk: Desk, point: str) -> None:
    works(desk)
    root, session = desk.open()
    with session:
        say(root, "Hi.")
    played_until(desk, POINTS_BEFORE[point], "Who are you?")
    root, session = desk.open()
    with session:
        assert "Hello." == asyncio.run(root.resume())
        assert 2 == tools_run(desk)
        # What its session holds of a turn that was begun nobody knows.
        assert (point == "the turn is to be logged") == (SESSION in desk.notes["argv"])
        assert knows(desk, "Hi.", "Hello.")


def test_one_that_another_command_has_stored_is_found(desk: Desk) -> None:
    works(desk)
    played_until(desk, POINTS["everything is stored"], "Who are you?")
    store_spools(desk.repo.store)
    assert [] == spools(desk.repo.store)
    root, session = desk.open()
    with session:
        assert "Hello." == asyncio.run(root.resume())
    assert 1 == tools_run(desk)


def test_a_program_that_was_cut_off_behind_its_answer_is_gone_on_from_in_a_session_of_its_own(desk: Desk) -> None:
    """What its file holds of the answer nobody knows."""
    works(desk, {"wait": str(desk.folder / "never")})
    wait_for_the_answer(desk)
    root, session = desk.open()
    with session:
        assert "Hello." == asyncio.run(root.resume())
        assert 1 == tools_run(desk)
        desk.answers("Still me.")
        assert "Still me." == say(root, "And now?")
        assert SESSION not in desk.notes["argv"]
        assert knows(desk, "Who are you?", "Hello.")


def test_one_that_went_on_behind_an_answer_was_not_over(desk: Desk) -> None:
    """A program that waits for something in the background answers more than once."""
    works(desk, says("There is more.", 3), {"wait": str(desk.folder / "never")})
    wait_for_the_answer(desk, b"There is more.")
    desk.answers("Anew.")
    root, session = desk.open()
    with session:
        assert "Anew." == asyncio.run(root.resume())


def test_one_that_failed_is_played_again(desk: Desk) -> None:
    works(desk, {"exit": 3})
    played_until(desk, POINTS["the recording is over"], "Who are you?")
    desk.answers("Anew.")
    root, session = desk.open()
    with session:
        assert "Anew." == asyncio.run(root.resume())


def test_the_answer_to_the_same_words_before_is_not_taken_for_it(desk: Desk) -> None:
    desk.answers("First.")
    root, session = desk.open()
    with session:
        say(root, "Go on.")
    played_until(desk, POINTS_BEFORE["the program is to be started"], "Go on.")
    desk.answers("Second.")
    root, session = desk.open()
    with session:
        assert "Second." == asyncio.run(root.resume())


def wait_for_the_answer(desk: Desk, answer: bytes = b'"result"') -> None:
    """A process dies when it has heard the answer of a program that goes on."""
    child, store = elsewhere(desk, lambda: None, "Who are you?"), desk.folder / "store.db"
    latest = time.monotonic() + 30
    while not any(answer in path.read_bytes() for path in find_beside(store, SPOOL)) and time.monotonic() < latest:
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    desk.repo = harken.open(store)


def knows(desk: Desk, *words: str) -> bool:
    """Whether the program was started with a session that holds what was said."""
    argv = desk.notes["argv"]
    session = argv[argv.index("--resume") + 1]
    if session == SESSION:  # the stand-in writes no file
        return True
    (written,) = desk.folder.rglob(f"{session}.jsonl")
    return all(word in written.read_text() for word in words)
