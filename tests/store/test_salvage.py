"""#14, #15: whatever was damaged, what could be read before a repair can be read after it, and nothing is made up.

The store is that of `test_flips.py`: one of everything. A page is zeroed, the file is cut, a bit is flipped; every
question is asked, the store is repaired, and every question is asked again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

import harken
from harken.cli import main
from harken.errors import BadRequest, Corrupt, HarkenError
from harken.store import Draft, SessionRow, backup, fsck, open_store
from harken.store.pages import TABLE_LEAF, Pages
from harken.testing.repo import grow as grow_repo
from harken.testing.store import grow
from support.damage import PAGE, rows
from support.damage import store_of_everything as make_store

LISTS = 10
"""The first questions are about everything there is."""
SESSION_ROOTS = ("sessions", "sqlite_autoindex_sessions_1")
LOST = object()
"""In the place of an answer that could not be had."""


def answers_of(store, asked):
    """Every answer, without those about the feed: a repair tells it anew."""
    found = []
    for ask in asked:
        try:
            found.append(ask(store))
        except HarkenError:
            found.append(LOST)
    return found


def clear(path):
    for file in path.parent.iterdir():
        file.unlink()


def put_through(path, damaged, asked, expected, where):
    """Damage, look, repair, look again. An index has no sums: what it hides is seen by fsck, and is back afterwards."""
    clear(path)
    path.write_bytes(damaged)
    path.with_name(f"{path.name}-lock").write_bytes(b"\1".ljust(8, b"\0"))  # it was written to before
    try:
        store = open_store(path, damaged=True)
    except HarkenError:
        assert len(damaged) < 6 * PAGE, f"{where}: what is left can be looked at"
        return
    with contextlib.closing(store):
        in_part = store.problem is not None
        before = answers_of(store, asked)
        report = fsck(store, repair=True)
        after = answers_of(store, asked)
    if "_" in where:
        assert expected == after, where
        return
    for n, (first, second, true) in enumerate(zip(before, after, expected, strict=True)):
        # What is left is less than there was, which `problem` says; what is told of one commit is whole all the same.
        lists = in_part and (n < LISTS or isinstance(first, dict))
        assert first is LOST or lists or first == true, f"{where}: a wrong answer to question {n}"
        assert first is LOST or first == second, f"{where}: question {n} could be answered before the repair"
    assert report.ok, f"{where}: {report.findings}"
    with contextlib.closing(open_store(path)) as again:
        assert fsck(again, read_data=True).ok, where


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("small") / "store.db")


@pytest.fixture
def store_of_everything(small, tmp_path):
    """A path, the bytes, and the questions with their answers; those about the feed, the fifth kind, are left out."""
    data, asked, answers = small
    kept = [n for n in range(len(asked)) if n not in (10, 11, 12, 13)]
    folder = tmp_path / "store"
    folder.mkdir()
    return folder / "store.db", data, [asked[n] for n in kept], [answers[n] for n in kept]


def zeroed(data, page):
    return data[: (page - 1) * PAGE] + bytes(PAGE) + data[page * PAGE :]


def roots(data, path):
    path.write_bytes(data)
    with contextlib.closing(sqlite3.connect(path)) as schema:
        return dict(schema.execute("SELECT name, rootpage FROM sqlite_schema WHERE rootpage"))


@pytest.mark.parametrize("table", ["frames", "loose", "artifacts", "commits", "sessions", "origins", "commits_by_id"])
def test_a_zeroed_page_costs_what_lies_on_it(store_of_everything, table):
    path, data, asked, answers = store_of_everything
    put_through(path, zeroed(data, roots(data, path)[table]), asked, answers, table)


def test_a_file_cut_by_a_page_can_be_looked_at_checked_and_repaired(store_of_everything):
    path, data, asked, answers = store_of_everything
    clear(path)
    path.write_bytes(data[:-PAGE])
    with pytest.raises(Corrupt):
        open_store(path)
    with contextlib.closing(open_store(path, damaged=True)) as store:
        assert not fsck(store).ok
        assert any(answer is not LOST for answer in answers_of(store, asked))
        with pytest.raises(Corrupt, match="nothing can be written"), store.write() as writer:
            writer.put(b"x")
    assert data[:-PAGE] == path.read_bytes()
    put_through(path, data[:-PAGE], asked, answers, "cut")


def test_a_store_without_its_first_page_is_not_lost(store_of_everything):
    path, data, asked, answers = store_of_everything
    with contextlib.closing(open_store(path)) as store:  # so that there is a lock file, which says whose it was
        grow(store, 1)
    path.write_bytes(zeroed(data, 1))
    with contextlib.closing(open_store(path, damaged=True)) as store:
        assert answers == answers_of(store, asked)
        assert fsck(store, repair=True).ok
    with contextlib.closing(open_store(path)) as store:
        assert answers == answers_of(store, asked)


def test_a_store_without_its_first_page_is_known_by_its_rows(store_of_everything):
    """A copy of a store has no lock file beside it, which would say whose it was."""
    path, data, asked, answers = store_of_everything
    clear(path)
    path.write_bytes(zeroed(data, 1))
    with pytest.raises(Corrupt):
        open_store(path)
    with contextlib.closing(open_store(path, damaged=True)) as store:
        assert answers == answers_of(store, asked)
        assert fsck(store, repair=True).ok
    with contextlib.closing(open_store(path)) as store:
        assert answers == answers_of(store, asked)


@pytest.mark.parametrize("content", [bytes(3 * PAGE), b"\r" * 3 * PAGE, bytes(PAGE) + b"\x0d\0\0\xff\xff" * PAGE])
def test_what_has_no_row_of_ours_was_no_store(path, content):
    path.write_bytes(content)

    with pytest.raises(BadRequest, match="is not a store"):
        open_store(path, damaged=True)

    assert (content, [path.name]) == (path.read_bytes(), os.listdir(path.parent))


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_any_zeroed_page_costs_what_lies_on_it(store_of_everything):
    path, data, asked, answers = store_of_everything
    for page in range(2, len(data) // PAGE + 1):
        put_through(path, zeroed(data, page), asked, answers, f"page {page}")


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_a_file_cut_at_any_page_keeps_the_rest(store_of_everything):
    path, data, asked, answers = store_of_everything
    for page in range(len(data) // PAGE):
        put_through(path, data[: page * PAGE], asked, answers, f"cut at page {page}")
        put_through(path, data[: page * PAGE + 1000], asked, answers, f"cut in page {page}")


def flipped(data, path, every):
    for name, root in sorted(roots(data, path).items()):
        if data[(root - 1) * PAGE] in (0x0D, 0x0A):
            bits = [(at, bit) for begin, end in rows(data, root) for at in range(begin, end) for bit in range(8)]
            for at, bit in bits[len(name) % every :: every]:
                yield f"{name} {at} {bit}", data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


@pytest.mark.parametrize("part", range(4))
def test_a_flipped_bit_costs_nothing(store_of_everything, part):
    path, data, asked, answers = store_of_everything
    for where, damaged in list(flipped(data, path, 2503))[part::4]:
        put_through(path, damaged, asked, answers, where)


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(4))
def test_many_flipped_bits_cost_nothing(store_of_everything, part):
    path, data, asked, answers = store_of_everything
    for where, damaged in list(flipped(data, path, 331))[part::4]:
        put_through(path, damaged, asked, answers, where)


# -- single sentences --------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def damage(path, statement, *values):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(statement, values)
        connection.commit()


def test_bytes_whose_name_has_a_flipped_bit_are_put_back_under_their_true_name(path):
    """#15"""
    with contextlib.closing(open_store(path)) as store:
        tip = grow(store, 3)[-1]
        content = store.get(tip.artifact)
    wrong = bytes([bytes.fromhex(tip.artifact)[0] ^ 4]) + bytes.fromhex(tip.artifact)[1:]
    damage(path, "UPDATE artifacts SET id = ? WHERE id = ?", wrong, bytes.fromhex(tip.artifact))

    with contextlib.closing(open_store(path)) as store:
        with pytest.raises(HarkenError):
            store.get(tip.artifact)
        assert fsck(store, repair=True).ok
        assert content == store.get(tip.artifact)
        assert 3 == len(store.chain(tip.id))


