"""#14: a repair says what it did not find of every table, and puts back the branches and tags it can be sure of."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

import harken
from harken import Commit, Prompt
from harken.store import Report, fsck, open_store
from harken.testing.store import T0
from support.damage import PAGE


def told(report: Report, what: str) -> list[str]:
    return [found.why for found in report.findings if found.why.startswith(what)]


@pytest.fixture
def made(tmp_path: Path) -> list[Commit]:
    """A branch that went on after its last move, a tag, a remark, and a commit that two principals made."""
    with harken.open(tmp_path / "s.db") as repo:
        first = repo.checkpoint([Prompt(content="a")], session_id="s", principal="me", created_at=T0)
        repo.checkpoint([Prompt(content="a")], session_id="s", principal="you", created_at=T0)
        repo.fork(first, "review")
        second = repo.checkpoint([Prompt(content="b")], parent="review", session_id="s", created_at=T0 + 1)
        repo.tag(first, "v1")
        repo.annotate(first, "a remark")
    return [first, second]


def repaired(path: Path, *roots: str) -> Report:
    """What is said of a store after the first pages of tables and indexes are zeroed and it is repaired."""
    data = bytearray(path.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as schema:
        pages = [schema.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (root,)) for root in roots]
        numbers = [page.fetchone()[0] for page in pages]
    for number in numbers:
        data[(number - 1) * PAGE : number * PAGE] = bytes(PAGE)
    path.write_bytes(data)
    with contextlib.closing(open_store(path, damaged=True)) as store:
        return fsck(store, repair=True)


def test_branches_and_tags_are_put_back_where_their_moves_and_an_index_agree(
    tmp_path: Path, made: list[Commit]
) -> None:
    first, second = made

    report = repaired(tmp_path / "s.db", "names")

    back = [f"put back: branch review at {second.short}", f"put back: tag v1 at {first.short}"]
    assert (back, []) == (sorted(told(report, "put back")), told(report, "lost"))
    with harken.open(tmp_path / "s.db") as repo:
        assert [second.id, first.id] == [repo.commit("review").id, repo.commit("v1").id]


@pytest.mark.parametrize("other", ["moves", "names_by_target"])
def test_those_that_nothing_vouches_for_are_said_to_be_lost(tmp_path: Path, made: list[Commit], other: str) -> None:
    report = repaired(tmp_path / "s.db", "names", other)

    assert [] == told(report, "put back")
    assert 2 == len([why for why in told(report, "lost") if why.endswith((" review: its row", " v1: its row"))])


@pytest.mark.parametrize("table", ["annotations", "sightings"])
def test_rows_that_an_index_still_counts_are_counted(tmp_path: Path, made: list[Commit], table: str) -> None:
    report = repaired(tmp_path / "s.db", table)

    (said,) = [why for why in told(report, "lost") if f"{table}:" in why]
    assert said.endswith(" on pages that cannot be read")


NOTHING_COUNTS = [("moves",), ("annotations", "annotations_by_commit"), ("names", "sqlite_autoindex_names_1")]


@pytest.mark.parametrize("roots", NOTHING_COUNTS, ids=" ".join)
def test_of_rows_that_nothing_counts_it_is_said_that_some_are_lost(
    tmp_path: Path, made: list[Commit], roots: tuple[str, ...]
) -> None:
    report = repaired(tmp_path / "s.db", *roots)

    assert [f"lost: {roots[0]}: what lay on pages that cannot be read; 0 are left"] == told(report, "lost")


def test_lost_principals_are_said_in_plain_words(tmp_path: Path, made: list[Commit]) -> None:
    report = repaired(tmp_path / "s.db", "principals")

    assert told(report, "lost: principal")
    assert [] == [found.why for found in report.findings if "Error" in found.why]


def test_a_sound_store_has_lost_nothing(tmp_path: Path, made: list[Commit]) -> None:
    report = repaired(tmp_path / "s.db")

    assert [] == report.findings
