"""The recorder's thread: what it does when something fails, and how long anybody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import harken
from harken.events import Event, Prompt, Response, System
from harken.events.cbor import decode_events
from harken.runtimes import base, recording, sources
from harken.runtimes.live import RunFacts, track
from harken.runtimes.recorder import Recorder
from harken.runtimes.recording import Recording
from harken.runtimes.run import Ended, RunOutput
from harken.runtimes.spool import SpoolFile, SpoolNote, new_header
from support.sessions import ClaudeSession
from support.stream_lines import SESSION, init, says

from .conftest import Bench

FACTS = RunFacts(runtime="claude-code")


class SlowRecorder(Recorder):
    """A recorder that takes up nothing before it may."""

    may = threading.Event()

    def line(self, line: bytes, found: dict[str, Any]) -> None:
        self.may.wait(30)
        super().line(line, found)


@pytest.fixture
def heard() -> list[str]:
    return []


@pytest.fixture
def make(heard: list[str], tmp_path: Path) -> Iterator[Callable[..., tuple[Recording, SpoolFile]]]:
    repos = []

    def made(where: str = "", kind: type[Recorder] = Recorder, **how: Any) -> tuple[Recording, SpoolFile]:
        repo = harken.open(where or tmp_path / "store.db")
        repos.append(repo)
        launch = base.get("claude-code").launch
        assert launch is not None
        recorder = kind(launch, lambda opening: track(repo.store, opening, FACTS, warn=heard.append), heard.append)
        spool = SpoolFile(repo.store, new_header("claude-code", FACTS, started=1, session="s"))
        return Recording(recorder, spool, **how), spool

    yield made
    for repo in repos:
        repo.close()


def feed(taken: Recording, *steps: dict[str, Any]) -> None:
    for step in steps:
        taken.line(orjson.dumps(step["line"]), step["line"])


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> type[SlowRecorder]:
    monkeypatch.setattr(SlowRecorder, "may", threading.Event())
    monkeypatch.setattr(recording, "GIVE_UP_AFTER", 0.05)
    return SlowRecorder


class TestSomethingThatFails:
    def test_is_told_and_what_is_queued_behind_it_is_recorded(
        self, make: Any, heard: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        taken, spool = make()
        events = spool.events

        def fails_at_prompts(note: SpoolNote) -> list[Event]:
            if note.prompt:
                raise ValueError("no such prompt")
            return events(note)

        monkeypatch.setattr(spool, "events", fails_at_prompts)
        feed(taken, init())
        taken.note(SpoolNote(prompt="lost", time=1))
        feed(taken, says("Hello."))
        taken.note(SpoolNote(status=0, time=2))

        assert not taken.end()
        assert ["this run is no longer recorded in full: no such prompt"] == heard
        assert ("no such prompt", str(spool.path)) == (taken.problem, taken.spool)
        assert spool.path is not None and b"lost" in spool.path.read_bytes()
        with harken.open(spool.path.parent / "store.db") as repo:
            assert taken.context_id == repo.history(f"live/{SESSION}")[0].short
            kept = decode_events(repo.materialize(taken.context_id, format="events-v1").bytes)
            assert [Response, System] == [type(event) for event in kept if isinstance(event, (Response, System))][-2:]

    def test_may_even_be_nobody_who_listens(self, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        taken, spool = make()
        monkeypatch.setattr(spool, "events", lambda note: 1 // 0)
        monkeypatch.setattr(taken._recorder, "_warn", lambda text: 1 // 0)
        taken.note(SpoolNote(status=0, time=1))

        assert not taken.end()
        assert "division" in taken.problem


class TestAStoreThatTakesNothing:
    def test_is_waited_for_as_long_as_it_takes_where_there_is_no_spool(
        self, make: Any, slow: type[SlowRecorder], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recording, "BACKLOG", 10)
        taken, spool = make("memory:", slow)
        assert not spool.whole
        threading.Timer(0.5, slow.may.set).start()

        feed(taken, init(), says("One."), says("Two.", 2))

        assert taken.end(), "although nothing moved for ten times the time after which a run with a spool gives up"
        assert "" != taken.context_id

    def test_is_waited_for_where_the_disk_of_the_spool_failed(
        self, make: Any, slow: type[SlowRecorder], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        taken, spool = make(kind=slow)

        def full(line: bytes) -> None:
            raise OSError("no room")

        monkeypatch.setattr(spool, "_write", full)
        threading.Timer(0.5, slow.may.set).start()
        feed(taken, init(), says("One."))

        assert (True, False) == (taken.end(), spool.whole)

    def test_is_given_up_when_too_much_waits_and_the_spool_has_it_all(
        self, make: Any, slow: type[SlowRecorder], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recording, "BACKLOG", 10)
        taken, spool = make(kind=slow)
        feed(taken, init(), says("One."), says("Two.", 2))

        assert None is taken.ask(lambda recorder: "an answer")
        assert not taken.end()
        slow.may.set()
        assert str(spool.path) == taken.spool
        assert spool.path is not None and b"Two." in spool.path.read_bytes()
        assert "" == taken.context_id

    def test_is_not_given_up_while_it_moves(
        self, make: Any, slow: type[SlowRecorder], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recording, "BACKLOG", 10)
        monkeypatch.setattr(recording, "GIVE_UP_AFTER", 30)
        slow.may.set()
        taken, spool = make(kind=slow)
        feed(taken, init(), *[says(f"Word {number}.", number) for number in range(50)])

        assert taken.end()
        assert spool.path is not None and not spool.path.exists()


class TestWorkBeforeTheRun:
    def test_is_waited_for_as_long_as_it_moves(self, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recording, "GIVE_UP_AFTER", 1.0)
        taken, _ = make()
        pause = threading.Event()

        def work(moved: Callable[[], None]) -> None:
            for _ in range(8):
                pause.wait(0.2)
                moved()

        assert taken.before(work), "it lasted longer than anybody waits for nothing"
        monkeypatch.undo()
        assert taken.end()

    def test_that_stands_still_is_stopped_when_it_moves_again(self, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recording, "GIVE_UP_AFTER", 0.05)
        monkeypatch.setattr(recording, "ANSWER_TIME", 0.05)
        taken, _ = make()
        go_on, done = threading.Event(), []

        def work(moved: Callable[[], None]) -> None:
            with taken.busy_with("a file is being read"):
                go_on.wait(30)
                moved()
                done.append("all of it")

        assert not taken.before(work)
        assert None is taken.ask(lambda recorder: "an answer")
        assert "a file is being read" == taken.silence
        monkeypatch.undo()
        go_on.set()
        assert (True, []) == (taken.end(), done)
        assert "" == taken.problem, "the run itself is recorded"

    def test_that_fails_is_no_failure_of_the_run(self, make: Any) -> None:
        taken, _ = make()

        assert not taken.before(lambda moved: 1 // 0 and None)
        assert (True, "") == (taken.end(), taken.problem)


class TestARunInThisProcess:
    @pytest.fixture
    def go(self, bench: Bench, heard: list[str]) -> Callable[..., Ended]:
        def made(steps: list[dict[str, Any]], *words: str) -> Ended:
            (bench.folder / "steps.json").write_bytes(orjson.dumps(steps))
            with harken.open(bench.store) as repo:
                output, folder = RunOutput(warn=heard.append), str(bench.folder)
                return repo.run("claude-code", list(words), cwd=folder, environ=bench.environment, output=output)

        return made

    def test_says_that_its_reader_failed_and_not_the_store(
        self, go: Any, heard: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        line = Recorder.line

        def fails(self: Recorder, data: bytes, found: dict[str, Any]) -> None:
            if b"Hello" in data:
                raise ValueError("unheard of")
            line(self, data, found)

        monkeypatch.setattr(Recorder, "line", fails)

        ended = go([init(), says("Hello."), says("Bye.", 2)], "-p", "hi")

        assert heard[-1].startswith("not all of this run could be read: unheard of; ")
        assert (False, True) == (ended.is_stored, Path(ended.spool).exists())

    def test_begins_when_the_file_it_goes_on_from_is_read(
        self, go: Any, bench: Bench, heard: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However long that takes, as long as it gets on; a question is answered sooner."""
        go([init(), says("Half a"), {"die": "SIGKILL"}], "-p", "one")
        file = ClaudeSession(SESSION)
        file.prompt("one")
        folder = bench.folder / ".claude" / "projects" / "x"
        folder.mkdir(parents=True)
        (folder / f"{SESSION}.jsonl").write_bytes(file.data)
        read, pause, had_begun = sources.read_source, threading.Event(), []

        def slowly(*words: Any) -> sources.Reading:
            for part in read(*words):
                pause.wait(0.2)
                had_begun.append((bench.folder / "begun").exists())
                yield part

        monkeypatch.setattr(sources, "read_source", slowly)
        monkeypatch.setattr(recording, "ANSWER_TIME", 0.01)

        go([{"touch": str(bench.folder / "begun")}, init(), says("Two!", 2)], "-p", "two", "--resume", SESSION)

        assert [False, False] == had_begun[:2], "whose it is and what it holds; behind that it is read again"
        assert (True, []) == ((bench.folder / "begun").exists(), [told for told in heard if "before the run" in told])

    def test_says_that_the_file_it_goes_on_from_could_not_be_read(
        self, go: Any, bench: Bench, heard: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go([init(), says("Half a")], "-p", "one")
        monkeypatch.setattr("harken.runtimes.importer.Importer.run", lambda self, files: 1 // 0)

        ended = go([init(), says("Two!", 2)], "-p", "two", "--resume", SESSION)

        assert f"the file of session {SESSION!r} could not be read before the run; import it afterwards" in heard
        assert ended.is_stored


@pytest.mark.parametrize("number", [34, 40, 64])
def test_a_run_that_a_real_time_signal_ends_is_recorded(bench: Bench, number: int) -> None:
    done = bench.run([init(), says("Hello."), {"die": number}], "claude-code", "--", "-p", "hi")

    assert (128 + number, False) == (done.returncode, "Traceback" in done.stderr)
    events = bench.events(f"live/{SESSION}")
    assert ["hi", "Hello."] == [event.content for event in events if isinstance(event, (Prompt, Response))]
    assert isinstance(events[-1], System) and events[-1].message.startswith("killed by ")
    assert [] == list(bench.folder.glob("store.db-spool-*"))


class TestARunThatHasToWaitForAnEarlierOne:
    def test_stays_in_its_spool_where_that_one_could_not_be_stored(self, make: Any, tmp_path: Path) -> None:
        taken, spool = make(store_earlier=lambda moved: False)

        feed(taken, init(), says("Hello."))

        assert not taken.end()
        assert (True, True) == (str(spool.path) == taken.spool, spool.path.exists())
        with harken.open(tmp_path / "store.db") as repo:
            assert [] == repo.sessions()

    def test_is_recorded_where_it_has_no_spool(self, make: Any) -> None:
        """A store in memory: out of order is better than lost."""
        taken, _ = make("memory:", store_earlier=lambda moved: False)

        feed(taken, init(), says("Hello."))

        assert taken.end()

    def test_is_recorded_where_storing_the_earlier_one_fails_in_a_way_nobody_foresaw(self, make: Any) -> None:
        taken, _ = make(store_earlier=lambda moved: 1 // 0)

        feed(taken, init(), says("Hello."))

        assert taken.end()
