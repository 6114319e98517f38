"""One writer, whole lines, and a disk that may fail."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harken.errors import HarkenError, Locked, Poisoned
from harken.log import Session, scan
from harken.log.disk import LogLock

HOLDER = """
import sys
from harken.log import Session
session = Session(sys.argv[1])
session.log_piece_of_text("a", "x", "m")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def contents(path: Path) -> list[str]:
    return [record.data["content"] for record in scan(path) if record.data and "content" in record.data]


class TestTheLock:
    def test_a_second_writer_is_refused_and_told_who_holds_it(self, path: Path) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as holder:
            assert holder.stdout is not None
            assert "ready\n" == holder.stdout.readline()

            with pytest.raises(Locked, match=f"process {holder.pid}") as refused:
                Session(path)
            assert refused.value.hint
            assert ["x"] == contents(path)
            assert 1 == len(Session(path, readonly=True).registry.messages)

            holder.send_signal(signal.SIGKILL)
            holder.wait()
        with Session(path) as session:
            session.log_piece_of_text("a", "y", "m")
        assert ["x", "y"] == contents(path)

    def test_the_same_process_is_a_second_writer_too(self, path: Path) -> None:
        with Session(path), pytest.raises(Locked, match=str(os.getpid())):
            Session(path)

    def test_another_name_for_the_file_does_not_help(self, path: Path, tmp_path: Path) -> None:
        other = tmp_path / "other.jsonl"
        other.symlink_to(path)
        with Session(path), pytest.raises(Locked):
            Session(other)

    def test_it_is_gone_when_the_session_is_closed(self, path: Path) -> None:
        Session(path).close()

        assert [path.name] == os.listdir(path.parent)

    def test_a_session_that_nobody_closed_lets_go_when_it_is_forgotten(self, path: Path) -> None:
        session = Session(path)
        del session

        Session(path).close()

    def test_a_session_that_could_not_be_opened_leaves_none(self, path: Path) -> None:
        path.mkdir()

        with pytest.raises(HarkenError):
            Session(path)
        assert [path.name] == os.listdir(path.parent)

    def test_a_lock_on_a_file_whose_name_is_gone_is_no_lock(self, path: Path) -> None:
        """What a writer finds that opened the file just before its holder removed it."""
        lock = LogLock(path)
        assert lock._is_current(lock._fd)

        lock.path.unlink()
        assert not lock._is_current(lock._fd)

        lock.path.write_text("another")
        assert not lock._is_current(lock._fd)
        lock.release()
        assert "another" == lock.path.read_text()

    def test_writers_that_take_turns_in_a_hurry_never_meet(self, path: Path) -> None:
        """Each removes the lock file as it goes, just when the next one may be opening it."""
        done: list[int] = []

        def write(number: int) -> None:
            while len(done) < 60:
                try:
                    with Session(path, ack="os") as session:
                        done.append(number)
                        session.log_piece_of_text("a", str(number), "m")
                except Locked:
                    time.sleep(0.001)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ids = [record.data["message_id"] for record in scan(path) if record.data]
        assert len(done) == len(ids) == len(set(ids))
        assert list(map(str, done)) == contents(path)

    def test_a_forked_child_is_no_writer(self, path: Path) -> None:
        with Session(path) as session:
            child = multiprocessing.get_context("fork").Process(target=_refused_in_a_child, args=(session,))
            child.start()
            child.join()
            assert 0 == child.exitcode
            session.log_piece_of_text("a", "still mine", "m")

        assert ["still mine"] == contents(path)


def _refused_in_a_child(session: Session) -> None:
    try:
        session.log_piece_of_text("a", "x", "m")
    except Locked:
        session.close()  # lets go of nothing that is the parent's
        os._exit(0)
    os._exit(1)


