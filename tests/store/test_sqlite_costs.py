"""What a store in one SQLite file costs: bytes, statements and memory."""

from __future__ import annotations

import contextlib
import random
import time

import pytest

from harken import ids
from harken.context import listing, spawned
from harken.events import Prompt
from harken.events.cbor import encode_events
from harken.store import Draft, SessionRow, fsck, open_store, sql
from harken.testing.store import T0, grow
from support.stores import lines


@contextlib.contextmanager
def traced(store):
    """The statements that run in the block, but for the question whether others have written, which reads no page. One
    thread uses one connection again and again."""
    statements = []
    connection = store.db.acquire()
    connection.set_trace_callback(lambda one: None if one == "PRAGMA data_version" else statements.append(one))
    store.db.release(connection)
    try:
        yield statements
    finally:
        connection.set_trace_callback(None)


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
        assert overhead / 600 < 540  # of which 20 are the pages of three tables that are empty: what is forgotten
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


def test_a_list_with_tails_describes_its_commits_together(tmp_path):
    import harken

    with harken.open(tmp_path / "store.db") as repo:
        tip = None
        for n in range(120):
            tip = repo.checkpoint(encode_events([Prompt(content=f"question {n}")]), format="events-v1", parent=tip)
        with traced(repo.store) as statements:
            shown = list(listing.chain(repo.store, tip, superseded=True))
    assert 120 == len(shown)
    # Which commits hang from one is asked of each; everything else is asked once for all.
    assert len(statements) <= 2 * 120 + 20, len(statements)


def test_the_commit_at_a_place_in_a_file_costs_few_statements(tmp_path):
    import harken

    with harken.open(tmp_path / "store.db") as repo:
        tip, size = None, 0
        for n in range(120):
            data = encode_events([Prompt(content=f"question {n}")])
            tip, size = repo.checkpoint(data, format="events-v1", parent=tip), size + len(data)
        row = SessionRow(session="s", runtime="x", tip=tip.id)
        with traced(repo.store) as statements:
            assert tip.id == spawned.commit_at(repo.store, row, size)
    assert len(statements) <= 10, len(statements)
