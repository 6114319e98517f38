"""A store in one SQLite file that processes and threads use at once: who goes first, and what a child may do."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import threading

import pytest

from harken.errors import BadRequest, Conflict, Locked
from harken.store import Draft, SqliteStore, backup, fsck, open_store
from harken.store.opening import FairLock
from harken.testing.store import T0, grow

WRITER = """
import sys, time
from harken.store import Draft, open_store
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store, parent, took = open_store(path), "", []
print("ready", flush=True)
sys.stdin.readline()
for n in range(count):
    begun = time.perf_counter()
    with store.write() as writer:
        artifact = writer.put(f"{name} {n} ".encode() * 300)
        draft = Draft(artifact=artifact, parent=parent, format="x", time=n * 1_000_000, principal=name)
        parent = writer.commit(draft).id
    took.append(time.perf_counter() - begun)
store.close()
print(parent, sorted(took)[int(len(took) * 0.99)], flush=True)
"""


def test_twenty_processes_checkpoint_at_once_and_nothing_is_lost(path, store):
    """The limit is generous because the machine may be busy; `benchmarks/store.py` measures the real one."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), f"w{n}", "15"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(20)
    ]
    for writer in writers:
        assert "ready\n" == writer.stdout.readline(), writer.stderr.read()
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    ends = [writer.communicate(timeout=120) for writer in writers]
    assert [""] * 20 == [errors for _, errors in ends]
    for out, _ in ends:
        tip, p99 = out.split()
        assert 15 == len(store.chain(tip))
        assert float(p99) < 5
    assert 300 == len(store.commits())
    assert fsck(store, read_data=True).ok