class TestAFullDisk:
    """A limit on the size of files stands in for it: real bytes, really cut."""

    @pytest.fixture(autouse=True)
    def limit(self) -> None:
        self.before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self, path: Path, ack: str = "disk") -> tuple[Session, int]:
        session = Session(path, ack=ack)  # type: ignore[arg-type]
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, self.before[1]))
        acknowledged = 0
        try:
            with pytest.raises(Poisoned, match=os.strerror(errno.EFBIG)) as failed:
                for _ in range(100):
                    session.log_piece_of_text("a", "x" * 100, "m")
                    acknowledged += 1
            assert failed.value.hint
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, self.before)
        return session, acknowledged

    @pytest.mark.parametrize("ack", ["disk", "os"])
    def test_what_was_acknowledged_is_there_and_the_torn_rest_is_healed(self, path: Path, ack: str) -> None:
        session, acknowledged = self.fill(path, ack)
        session.close()

        assert 5000 == path.stat().st_size
        with Session.load(path) as again:
            assert acknowledged == len(contents(path))
            fresh = again.log_piece_of_text("a", "after", "m")
        assert fresh not in session.registry.messages
        assert acknowledged + 1 == len(contents(path))

    def test_a_poisoned_session_refuses_everything_though_the_disk_is_well_again(self, path: Path) -> None:
        session, _ = self.fill(path)
        size = path.stat().st_size

        for _ in range(2):
            with pytest.raises(Poisoned):
                session.log_piece_of_text("a", "x", "m")
        with pytest.raises(Poisoned):
            session.flush()
        assert size == path.stat().st_size
        session.close()

    def test_what_failed_is_not_believed(self, path: Path) -> None:
        session, acknowledged = self.fill(path)

        assert acknowledged == len(session.registry.messages)
        session.close()


@pytest.mark.parametrize("ack", ["disk", "os"])
def test_a_session_that_was_interrupted_never_believes_less_than_the_file_says(tmp_path: Path, ack: str) -> None:
    """A signal may strike between the write and the note of it; then only the file can tell."""
    # In a process of its own: a tool that measures coverage takes locks that a signal at any moment would leave taken.
    program = Path(__file__).parents[1] / "support" / "interrupted_session.py"
    result = subprocess.run([sys.executable, program, tmp_path, ack], capture_output=True, text=True, timeout=120)
    assert (0, "") == (result.returncode, result.stderr)

    struck = [json.loads(line) for line in result.stdout.splitlines()]
    assert 25 == len(struck)
    for one in struck:
        live, there = one["live"], one["there"]
        assert live == (there[: len(live)] if one["poisoned"] else there)


@pytest.mark.parametrize("ack", ["disk", "os"])
def test_a_session_interrupted_at_any_step_of_a_call_can_be_closed_and_loaded(tmp_path: Path, ack: str) -> None:
    """Wherever the signal strikes, no lock stays taken, and whatever was acknowledged is there."""

    def interrupt_at(step: int, session: Session) -> bool:
        left = step

        def strike(_: object, event: str, __: object) -> None:
            nonlocal left
            if event not in ("call", "c_return"):  # where the interpreter looks for signals
                return
            left -= 1
            if left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

        sys.setprofile(strike)
        try:
            session.log_piece_of_text("a", "second", "m")
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False

    for step in range(1, 1000):
        path = tmp_path / str(step)
        session = Session(path, ack=ack)  # type: ignore[arg-type]
        struck = interrupt_at(step, session)
        closing = threading.Thread(target=session.close, daemon=True)
        closing.start()
        closing.join(10)
        assert not closing.is_alive(), f"closing hangs after an interruption at step {step}"
        assert contents(path) in ([["second"], []] if struck else [["second"]])
        with Session.load(path) as again:
            again.log_piece_of_text("a", "third", "m")
        if not struck:
            break
    assert 20 < step < 999


