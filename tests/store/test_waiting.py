"""A store that another program holds: whoever waits for it hears signals, and is not kept when told to stop."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from harken import clock
from harken.errors import Locked
from harken.store import SqliteStore, giving_up, open_store
from support.sessions import conversation

SOON = 5.0
"""Seconds; the wait for another writer lasts sixty."""


@contextlib.contextmanager
def held(path):
    """Another program inside a transaction."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_a_wait_ends_when_the_other_program_is_done(path, store):
    with held(path):
        waiting = threading.Thread(target=write, args=(store,))
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive()
    waiting.join(SOON)
    assert not waiting.is_alive()


def write(store):
    with store.write() as writer:
        writer.put(b"x")


def test_who_waits_longer_than_the_store_allows_is_told(path):
    with contextlib.closing(SqliteStore(path, timeout=0.3)) as store, held(path):
        began = clock.monotonic()
        with pytest.raises(Locked):
            write(store)
        assert 0.3 <= clock.monotonic() - began < SOON


@pytest.mark.parametrize("holder", ["another program", "another writer"])
def test_who_was_asked_to_stop_waits_for_nobody(path, store, holder):
    with contextlib.closing(open_store(path)) as other, contextlib.ExitStack() as holding:
        if holder == "another program":
            holding.enter_context(held(path))
        else:
            holding.enter_context(other.write()).put(b"y")
        began = clock.monotonic()
        with giving_up(lambda: True), pytest.raises(Locked, match="given up"):
            write(store)
        assert clock.monotonic() - began < SOON
    write(store)


def test_who_was_asked_to_stop_still_writes_where_nobody_is_in_the_way(store):
    with giving_up(lambda: True):
        write(store)


def test_watch_ends_soon_after_ctrl_c_while_another_program_holds_the_store(path, store, tmp_path):
    """#45: it took up to a minute."""
    source = tmp_path / "aaa.jsonl"
    source.write_bytes(conversation("aaa", 3).data)
    with held(path):
        command = [sys.executable, "-m", "harken", "--store", str(path), "watch", str(source)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
            assert b"watching" in watching.stderr.readline()
            with contextlib.suppress(subprocess.TimeoutExpired):
                watching.wait(1)  # it has found the file, and waits
            began = clock.monotonic()
            watching.send_signal(signal.SIGINT)
            assert 0 == watching.wait(30)
            assert clock.monotonic() - began < SOON
            assert b"" == watching.stdout.read()
    assert [] == store.sessions()


MAKE = """
import sys
from harken.store import open_store
print("ready", flush=True)
sys.stdin.read()
open_store(sys.argv[1]).close()
"""


def test_a_new_store_is_made_by_eight_processes_at_once(tmp_path):
    """`PRAGMA journal_mode` does not wait: in some rounds one of them was told that the store is locked."""
    for number in range(4):
        path = tmp_path / f"{number}.db"
        command = [sys.executable, "-c", MAKE, str(path)]
        with contextlib.ExitStack() as running:
            makers = [
                running.enter_context(
                    subprocess.Popen(
                        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
                    )
                )
                for _ in range(8)
            ]
            assert [b"ready\n"] * 8 == [maker.stdout.readline() for maker in makers]
            for maker in makers:
                maker.stdin.close()
            said = [maker.stderr.read() for maker in makers]
            assert [0] * 8 == [maker.wait() for maker in makers], said
