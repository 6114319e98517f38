"""`harken sql` shows rows as a table that fits, as JSON or as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from harken.index import IndexProgress
from harken.repo import Repo

Run = Any


@pytest.fixture(autouse=True)
def store(repo: Repo) -> None:
    """One to ask."""


def test_a_table_sets_numbers_to_the_right_and_leaves_unknown_empty(run: Run) -> None:
    done = run("sql", "SELECT 'a' AS word, 5 AS number UNION ALL SELECT 'bcdefg', NULL UNION ALL SELECT '', 1000")

    assert ["word    number", "a            5", "bcdefg", "          1000"] == done.lines


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_table_fits_into_the_window(run: Run, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))

    done = run("sql", f"SELECT 1 AS n, '{'漢' * 70}' AS wide, '{'x' * 30}' AS other")

    name, row = done.lines
    assert columns == len(row) + row.count("漢")
    assert row.startswith("1  漢") and "…" in row
    assert name.startswith("n  wide")


def test_into_a_pipe_everything_goes_whole(run: Run) -> None:
    assert "x" * 300 == run("sql", f"SELECT '{'x' * 300}' AS long").lines[1]


def test_terminal_sequences_are_made_harmless(run: Run) -> None:
    done = run("sql", "SELECT char(27) || '[31m' || char(10) || 'x' AS \"\x1b]0;y\"")

    assert "\x1b" not in done.out
    assert 2 == len(done.lines)


def test_json_has_an_object_for_each_row(run: Run) -> None:
    done = run("sql", "--json", "SELECT 1 AS a, 2 AS a, NULL AS b, x'00ff' AS c, 9e999 AS d")

    assert [{"a": 1, "a_2": 2, "b": None, "c": "00ff", "d": "inf"}] == done.json


def test_csv_comes_back_as_it_was(run: Run) -> None:
    done = run("sql", "--csv", "SELECT 'a,\"b' || char(10) || 'c' AS text, NULL AS none")

    assert [["text", "none"], ['a,"b\nc', ""]] == list(csv.reader(io.StringIO(done.out)))


def test_csv_and_json_exclude_each_other(run: Run) -> None:
    assert (2, True) == ((done := run("sql", "--csv", "--json", "SELECT 1")).code, "exclude" in done.err)


def test_a_query_is_read_from_stdin(run: Run) -> None:
    assert [{"x": 1}] == run("sql", "-", "--json", stdin=b"SELECT 1 AS x").json


def test_that_there_are_more_rows_is_said(run: Run) -> None:
    done = run("sql", "-n", "2", "VALUES (1), (2), (3)")

    assert (3, True) == (len(done.lines), "these are the first 2 rows; -n gives more" in done.err)


def test_that_there_are_none_is_said(run: Run) -> None:
    done = run("sql", "SELECT 1 AS x WHERE 0")

    assert (["x"], "no rows\n") == (done.lines, done.err)


def test_the_schema_says_what_there_is(run: Run) -> None:
    assert "calls: one row for each call of a tool" in run("sql", "--schema").lines
    assert run("sql", "--schema", "calls").lines[0].startswith("calls: ")
    (view,) = run("sql", "--schema", "calls", "--json").json
    assert {"name": "tool", "type": "text", "meaning": "the tool"} in view["columns"]


def test_the_schema_of_what_is_no_view_is_not_found(run: Run) -> None:
    assert (3, True) == ((done := run("sql", "--schema", "cals")).code, "the views are sessions" in done.err)


def test_what_is_wrong_is_told_with_its_place(run: Run) -> None:
    done = run("sql", "SELECT titel FROM sessions")

    assert (2, "") == (done.code, done.out)
    assert "error: line 1, column 8: no such column: titel\nhint: did you mean title?" in done.err


def test_a_query_that_takes_too_long_is_stopped(run: Run) -> None:
    endless = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"

    done = run("sql", "--seconds", "0.05", endless)

    assert (1, True) == (done.code, "it took longer than 0.05 seconds" in done.err)


def test_that_the_index_is_behind_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def catch_up(*_: object, **__: object) -> IndexProgress:
        return IndexProgress(at=1, last=3, stale=1)

    monkeypatch.setattr("harken.index.StoreIndex.catch_up", catch_up)

    done = run("sql", "SELECT 1")

    assert "the index is behind the store by 2 changes and the numbers of 1 session; `harken index` brings" in done.err
