"""A store in a process that has threads, forks and ends: nobody starves, nothing hangs, nothing is left open."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading

import pytest

from harken import clock
from harken.errors import HarkenError
from harken.store import open_store
from harken.store.opening import FairTurns
from harken.testing.store import grow
from support.stores import open_below


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    with contextlib.closing(open_store(path)) as store:
        yield store


# -- forks -------------------------------------------------------------------------------------------------------------


def in_child(work):
    """What the function says in a child that is forked off here, or how it is refused; the child may not hang."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        answer = "failed"
        try:
            answer = str(work())
        except HarkenError as problem:
            answer = f"{type(problem).__name__}: {problem}"
        finally:
            os.write(writing, answer.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    return answer


def open_another(path):
    with contextlib.closing(open_store(path)) as other:
        return len(grow(other, 1))


def test_a_child_opens_another_store_if_nobody_was_inside_sqlite(tmp_path, store):
    grow(store, 1)
    assert "1" == in_child(lambda: open_another(tmp_path / "other.db"))
    assert 1 == len(store.commits())


@pytest.mark.parametrize("where", ["transaction", "cache"])
def test_a_child_that_was_forked_while_another_thread_wrote_is_refused_and_never_hangs(tmp_path, store, where):
    inside, done = threading.Event(), threading.Event()

    def write():
        with store.write() as writer:
            writer.put(b"x")
            inside.set()
            assert done.wait(30)

    def fill_the_cache():
        with store.derived._lock:
            inside.set()
            assert done.wait(30)

    thread = threading.Thread(target=write if where == "transaction" else fill_the_cache)
    thread.start()
    assert inside.wait(30)
    try:
        answer = in_child(lambda: open_another(tmp_path / "other.db"))
    finally:
        done.set()
        thread.join()
    assert answer.startswith("BadRequest: this process was forked off while another thread used a store")
    assert not (tmp_path / "other.db").exists()
    grow(store, 1)


def test_a_child_leaves_alone_what_its_parent_had_open(tmp_path, path):
    """Not even the end of the object in the child closes the parent's connections."""
    stores = [open_store(path)]
    grow(stores[0], 1)

    def drop():
        stores.clear()
        gc.collect()
        return "dropped"

    assert "dropped" == in_child(drop)
    with contextlib.closing(stores[0]) as store:
        assert 2 == len(store.chain(grow(store, 1, start=1, parent=store.commits()[0].id)[0].id))


# -- threads -----------------------------------------------------------------------------------------------------------


def wait_for(condition):
    """Until it is so; a thread needs a moment to get where it waits."""
    deadline = clock.monotonic() + 30
    while not condition():
        assert clock.monotonic() < deadline
        threading.Event().wait(0.001)


def test_a_writer_is_not_overtaken_by_readers_that_come_later(store):
    """Every connection is in use; then a writer comes, then readers. What comes free first is the writer's."""
    grow(store, 1)
    held = [store.db.acquire() for _ in range(16)]
    order = []

    def write():
        with store.write() as writer:
            writer.put(b"x")
            order.append("writer")

    def read():
        store.commits()
        order.append("reader")

    threads = [threading.Thread(target=work) for work in (write, read, read, read)]
    for place, thread in enumerate(threads, 1):
        thread.start()
        wait_for(lambda place=place: place == len(store.db.turns.waiting))
    store.db.release(held.pop())
    for thread in threads:
        thread.join(30)
    for connection in held:
        store.db.release(connection)
    assert ["writer", "reader", "reader", "reader"] == order


def test_writers_of_one_process_go_in_the_order_in_which_they_came(store):
    order = []

    def write(n):
        with store.write() as writer:
            writer.put(b"%d" % n)
            order.append(n)

    with store.write() as writer:
        writer.put(b"first")
        threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
        for place, thread in enumerate(threads, 1):
            thread.start()
            wait_for(lambda place=place: place == len(store.db.lock._inside.waiting))
    for thread in threads:
        thread.join(30)
    assert list(range(6)) == order


def test_who_gives_up_waiting_leaves_the_line():
    turns = FairTurns()
    assert turns.acquire(0)
    assert not turns.acquire(0)
    assert not turns.acquire(0.001)
    assert 0 == len(turns.waiting)
    turns.release()
    assert turns.acquire(0)


# -- the end -----------------------------------------------------------------------------------------------------------


def test_a_store_that_is_dropped_keeps_no_descriptor(tmp_path):
    for n in range(3):
        store = open_store(tmp_path / f"{n}.db")
        grow(store, 2)
        store.cache("k", b"x")
        assert open_below(tmp_path)
    del store
    gc.collect()
    assert [] == open_below(tmp_path)
    with contextlib.closing(open_store(tmp_path / "0.db")) as again:
        assert 2 == len(again.commits())


def test_a_program_that_ends_without_closing_says_nothing(tmp_path):
    program = (
        "import sys, threading, harken\n"
        "repo = harken.open(sys.argv[1])\n"
        "repo.checkpoint(b'x', format='blob-v1')\n"
        "threading.Thread(target=lambda: threading.Event().wait(60), daemon=True).start()\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program, str(tmp_path / "s.db")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
    with contextlib.closing(open_store(tmp_path / "s.db")) as store:
        assert 1 == len(store.commits())


def test_a_store_that_could_not_be_opened_is_in_nobodys_way(tmp_path):
    (tmp_path / "taken").touch()
    for _ in range(2):
        with pytest.raises(HarkenError, match="cannot be opened"):
            open_store(tmp_path / "taken" / "store.db")
        gc.collect()
    with contextlib.closing(open_store(tmp_path / "new" / "store.db")) as store:
        assert 1 == len(grow(store, 1))
    assert [] == open_below(tmp_path)