def test_one_bad_text_stops_nothing_else(path):
    """#15: a high bit in one text of one row."""
    with contextlib.closing(open_store(path)) as store:
        for name in ("one", "two"):
            tip = grow(store, 2, session_id=name)[-1]
            with store.write() as writer:
                writer.save_session(SessionRow(session=name, runtime="r", tip=tip.id, title="a title"))
    damage(path, "UPDATE sessions SET title = CAST(x'61f0' AS TEXT) WHERE session = 'one'")

    with contextlib.closing(open_store(path)) as store:
        assert tip.id == store.find_session("two").tip
        assert 4 == len(store.commits())
        assert ["session"] == [found.what for found in fsck(store).findings]
        report = fsck(store, repair=True)
        assert report.ok
        assert any("lost: session one" in found.why for found in report.findings)
        assert ["two"] == [row.session for row in store.sessions()]


def test_a_lost_commit_leaves_its_place_to_nobody_else(path):
    """#14: what stands above it must never come to stand on something else; what is committed again closes the gap."""
    with contextlib.closing(open_store(path)) as store:
        chain = grow(store, 5, session_id="s")
        with store.write() as writer:
            writer.save_session(SessionRow(session="s", runtime="r", tip=chain[-1].id, state=b"state"))
        artifact = store.get(chain[2].artifact)
    damage(path, "UPDATE commits SET seal = zeroblob(32), sum = zeroblob(8) WHERE id = ?", bytes.fromhex(chain[2].id))

    with contextlib.closing(open_store(path)) as store:
        report = fsck(store, repair=True)
        assert report.ok
        assert any("lost: session s: in part" in found.why for found in report.findings)
        assert [chain[4].id, chain[1].id] == [store.get_commit(chain[n].id).id for n in (4, 1)]
        assert b"" == store.find_session("s").state
        with pytest.raises(Corrupt, match="lost"):
            store.chain(chain[-1].id)
        with store.write() as writer:
            other = writer.commit(draft_of(chain[2], writer.put(b"other")))
        assert [other.id, chain[1].id, chain[0].id] == [commit.id for commit in store.chain(other.id)]
        with pytest.raises(Corrupt, match="lost"):
            store.chain(chain[-1].id)

        with store.write() as writer:
            again = writer.commit(draft_of(chain[2], writer.put(artifact)))

        assert chain[2].id == again.id
        assert [commit.id for commit in reversed(chain)] == [commit.id for commit in store.chain(chain[-1].id)]
        assert fsck(store, read_data=True).ok


