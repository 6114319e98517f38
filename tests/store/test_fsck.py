"""fsck finds what is not what it says, repair says what is lost, and neither touches what is well."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3

import pytest

from harken.errors import BadRequest, Conflict, Corrupt, Evicted, NotFound
from harken.store import Draft, SessionRow, backup, find_move, fsck, gc, open_store, undo
from harken.testing.store import T0, grow
from support.stores import busy_store, lines


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    with contextlib.closing(open_store(path)) as store:
        yield store


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A store with everything in it, made once; each test damages a copy."""
    path = tmp_path_factory.mktemp("busy") / "store.db"
    with contextlib.closing(open_store(path)) as store:
        busy_store(store)
    return path


@pytest.fixture
def busy(original, path):
    shutil.copytree(original.parent, path.parent, dirs_exist_ok=True)
    return path


def damage(path, statement, *values):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(statement, values)
        connection.commit()


def corrupt(report):
    return sorted({found.what for found in report.findings if found.severity == "corrupt"})


def test_a_store_with_everything_in_it_is_clean(store):
    busy_store(store)
    report = fsck(store, read_data=True)
    assert [] == [found for found in report.findings if found.severity == "corrupt"]
    assert report.ok
    assert report.commits == len(store.commits())


def test_an_evicted_artifact_is_said_to_be_evicted_not_corrupt(store):
    commit = grow(store, 3)[1]
    with store.write() as writer:
        writer.evict(commit.artifact)
    report = fsck(store, read_data=True)
    assert report.ok
    assert [("evicted", "artifact")] == [(found.severity, found.what) for found in report.findings]
    assert 3 == len(store.chain(store.commits()[0].id))


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE commits SET messages = coalesce(messages, 0) + 1 WHERE n = (SELECT min(n) FROM commits)", "commit"),
        ("UPDATE commits SET tokens = 5, approximate = 1", "commit"),
        ("UPDATE commits SET time = time + 1", "commit"),
        ("UPDATE commits SET time = time + 1000000", "commit"),
        ("UPDATE commits SET artifact = artifact % 2 + 1", "commit"),
        ("UPDATE commits SET seal = zeroblob(32)", "commit"),
        ("UPDATE commits SET digits = 9", "commit"),
        ("UPDATE commits SET links = '{}'", "commit"),
        ("UPDATE commits SET parent = (SELECT min(n) FROM commits) WHERE parent IS NULL", "commit"),
        ("UPDATE origins SET template = 'x' WHERE n = 1", "origin"),
        ("UPDATE principals SET principal = 'x' WHERE n = 1", "principal"),
        ("UPDATE annotations SET value = 'x'", "annotation"),
        ("UPDATE names SET kind = 'tag'", "name"),
        ("UPDATE moves SET why = 'x'", "move"),
        ("UPDATE sessions SET title = 'x'", "session"),
        ("UPDATE sightings SET time = 1", "sighting"),
        ("UPDATE artifacts SET policy = NULL WHERE policy IS NOT NULL", "artifact"),
        ("UPDATE migrations SET name = 'x'", "migration"),
        ("UPDATE artifacts SET frame = 999 WHERE n = 1", "artifact"),
        ("UPDATE artifacts SET start = 5000000 WHERE frame IS NOT NULL", "artifact"),
        ("DELETE FROM origins", "origins"),
        ("DROP INDEX commits_by_id", "file"),
        ("PRAGMA user_version = 0", "file"),
    ],
)
def test_a_changed_row_is_found_without_reading_the_data(busy, statement, what):
    damage(busy, statement)
    with contextlib.closing(open_store(busy)) as again:
        report = fsck(again)
        assert not report.ok
        assert what in corrupt(report) or what == "origins"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE frames SET data = substr(data, 1, 10) || x'00' || substr(data, 12)",
        "UPDATE frames SET hash = zeroblob(32)",
        "UPDATE frames SET size = size + 1",
        "UPDATE frames SET prefix = NULL WHERE prefix IS NOT NULL",
        "UPDATE loose SET data = zeroblob(40)",
        "UPDATE artifacts SET start = start + 1 WHERE frame IS NOT NULL AND start > 0",
        "UPDATE artifacts SET id = zeroblob(32) WHERE n = 1",
    ],
)
def test_changed_bytes_are_found_by_reading_the_data(busy, statement):
    damage(busy, statement)
    with contextlib.closing(open_store(busy)) as again:
        assert not fsck(again, read_data=True).ok