def test_two_writers_race_one_branch_and_one_is_told(path, store):
    base = grow(store, 1)[0]
    with store.write() as writer:
        writer.move("main", kind="branch", to=base.id, expect="", time=1)
    told, made = [], []
    gate = threading.Barrier(2)

    def race(name):
        with contextlib.closing(open_store(path)) as mine:
            for n in range(15):
                with mine.write() as writer:
                    artifact = writer.put(f"{name} {n}".encode())
                    draft = Draft(artifact=artifact, parent=base.id, format="x", time=T0, principal=name)
                    commit = writer.commit(draft)
                seen = mine.find_name("main").target
                gate.wait(timeout=30)
                try:
                    with mine.write() as writer:
                        writer.move("main", kind="branch", to=commit.id, expect=seen, time=n)
                    made.append(commit.id)
                except Conflict:
                    told.append(commit.id)
                gate.wait(timeout=30)

    threads = [threading.Thread(target=race, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 15 == len(told) == len(made)
    assert {*told, *made, base.id} == {commit.id for commit in store.commits()}
    assert [made[-1]] == [name.target for name in store.names()]
    assert 16 == len(store.moves("main"))


def test_threads_share_one_store(store):
    tips = {}

    def work(name):
        tips[name] = grow(store, 10, principal=name, session_id=name)[-1].id

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 60 == len(store.commits())
    assert {10} == {len(store.chain(tip)) for tip in tips.values()}


def test_a_reader_sees_a_store_that_is_being_packed(path, store):
    grown = grow(store, 200)
    expected = [f"delta {n}\n".encode() for n in range(200)]
    failures, done = [], threading.Event()

    def read():
        with contextlib.closing(open_store(path)) as mine:
            while not done.is_set():
                links = mine.walk(grown[-1].id)[::-1]
                got = list(mine.get_many([link.artifact for link in links]))
                if got != expected:
                    failures.append(got)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(5):
        store.pack()
        grow(store, 10, start=1000, parent=grown[-1].id)
    done.set()
    reader.join()
    assert [] == failures


def test_a_store_in_use_is_checked_and_backed_up_as_of_one_moment(tmp_path, path, store):
    """Every commit moves the branch in the same transaction, so any copy of one moment has them agree."""
    base = grow(store, 1)[0]
    done, failures = threading.Event(), []

    def write():
        with contextlib.closing(open_store(path)) as mine:
            parent = base.id
            while not done.is_set():
                with mine.write() as writer:
                    artifact = writer.put(random.Random(parent).randbytes(3000))
                    parent = writer.commit(Draft(artifact=artifact, parent=parent, format="x", time=T0)).id
                    writer.move("main", kind="branch", to=parent, expect=None, time=T0)
                if random.random() < 0.1:
                    mine.pack()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for n in range(6):
            report = fsck(store, read_data=True)
            failures += [found for found in report.findings if found.severity == "corrupt"]
            backup(store, tmp_path / f"copy {n}?.db")
    finally:
        done.set()
        writer.join()
    assert [] == failures
    for n in range(6):
        with contextlib.closing(open_store(tmp_path / f"copy {n}?.db")) as copy:
            assert fsck(copy, read_data=True).ok
            for name in copy.names():
                assert len(copy.commits()) == len(copy.chain(name.target))


def test_the_lock_lets_the_first_in_line_go_first(tmp_path):
    holder = FairLock(str(tmp_path / "lock"))
    holder.acquire()
    order, waiting = [], []
    for n in range(8):
        started = threading.Event()

        def wait(n=n, started=started):
            lock = FairLock(str(tmp_path / "lock"))
            number = lock._draw
            lock._draw = lambda: (number(), started.set())[0]
            lock.acquire()
            order.append(n)
            lock.release()
            lock.close()

        waiting.append(threading.Thread(target=wait))
        waiting[-1].start()
        assert started.wait(10)
    holder.release()
    for thread in waiting:
        thread.join()
    holder.close()
    assert list(range(8)) == order


def test_a_lock_that_nobody_else_wants_is_taken_without_writing(tmp_path):
    """But for the first time: an empty file beside a store says that nobody ever wrote to it."""
    lock, seen = FairLock(str(tmp_path / "lock")), []
    for _ in range(3):
        lock.acquire()
        lock.release()
        seen.append((tmp_path / "lock").read_bytes())
    lock.close()
    assert [(1).to_bytes(8, "little")] * 3 == seen


def test_whoever_waits_too_long_is_told(path, store):
    with contextlib.closing(SqliteStore(path, timeout=0.05)) as other, store.write() as writer:
        writer.put(b"x")
        with pytest.raises(Locked), other.write() as second:
            second.put(b"y")
    with store.write() as writer:
        writer.put(b"z")


def test_a_lock_file_that_says_nonsense_costs_nothing(path, store):
    grow(store, 2)
    store.close()
    (path.parent / "store.db-lock").write_bytes(b"\xff" * 8)
    with contextlib.closing(open_store(path)) as again:
        assert 3 == len(again.chain(grow(again, 1, start=9, parent=again.commits()[0].id)[0].id))


def test_a_store_is_not_carried_into_a_child(store):
    grow(store, 1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answer = b"went on"
        with contextlib.suppress(BaseException):
            try:
                with store.write() as writer:
                    writer.put(b"x")
            except BadRequest:
                answer = b"refused"
        os.write(writing, answer)
        os._exit(0)
    os.waitpid(child, 0)
    assert b"refused" == os.read(reading, 20)
    os.close(reading)
    os.close(writing)


def test_a_child_of_the_process_can_neither_read_nor_write(store):
    commit = grow(store, 1)[0]
    asked = [
        lambda: store.get(commit.artifact),
        lambda: store.commits(),
        lambda: store.since(0),
        lambda: grow(store, 1, start=1),
    ]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        for ask in asked:
            try:
                ask()
                said.append("answered")
            except BadRequest as error:
                said.append("fork" if "fork" in str(error) else "refused")
            except BaseException as error:
                said.append(repr(error))
        store.close()
        os.write(writing, ",".join(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert "fork,fork,fork,fork" == os.read(reading, 1000).decode()
    os.close(reading)
    os.close(writing)
    assert commit == grow(store, 1)[0]


def test_a_child_cannot_open_again_what_its_parent_has_open(path, store):
    grow(store, 1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        for where in (path, path.with_name("other.db")):
            try:
                grow(open_store(where), 1, start=1)
                said.append("opened")
            except BadRequest as error:
                said.append("spawn" if "spawn" in error.hint else "refused")
            except BaseException as error:
                said.append(repr(error))
        os.write(writing, ",".join(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert "spawn,opened" == os.read(reading, 1000).decode()
    os.close(reading)
    os.close(writing)


FEEDER = """
import contextlib, sys
from harken.store import Draft, open_store
path, name = sys.argv[1:]
store, made = open_store(path), []
for n in range(15):
    with contextlib.suppress(RuntimeError), store.write() as writer:
        commit = writer.commit(Draft(artifact=writer.put(f"{name} {n}".encode()), format="x", time=n * 1_000_000))
        if n % 3 == 0:
            raise RuntimeError
        made.append(commit.id)
    if n == 7:
        store.pack()
store.close()
print(*made)
"""


def test_numbers_are_dense_under_eight_processes_and_everything_acknowledged_is_told(path, store):
    command = [sys.executable, "-c", FEEDER, str(path)]
    feeders = [
        subprocess.Popen([*command, f"w{n}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for n in range(8)
    ]
    told = []
    while len([change for change in told if change.kind == "commit"]) < 80:
        assert store.wait(len(told), 60)
        told += store.since(len(told), limit=7)
    ends = [feeder.communicate(timeout=60) for feeder in feeders]
    assert [""] * 8 == [errors for _, errors in ends]
    told += store.since(len(told))
    assert list(range(1, store.last_change() + 1)) == [change.number for change in told]
    made = [name for out, _ in ends for name in out.split()]
    assert sorted(made) == sorted(change.subject for change in told if change.kind == "commit")
    assert fsck(store, read_data=True).ok