def test_a_place_is_filled_though_another_commit_has_come_to_stand_before_it(path):
    """#14: two commits in a row are lost, and somebody goes on from the one below them before they are back."""
    with contextlib.closing(open_store(path)) as store:
        chain = grow(store, 6, session_id="s")
        lost = [store.get(chain[n].artifact) for n in (2, 3)]
    for n in (2, 3):
        damage(
            path, "UPDATE commits SET seal = zeroblob(32), sum = zeroblob(8) WHERE id = ?", bytes.fromhex(chain[n].id)
        )

    with contextlib.closing(open_store(path)) as store:
        assert fsck(store, repair=True).ok
        with store.write() as writer:
            other = writer.commit(draft_of(chain[2], writer.put(b"other")))
        with store.write() as writer:
            again = [writer.commit(draft_of(chain[n], writer.put(data))) for n, data in zip((2, 3), lost, strict=True)]

        assert [chain[2].id, chain[3].id] == [commit.id for commit in again]
        assert [commit.id for commit in reversed(chain)] == [commit.id for commit in store.chain(chain[-1].id)]
        assert [other.id, chain[1].id, chain[0].id] == [commit.id for commit in store.chain(other.id)]
        assert [chain[4].id] == [commit.id for commit in store.children(chain[3].id)]
        assert [] == store.children(other.id)
        assert {chain[2].id, other.id} == {commit.id for commit in store.children(chain[1].id)}
        assert [] == [found for found in fsck(store, read_data=True).findings if found.severity != "note"]


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("sessions", "title = 'made up'"),
        ("annotations", "value = 'made up'"),
        ("names", "name = 'made up'"),
        ("commits", "tokens = 7"),
        ("origins", "template = 'made up'"),
    ],
)
def test_the_sum_of_a_lost_row_vouches_for_no_other(path, table, change):
    """A repair writes it in the places of lost commits and origins alone, and those say nothing themselves."""
    with contextlib.closing(open_store(path)) as store:
        tip = grow(store, 3, session_id="s")[-1]
        with store.write() as writer:
            writer.save_session(SessionRow(session="s", runtime="r", tip=tip.id))
            writer.annotate(tip.id, "summary", "said", time=1)
            writer.move("v1", kind="tag", to=tip.id, expect="", time=1)
    damage(path, f"UPDATE {table} SET {change}, sum = x'6c6f7374'")
    damage(path, "UPDATE facts SET value = 'x'")  # else there would be nothing to repair

    with contextlib.closing(open_store(path)) as store:
        fsck(store, repair=True)
        column, _, value = change.partition(" = ")
        assert [] == store.db.all(f"SELECT 1 FROM {table} WHERE {column} = {value}")


