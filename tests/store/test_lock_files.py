"""#49: whatever happens to lock files, one writes at a time, and what belongs to somebody else is not touched."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from harken import Session
from harken.errors import HarkenError, Locked
from harken.store import open_store
from harken.testing.store import grow


def test_a_truncated_lock_file_ends_nobody(tmp_path: Path) -> None:
    """To touch a mapped file that has become shorter is to die by SIGBUS, so this is done in a child."""
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(BaseException), contextlib.closing(open_store(tmp_path / "store.db")) as store:
            grow(store, 1)
            os.truncate(tmp_path / "store.db-lock", 0)
            grow(store, 2)
            code = 0
        os._exit(code)
    _, status = os.waitpid(child, 0)
    assert not os.WIFSIGNALED(status), signal.Signals(os.WTERMSIG(status)).name
    assert 0 == os.WEXITSTATUS(status)


def test_a_symbolic_link_in_the_place_of_the_lock_is_refused_and_its_target_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_bytes(b"mine")
    (tmp_path / "store.db-lock").symlink_to(target)

    with pytest.raises(HarkenError, match="no regular file"):
        open_store(tmp_path / "store.db")

    assert b"mine" == target.read_bytes()


def test_a_pipe_in_the_place_of_the_lock_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "store.db-lock")
    signal.alarm(30)  # ends the whole run if it hangs
    try:
        with pytest.raises(HarkenError, match="no regular file"):
            open_store(tmp_path / "store.db")
    finally:
        signal.alarm(0)


def test_removing_a_logs_lock_file_admits_no_second_writer(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    with Session(path) as session:
        session.log_piece_of_text("a", "one", "m")
        (tmp_path / "session.jsonl.lock").unlink()

        with pytest.raises(Locked, match="is being written"):
            Session(path)

        session.log_piece_of_text("a", "two", "m")
    with Session(path) as again:
        again.log_piece_of_text("a", "three", "m")
    assert 3 == len(path.read_bytes().splitlines())


@pytest.mark.parametrize("name", ["session.jsonl.lock"])
def test_a_symbolic_link_in_the_place_of_a_logs_lock_is_refused(tmp_path: Path, name: str) -> None:
    target = tmp_path / "precious"
    target.write_bytes(b"mine")
    (tmp_path / name).symlink_to(target)

    with pytest.raises(HarkenError):
        Session(tmp_path / "session.jsonl")

    assert b"mine" == target.read_bytes()