def test_a_damaged_frame_is_never_read_as_if_it_were_whole(path, store):
    with store.write() as writer:
        names = [writer.put(line) for line in lines(3000)]
    store.close()
    damage(path, "UPDATE frames SET data = substr(data, 1, 100) || x'5a5a' || substr(data, 103)")
    with contextlib.closing(open_store(path)) as again:
        with pytest.raises(Corrupt, match="frame"):
            again.get(names[0])
        with pytest.raises(Corrupt, match="frame"):
            list(again.get_many(names))


def test_repair_moves_what_is_damaged_and_says_what_is_lost(path, store):
    with store.write() as writer:
        good, bad = writer.put(b"good" * 50_000), writer.put_stream([b"bad" * 500_000])
        first = writer.commit(Draft(artifact=good, format="x", time=T0))
        tip = writer.commit(Draft(artifact=bad, parent=first.id, format="x", time=T0 + 1))
        writer.annotate(tip.id, "summary", "what it was", time=T0)
        writer.save_session(SessionRow(session="s", runtime="r", tip=tip.id))
    store.close()
    damage(path, "UPDATE frames SET data = zeroblob(99) WHERE n IN (SELECT frame FROM parts LIMIT 1)")
    damage(path, "UPDATE sessions SET title = 'x'")
    before = path.read_bytes()
    with contextlib.closing(open_store(path)) as again:
        assert not fsck(again, read_data=True).ok
        assert before == path.read_bytes()
        report = fsck(again, read_data=True, repair=True)
        assert report.ok
        assert any("lost: art-" + bad[:12] in found.why for found in report.findings)
        assert 0o600 == os.stat(report.saved).st_mode & 0o777
        after = fsck(again, read_data=True)
        assert after.ok
        assert ["evicted"] == [found.severity for found in after.findings]
        assert [tip, first] == again.chain(tip.id)
        assert "what it was" == again.annotations(tip.id)[0].value
        assert b"good" * 50_000 == again.get(good)
        with pytest.raises(Evicted):
            again.get(bad)
        with again.write() as writer:
            writer.put_stream([b"bad" * 500_000])
        assert b"bad" * 500_000 == again.get(bad)
        assert [] == again.sessions()
        assert 3 <= len(again.db.all("SELECT * FROM quarantine"))


def test_a_file_that_is_not_a_store_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"not a database, but long enough to be looked at " * 50)
    with pytest.raises(BadRequest, match="not a store of Harken"):
        open_store(tmp_path / "a")
    with contextlib.closing(sqlite3.connect(tmp_path / "b")) as other:
        other.execute("CREATE TABLE x (y)")
    with pytest.raises(BadRequest, match="not a store of Harken"):
        open_store(tmp_path / "b")


# -- gc ----------------------------------------------------------------------------------------------------------------


