"""What the page asks for in lists: lanes, home, sessions. The numbers are those that other commands tell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import harken
from harken import Repo, clock
from harken.analytics import lanes as drawing
from harken.api import operation, reference
from harken.errors import BadRequest, NotFound
from support.claude_lines import MODEL, assistant, call, user
from support.double_counting import a_sub_agent_that_only_its_parent_tells_of
from support.page_sessions import DAY, renamed, working_day, write_session
from support.recordings import FOLDER
from support.viewed import cafe, write_log

SESSION = "11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
OTHER = "22222222-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
NOW = clock.parse_instant("2026-01-01T12:00:00Z") or 0


def ask(repo: Repo, name: str, **fields: Any) -> Any:
    described = next(one for one in reference.operations() if one.name == name)
    return operation(name)(repo, described.request(**fields))


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    other = renamed(working_day()[:4], "other-")
    paths = [write_session(tmp_path, working_day(), SESSION), write_session(tmp_path, other, OTHER, "/y")]
    with harken.open(tmp_path / "store.db", clock=lambda: NOW) as repo:
        list(repo.import_sessions(paths))
        yield repo


ASKED: list[tuple[str, dict[str, Any]]] = [
    ("home", {"day": DAY}),
    ("sessions_page", {"query": "parser"}),
    ("stats_page", {"until": "2026-01-02T00:00:00Z"}),
    ("lanes", {"session": SESSION}),
    ("flow_page", {"session": SESSION, "tools": "all"}),
    ("flow_knows", {"session": SESSION, "agent": "claude-code"}),
    ("commit_rows", {"session": SESSION}),
    ("compaction", {"session": SESSION, "record": "k1"}),
]


@pytest.mark.parametrize(("name", "fields"), ASKED, ids=[name for name, _ in ASKED])
class TestEveryOne:
    def test_an_answer_comes_back_from_the_wire(self, repo: Repo, name: str, fields: dict[str, Any]) -> None:
        answer = ask(repo, name, **fields)

        assert answer == msgspec.json.decode(msgspec.json.encode(answer), type=type(answer))

    def test_asking_again_gives_the_same(self, repo: Repo, name: str, fields: dict[str, Any]) -> None:
        assert ask(repo, name, **fields) == ask(repo, name, **fields)

    def test_what_a_transcript_says_is_text(self, tmp_path: Path, name: str, fields: dict[str, Any]) -> None:
        """Lone surrogates, control characters and tags in every field that a transcript fills."""
        told = json.dumps(working_day()).replace("parser", "<script>\\ud800\\u001b[2J</script> parser")
        with harken.open("memory:") as repo:
            list(repo.import_sessions([write_session(tmp_path, json.loads(told), SESSION)]))

            assert msgspec.json.encode(ask(repo, name, **fields))


class TestLanes:
    def test_a_tool_was_at_work_until_its_result_came(self, repo: Repo) -> None:
        (lane,) = ask(repo, "lanes", session=SESSION).lanes

        tools = [(one[3], (one[1] - one[0]) // clock.SECOND) for one in lane.segments if one[2] == "tool"]
        assert [("a1", 1), ("a2", 10), ("a3", 10), ("a4", 10)] == tools

    def test_prompts_failures_and_compactions_are_marked(self, repo: Repo) -> None:
        (lane,) = ask(repo, "lanes", session=SESSION).lanes

        marks = [(kind, record) for _, kind, record, *_ in lane.marks]
        assert [("prompt", "p1"), ("failure", "a2"), ("failure", "a3"), ("failure", "a4")] == marks[:4]
        assert [("prompt", "p2"), ("compaction", "k1"), ("prompt", "p3")] == marks[4:]
        assert (4, 3) == (lane.calls, lane.failed)

    def test_a_call_that_another_record_tells_again_is_one(self, tmp_path: Path) -> None:
        records = working_day()
        again = [record | {"uuid": f"{record['uuid']}-again"} for record in records if record["uuid"] in ("a1", "a2")]
        with harken.open("memory:") as repo:
            list(repo.import_sessions([write_session(tmp_path, [*records, *again], SESSION)]))
            (row,) = ask(repo, "sessions_page").rows

            (lane,) = ask(repo, "lanes", session=SESSION).lanes

        assert (4, 3) == (row.calls, row.failed)
        assert (row.calls, row.failed) == (lane.calls, lane.failed)

    def test_a_call_without_a_time_or_with_an_earlier_one_counts_where_no_window_is_asked_for(
        self, tmp_path: Path
    ) -> None:
        records = working_day()
        for record in records:
            if record["uuid"] == "a2":
                del record["timestamp"]
            elif record["uuid"] == "a3":
                record["timestamp"] = "2025-12-31T23:00:00.000Z"
        with harken.open("memory:") as repo:
            list(repo.import_sessions([write_session(tmp_path, records, SESSION)]))
            (row,) = ask(repo, "sessions_page").rows
            (lane,) = ask(repo, "lanes", session=SESSION).lanes
            (window,) = ask(repo, "lanes", session=SESSION, start="2026-01-01T00:00:00Z").lanes

        assert (4, 3) == (row.calls, row.failed) == (lane.calls, lane.failed)
        assert (2, 1) == (window.calls, window.failed)

    def test_and_what_is_known_of_agents_without_one_cost_what_the_session_does(self, tmp_path: Path) -> None:
        a_sub_agent_that_only_its_parent_tells_of(tmp_path)
        with harken.open("memory:") as repo:
            list(repo.import_sessions([tmp_path]))
            (session,) = [row.session for row in repo.sessions()]

            found = ask(repo, "lanes", session=session)
            whole = ask(repo, "session_page", session=session).price_usd_micros

        (lane,) = found.lanes
        assert (1, whole - lane.price_usd_micros) == (found.unseen_agents, found.unseen_price_usd_micros)
        assert 0 < found.unseen_price_usd_micros < whole

    def test_no_agent_is_without_one_where_all_have_times(self, repo: Repo) -> None:
        found = ask(repo, "lanes", session=SESSION)

        assert (0, None) == (found.unseen_agents, found.unseen_price_usd_micros)

    def test_a_pause_of_more_than_five_minutes_can_be_folded(self, repo: Repo) -> None:
        found = ask(repo, "lanes", session=SESSION)

        assert [clock.parse_instant(f"{DAY}T00:16:40Z")] == [end for _, end in found.gaps]
        assert all(end - start > drawing.IDLE for start, end in found.gaps)

    def test_the_times_are_those_of_the_profile(self, repo: Repo) -> None:
        (lane,) = ask(repo, "lanes", session=SESSION).lanes
        whole = ask(repo, "report", session=SESSION).profile["whole"]

        assert whole["tool"] == lane.spent["tool"]
        assert whole["response"] == lane.spent["answer"]
        assert whole["thinking"] == lane.spent["thinking"]

    def test_few_segments_still_cover_the_time_and_count_what_they_stand_for(self, repo: Repo) -> None:
        (whole,) = ask(repo, "lanes", session=SESSION).lanes
        (small,) = ask(repo, "lanes", session=SESSION, segments=3).lanes

        assert len(small.segments) <= 3
        assert sum(one[5] for one in whole.segments) == sum(one[5] for one in small.segments)
        assert whole.segments[0][0] == small.segments[0][0]
        assert whole.segments[-1][1] == small.segments[-1][1]

    def test_a_window_shows_what_is_in_it(self, repo: Repo) -> None:
        found = ask(repo, "lanes", session=SESSION, start=f"{DAY}T00:00:10Z", end=f"{DAY}T00:00:30Z")

        (lane,) = found.lanes
        assert {"a2", "a3"} == {one[3] for one in lane.segments if one[2] == "tool"}
        assert 20 * clock.SECOND == sum(end - start for start, end, *_ in lane.segments)

    def test_more_segments_than_a_drawing_has_room_for_are_refused(self, repo: Repo) -> None:
        with pytest.raises(BadRequest):
            ask(repo, "lanes", session=SESSION, segments=4001)

    def test_an_unknown_session_is_not_found(self, repo: Repo) -> None:
        with pytest.raises(NotFound):
            ask(repo, "lanes", session="nobody")

    def test_sub_agents_have_lanes_with_who_told_them_and_when(self, tmp_path: Path) -> None:
        with harken.open(tmp_path / "store.db") as repo:
            list(repo.import_sessions([FOLDER / "claude-code-2.1.325" / "parallel-agents"]))
            (row,) = (row for row in repo.sessions() if not row.parent)

            found = ask(repo, "lanes", session=row.session)

        main, *others = found.lanes
        assert {each.session for each in others} == {each.session for each in others if "/" in each.session}
        assert others
        assert all(lane.parent == main.agent and lane.told is not None for lane in others)
        assert "waiting" in main.spent

    def test_in_a_log_a_lane_is_an_agent_and_what_it_heard_is_no_prompt(self, tmp_path: Path) -> None:
        with harken.open("memory:") as repo:
            list(repo.import_sessions([write_log(tmp_path / "cafe.jsonl", cafe())]))

            found = ask(repo, "lanes", session="cafe")

        assert ["root", "Jack", "Jill", "Bob", "Inner"] == [lane.name for lane in found.lanes]
        assert [1, 0, 0, 0, 0] == [lane.prompts for lane in found.lanes]
        assert [None, "root", "root", "root", "jill"] == [lane.parent for lane in found.lanes]


class TestHome:
    def test_the_day_in_numbers(self, repo: Repo) -> None:
        facts = ask(repo, "home", day=DAY).facts

        assert (2, 1, 2) == (facts.sessions, facts.files, facts.projects)
        assert (5, 3) == (facts.calls, facts.failed)
        assert (1, 4) == (facts.compactions, facts.prompts)

    def test_the_numbers_are_those_of_usage(self, repo: Repo) -> None:
        facts = ask(repo, "home", day=DAY).facts
        asked = {"since": f"{DAY}T00:00:00Z", "until": "2026-01-02T00:00:00Z"}
        *_, total = ask(repo, "usage", by=("day",), **asked)

        assert total.price_usd_micros == facts.price_usd_micros
        assert (total.calls, total.failed) == (facts.calls, facts.failed)

    def test_a_pause_is_no_work(self, repo: Repo) -> None:
        bars = {bar.session: bar for bar in ask(repo, "home", day=DAY).bars}
        facts = ask(repo, "home", day=DAY).facts

        assert {SESSION, OTHER} == set(bars)
        assert facts.seconds < 100

    def test_the_week_ends_with_the_day_and_adds_up(self, repo: Repo) -> None:
        found = ask(repo, "home", day=DAY)

        assert ["2025-12-26", DAY] == [found.week[0].day, found.week[-1].day]
        assert found.facts.price_usd_micros == found.week[-1].price_usd_micros == found.week_price_usd_micros
        assert {"/x", "/y"} == set(found.week[-1].projects)
        assert 2 == found.week[-1].sessions

    def test_a_day_begins_where_the_zone_says(self, repo: Repo) -> None:
        assert 0 == ask(repo, "home", day=DAY, zone=-60).facts.sessions
        assert 2 == ask(repo, "home", day="2025-12-31", zone=-60).facts.sessions

    def test_today_is_the_day_of_the_clock(self, repo: Repo) -> None:
        assert DAY == ask(repo, "home").day
        assert "2026-01-02" == ask(repo, "home", zone=13 * 60).day

    def test_an_empty_day_names_the_nearest_full_one(self, repo: Repo) -> None:
        found = ask(repo, "home", day="2026-03-01")

        assert (0, DAY) == (found.facts.sessions, found.nearest)

    def test_a_command_that_failed_again_and_again_is_worth_a_look(self, repo: Repo) -> None:
        worth = {one.kind: one for one in ask(repo, "home", day=DAY).worth}

        assert "ls failed 3 times in a row" == worth["failed"].text
        assert (SESSION, "a4") == (worth["failed"].session, worth["failed"].record)

    def test_so_is_a_compaction_that_dropped_much(self, repo: Repo) -> None:
        worth = {one.kind: one for one in ask(repo, "home", day=DAY).worth}

        assert (SESSION, "k1") == (worth["compaction"].session, worth["compaction"].record)

    def test_a_session_says_how_it_stands(self, repo: Repo) -> None:
        recent = {one.session: one for one in ask(repo, "home", day=DAY).recent}

        assert ("asks", "Shall I write a test?", "a6") == (
            recent[SESSION].state, recent[SESSION].last, recent[SESSION].record,
        )  # fmt: skip

    def test_what_was_changed_on_its_way_is_counted_and_worth_a_look(self, tmp_path: Path) -> None:
        with harken.open("memory:") as repo:
            list(repo.import_sessions([write_log(tmp_path / "cafe.jsonl", cafe())]))

            found = ask(repo, "home", day=DAY)

        assert 2 == found.facts.changed
        assert {("changed", "m15"), ("blocked", "m28")} == {(one.kind, one.record) for one in found.worth}

    @pytest.mark.parametrize("wrong", [{"day": "yesterday"}, {"day": "2026-02-31"}, {"zone": 2000}])
    def test_what_is_no_day_is_refused(self, repo: Repo, wrong: dict[str, Any]) -> None:
        with pytest.raises(BadRequest):
            ask(repo, "home", **wrong)

    def test_an_empty_store_has_a_day_too(self) -> None:
        with harken.open("memory:") as repo:
            found = ask(repo, "home")

        assert (0, None, []) == (found.facts.sessions, found.nearest, found.bars)


class TestSessionsPage:
    def test_a_row_says_what_the_session_did(self, repo: Repo) -> None:
        row = next(row for row in ask(repo, "sessions_page").rows if row.session == SESSION)

        assert "peCCCp|p" == row.strip
        assert (3, 4, 3, 1, 0) == (row.prompts, row.calls, row.failed, row.compactions, row.agents)

    @pytest.mark.parametrize("more", [False, True], ids=["nothing new", "a call more"])
    def test_what_a_fork_began_with_is_among_its_calls_as_in_its_lanes(self, tmp_path: Path, more: bool) -> None:
        records = working_day()[:10]
        new = [assistant("b1", "r4", [call("d1")], "n1", 100)] if more else []
        forked = [record | {"sessionId": OTHER} for record in [*records, *new]]
        with harken.open("memory:") as repo:
            list(repo.import_sessions([write_session(tmp_path, records, SESSION)]))
            list(repo.import_sessions([write_session(tmp_path, forked, OTHER)]))
            rows = {row.session: row for row in ask(repo, "sessions_page").rows}
            lanes = {session: ask(repo, "lanes", session=session).lanes[0] for session in rows}
            whole = repo.usage()[0].total()

        assert {SESSION: (4, 3), OTHER: (4 + more, 3)} == {name: (row.calls, row.failed) for name, row in rows.items()}
        assert {name: (lane.calls, lane.failed) for name, lane in lanes.items()} == {
            name: (row.calls, row.failed) for name, row in rows.items()
        }
        assert (4 + more, 3) == (whole.calls, whole.failed)

    @pytest.mark.parametrize("runtime", ["claude-code", "pi"])
    def test_a_resumed_copy_says_which_of_its_calls_failed(self, tmp_path: Path, runtime: str) -> None:
        with harken.open("memory:") as repo:
            list(repo.import_sessions([write_session(tmp_path, working_day()[:10], SESSION)]))
            repo.resume(SESSION, runtime, cwd=tmp_path, home=tmp_path / "home", environ={})
            list(repo.import_sessions([tmp_path / "home"]))

            assert [(4, 3)] * 2 == [(row.calls, row.failed) for row in ask(repo, "sessions_page").rows]

    def test_price_and_order_are_those_of_the_list(self, repo: Repo) -> None:
        listed = {one.session: one for one in ask(repo, "sessions", costs=True)}
        found = ask(repo, "sessions_page")

        assert list(listed) == [row.session for row in found.rows]
        assert [one.price_usd_micros for one in listed.values()] == [row.price_usd_micros for row in found.rows]
        assert 2 == found.total

    def test_a_range_is_a_part_of_the_list(self, repo: Repo) -> None:
        whole = ask(repo, "sessions_page")

        assert whole.rows[1:] == ask(repo, "sessions_page", start=1, count=1).rows
        assert 2 == ask(repo, "sessions_page", start=1, count=1).total
        with pytest.raises(BadRequest):
            ask(repo, "sessions_page", count=201)

    def test_words_find_sessions_and_the_places_in_them(self, repo: Repo) -> None:
        found = ask(repo, "sessions_page", query="colour button", order="best")

        (row,) = found.rows
        assert (SESSION, 1) == (row.session, row.places)
        assert ["p2"] == [place.record for place in row.found]
        spots = [row.found[0].text[start:end] for start, end in row.found[0].highlights]
        assert ["colour", "button"] == spots

    def test_what_they_have_is_counted_and_asked_for(self, repo: Repo) -> None:
        found = ask(repo, "sessions_page")

        assert {"errors": 1, "compaction": 1, "agents": 0, "prompt": 2} == found.facets.has
        assert {"/x": 1, "/y": 1} == found.facets.projects
        assert [SESSION] == [row.session for row in ask(repo, "sessions_page", has=("errors",)).rows]
        with pytest.raises(BadRequest):
            ask(repo, "sessions_page", has=("colour",))

    def test_the_dearest_can_come_first(self, repo: Repo) -> None:
        prices = [row.price_usd_micros or 0 for row in ask(repo, "sessions_page", order="cost").rows]

        assert sorted(prices, reverse=True) == prices

    def test_a_session_that_just_spoke_is_running(self, tmp_path: Path) -> None:
        path = write_session(tmp_path, working_day(), SESSION)
        soon = clock.parse_instant(f"{DAY}T00:17:00Z") or 0
        with harken.open("memory:", clock=lambda: soon) as repo:
            list(repo.import_sessions([path]))

            assert [True] == [row.running for row in ask(repo, "sessions_page").rows]
            assert ["running"] == [one.state for one in ask(repo, "home").running]

    def test_what_a_session_gained_is_in_the_next_answer(self, repo: Repo, tmp_path: Path) -> None:
        before = next(row for row in ask(repo, "sessions_page").rows if row.session == OTHER)
        list(repo.import_sessions([write_session(tmp_path, renamed(working_day()[:6], "other-"), OTHER, "/y")]))

        after = next(row for row in ask(repo, "sessions_page").rows if row.session == OTHER)

        assert ("pe", "peC") == (before.strip, after.strip)


WINDOW: dict[str, Any] = {"since": "2025-12-31T00:00:00Z", "until": "2026-01-02T00:00:00Z"}


class TestStatsPage:
    def test_it_tells_what_usage_tells(self, repo: Repo) -> None:
        found = ask(repo, "stats_page", **WINDOW)
        told = list(ask(repo, "usage", by=("project", "model", "tool"), **WINDOW))
        total = told[-1]

        assert (total.price_usd_micros, total.sessions, total.requests) == (
            found.price_usd_micros, found.sessions, found.requests,
        )  # fmt: skip
        assert (total.calls, total.failed, total.usage) == (found.calls, found.failed, found.usage)
        for by, shares in (("project", found.project), ("model", found.model)):
            grouped = [(one.key, one.price_usd_micros) for one in told[:-1] if one.by == by]
            assert grouped == [(one.key, one.price_usd_micros) for one in shares]
        tools = [(one.key, one.calls, one.failed) for one in told[:-1] if one.by == "tool"]
        assert tools == [(one.tool, one.calls, one.failed) for one in found.tools]

    def test_the_days_add_up_from_every_side(self, repo: Repo) -> None:
        found = ask(repo, "stats_page", **WINDOW)

        assert ["2025-12-31", DAY] == [one.day for one in found.days]
        for one in found.days:
            for side in (one.project, one.model, one.runtime):  # each of them is rounded by itself
                assert abs((one.price_usd_micros or 0) - sum(side.values())) <= len(side)
        assert found.price_usd_micros == found.days[1].price_usd_micros

    def test_a_day_is_rounded_once_whatever_it_is_made_of(self, tmp_path: Path) -> None:
        """A token read from the cache costs 0.3 millionths of a dollar: each project costs 0, both of them 1."""
        paths = []
        for session, project, name in ((SESSION, "/x", "m1"), (OTHER, "/y", "m2")):
            records = renamed([user("p1", None, "hello"), assistant("a1", "p1", "hello", name, 1)], project[1:])
            records[1]["message"]["usage"] = {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 1}
            paths.append(write_session(tmp_path, records, session, project))
        with harken.open("memory:", clock=lambda: NOW) as repo:
            list(repo.import_sessions(paths))
            (day,) = (one for one in ask(repo, "usage", by=("day",), **WINDOW) if getattr(one, "by", "") == "day")

            found, home = ask(repo, "stats_page", **WINDOW), ask(repo, "home", day=DAY)

        assert 1 == day.price_usd_micros == found.days[-1].price_usd_micros
        assert 1 == home.week[-1].price_usd_micros == home.week_price_usd_micros

    def test_hours_are_those_of_the_zone(self, repo: Repo) -> None:
        here = ask(repo, "stats_page", **WINDOW).hours
        ahead = ask(repo, "stats_page", zone=90, **WINDOW).hours

        assert here[3][0] == ahead[3][1] > 0  # 1 January 2026 is a Thursday

    def test_a_curve_shows_how_full_a_context_was(self, repo: Repo) -> None:
        curves = ask(repo, "stats_page", **WINDOW).pressure

        assert (SESSION, 1) == (curves[0].session, curves[0].compactions)
        assert curves[0].requests == len(curves[0].tokens)

    def test_another_model_used_nothing(self, repo: Repo) -> None:
        found = ask(repo, "stats_page", model="gpt-9", **WINDOW)

        assert (0, None, []) == (found.requests, found.price_usd_micros, found.model)

    def test_sub_agents_are_told_apart(self) -> None:
        with harken.open("memory:") as repo:
            list(repo.import_sessions([FOLDER / "claude-code-2.1.325" / "parallel-agents"]))
            rows = repo.sessions()
            end = max(row.ended or 0 for row in rows) + 1

            found = ask(repo, "stats_page", until=clock.format_instant(end)).delegation

        assert (1, sum(bool(row.parent) for row in rows)) == (found.sessions, found.agents)
        assert [found.delegated] == [one.delegated for one in found.most]

    @pytest.mark.parametrize(
        "wrong", [{"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, {"since": "2020-01-01T00:00:00Z"}]
    )
    def test_a_window_that_is_none_is_refused(self, repo: Repo, wrong: dict[str, Any]) -> None:
        with pytest.raises(BadRequest):
            ask(repo, "stats_page", **wrong)


class TestOwnPrices:
    """Whoever has prices of their own sees them wherever the page names a price."""

    def priced(self, repo: Repo, prices: str) -> dict[str, Any]:
        stats = ask(repo, "stats_page", until="2026-01-02T00:00:00Z", prices=prices)
        home = ask(repo, "home", day=DAY, prices=prices)
        rows = {row.session: row.price_usd_micros for row in ask(repo, "sessions_page", prices=prices).rows}
        lanes = ask(repo, "lanes", session=SESSION, prices=prices).lanes
        return {
            "session": (ask(repo, "session_page", session=SESSION, prices=prices).price_usd_micros, rows[SESSION]),
            "lanes": (sum(one.price_usd_micros or 0 for one in lanes), rows[SESSION]),
            "stats": (stats.price_usd_micros, sum(price or 0 for price in rows.values())),
            "home": (home.facts.price_usd_micros, home.week_price_usd_micros),
            "list": (ask(repo, "sessions_page", prices=prices).price_usd_micros, stats.price_usd_micros),
        }

    def test_every_view_has_the_same_price(self, repo: Repo, tmp_path: Path) -> None:
        (mine := tmp_path / "mine.toml").write_text(f'[[model]]\nname = "{MODEL}"\ninput = 3000\noutput = 15000\n')
        usual, own = self.priced(repo, ""), self.priced(repo, str(mine))

        for told in (usual, own):
            assert {name: pair[1] for name, pair in told.items()} == {name: pair[0] for name, pair in told.items()}
        assert all(own[name][0] > 100 * usual[name][0] > 0 for name in own)

    def test_the_price_of_a_list_is_rounded_once(self, tmp_path: Path) -> None:
        records = renamed(working_day()[:4], "other-")
        paths = [write_session(tmp_path, renamed(records, f"{at}-"), f"{at}{OTHER[1:]}") for at in range(7)]
        (mine := tmp_path / "mine.toml").write_text(f'[[model]]\nname = "{MODEL}"\ninput = 0.37\noutput = 0.41\n')
        with harken.open(tmp_path / "many.db", clock=lambda: NOW) as repo:
            list(repo.import_sessions(paths))
            listed = ask(repo, "sessions_page", prices=str(mine))
            whole = ask(repo, "stats_page", until="2026-01-02T00:00:00Z", prices=str(mine)).price_usd_micros

        assert whole == listed.price_usd_micros
        assert whole != sum(row.price_usd_micros for row in listed.rows)