def draft_of(commit, artifact):
    fields = {name: getattr(commit, name) for name in Draft.__struct_fields__}
    return Draft(**(fields | {"artifact": artifact}))


def test_who_followed_the_feed_starts_over_after_a_repair(path):
    with contextlib.closing(open_store(path)) as store:
        grow(store, 3)
        epoch = store.epoch
        damage(path, "UPDATE facts SET value = 'x'")
        assert fsck(store, repair=True).ok
        assert epoch != store.epoch
        changes = store.since(0)
        assert list(range(1, len(changes) + 1)) == [change.number for change in changes]
        assert 3 == sum(change.kind == "commit" for change in changes)


def test_what_was_there_stays_beside_the_store(path):
    with contextlib.closing(open_store(path)) as store:
        grow(store, 3)
    damage(path, "UPDATE commits SET tokens = 12345")
    with contextlib.closing(open_store(path)) as store:
        saved = Path(fsck(store, repair=True).saved)
        assert 0o600 == os.stat(saved).st_mode & 0o777
        backup(store, path.with_name("copy.db"))
    with contextlib.closing(sqlite3.connect(saved)) as before:
        assert {(12345,)} == set(before.execute("SELECT tokens FROM commits"))
    assert not [name for name in os.listdir(path.parent) if ".repair-" in name]


def pages_of(path, columns):
    """The pages with rows of so many columns."""
    with path.open("rb") as file:
        pages = Pages(file.fileno())
        return {
            cell.page
            for kind, cell in pages.cells()
            if kind == TABLE_LEAF and len(pages.record(kind, cell).values) == columns
        }


@pytest.mark.parametrize("sessions", [3, 40])
def test_sessions_whose_rows_are_lost_are_named(path, sessions):
    """#14: native ones too; nothing else than their commits, the feed and the index of the sessions tells of them."""
    with harken.open(path) as repo:
        for number in range(sessions):
            grow_repo(repo, 2, session_id=f"s{number}")
        before = {row.session for row in repo.store.sessions()}
        columns = len(repo.store.db.all("PRAGMA table_info(sessions)"))
    with path.open("r+b") as file:
        file.seek((max(pages_of(path, columns)) - 1) * PAGE)
        file.write(bytes(PAGE))
    with contextlib.closing(open_store(path, damaged=True)) as store:
        said = [found.why for found in fsck(store, repair=True).findings if found.why.startswith("lost: session")]
        gone = before - {row.session for row in store.sessions()}
    assert gone
    assert sorted(f"lost: session {name}: its row; commits of it may still be there" for name in gone) == sorted(said)


def test_sessions_that_nothing_names_are_counted(path):
    """#14: the index of their names is lost too; the feed knows their numbers."""
    with contextlib.closing(open_store(path)) as store:
        grow(store, 1)
        with store.write() as writer:
            writer.save_session(SessionRow(session="unheard of", runtime="native"))
        lost = [store.db.one("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,))[0] for name in SESSION_ROOTS]
    with path.open("r+b") as file:
        for page in lost:
            file.seek((page - 1) * PAGE)
            file.write(bytes(PAGE))
    with contextlib.closing(open_store(path, damaged=True)) as store:
        said = [found.why for found in fsck(store, repair=True).findings]
    assert "lost: session number 1: its row; commits of it may still be there" in said


def test_commands_tell_what_is_left_of_a_cut_store_and_say_so(path, capsys):
    """#15: with a warning and exit 9 until it is repaired; nothing can be written to it before."""
    with harken.open(path) as repo:
        for number in range(8):
            grow_repo(repo, 6, session_id=f"s{number}")
    os.truncate(path, path.stat().st_size - PAGE)

    def run(*words):
        with pytest.raises(SystemExit) as end:
            main(["--store", str(path), *words])
        return end.value.code or 0, capsys.readouterr()

    code, said = run("sessions", "--json")
    assert (9, True) == (code, "what is left of it" in said.err)
    assert 0 < len(said.out.splitlines())
    assert 9 == run("fsck")[0]
    code, refused = run("tag", "v1", "s0")
    assert (9, True) == (code, "nothing can be written" in refused.err)
    code, repaired = run("fsck", "--repair")
    assert (0, True) == (code, "lost: " in repaired.out)
    assert (0, said.out) == (lambda answer: (answer[0], answer[1].out))(run("sessions", "--json"))
    assert 0 == run("fsck")[0]
