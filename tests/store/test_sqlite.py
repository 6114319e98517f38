"""What only the store in a file promises: processes side by side, versions, modes, room, speed that does not decay."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harken import ids
from harken.errors import BadRequest, Conflict, Corrupt, HarkenError, Locked
from harken.events import Prompt
from harken.events.cbor import encode_events
from harken.store import Draft, SessionRow, SqliteStore, backup, fsck, gc, open_store, sql
from harken.store.opening import FairLock, locate
from harken.testing.store import T0, grow
from support.stores import busy_store, lines


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    with contextlib.closing(open_store(path)) as store:
        yield store


@contextlib.contextmanager
def traced(store):
    """The statements that run in the block. One thread uses one connection again and again."""
    statements = []
    connection = store.db.acquire()
    connection.set_trace_callback(statements.append)
    store.db.release(connection)
    try:
        yield statements
    finally:
        connection.set_trace_callback(None)


# -- processes ---------------------------------------------------------------------------------------------------------

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


# -- versions and modes ------------------------------------------------------------------------------------------------

NEXT_STEP = (3, "a table more", "CREATE TABLE more (x INTEGER);\nCREATE INDEX more_by_x ON more (x);\n")


def test_an_older_store_is_upgraded_in_one_transaction(path, store):
    tip = busy_store(store)
    store.close()
    broken = (*sql.STEPS, NEXT_STEP, (4, "does not work", "CREATE TABLE half (x);\nCREATE NONSENSE;\n"))
    with pytest.raises(HarkenError):
        SqliteStore(path, steps=broken)
    with contextlib.closing(sqlite3.connect(path)) as raw:
        assert [(2,)] == raw.execute("SELECT version FROM migrations").fetchall()
        assert [] == raw.execute("SELECT name FROM sqlite_schema WHERE name IN ('more', 'half')").fetchall()
    with contextlib.closing(SqliteStore(path, steps=(*sql.STEPS, NEXT_STEP))) as newer:
        assert [(2,), (3,)] == newer.db.all("SELECT version FROM migrations")
        assert tip == newer.get_commit(tip.id)


def test_a_newer_store_is_refused_and_not_touched(path, store):
    grow(store, 1)
    store.close()
    SqliteStore(path, steps=(*sql.STEPS, NEXT_STEP)).close()
    before = path.read_bytes()
    with pytest.raises(BadRequest, match="newer Harken"):
        open_store(path)
    assert before == path.read_bytes()


def test_files_are_for_their_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        with contextlib.closing(open_store(tmp_path / "a" / "b" / "store.db")) as store:
            busy_store(store)
            store.cache("k", b"x")
            modes = {
                name: stat.S_IMODE(os.stat(tmp_path / "a" / "b" / name).st_mode)
                for name in os.listdir(tmp_path / "a" / "b")
            }
            backup(store, tmp_path / "a" / "copy.db")
    finally:
        os.umask(before)
    assert {0o600} == set(modes.values())
    assert {"store.db", "store.db-wal", "store.db-shm", "store.db-lock", "store.db-cache"} <= set(modes)
    assert 0o700 == stat.S_IMODE(os.stat(tmp_path / "a" / "b").st_mode)
    assert 0o600 == stat.S_IMODE(os.stat(tmp_path / "a" / "copy.db").st_mode)


def test_a_folder_stands_for_the_file_in_it(tmp_path):
    with contextlib.closing(open_store(tmp_path)) as store:
        assert str(tmp_path / "harken.db") == store.location
    with contextlib.closing(open_store(f"sqlite:{tmp_path}/other.db")) as store:
        assert str(tmp_path / "other.db") == store.location
    with pytest.raises(BadRequest) as caught:
        open_store("postgres://somewhere/else")
    assert "`memory:`, `sqlite:`" in caught.value.hint


def test_another_kind_of_store_comes_from_a_plug_in(tmp_path, monkeypatch):
    (tmp_path / "elsewhere.py").write_text(
        "from harken.store import MemoryStore\n"
        "def open(url, *, create):\n"
        "    store = MemoryStore()\n"
        "    store.location = url\n"
        "    return store\n"
    )
    info = tmp_path / "elsewhere-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: elsewhere\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[harken.stores]\nelse = elsewhere:open\nbroken = elsewhere:nothing\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "else://there/1" == open_store("else://there/1").location
    with pytest.raises(HarkenError, match="broken: addresses cannot be loaded"):
        open_store("broken:x")
    with pytest.raises(BadRequest) as caught:
        open_store("other://x")
    assert "`else:`" in caught.value.hint


def test_a_path_with_a_colon_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with contextlib.closing(open_store("a:b.db")) as store:
        assert str(tmp_path / "a:b.db") == store.location
    for name in ("c:\\store.db", "./unknown:foo", "folder.d/x:y"):
        assert Path(name) == locate(name)
    assert Path("unknown:foo") == locate(Path("unknown:foo"))
    Path("unknown:bar").touch()
    assert Path("unknown:bar") == locate("unknown:bar")


@pytest.mark.parametrize(
    "where", ["unknown:foo", "postgres://somewhere", "file:x.db", "memory:name", "HTTP:x", "sqlite:"]
)
def test_what_looks_like_a_url_and_is_none_of_ours_is_refused(tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadRequest) as caught:
        open_store(where)
    assert caught.value.hint
    assert [] == list(tmp_path.iterdir())


def test_a_scheme_may_be_written_in_capitals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for where in ("memory:", "MEMORY:", "memory://"):
        with contextlib.closing(open_store(where)) as store:
            assert "memory:" == store.location
    with contextlib.closing(open_store("SQLite:x.db")) as store:
        assert str(tmp_path / "x.db") == store.location


def test_the_children_of_a_session_are_found_by_an_index(store):
    for n in range(3):
        with store.write() as writer:
            writer.save_session(SessionRow(session=f"s{n}", runtime="r", parent="s0" if n else "", title="a"))
    with store.write() as writer:  # changed in place, and moved to another parent
        writer.save_session(SessionRow(session="s1", runtime="r", parent="s0", title="b"))
        writer.save_session(SessionRow(session="s2", runtime="r", parent="s1"))

    plan = " ".join(row[3] for row in store.db.all(f"EXPLAIN QUERY PLAN {sql.SESSIONS_BELOW}", ("s0",)))
    assert "sessions_by_parent" in plan
    assert [["s1"], ["s2"], []] == [[row.session for row in store.sessions(parent=f"s{n}")] for n in range(3)]
    assert fsck(store).ok


# -- room and depth ----------------------------------------------------------------------------------------------------


def text(n, size):
    source = random.Random(n)
    return b"".join(lines(size // 250, seed=source.random()))[:size]


def test_packed_and_closed_it_takes_a_fraction_of_the_bytes(path, store):
    parent, raw = "", 0
    for n in range(600):
        data = text(n, 4000)
        raw += len(data)
        with store.write() as writer:
            draft = Draft(artifact=writer.put(data), parent=parent, format="x", time=T0 + n, session_id="s")
            parent = writer.commit(draft).id
    store.close()
    with contextlib.closing(open_store(path)) as again:
        frames = again.db.all("SELECT count(*), sum(length(data)) FROM frames")[0]
        assert frames[0] <= 3
        overhead = (
            path.stat().st_size - frames[1] - again.db.all("SELECT coalesce(sum(length(data)), 0) FROM loose")[0][0]
        )
        assert overhead / 600 < 520
        assert 600 == len(list(again.get_many([link.artifact for link in again.walk(parent)])))


def test_looking_around_inside_a_transaction_of_many_small_artifacts_costs_little(store):
    """Two commits whose names begin alike are looked at before what was put has a place: of 100,000 commits made in
    one transaction some do, and each artifact was then compared with all the others."""

    def seconds(*, look):
        begun = time.process_time()
        with store.write() as writer:
            names = [writer.put(b"%d %d" % (n, look)) for n in range(8000)]
            if look:
                assert 8000 == len(store.infos(names))
        return time.process_time() - begun

    assert seconds(look=True) < 15 * seconds(look=False)  # it was a hundred times


def test_many_open_chains_are_gathered_now_and_then_not_each_time(store):
    """Chains that have been packed once and wait for more must not make every checkpoint look for something to pack."""
    tips = {}
    for n in range(12):  # twelve chains of some 400 KB each, packed, below a full frame
        for m in range(10):
            with store.write() as writer:
                data = random.Random(n * 100 + m).randbytes(40_000)
                draft = Draft(artifact=writer.put(data), parent=tips.get(n, ""), format="x", time=T0 + m)
                tips[n] = writer.commit(draft).id
        store.pack(tips[n])
    packed = []
    gather = store.packer.pack
    store.packer.pack = lambda chain: (packed.append(chain), gather(chain))[1]
    for m in range(30):
        with store.write() as writer:
            writer.commit(Draft(artifact=writer.put(b"%d" % m * 500), parent=tips[3], format="x", time=T0))
    assert [] == packed
    assert fsck(store, read_data=True).ok


def test_a_copy_costs_at_most_three_percent(path, store):
    original = lines(12_000)
    copied = [line.replace(b"one", b"six") for line in original]
    with store.write() as writer:
        names = [writer.put(b"".join(original[n : n + 40])) for n in range(0, 12_000, 40)]
    before = store.db.all("SELECT sum(length(data)) FROM frames")[0][0]
    with store.write() as writer:
        for n, name in enumerate(names):
            writer.put(b"".join(copied[n * 40 : n * 40 + 40]), like=name)
    after = store.db.all("SELECT sum(length(data)) FROM frames")[0][0]
    assert (after - before) / sum(map(len, copied)) < 0.03


def test_a_copy_of_what_was_checkpointed_turn_by_turn_is_cheap_too(store):
    parent, names = "", []
    for n in range(60):
        with store.write() as writer:
            names.append(writer.put(text(n, 4000)))
            parent = writer.commit(Draft(artifact=names[-1], parent=parent, format="x", time=T0 + n)).id
    with store.write() as writer:
        copies = [writer.put(store.get(name).replace(b"one", b"two"), like=name) for name in names]
    with_prefix = store.db.all("SELECT sum(length(data)), sum(size) FROM frames WHERE prefix IS NOT NULL")[0]
    assert with_prefix[0] / with_prefix[1] < 0.03
    assert text(7, 4000).replace(b"one", b"two") == store.get(copies[7])
    assert fsck(store, read_data=True).ok


def test_a_fork_costs_a_row(path, store):
    tip = grow(store, 50)[-1]
    store.close()
    before = path.stat().st_size
    with contextlib.closing(open_store(path)) as again, again.write() as writer:
        writer.move("try", kind="branch", to=tip.id, expect="", time=T0)
    assert path.stat().st_size - before <= 4096  # at most a page, and a page only where the last one was full


@pytest.mark.parametrize(
    ("count", "every"), [(20_000, 0), (5_000, 7), pytest.param(100_000, 0, marks=pytest.mark.faults)]
)
def test_a_long_chain_is_walked_without_recursion_and_in_few_queries(store, count, every):
    """One chain; and one where every seventh commit has a sibling, as when a tail is superseded."""
    with store.write() as writer:
        artifact = writer.put(b"same")
        parent = ""
        for n in range(count):
            if every and n % every == 0 and parent:
                writer.commit(Draft(artifact=artifact, parent=parent, format="x", time=T0 + n))
            parent = writer.commit(Draft(artifact=artifact, parent=parent, format="y", time=T0 + n)).id
    with traced(store) as queries:
        assert count == len(store.walk(parent))
    # Rows come a few thousand at a time, so that a walk that stops early has not read everything.
    assert len(queries) <= 8 + count // 4000 + (count // every if every else 0)
    assert 3 == len(store.chain(parent, limit=3))
    assert count == len(store.chain(parent))


def test_content_of_any_size_takes_bounded_memory(store):
    import tracemalloc

    parts = (bytes([n % 251]) * 700_000 for n in range(100))
    tracemalloc.start()
    with store.write() as writer:
        name = writer.put_stream(parts)
    total = sum(len(part) for part in store.iter_parts(name))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 70_000_000 == total
    assert peak < 30 << 20


# -- the cache ---------------------------------------------------------------------------------------------------------


def test_the_cache_is_bounded_and_the_least_recently_used_goes(store):
    store.derived.limit = 40_000
    for n in range(6):
        store.cache(f"k{n}", random.Random(n).randbytes(9_000))
        store.cached("k0")
    assert [True, False, False, True, True, True] == [store.cached(f"k{n}") is not None for n in range(6)]
    store.cache("too large", bytes(11_000))
    assert store.cached("too large") is None


def test_a_damaged_cache_is_only_an_empty_cache(path, store):
    store.cache("k", b"x" * 1000)
    store.derived.close()
    (path.parent / "store.db-cache").write_bytes(b"nonsense" * 1000)
    assert store.cached("k") is None
    store.cache("k", b"again")
    assert b"again" == store.cached("k")


# -- connections -------------------------------------------------------------------------------------------------------


def descriptors():
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_a_finished_thread_leaves_no_connection_behind(store):
    grow(store, 3)
    before = descriptors()

    for _ in range(100):
        thread = threading.Thread(target=store.commits)
        thread.start()
        thread.join()

    assert before == descriptors()


def test_many_threads_at_once_share_a_bounded_number_of_connections(path):
    before = descriptors()
    store = open_store(path)
    grow(store, 3)
    gate, seen = threading.Barrier(65), []

    def read():
        gate.wait(30)
        seen.append(len(store.commits()))

    threads = [threading.Thread(target=read) for _ in range(64)]
    for thread in threads:
        thread.start()
    gate.wait(30)
    most = 0
    while any(thread.is_alive() for thread in threads):
        most = max(most, descriptors() - before)
    assert [3] * 64 == seen
    assert most < 50
    store.close()
    assert before == descriptors()


def test_a_store_that_another_thread_writes_to_is_not_closed_under_it(path):
    store = SqliteStore(path, timeout=0.05)
    inside, leave = threading.Event(), threading.Event()

    def write():
        with store.write() as writer:
            writer.put(b"x")
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=write)
    thread.start()
    inside.wait(30)
    with pytest.raises(Conflict, match="still being used"):
        store.close()
    leave.set()
    thread.join()
    assert [True] == [store.has(name) for name in store.artifacts()]
    store.close()


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


# -- lists and the earlier schema --------------------------------------------------------------------------------------


def test_a_list_of_a_hundred_commits_costs_at_most_ten_statements(tmp_path):
    import harken

    with harken.open(tmp_path / "store.db") as repo:
        tip = None
        for n in range(120):
            data = encode_events([Prompt(content=f"question {n}")])
            tip = repo.checkpoint(data, format="events-v1", parent=tip, summary=f"s{n}" if n % 5 == 0 else None)
        repo.tag(tip, "here")
        repo.close()
    for packed in (False, True):
        with harken.open(tmp_path / "store.db") as repo:
            if packed:
                repo.store.pack()
            with traced(repo.store) as statements:
                shown = repo.describe(repo.history(tip, limit=100))
            assert 100 == len({commit.summary for commit in shown})
            assert ("here",) == shown[0].names
            assert len(statements) <= 10, statements
            with traced(repo.store) as statements:
                drawn = repo.family(tip, limit=100)
                repo.describe(ids.commit_ref(commit.id, len(commit.id)) for commit in drawn.commits[:100])
            assert len(statements) <= 10, statements


def test_one_checkpoint_costs_few_statements(tmp_path):
    import harken

    with harken.open(tmp_path / "store.db") as repo:
        data = [encode_events([Prompt(content=f"question {n}")]) for n in range(12)]
        tip = None
        for n in range(10):
            tip = repo.checkpoint(data[n], format="events-v1", parent=tip, session_id="s")
        with traced(repo.store) as statements:
            repo.checkpoint(data[10], format="events-v1", parent=tip, session_id="s")
        assert len(statements) <= 12, statements


def test_a_store_of_the_earlier_schema_is_refused_and_said_to_be_imported_again(path):
    with contextlib.closing(sqlite3.connect(path)) as old:
        old.execute("CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT, time INTEGER, sum BLOB)")
        old.execute("INSERT INTO migrations VALUES (1, 'the first schema', 0, x'')")
        old.execute("CREATE TABLE commits (n INTEGER PRIMARY KEY)")
        old.execute("CREATE TABLE frames (n INTEGER PRIMARY KEY)")
        old.execute(f"PRAGMA application_id = {sql.APPLICATION_ID}")
        old.commit()

    with pytest.raises(BadRequest, match="never released") as caught:
        open_store(path)

    assert "import the sessions again" in caught.value.hint


# -- the feed ----------------------------------------------------------------------------------------------------------

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


def test_a_number_is_not_used_again_when_rows_are_gone(path, store):
    with store.write() as writer:
        writer.put(b"kept")
        gone = writer.put(b"gone", policy="ephemeral", expires=1)
    before = store.last_change()
    assert 1 == gc(store, now=2).expired
    with store.write() as writer:
        new = writer.put(b"new")
    told = store.since(0)
    assert [("eviction", gone), ("artifact", new)] == [(each.kind, each.subject) for each in told[before:]]
    assert [""] == [each.subject for each in told if each.kind == "artifact" and each.number == 2]
    assert fsck(store, read_data=True).ok


def test_a_backup_and_a_repair_have_epochs_of_their_own(tmp_path, path, store):
    grow(store, 3)
    epoch = store.epoch
    backup(store, tmp_path / "copy.db")
    with contextlib.closing(open_store(tmp_path / "copy.db")) as copy:
        assert epoch != copy.epoch
        assert store.since(0) == copy.since(0)
        assert fsck(copy, read_data=True).ok
    store.close()
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE changes SET count = 9 WHERE n = 2")
        raw.commit()
    with contextlib.closing(open_store(path)) as again:
        assert epoch == again.epoch
        assert not fsck(again).ok
        with pytest.raises(Corrupt):
            again.since(0)
        assert fsck(again, repair=True).ok
        assert epoch != again.epoch
        assert {commit.id for commit in again.commits()} == {
            each.subject for each in again.since(0) if each.kind == "commit"
        }


def test_an_answer_in_the_cache_does_not_outlive_the_epoch_it_was_made_in(path, store):
    """#13: what was derived from a damaged store is not given out after a good one was put in its place."""
    grow(store, 1)
    store.cache("k", b"derived")
    backup(store, path.parent / "copy.db")
    store.close()
    os.replace(path.parent / "copy.db", path)
    with contextlib.closing(open_store(path)) as again:
        assert again.cached("k") is None


class TestClosing:
    def test_a_chain_that_begins_meanwhile_does_not_keep_it_from_closing(self, store, monkeypatch):
        for _ in range(2):
            grow(store, 12, session_id=f"s{_}", start=100 * _)
        packer = store.packer
        pack = packer.pack

        def pack_while_others_write(chain):
            packer._touched.add(max(packer._touched) + 1)
            return pack(chain)

        monkeypatch.setattr(packer, "pack", pack_while_others_write)
        store.close()

        assert store.db.closed

    def test_it_is_closed_whatever_packing_raises(self, store, monkeypatch):
        grow(store, 1)

        def fail():
            raise RuntimeError("anything")

        monkeypatch.setattr(store.packer, "at_close", fail)
        with pytest.raises(RuntimeError):
            store.close()

        assert store.db.closed
