"""The recorder's thread: what it does when something fails, and how long anybody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import harken
from harken.context import Tracker
from harken.errors import Corrupt
from harken.events import Event, Prompt, Response, System
from harken.events.cbor import decode_events
from harken.runtimes import base, recording, sources
from harken.runtimes.live import RunFacts, track
from harken.runtimes.recorder import Opening, Recorder
from harken.runtimes.recording import Recording
from harken.runtimes.run import Ended, RunOutput
from harken.runtimes.spool import SpoolFile, SpoolNote, new_header
from harken.store import Store
from support.sessions import ClaudeSession
from support.stream_lines import SESSION, answers, calls, init, result, says

from .conftest import Bench

FACTS = RunFacts(runtime="claude-code")
open_chain = track


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
        recorder = kind(launch, lambda opening: open_chain(repo.store, opening, FACTS, warn=heard.append), heard.append)
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


class TestAnEarlierRunThatFailsInAWayNobodyForesaw:
    def test_does_not_keep_a_run_from_being_recorded(self, make: Any) -> None:
        taken, _ = make(store_earlier=lambda moved: 1 // 0)

        feed(taken, init(), says("Hello."))

        assert taken.end()


class TestAChainThatCannotBeOpened:
    """What was not stored is stored once, under its own name and in its order, from the spool."""

    @pytest.fixture
    def refuse(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
        """Have the chain of that name be refused when it is first asked for."""

        def made(name: str) -> None:
            refused: list[str] = []

            def opened(store: Store, opening: Opening, facts: RunFacts, **how: Any) -> Tracker:
                if opening.name == name and not refused:
                    refused.append(name)
                    raise Corrupt("its row is not what was written", hint="look at it")
                return track(store, opening, facts, **how)

            monkeypatch.setattr(f"{__name__}.open_chain", opened)

        return made

    def said(self, store: Path, name: str) -> list[str]:
        with harken.open(store) as repo:
            events = decode_events(repo.materialize(f"live/{name}", format="events-v1").bytes)
        return [event.content for event in events if isinstance(event, (Prompt, Response))]

    def test_of_a_session_is_recorded_under_no_other_name(self, make: Any, refuse: Any, tmp_path: Path) -> None:
        refuse(SESSION)
        taken, spool = make()
        taken.note(SpoolNote(prompt="Hi", time=1))
        feed(taken, init(), says("Hello."), result("Hello."))

        assert not taken.end()
        with harken.open(tmp_path / "store.db") as repo:
            assert ([], str(spool.path)) == (repo.sessions(), taken.spool)
            repo.store_spools()
            [row] = repo.sessions()
        assert (SESSION, 2, 500_000) == (row.session, row.messages, row.cost_usd_micros)
        assert ["Hi", "Hello."] == self.said(tmp_path / "store.db", SESSION)

    def test_of_a_second_session_is_no_part_of_the_first(self, make: Any, refuse: Any, tmp_path: Path) -> None:
        refuse("second")
        taken, _ = make()
        feed(taken, init(), says("One."), init("second"), says("Two.", 2), init("third"), says("Three.", 3))

        assert not taken.end()
        store = tmp_path / "store.db"
        assert [["One."], ["Three."]] == [self.said(store, name) for name in (SESSION, "third")]
        with harken.open(store) as repo:
            assert [""] == [stored.problem for stored in repo.store_spools()]
        assert [["One."], ["Two."], ["Three."]] == [self.said(store, name) for name in (SESSION, "second", "third")]

    def test_of_a_sub_agent_is_whole_and_in_order_later(self, make: Any, refuse: Any, tmp_path: Path) -> None:
        refuse(f"{SESSION}/t1")
        taken, _ = make()
        task = calls("Task", "t1", input={"prompt": "look"})
        words = [says(text, number, parent_tool_use_id="t1") for number, text in ((2, "One."), (3, "Two."))]
        feed(taken, init(), task, *words, answers("t1", "done"), says("Ready.", 4))

        assert not taken.end()
        store = tmp_path / "store.db"
        assert ["Ready."] == self.said(store, SESSION)
        with harken.open(store) as repo:
            assert [SESSION] == [row.session for row in repo.store.sessions()]
            repo.store_spools()
        assert ["look", "One.", "Two."] == self.said(store, f"{SESSION}/t1")
        assert ["Ready."] == self.said(store, SESSION)
