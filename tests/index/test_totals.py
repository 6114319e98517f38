"""The totals in the index are the sums over its rows, whatever has changed there, in every window of time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harken
from harken.analytics.prices import MICRO
from harken.index import schema
from harken.index.spending import Spent, UsageWindow
from harken.index.totals import QUARTER, sum_up
from harken.repo import Repo
from support.double_counting import CASES, Used, answered, claude, name, said
from support.indexes import digest

COLUMNS = (
    "session, model, agent, time, several, input, output, cache_read, cache_write_5m, cache_write_1h, cost, said_usd"
)
NOON = 1_772_366_400_000_000
"""A quarter of an hour begins here."""
FIRST = 0
"""The clock of computers begins here, and some run before it."""
near = st.none() | st.builds(
    lambda noon, quarter, past: noon + quarter * QUARTER + past,
    st.sampled_from([NOON, FIRST]),
    st.integers(-3, 3),
    st.sampled_from([-1, 0, 1, QUARTER // 2]),
)
count = st.none() | st.integers(0, 9)
rows = st.lists(
    st.tuples(
        st.integers(1, 3), st.sampled_from(["claude-opus-4-6", "nobody-knows", ""]), st.sampled_from(["", "a1"]), near,
        st.booleans(), count, count, count, count, count, st.none() | st.integers(0, 5 * MICRO), st.none() | count,
    ),
    max_size=12,
)  # fmt: skip
calls = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(["Bash", "Read"]), st.sampled_from(["", "x", "y"]), near, count),
    max_size=8,
)


class HeldIndex:
    """An index of rows alone."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        for statement in schema.TABLES.split(";\n"):
            self.db.execute(statement)
        self.db.executemany(
            "INSERT INTO sessions (n, session, runtime, started) VALUES (?, ?, 'claude-code', ?)",
            [(1, "one", NOON), (2, "two", NOON + QUARTER), (3, "three", None)],
        )

    def query(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        return self.db.execute(sql, values).fetchall()

    def add_usage(self, number: int, row: tuple[Any, ...], *, counted: bool = True) -> None:
        marks = ", ".join("?" * len(row))
        self.db.execute(
            f"INSERT INTO usage (key, api, partial, nested, carried, counted, {COLUMNS})"
            f" VALUES (?, '', 0, 0, 0, ?, {marks})",
            (str(number), counted, *row),
        )

    def add_call(self, number: int, session: int, tool: str, call: str, time: int | None, took: int | None) -> None:
        row = (number, session, tool, call, time, took, took)
        self.db.execute("INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ? > 4, '')", row)

    def spent(self, since: int | None, until: int | None) -> Spent:
        return Spent(self, UsageWindow(since=since, until=until))  # type: ignore[arg-type]


@pytest.fixture
def held() -> Iterator[HeldIndex]:
    index = HeldIndex()
    yield index
    index.db.close()


@given(rows, near, near)
def test_what_was_used_in_a_window_is_the_sum_over_its_rows(
    made: list[tuple[Any, ...]], since: int | None, until: int | None
) -> None:
    index = HeldIndex()
    for number, row in enumerate(made):
        index.add_usage(number, row)
    sum_up(index.db)

    total = index.spent(since, until).total()

    inside = [row for row in made if is_inside(row[3], since, until)]
    assert sum(row[10] or 0 for row in inside) == total.cost
    assert sum(not row[4] for row in inside) == total.requests
    for place, known in zip((5, 6, 7), (total.tokens.input, total.tokens.output, total.tokens.cache_read), strict=True):
        told = [row[place] for row in inside if row[place] is not None]
        assert (sum(told) if told else None if inside else 0) == known
    assert sum(row[11] for row in inside if row[11] is not None) == sum(total.said)
    assert sum(group.spending.cost for group in index.spent(since, until).groups("session")) == total.cost
    index.db.close()


@given(calls, near, near)
def test_each_call_is_in_the_window_in_which_it_was_made(
    made: list[tuple[Any, ...]], since: int | None, until: int | None
) -> None:
    index = HeldIndex()
    for number, call in enumerate(made):
        index.add_call(number, *call)
    sum_up(index.db)

    total = index.spent(since, until).total()

    started = {1: NOON, 2: NOON + QUARTER, 3: None}
    told = {
        (session, call or number, number if time is None else time): started[session] if time is None else time
        for number, (session, _, call, time, _) in enumerate(made)
    }
    assert sum(is_inside(time, since, until) for time in told.values()) == total.calls
    index.db.close()


def is_inside(time: int | None, since: int | None, until: int | None) -> bool:
    if time is None:
        return since is None and until is None
    return (since is None or time >= since) and (until is None or time < until)


def test_a_quarter_of_an_hour_before_1970_is_one_of_its_own(held: HeldIndex) -> None:
    for number, time in enumerate((FIRST - 1, FIRST, FIRST + 1)):
        held.add_usage(number, (1, "m", "", time, 0, 5, 1, None, None, None, 70, None))
    sum_up(held.db)

    assert [70, 140] == [held.spent(*span).total().cost for span in ((-QUARTER, FIRST), (FIRST, QUARTER))]


class TestTotalsFollow:
    def test_a_report_that_counts_no_longer(self, held: HeldIndex) -> None:
        held.add_usage(1, (1, "m", "", NOON, 0, 5, 1, None, None, None, 70, None))
        held.add_usage(2, (2, "m", "", NOON, 0, 5, 1, None, None, None, 70, None))
        sum_up(held.db)

        held.db.execute("UPDATE usage SET counted = 0 WHERE session = 2")
        assert [(2,)] == held.query("SELECT session FROM unsummed")
        sum_up(held.db)

        assert 70 == held.spent(None, None).total().cost
        assert [] == held.query("SELECT session FROM unsummed")

    def test_a_session_that_is_gone(self, held: HeldIndex) -> None:
        held.add_usage(1, (1, "m", "", NOON, 0, 5, 1, None, None, None, 70, None))
        held.add_call(1, 1, "Bash", "x", NOON, 3)
        sum_up(held.db)

        held.db.execute("DELETE FROM usage")
        held.db.execute("DELETE FROM calls")
        sum_up(held.db)

        assert [] == held.query("SELECT 1 FROM usage_totals") + held.query("SELECT 1 FROM call_totals")

    def test_the_result_of_a_call(self, held: HeldIndex) -> None:
        held.add_call(1, 1, "Bash", "x", NOON, None)
        sum_up(held.db)

        held.db.execute("UPDATE calls SET failed = 1, took = 2000000 WHERE message = 1")
        sum_up(held.db)

        total = held.spent(None, None).total()
        assert (1, 1, 2_000_000) == (total.calls, total.failed, total.took)

    def test_no_call_without_a_session(self, held: HeldIndex) -> None:
        held.db.execute("INSERT INTO calls VALUES (1, NULL, 'Bash', 'x', 5, 1, 0, '')")

        assert [] == held.query("SELECT session FROM unsummed")


@pytest.mark.parametrize("case", CASES[:6], ids=lambda case: case.name)
def test_an_index_that_grew_has_the_totals_of_a_new_one(case: Any, tmp_path: Path) -> None:
    case.write(tmp_path)
    with harken.open("memory:") as repo:
        for path in sorted(tmp_path.rglob("*.jsonl")):
            list(repo.import_sessions([path]))
            repo.index.catch_up()
        grown = kept(repo)
        repo.index.rebuild()

        assert kept(repo) == grown != [[], [], []]


def kept(repo: Repo) -> list[object]:
    told = digest(repo.index)
    return [told["usage_totals"], told["call_totals"], told["unsummed"]]


def test_a_session_is_counted_behind_its_sub_agents_and_so_once(tmp_path: Path) -> None:
    used = Used("claude-opus-4-6", 1, 2)
    claude(tmp_path, name(1), said(name(1), 1), answered(name(1), 2, used, "msg_1"))
    side = {"isSidechain": True, "agentId": "a1"}
    below = f"{name(1)}/subagents/agent-a1.jsonl"
    claude(tmp_path, name(1), said(name(1), 11, **side), answered(name(1), 12, used, "msg_2", **side), below=below)
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([tmp_path / "claude"]))

        assert 2 == repo.index.catch_up(numbers=False).stale
        assert 0 == repo.index.catch_up(seconds=0).stale, "one transaction, whatever time there is"


def test_sessions_whose_totals_are_not_made_are_told(tmp_path: Path) -> None:
    claude(tmp_path, name(1), said(name(1), 1), answered(name(1), 2, Used("claude-opus-4-6", 1, 2), "msg_1"))
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([tmp_path / "claude"]))
        repo.index.catch_up()
        repo.index._writer().execute("INSERT INTO unsummed VALUES (1)")

        assert 1 == repo.index.catch_up(numbers=False).stale == repo.index.status().stale
        assert 0 == repo.index.catch_up().stale == repo.index.status().stale