class TestAnInterruptedBatch:
    """The limit on the size of files cuts the write short, and its signal interrupts the next one."""

    def interrupt(self, session: Session, action: Callable[[], object]) -> None:
        def strike(*_: object) -> None:
            raise KeyboardInterrupt

        handler, limits = signal.signal(signal.SIGXFSZ, strike), resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (session.path.stat().st_size + 20, limits[1]))
        try:
            with pytest.raises(KeyboardInterrupt):
                action()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, handler)

    def test_is_the_last_thing_written_so_that_nothing_is_glued_to_a_torn_line(self, path: Path) -> None:
        session = Session(path)
        session.log_piece_of_text("a", "before", "m")

        def batch() -> None:
            with session.batch():
                session.log_piece_of_text("a", "torn", "m")

        self.interrupt(session, batch)

        with pytest.raises(Poisoned, match="interrupted"):
            session.log_piece_of_text("a", "glued", "m")
        with pytest.raises(Poisoned, match="interrupted"), session.batch():
            session.log_piece_of_text("a", "glued", "m")
        session.close()
        with Session.load(path) as again:
            again.log_piece_of_text("a", "after", "m")
        assert ["before", "after"] == contents(path)

    def test_while_healing_leaves_a_log_that_heals_the_next_time(self, path: Path) -> None:
        path.write_bytes(b'{"message_id":"msg_001","event_type":"piece_of_text","agent_id":"a","content":"torn')
        session = Session(path, readonly=True)

        self.interrupt(session, lambda: Session(path))

        with Session.load(path) as again:
            again.log_piece_of_text("a", "after", "m")
        assert ["after"] == contents(path)

    def test_inside_another_ends_with_the_outer_one(self, path: Path) -> None:
        with Session(path) as session, session.batch():
            with session.batch():
                session.log_piece_of_text("a", "inner", "m")
            assert [] == contents(path)
            session.log_piece_of_text("a", "outer", "m")

        assert ["inner", "outer"] == contents(path)


class TestAcknowledgement:
    def test_what_the_kernel_has_is_synced_soon(self, path: Path) -> None:
        with Session(path, ack="os") as session:
            assert session._writer is not None
            syncer = session._writer._syncer
            session.log_piece_of_text("a", "x", "m")
            deadline = time.monotonic() + 5
            while syncer._synced < 1 and time.monotonic() < deadline:
                time.sleep(0.005)

            assert 1 == syncer._synced

    def test_flush_waits_for_the_disk(self, path: Path) -> None:
        with Session(path, ack="os") as session:
            assert session._writer is not None
            for _ in range(1000):
                session.log_piece_of_text("a", "x", "m")
            session.flush()

            assert 1000 == session._writer._syncer._synced
        assert 1000 == len(contents(path))

    def test_several_threads_may_log_into_one_session(self, path: Path) -> None:
        with Session(path, ack="os") as session:

            def talk() -> None:
                for _ in range(200):
                    session.log_piece_of_text("a", "x", "m")

            threads = [threading.Thread(target=talk) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        ids = [record.data["message_id"] for record in scan(path) if record.data]
        assert 800 == len(set(ids))

    def test_a_reader_sees_whole_lines_while_somebody_writes(self, path: Path) -> None:
        with Session(path, ack="os") as session:
            seen = []
            for at in range(50):
                session.log_piece_of_text("a", str(at), "m")
                seen.append(len(contents(path)))

        assert list(range(1, 51)) == seen


ENDING = """
import sys, time
from harken.log import Session, syncing

apart = {}  # a function of this module would keep the session alive until nothing can be closed any more
exec("import time\\ndef slow(fd): time.sleep(0.5)", apart)
syncing.sync = apart["slow"]
session = Session(sys.argv[1], ack="os")
session.log_agent_created("agent_001")
time.sleep(syncing.SYNC_AFTER_SECONDS + 0.1)
"""


def test_a_program_that_ends_while_the_background_syncs_and_closes_nothing_does_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    done = subprocess.run([sys.executable, "-c", ENDING, path], capture_output=True, text=True, timeout=30, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    with Session(path) as session:
        assert ["agent_001"] == list(session.agents)
