"""Sub-agents count with the session at the top of their family, and with nobody where that is not in the store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Repo, clock
from harken.api import operation, reference
from support.page_sessions import DAY, working_day, write_session
from support.recordings import FOLDER

ALONE = "11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa"


def ask(repo: Repo, name: str, **fields: Any) -> Any:
    described = next(one for one in reference.operations() if one.name == name)
    return operation(name)(repo, described.request(**fields))


def day_of(repo: Repo) -> str:
    return clock.format_instant(max(row.ended or 0 for row in repo.sessions()))[:10]


@pytest.fixture
def orphans(tmp_path: Path) -> Iterator[Repo]:
    """Three sub-agents of Claude Code whose main session nobody has."""
    shutil.copytree(FOLDER / "claude-code-2.1.325" / "parallel-agents", tmp_path / "home")
    for path in (tmp_path / "home" / "projects").glob("*/*.jsonl"):
        path.unlink()
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([tmp_path / "home"]))
        yield repo


@pytest.fixture
def threads(tmp_path: Path) -> Iterator[Repo]:
    """A thread of Codex with two sub-agents, which are threads with names of their own."""
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([FOLDER / "codex-0.166.0" / "agents"]))
        yield repo


class TestSubAgentsWithoutTheirSession:
    def test_they_are_in_the_lists(self, orphans: Repo) -> None:
        expected = {row.session for row in orphans.sessions()}

        assert 3 == len(expected)
        assert expected == {row.session for row in ask(orphans, "sessions_page").rows}
        assert expected == {one.session for one in ask(orphans, "sessions", top=True)}

    def test_what_the_list_costs_is_what_statistics_say(self, orphans: Repo) -> None:
        *_, total = ask(orphans, "usage", by=("session",))

        assert total.price_usd_micros == ask(orphans, "sessions_page").price_usd_micros

    def test_words_are_found_in_the_one_that_said_them(self, orphans: Repo) -> None:
        (wanted,) = (row.session for row in orphans.sessions() if row.title.startswith("SUB-TWO"))

        found = ask(orphans, "sessions_page", query='"SUB-TWO: look around"')

        assert [wanted] == [row.session for row in found.rows]
        assert [True] == [bool(row.found) for row in found.rows]

    def test_what_is_found_leads_to_the_one_that_said_it(self, orphans: Repo) -> None:
        (wanted,) = (row for row in orphans.sessions() if row.title.startswith("SUB-TWO"))

        (hit, *_) = ask(orphans, "search", query='"The report of SUB-TWO"')
        (row,) = ask(orphans, "sessions_page", query='"The report of SUB-TWO"').rows

        assert (wanted.session, wanted.title, wanted.runtime) == (hit.session, hit.title, hit.runtime)
        assert wanted.session == row.found[0].session
        assert hit.message_id == ask(orphans, "transcript_row", session=hit.session, id=hit.message_id).id
        assert hit.commit == orphans.commit(hit.ref).short

    def test_their_calls_are_those_of_statistics(self, orphans: Repo) -> None:
        *_, total = ask(orphans, "usage", by=("session",))

        assert total.calls == sum(row.calls for row in ask(orphans, "sessions_page").rows) > 0

    def test_the_day_and_the_week_have_them(self, orphans: Repo) -> None:
        found = ask(orphans, "home", day=day_of(orphans))

        assert (3, 3, 3) == (found.facts.sessions, found.week[-1].sessions, found.week_sessions)
        assert {row.session for row in orphans.sessions()} == {bar.session for bar in found.bars}

    def test_each_has_a_lane_of_its_own(self, orphans: Repo) -> None:
        for row in orphans.sessions():
            (lane,) = ask(orphans, "lanes", session=row.session).lanes
            assert (row.session, True) == (lane.session, lane.calls > 0)

    def test_nothing_leads_to_the_session_that_is_not_there(self, orphans: Repo) -> None:
        for row in orphans.sessions():
            page = ask(orphans, "session_page", session=row.session)
            assert (row.parent, False) == (page.parent, page.parent_stored)

    def test_they_are_nobodys_helpers_in_the_statistics(self, orphans: Repo) -> None:
        until = clock.format_instant(max(row.ended or 0 for row in orphans.sessions()) + 1)

        found = ask(orphans, "stats_page", until=until).delegation

        assert (0, 0) == (found.sessions, found.agents)


def test_a_sub_agent_that_is_looked_at_alone_says_by_which_call_it_was_made(tmp_path: Path) -> None:
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([FOLDER / "claude-code-2.1.325" / "parallel-agents"]))
        (top,) = (row.session for row in repo.sessions() if not row.parent)
        _, *below = ask(repo, "lanes", session=top).lanes

        for lane in below:
            (alone,) = ask(repo, "lanes", session=lane.session).lanes
            assert alone.told is not None
            assert (lane.told, lane.calls) == (alone.told, alone.calls)


class TestSubAgentsWithNamesOfTheirOwn:
    def test_each_has_a_lane_with_what_it_called(self, threads: Repo) -> None:
        (top,) = (row for row in threads.sessions() if not row.parent)
        below = {row.session: row for row in threads.sessions() if row.parent}

        main, *others = ask(threads, "lanes", session=top.session).lanes

        assert (top.session, "codex") == (main.session, main.agent)
        assert set(below) == {lane.session for lane in others}
        assert all(lane.calls and lane.parent == "codex" for lane in others)
        assert [0] * len(others) == [lane.prompts for lane in others]

    def test_their_calls_count_with_the_session(self, threads: Repo) -> None:
        *_, total = ask(threads, "usage", by=("session",))

        (row,) = ask(threads, "sessions_page").rows

        assert total.calls == row.calls
        assert row.calls > ask(threads, "lanes", session=row.session).lanes[0].calls

    def test_their_words_are_found_in_the_list(self, threads: Repo) -> None:
        (top,) = (row.session for row in threads.sessions() if not row.parent)
        hits = [one.session for one in ask(threads, "search", query="SUB-ONE")]

        (row,) = ask(threads, "sessions_page", query="SUB-ONE").rows

        assert {top} != set(hits)
        assert (top, len(hits)) == (row.session, row.places)

    def test_one_session_delegated_and_says_how_much(self, threads: Repo) -> None:
        rows = threads.sessions()
        until = clock.format_instant(max(row.ended or 0 for row in rows) + 1)

        found = ask(threads, "stats_page", until=until).delegation

        (most,) = found.most
        assert (1, sum(bool(row.parent) for row in rows)) == (found.sessions, found.agents)
        assert [row.session for row in rows if not row.parent] == [most.session]
        assert (found.own, found.delegated) == (most.own, most.delegated)

    def test_a_day_is_one_session_and_what_they_were_told_is_no_persons_prompt(self, threads: Repo) -> None:
        (top,) = (row.session for row in threads.sessions() if not row.parent)
        (main, *_) = ask(threads, "lanes", session=top).lanes

        facts = ask(threads, "home", day=day_of(threads)).facts

        assert (1, main.prompts) == (facts.sessions, facts.prompts)


class TestDaysAndWeeks:
    def test_a_session_that_made_no_request_counts_in_the_day_and_in_the_week(self, tmp_path: Path) -> None:
        with harken.open(tmp_path / "store.db") as repo:
            list(repo.import_sessions([write_session(tmp_path, working_day()[:1], ALONE)]))

            found = ask(repo, "home", day=DAY)

        assert (1, 1, 1) == (found.facts.sessions, found.week[-1].sessions, found.week_sessions)

    def test_a_session_of_two_days_is_one_of_the_week(self, tmp_path: Path) -> None:
        records = working_day()
        records[-1]["timestamp"] = "2026-01-03T00:00:05.000Z"
        with harken.open(tmp_path / "store.db") as repo:
            list(repo.import_sessions([write_session(tmp_path, records, ALONE)]))

            found = ask(repo, "home", day="2026-01-03")

        assert [0, 0, 0, 0, 1, 0, 1] == [one.sessions for one in found.week]
        assert 1 == found.week_sessions
