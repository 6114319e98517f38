"""#12: whatever bit of whatever row is flipped, nobody is given a wrong answer, and nobody sees a traceback.

A small store is closed, so that every table is one page. Each bit of each row is flipped in the file, one at a time,
and every question is asked again: the answer is the one from before, or an error of ours.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3

import pytest

from harken.errors import HarkenError
from harken.store import fsck, open_store
from support.damage import rows, store_of_everything

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


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return store_of_everything(tmp_path_factory.mktemp("flips") / "store.db")


def ask_all(path, asked, answers, where):
    """Whether every answer is right or an error of ours."""
    try:
        with contextlib.closing(open_store(path)) as store:
            for n, (ask, expected) in enumerate(zip(asked, answers, strict=True)):
                with contextlib.suppress(HarkenError):
                    assert expected == ask(store), f"question {n} after {where}"
    except HarkenError:
        return
    finally:
        for suffix in ("-wal", "-shm", "-lock", "-cache"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{path}{suffix}")


def flips(tmp_path, small, table, every):
    data, asked, answers = small
    path = tmp_path / "store.db"
    path.write_bytes(data)
    with contextlib.closing(sqlite3.connect(path)) as schema:
        (root,) = schema.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    bits = [(offset, bit) for begin, end in rows(data, root) for offset in range(begin, end) for bit in range(8)]
    assert bits
    for offset, bit in bits[len(table) % every :: every]:
        flipped = bytearray(data)
        flipped[offset] ^= 1 << bit
        path.write_bytes(flipped)
        ask_all(path, asked, answers, (table, offset, bit))


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