def test_gc_lets_go_of_what_has_expired_and_nothing_needs(store):
    with store.write() as writer:
        gone = writer.put(b"gone" * 100, policy="ephemeral", expires=10)
        large = writer.put(b"large" * 500_000, policy="ephemeral", expires=10)
        later = writer.put(b"later", policy="ephemeral", expires=30)
        used = writer.put(b"used", policy="ephemeral", expires=10)
        asked = writer.put(b"asked", policy="ephemeral", expires=10)
        plain = writer.put(b"plain")
        writer.commit(Draft(artifact=used, format="x", time=T0))
    store.cache("k", b"derived")
    rehearsal = gc(store, now=20, dry_run=True, needed=[asked])
    assert store.has(gone)
    assert b"derived" == store.cached("k")
    report = gc(store, now=20, needed=[asked])
    assert (2, 2) == (rehearsal.expired, report.expired)
    assert rehearsal.names == report.names
    assert [False, False, True, True, True, True] == [store.has(n) for n in (gone, large, later, used, asked, plain)]
    with pytest.raises(NotFound):
        store.info(gone)
    assert store.cached("k") is None
    assert fsck(store, read_data=True).ok
    assert 0 == gc(store, now=20, needed=[asked]).expired


def test_gc_gives_the_room_of_what_was_evicted_back_and_moves_the_rest(path, store):
    with store.write() as writer:
        names = [writer.put(os.urandom(60_000)) for _ in range(40)]
        bases = writer.put(b"".join(lines(3000)))
    before = [store.get(name) for name in names[::10]]
    with store.write() as writer:
        for n, name in enumerate(names):
            if n % 10:
                writer.evict(name)
    report = gc(store)
    assert report.frames
    assert before == [store.get(name) for name in names[::10]]
    assert store.has(bases)
    assert fsck(store, read_data=True).ok
    store.close()
    assert path.stat().st_size < 600_000


def test_gc_sheds_only_what_a_backing_store_holds_and_never_a_pin(store):
    with store.write() as writer:
        names = [writer.put(os.urandom(1000)) for _ in range(10)]
        writer.set_policy(names[0], "pin")
    report = gc(store, limit=3000, backing=lambda name: name != names[1])
    assert 7 == report.evicted
    assert [True, True, *[False] * 7, True] == [store.has(name) for name in names]


# -- backup and undo ---------------------------------------------------------------------------------------------------


def test_a_backup_is_a_store_of_its_own(tmp_path, store):
    busy_store(store)
    size = backup(store, tmp_path / "copy.db")
    with contextlib.closing(open_store(tmp_path / "copy.db")) as copy:
        assert store.commits() == copy.commits()
        assert fsck(copy, read_data=True).ok
    assert size > 0
    assert 0o600 == os.stat(tmp_path / "copy.db").st_mode & 0o777
    with pytest.raises(Conflict):
        backup(store, tmp_path / "copy.db")
    assert not [name for name in os.listdir(tmp_path) if ".part-" in name]


def test_a_move_is_undone_by_one_more_move(store):
    a, b = grow(store, 2)
    with store.write() as writer:
        writer.move("main", kind="branch", to=a.id, expect="", time=1)
        writer.move("main", kind="branch", to=b.id, expect=a.id, time=2)
    assert (b.id, a.id) == (lambda move: (move.before, move.after))(undo(store, find_move(store), time=3, who="me"))
    assert a.id == store.find_name("main").target
    with pytest.raises(Conflict):
        undo(store, find_move(store, number=2), time=4)
    undo(store, find_move(store, number=3), time=4)
    assert b.id == store.find_name("main").target
    with pytest.raises(NotFound, match="no move 99 to undo"):
        find_move(store, number=99)


def test_a_gap_in_the_feed_is_no_answer(tmp_path):
    """A follower that went on behind a gap would never know what it missed."""
    with contextlib.closing(open_store(tmp_path / "store.db")) as store:
        grow(store, 5)
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        rows = [row[0] for row in connection.execute("SELECT n FROM changes ORDER BY n")]
        assert len(rows) >= 3
        connection.execute("DELETE FROM changes WHERE n = ?", (rows[1],))
        connection.commit()

    with contextlib.closing(open_store(tmp_path / "store.db")) as store:
        with pytest.raises(Corrupt):
            store.since(0)
        with pytest.raises(Corrupt):
            store.since(rows[0])
        assert rows[2:] == [change.number for change in store.since(rows[1]) if change.number in rows]
