"""#12: whatever bit of whatever row is flipped, nobody is given a wrong answer, and nobody sees a traceback.

A small store is closed, so that every table is one page. Each bit of each row is flipped in the file, one at a time,
and every question is asked again: the answer is the one from before, or an error of ours. A change of the feed may say
that the row it is about is damaged.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3

import msgspec
import pytest

from harken.errors import Corrupt, HarkenError
from harken.store import Change, fsck, open_store
from harken.testing.store import grow
from support.damage import PAGE, rows, store_of_everything

TABLES = (
    "migrations",
    "facts",
    "frames",
    "loose",
    "artifacts",
    "parts",
    "origins",
    "principals",
    "commits",
    "sightings",
    "annotations",
    "names",
    "moves",
    "sessions",
    "changes",
)
INDEXES = (
    "artifacts_by_id",
    "sqlite_autoindex_origins_1",
    "sqlite_autoindex_principals_1",
    "commits_by_id",
    "commits_by_fork",
    "commits_by_principal",
    "sightings_by_commit",
    "sightings_by_principal",
    "annotations_by_commit",
    "sqlite_autoindex_names_1",
    "names_by_target",
    "sqlite_autoindex_sessions_1",
    "sessions_by_source",
)
EVERY = 23
"""Which of the bits of an index are flipped."""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return store_of_everything(tmp_path_factory.mktemp("flips") / "store.db")


def ask_all(path, asked, answers, where):
    """Whether every answer is right or an error of ours; and how many were answers."""
    answered = 0
    try:
        with contextlib.closing(open_store(path)) as store:
            for n, (ask, expected) in enumerate(zip(asked, answers, strict=True)):
                with contextlib.suppress(HarkenError):
                    answer = ask(store)
                    assert told_as_damaged(expected, answer) == answer, f"question {n} after {where}"
                    answered += 1
    except HarkenError:
        pass
    finally:
        for suffix in ("-wal", "-shm", "-lock", "-cache"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{path}{suffix}")
    return answered


def told_as_damaged(expected, answer):
    """What is expected; of a change that says what is wrong with its subject, all but the subject."""
    if not (isinstance(answer, list) and answer and isinstance(answer[0], Change)):
        return expected
    return [
        msgspec.structs.replace(one, subject="", problem=got.problem) if got.problem else one
        for one, got in zip(expected, answer, strict=True)
    ]


def is_part(answer, whole, commits):
    """Whether nothing is in the answer that is not true; a row that an index hides may lack."""
    if isinstance(whole, dict):
        return all(is_part(answer[key], whole[key], commits) for key in whole)
    if isinstance(whole, list):
        return answer == whole or all(one is None or one in whole or one in commits for one in answer)
    return answer is None or answer == whole


@pytest.mark.parametrize("index", INDEXES)
def test_a_flipped_bit_in_an_index_hides_a_row_at_worst(tmp_path, small, index):
    """#12: an index has no sums; one that leads to another row is found out by the row."""
    data, asked, answers = small
    path = tmp_path / "store.db"
    path.write_bytes(data)
    with contextlib.closing(sqlite3.connect(path)) as schema:
        (root,) = schema.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,)).fetchone()
    begin = (root - 1) * PAGE
    first = begin + int.from_bytes(data[begin + 5 : begin + 7], "big")
    answered = 0
    for offset, bit in [(offset, bit) for offset in range(first, begin + PAGE) for bit in range(8)][::EVERY]:
        flipped = bytearray(data)
        flipped[offset] ^= 1 << bit
        path.write_bytes(flipped)
        with contextlib.suppress(HarkenError), contextlib.closing(open_store(path)) as store:
            for n, (ask, expected) in enumerate(zip(asked, answers, strict=True)):
                with contextlib.suppress(HarkenError):
                    assert is_part(ask(store), expected, answers[0]), f"question {n} after {offset}, {bit}"
                    answered += 1
        for suffix in ("-wal", "-shm", "-lock", "-cache"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{path}{suffix}")
    assert answered, "errors alone would say nothing of answers"


def test_an_index_that_leads_to_another_commit_is_damage(tmp_path):
    """#12: it was a KeyError."""
    path = tmp_path / "store.db"
    with contextlib.closing(open_store(path)) as store:
        first, second, third = grow(store, 3)
    data = bytearray(path.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as schema:
        (root,) = schema.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'commits_by_id'").fetchone()
    keys = [bytes.fromhex(commit.id[:16]) for commit in (second, third)]
    places = [data.index(key, (root - 1) * PAGE, root * PAGE) for key in keys]
    for place, key in zip(places, reversed(keys), strict=True):
        data[place : place + 8] = key
    path.write_bytes(data)

    with contextlib.closing(open_store(path)) as store:
        assert first.id == store.get_commit(first.id).id
        with pytest.raises(Corrupt, match="the index commits_by_id is not what was written") as caught:
            store.get_commit(second.id)

    assert 9 == caught.value.exit_code


def flips(tmp_path, small, table, every):
    data, asked, answers = small
    path = tmp_path / "store.db"
    path.write_bytes(data)
    with contextlib.closing(sqlite3.connect(path)) as schema:
        (root,) = schema.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    bits = [(offset, bit) for begin, end in rows(data, root) for offset in range(begin, end) for bit in range(8)]
    assert bits
    answered = 0
    for offset, bit in bits[len(table) % every :: every]:
        flipped = bytearray(data)
        flipped[offset] ^= 1 << bit
        path.write_bytes(flipped)
        answered += ask_all(path, asked, answers, (table, offset, bit))
    assert answered, "errors alone would say nothing of answers"


@pytest.mark.parametrize("table", TABLES)
def test_a_flipped_bit_never_gives_a_wrong_answer(tmp_path, small, table):
    """A sample of the bits; all of them are flipped with the other faults."""
    flips(tmp_path, small, table, 41)


@pytest.mark.faults
@pytest.mark.timeout(7200)  # minutes on a quiet machine, hours on a busy one
@pytest.mark.parametrize("table", TABLES)
def test_no_flipped_bit_gives_a_wrong_answer(tmp_path, small, table):
    flips(tmp_path, small, table, 1)


def test_the_quick_check_finds_a_flipped_bit_in_a_row_of_artifacts(tmp_path, small):
    data, _, _ = small
    path = tmp_path / "store.db"
    path.write_bytes(data)
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE artifacts SET start = start + 1 WHERE n = 2")
        raw.commit()
    with contextlib.closing(open_store(path)) as store:
        assert ["artifact"] == [found.what for found in fsck(store).findings if found.severity == "corrupt"][:1]
