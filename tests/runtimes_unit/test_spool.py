"""A run whose store nobody can write to: it goes on, and what it said is stored by whoever writes next. #46"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

import harken
from harken.errors import Conflict, HarkenError, Locked
from harken.events import Event, Metric, Prompt, Response, System, ToolCall, ToolResult
from harken.repo import upkeep
from harken.repo.doctor import diagnose
from harken.runtimes import spooled
from harken.runtimes.live import RunFacts
from harken.runtimes.process import CHUNK
from harken.runtimes.spool import SpoolFile, SpoolNote, new_header, taken
from harken.runtimes.spooled import store_spools
from harken.store import Store
from harken.store.sqlite import SqliteStore
from support.stream_lines import SESSION, THREAD, answers, calls, init, item, result, says, thread, turn_completed

from .conftest import Bench

# Each of them waits for a store that is locked, which takes seconds.
LOCKED = pytest.mark.faults

LIVE = f"live/{SESSION}"
FIRST = ["Say hello", "Let me look.", "Bash", "fine", "Hello."]
ASK = {"tool": ["harken", "current-context"]}
RUN = ("claude-code", "--ticket", "T-7", "--", "-p", "Say hello")
STEPS = [
    init(),
    says("Let me look."),
    calls("Bash", "t1"),
    ASK,
    answers("t1", "fine"),
    says("Hello.", 2),
    result("Hello."),
]


def said(events: list[Event]) -> list[str]:
    spoken = [event for event in events if isinstance(event, (Prompt, Response, ToolCall, ToolResult))]
    return [
        getattr(event, "content", "") or getattr(event, "output", "") or getattr(event, "name", "") for event in spoken
    ]


@contextmanager
def locked(bench: Bench) -> Iterator[None]:
    """The store, while somebody else is in the middle of a transaction."""
    with harken.open(bench.store) as repo, repo.store.write() as writer:
        writer.put(b"something")
        bench.impatient = True
        yield
    bench.impatient = False


def spools(bench: Bench) -> list[Path]:
    return sorted(bench.folder.glob("store.db-spool-*"))


def wait_until_heard(bench: Bench) -> None:
    """Wait until the run has heard the call."""
    bench.wait_until(lambda: any(b"Bash" in path.read_bytes() for path in spools(bench)))


ODD: dict[str, Callable[[Path], object]] = {
    "folder": Path.mkdir,
    "link to a file": lambda path: path.symlink_to("/etc/hostname"),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "pipe": os.mkfifo,
}
"""What may lie beside a store under the name of a spool."""


def command(bench: Bench, *words: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "harken", *words]
    return subprocess.run(program, env=bench.environment, cwd=bench.folder, capture_output=True, text=True, timeout=60)


def write_spool(repo: harken.Repo, *, results: int, size: int) -> None:
    """A spool with so many results of tools, each of that many characters, which no compression makes smaller."""
    header = new_header("claude-code", RunFacts(runtime="claude-code"), started=1, session="s")
    spool = SpoolFile(repo.store, header)
    spool.line(json.dumps(init()["line"]).encode())
    for number in range(results):
        spool.line(json.dumps(calls("Bash", f"t{number}", number)["line"]).encode())
        spool.line(json.dumps(answers(f"t{number}", os.urandom(size // 2).hex())["line"]).encode())
    spool.keep()


@pytest.fixture
def store(bench: Bench) -> Path:
    harken.open(bench.store).close()
    return bench.store


@LOCKED
@pytest.mark.usefixtures("store")
class TestAStoreThatIsLockedForTheWholeRun:
    def test_holds_up_nothing(self, bench: Bench) -> None:
        with locked(bench):
            done = bench.run(STEPS, *RUN)
            other = SqliteStore(bench.store, timeout=0)
            with closing(other), pytest.raises(Locked), other.write() as writer:
                writer.put(b"it is still locked: nobody waited for it")

        assert (0, "Hello.\n") == (done.returncode, done.stdout)
        [[status, out, err]] = bench.notes["tools"]
        assert (0, "", True) == (status, out, "the store cannot be written at the moment" in err)
        [spool] = spools(bench)
        assert (
            f"the store could not be written; the next command that writes to the store stores {spool}" in done.stderr
        )

    def test_leaves_a_file_for_its_owner_with_a_header_and_the_programs_own_lines(self, bench: Bench) -> None:
        with locked(bench):
            bench.run(STEPS, *RUN)

        [spool] = spools(bench)
        assert 0o600 == stat.S_IMODE(spool.stat().st_mode)
        header, *lines = spool.read_bytes().splitlines()
        told = json.loads(header)
        assert (1, "claude-code", "T-7") == (told["harken_spool"], told["runtime"], told["facts"]["ticket_id"])
        printed = [line for line in lines if not line.startswith(told["mark"].encode())]
        assert [step["line"] for step in STEPS if "line" in step] == [json.loads(line) for line in printed]

    @pytest.mark.parametrize("words", [("gc",), ("backup", "copy.db")], ids=lambda words: words[0])
    def test_is_stored_by_the_next_command_that_writes(self, bench: Bench, words: tuple[str, ...]) -> None:
        with locked(bench):
            bench.run(STEPS, *RUN)

        done = command(bench, *words)

        assert 0 == done.returncode, done.stderr
        assert [] == spools(bench)
        events = bench.events(LIVE)
        assert ["Say hello", "Let me look.", "Bash", "fine", "Hello."] == said(events)
        assert isinstance(events[-1], System)
        assert {"exit_status": 0, "signal": None} == json.loads(events[-1].metadata)
        with harken.open(bench.store) as repo:
            assert {"T-7"} == {commit.ticket_id for commit in repo.history(LIVE)}

    def test_is_stored_by_the_next_run(self, bench: Bench) -> None:
        with locked(bench):
            bench.run(STEPS, *RUN)

        again = bench.run(
            [thread(), item("agent_message", 1, text="Hi."), turn_completed()], "codex", "--", "exec", "x"
        )

        assert (0, []) == (again.returncode, spools(bench))
        assert ["x", "Hi."] == said(bench.events(f"live/{THREAD}"))
        assert "Hello." == said(bench.events(LIVE))[-1]

    def test_is_looked_at_by_nobody_who_only_looks(self, bench: Bench) -> None:
        with locked(bench):
            bench.run(STEPS, *RUN)

        done = command(bench, "sessions", "--json")
        [spool] = spools(bench)
        assert (0, "") == (done.returncode, done.stdout)
        note = f"a run is not stored yet ({spool}); the next command that writes stores it, or says why not\n"
        assert note == done.stderr, "it is mentioned, and not in the data"

    def test_is_stored_by_a_command_that_makes_a_name(self, bench: Bench) -> None:
        with locked(bench):
            bench.run(STEPS, *RUN)
            before = command(bench, "tag")

        made = command(bench, "tag", "here", LIVE)

        assert (True, 0, []) == ("is not stored yet" in before.stderr, made.returncode, spools(bench))

    def test_may_see_the_run_killed(self, bench: Bench) -> None:
        steps = [*STEPS[:3], {"await": "SIGTERM"}]
        with locked(bench):
            child = bench.start(steps, *RUN)
            wait_until_heard(bench)
            child.kill()
            child.wait(30)

        command(bench, "gc")

        assert (["Say hello", "Let me look.", "Bash"], []) == (said(bench.events(LIVE)), spools(bench))

    def test_may_see_two_runs(self, bench: Bench) -> None:
        with locked(bench):
            bench.run(STEPS, *RUN)
            bench.run([thread(), item("agent_message", 1, text="Hi."), turn_completed()], "codex", "--", "exec", "x")
        assert 2 == len(spools(bench))
        begun = [json.loads(path.read_bytes().split(b"\n", 1)[0])["started"] for path in sorted(spools(bench))]
        assert sorted(begun) == begun, "they are stored in the order in which the runs began"

        command(bench, "gc")

        assert [] == spools(bench)
        assert ("Hello.", ["x", "Hi."]) == (said(bench.events(LIVE))[-1], said(bench.events(f"live/{THREAD}")))


@pytest.mark.usefixtures("store")
class TestASpool:
    def test_is_gone_when_the_run_is_stored(self, bench: Bench) -> None:
        bench.run(STEPS, *RUN)

        assert [] == spools(bench)

    def test_of_a_run_that_goes_on_is_left_to_it(self, bench: Bench) -> None:
        child = bench.start([*STEPS[:3], {"await": "SIGTERM"}, result("Hello.")], *RUN)
        wait_until_heard(bench)
        [spool] = spools(bench)

        looked, done = command(bench, "sessions"), command(bench, "gc")

        assert (0, [spool]) == (done.returncode, spools(bench))
        assert "not stored yet" not in looked.stderr
        child.terminate()
        child.wait(30)
        assert [] == spools(bench)
        assert ["Say hello", "Let me look.", "Bash"] == said(bench.events(LIVE))

    def test_adds_nothing_that_the_run_had_stored(self, bench: Bench) -> None:
        """The store was locked in the middle of the run."""
        steps = [*STEPS[:3], ASK, {"touch": "ready"}, {"await": "SIGUSR1"}, *STEPS[4:]]
        child = bench.start(steps, *RUN)
        bench.wait_for("ready")
        with locked(bench):
            child.send_signal(10)
            child.wait(30)
        assert 1 == len(spools(bench))

        command(bench, "gc")

        assert ["Say hello", "Let me look.", "Bash", "fine", "Hello."] == said(bench.events(LIVE))
        with harken.open(bench.store) as repo:
            assert bench.notes["tools"][0][1].strip() in [commit.short for commit in repo.history(LIVE)]

    @pytest.mark.parametrize("stored", range(6), ids=lambda lines: f"{lines} lines stored")
    def test_adds_all_of_a_run_that_said_what_an_earlier_one_had_said(self, bench: Bench, stored: int) -> None:
        """A program need not name what it says otherwise in each run, and its lines have no times."""
        once = ["Say it", "Done."]
        with harken.open(bench.store) as repo:
            for started, lines in ((1, 5), (10, stored), (10, 5)):
                header = new_header("claude-code", RunFacts(runtime="claude-code"), started=started, session="s")
                spool = SpoolFile(repo.store, header)
                spool.note(SpoolNote(time=started + 1, prompt="Say it"))
                printed = [init(), says("Done.", uuid="same"), result("Done.")]
                for step in printed[: lines - 1]:
                    spool.line(json.dumps(step["line"]).encode())
                if lines == 5:
                    spool.note(SpoolNote(time=started + 2, status=0))
                spool.keep()
                assert [""] == [done.problem for done in repo.store_spools()]

        events = bench.events(LIVE)
        assert once + once == said(events)
        assert [2, 2] == [
            sum(isinstance(event, Metric) and event.ends_run for event in events),
            sum(isinstance(event, System) and event.subtype == "shutdown" for event in events),
        ]

    def test_that_is_damaged_is_told_once_set_aside_and_stops_nothing(self, bench: Bench) -> None:
        with locked(bench):
            bench.run(STEPS, *RUN)
        damaged = bench.folder / "store.db-spool-000000000000"
        damaged.write_bytes(b"\x00\xff no header\n")

        done, again = command(bench, "gc"), command(bench, "gc")

        aside = bench.folder / "store.db-unread-000000000000"
        assert 0 == done.returncode
        assert f"{damaged} does not begin as a spool does" in done.stderr
        assert f"it is {aside} now" in done.stderr
        assert ([], b"\x00\xff no header\n") == (spools(bench), aside.read_bytes())
        assert "Hello." == said(bench.events(LIVE))[-1], "the other is stored"
        assert "unread" not in again.stderr and "spool" not in again.stderr

    @pytest.mark.parametrize("make", ODD.values(), ids=ODD)
    def test_that_is_no_file_is_left_out_of_a_backup(self, bench: Bench, make: Callable[[Path], object]) -> None:
        make(bench.folder / "store.db-spool-000000000000")

        with harken.open(bench.store) as repo:
            repo.backup(bench.folder / "copy.db")

            assert [] == repo.waiting_spools()
        assert [] == list(bench.folder.glob("copy.db-spool-*"))

    @pytest.mark.parametrize("make", ODD.values(), ids=ODD)
    def test_that_is_no_file_is_told_once_and_set_aside(self, bench: Bench, make: Callable[[Path], object]) -> None:
        odd = bench.folder / "store.db-spool-000000000000"
        make(odd)

        with harken.open(bench.store) as repo:
            [told] = repo.store_spools()

            assert (f"{odd} is no file", False) == (told.problem.partition(",")[0], told.is_left)
            assert [] == repo.store_spools()
        aside = bench.folder / "store.db-unread-000000000000"
        assert f"it is {aside} now, which no command looks at" == told.hint
        assert os.path.lexists(aside)

    @pytest.mark.parametrize("make", ODD.values(), ids=ODD)
    def test_that_is_no_file_is_a_warning_of_doctor(self, bench: Bench, make: Callable[[Path], object]) -> None:
        odd = bench.folder / "store.db-spool-000000000000"
        make(odd)

        checks = list(diagnose(bench.store))

        [told] = [check for check in checks if str(odd) in check.detail]
        assert ("spool", "warning", True) == (told.check, told.status, bool(told.hint))
        assert [] == [check for check in checks if check.status == "failure"]

    def test_takes_the_place_of_nothing_when_it_is_set_aside(self, bench: Bench) -> None:
        aside = bench.folder / "store.db-unread-000000000000"
        aside.write_bytes(b"earlier")
        (bench.folder / "store.db-spool-000000000000").symlink_to("nowhere")

        with harken.open(bench.store) as repo:
            repo.store_spools()

        assert b"earlier" == aside.read_bytes()

    def test_that_is_empty_is_removed_without_a_word(self, bench: Bench) -> None:
        (bench.folder / "store.db-spool-000000000000").touch()

        done = command(bench, "gc")

        assert (0, [], False) == (done.returncode, spools(bench), "spool" in done.stderr)

    def test_with_a_status_that_no_signal_has_is_stored(self, bench: Bench) -> None:
        with locked(bench):
            bench.run(STEPS, *RUN)
        [spool] = spools(bench)
        spool.write_bytes(spool.read_bytes().replace(b'"status":0', b'"status":-4711'))

        command(bench, "gc")

        assert [] == spools(bench)
        assert {"exit_status": None, "signal": "signal 4711"} == json.loads(bench.events(LIVE)[-1].metadata)

    def test_with_a_note_that_cannot_be_read_is_stored_but_for_that(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with locked(bench):
            bench.run(STEPS, *RUN)
        [spool] = spools(bench)
        monkeypatch.setattr(spooled, "note_events", lambda runtime, note: 1 // 0)

        with harken.open(bench.store) as repo:
            [result_] = repo.store_spools()

        assert ["Let me look.", "Bash", "fine", "Hello."] == said(bench.events(LIVE))
        assert f"not all of {spool} could be read" in result_.problem
        assert (True, []) == (Path(result_.path).exists(), spools(bench))

    def test_is_locked_and_has_its_header_before_it_has_its_name(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[tuple[list[Path], bytes, bool]] = []
        rename = Path.rename

        def watched(path: Path, target: Path) -> Path:
            with taken(path) as free:
                seen.append((spools(bench), path.read_bytes(), free is None))
            return rename(path, target)

        monkeypatch.setattr(Path, "rename", watched)
        with harken.open(bench.store) as repo:
            header = new_header("claude-code", RunFacts(runtime="claude-code"), started=1, session="s")
            spool = SpoolFile(repo.store, header)
            spool.line(b"{}")

        [(before, held, is_locked)] = seen
        assert ([], msgspec.json.encode(header) + b"\n", True) == (before, held, is_locked)
        assert [spool.path] == spools(bench)
        assert [] == list(bench.folder.glob(".*.tmp"))
        spool.discard()

    def test_is_copied_in_pieces(self, bench: Bench) -> None:
        data = os.urandom(3 * CHUNK + 17)
        (bench.folder / "store.db-spool-000000000000").write_bytes(data)
        with harken.open(bench.store) as repo:
            repo.backup(bench.folder / "copy.db")

        assert data == (bench.folder / "copy.db-spool-000000000000").read_bytes()

    def test_that_is_stored_while_the_store_is_copied_is_in_the_copy(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It was copied behind the store, and so it was in neither."""
        with harken.open(bench.store) as repo:
            write_spool(repo, results=1, size=10)
            real = upkeep.backup

            def slow(store: Store, path: Path) -> int:
                size = real(store, path)
                assert [(SESSION,)] == [stored.sessions for stored in repo.store_spools()]
                return size

            monkeypatch.setattr(upkeep, "backup", slow)
            repo.backup(bench.folder / "copy.db")

        with harken.open(bench.folder / "copy.db") as copy:
            [stored] = copy.store_spools()
            assert ("", (SESSION,)) == (stored.problem, stored.sessions)

    def test_takes_the_place_of_a_copy_that_an_earlier_backup_left(self, bench: Bench) -> None:
        spool, copy = (bench.folder / f"{name}.db-spool-000000000000" for name in ("store", "copy"))
        spool.write_bytes(b"some")
        with harken.open(bench.store) as repo:
            repo.backup(bench.folder / "copy.db")
            (bench.folder / "copy.db").unlink()
            spool.write_bytes(b"some more")
            repo.backup(bench.folder / "copy.db")
            assert b"some more" == copy.read_bytes()

            spool.write_bytes(b"some more of it")
            with pytest.raises(Conflict):  # the backup is there
                repo.backup(bench.folder / "copy.db")
            assert b"some more" == copy.read_bytes()

    def test_is_not_left_where_the_store_could_not_be_copied(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> int:
            raise HarkenError("no room")

        (bench.folder / "store.db-spool-000000000000").write_bytes(b"some")
        monkeypatch.setattr(upkeep, "backup", fail)
        with harken.open(bench.store) as repo, pytest.raises(HarkenError, match="no room"):
            repo.backup(bench.folder / "copy.db")

        assert [] == list(bench.folder.glob("copy.db*"))

    def test_takes_no_more_memory_to_store_the_larger_it_is(self, bench: Bench) -> None:
        peaks = []
        for results in (10, 60):
            with harken.open(bench.folder / f"{results}.db") as repo:
                write_spool(repo, results=results, size=200_000)
                for _ in ("nothing is there", "all of it is there"):
                    copies = [(path, path.read_bytes()) for path in bench.folder.glob(f"{results}.db-spool-*")]
                    tracemalloc.start()
                    [stored] = repo.store_spools()
                    peaks.append(tracemalloc.get_traced_memory()[1])
                    tracemalloc.stop()
                    assert ("", (SESSION,)) == (stored.problem, stored.sessions)
                    copies[0][0].write_bytes(copies[0][1])

        small, small_again, large, large_again = peaks
        assert large < small + 5_000_000, "ten megabytes more are in it"
        assert large_again < small_again + 5_000_000

    def test_that_was_cut_off_is_stored_as_far_as_it_goes(self, bench: Bench) -> None:
        with locked(bench):
            bench.run(STEPS, *RUN)
        [spool] = spools(bench)
        data = spool.read_bytes()
        os.truncate(spool, data.index(b'"fine"') + 3)

        command(bench, "gc")

        assert (["Say hello", "Let me look.", "Bash"], []) == (said(bench.events(LIVE)), spools(bench))

    def test_is_in_a_backup(self, bench: Bench) -> None:
        """One whose run goes on: any other is stored before."""
        child = bench.start([*STEPS[:3], {"await": "SIGTERM"}], *RUN)
        wait_until_heard(bench)
        with harken.open(bench.store) as repo:
            repo.backup(bench.folder / "copy.db")
        child.terminate()
        child.wait(30)

        with harken.open(bench.folder / "copy.db") as repo:
            [stored] = repo.store_spools()
            assert ("", (SESSION,)) == (stored.problem, stored.sessions)
        assert ["Say hello", "Let me look.", "Bash"] == said(bench.events(LIVE, store="copy.db"))


@LOCKED
@pytest.mark.usefixtures("store")
class TestARunBehindASpool:
    """A run of a session whose earlier run lies in a spool is stored behind it, however the store comes free."""

    AGAIN = ("claude-code", "--", "-p", "And now?", "--resume", SESSION)

    def test_is_stored_after_it_when_the_store_comes_free_in_between(self, bench: Bench) -> None:
        steps = [init(), {"touch": "ready"}, {"await": "SIGUSR1"}, says("Goodbye.", 5), result("Goodbye.")]
        with locked(bench):
            bench.run(STEPS, *RUN)
            child = bench.start(steps, *self.AGAIN)
            bench.wait_for("ready")
        child.send_signal(10)
        child.wait(30)

        command(bench, "gc")

        assert [*FIRST, "And now?", "Goodbye."] == said(bench.events(LIVE))
        assert [] == spools(bench)

    def test_is_stored_after_it_when_the_store_stays_locked(self, bench: Bench) -> None:
        with locked(bench):
            bench.run(STEPS, *RUN)
            bench.run([init(), says("Goodbye.", 5), result("Goodbye.")], *self.AGAIN)
        assert 2 == len(spools(bench))

        command(bench, "gc")

        assert [*FIRST, "And now?", "Goodbye."] == said(bench.events(LIVE))

    def test_is_not_stored_where_that_one_cannot_be(self, bench: Bench) -> None:
        with locked(bench):
            bench.run(STEPS, *RUN)
            bench.run([init(), says("Goodbye.", 5), result("Goodbye.")], *self.AGAIN)
        first, second = spools(bench)
        with closing(SqliteStore(bench.store, timeout=0)) as store, locked(bench):
            [failed] = store_spools(store)

        assert (str(first), True) == (failed.path, failed.is_left)
        assert "waited 0 s for another writer" in failed.problem
        assert [first, second] == spools(bench), "the later one is not stored before the earlier one"


@LOCKED
@pytest.mark.usefixtures("store")
class TestASpoolThatCannotBeStored:
    """The session of one run cannot be read: that holds up this session alone, until it is mended."""

    AGAIN = ("claude-code", "--", "-p", "And now?")
    OTHER = (init("other"), says("Fine.", 7), result("Fine."))

    @pytest.fixture
    def spool(self, bench: Bench) -> Path:
        """What is left of a second run, of a session whose row was damaged behind the first."""
        bench.run(STEPS, *RUN)
        self.change(bench, "forged")
        bench.run([init(), says("Goodbye.", 5), result("Goodbye.")], *self.AGAIN)
        [left] = spools(bench)
        return left

    def change(self, bench: Bench, title: str) -> None:
        with closing(sqlite3.connect(bench.store)) as connection:
            assert connection.execute("UPDATE sessions SET title = ? WHERE session = ?", (title, SESSION)).rowcount
            connection.commit()

    def sessions(self, bench: Bench) -> dict[str, int | None]:
        with harken.open(bench.store) as repo:
            return {row.session: row.cost_usd_micros for row in repo.sessions()}

    def test_is_stored_once_under_its_own_name_when_that_is_mended(self, bench: Bench, spool: Path) -> None:
        self.change(bench, "")

        done = command(bench, "gc")

        assert (f"stored what a run had left in {spool}\n", []) == (done.stderr.splitlines(True)[0], spools(bench))
        assert [*FIRST, "And now?", "Goodbye."] == said(bench.events(LIVE))
        assert {SESSION: 500_000} == self.sessions(bench), "Claude Code reports what a session costs from its beginning"

    def test_does_not_hold_up_other_sessions(self, bench: Bench, spool: Path) -> None:
        for _ in range(2):
            done = bench.run(list(self.OTHER), *self.AGAIN)
            why = f"{spool} could not be stored: row 1 of the table sessions is not what was written; "
            assert (0, 1) == (done.returncode, done.stderr.count(why)), done.stderr
            assert "this run" not in done.stderr

        assert [spool] == spools(bench)
        assert ["And now?", "Fine."] * 2 == said(bench.events("live/other"))

    def test_holds_up_later_runs_of_its_session_which_say_so(self, bench: Bench, spool: Path) -> None:
        done = bench.run([init(), says("Still here.", 6), ASK, result("Still here.")], *self.AGAIN)

        behind = f"an earlier run of session '{SESSION}' is not stored yet"
        [_, own] = spools(bench)
        assert f"not all of this run could be stored: {behind}; what keeps {spool} from being stored" in done.stderr
        assert f"all of it is in {own}, which the next command that writes tries to store" in done.stderr
        assert "the store could not be written" not in done.stderr
        [[_, out, err]] = bench.notes["tools"]
        assert ("", True) == (out, behind in err)
        self.change(bench, "")
        command(bench, "gc")
        words = ["And now?", "Goodbye.", "And now?", "Still here."]
        assert ([*FIRST, *words], []) == (said(bench.events(LIVE)), spools(bench))

    def test_holds_up_later_spools_of_its_session_alone(self, bench: Bench, spool: Path) -> None:
        with locked(bench):
            bench.run(list(self.OTHER), *self.AGAIN)
            bench.run([init(), says("Still here.", 6), result("Still here.")], *self.AGAIN)
        [_, other, own] = spools(bench)

        done = command(bench, "gc")

        assert [spool, own] == spools(bench)
        assert f"stored what a run had left in {other}" in done.stderr
        assert ["And now?", "Fine."] == said(bench.events("live/other"))
