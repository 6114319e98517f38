"""A session that ran under observation and is then imported: nothing that only the recording had is forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.api.commits import ShowRequest, show
from harken.api.sessions import SessionsRequest, sessions
from harken.api.stats import StatsAnswer, StatsRequest, stats
from harken.context import Tracker, TrackerSettings
from harken.context.live import live_rest
from harken.events import Event, Metric, Prompt, Response, System, ToolCall, ToolResult
from harken.events.cbor import decode_events
from harken.store.base import SessionRow
from support.rollouts import THREAD, Rollout
from support.sessions import ClaudeSession

from .conftest import Import, age

FACTS = {"template": "reviewer", "principal": "jill", "machine": "m1", "ticket_id": "T-7", "thread_id": "th"}


def record(repo: Any, *events: Event) -> None:
    row = SessionRow(session="aaa", runtime="claude-code")
    tracker = Tracker(repo, TrackerSettings(session_id="aaa", branch="live/aaa", row=row, **FACTS))
    tracker.feed(list(events))
    tracker.close()


def turn(text: str, second: int) -> list[Event]:
    return [Prompt(content=text, time=second * 10**6), Response(content=f"{text}!", time=(second + 1) * 10**6)]


def said_in(repo: Any, ref: str) -> list[str]:
    events = decode_events(repo.materialize(ref, format="events-v1").bytes)
    return [event.content for event in events if isinstance(event, Prompt | Response)]


@pytest.fixture
def session() -> ClaudeSession:
    made = ClaudeSession("aaa")
    made.prompt("one")
    made.answer("one!")
    return made


@pytest.fixture
def path(repo: Any, tmp_path: Path, session: ClaudeSession) -> Path:
    """The session's file, and beside it a recording that has a turn more."""
    path = tmp_path / "aaa.jsonl"
    path.write_bytes(session.data)
    record(repo, *turn("one", 1), *turn("two", 3))
    return path


class TestACrash:
    def test_an_import_does_not_make_the_session_forget_what_only_the_recording_has(
        self, repo: Any, take_in: Import, path: Path
    ) -> None:
        """#27"""
        tip = take_in(path.parent)["aaa"].tip

        row = repo.store.find_session("aaa")
        assert (tip, row.live) == (row.tip, repo.commit("aaa").id)
        assert tip == repo.commit("aaa").parent
        assert ["one", "one!", "two", "two!"] == said_in(repo, "aaa")

    def test_once_the_file_holds_it_the_session_stands_at_the_file_again(
        self, repo: Any, take_in: Import, path: Path, session: ClaudeSession
    ) -> None:
        """#27"""
        take_in(path.parent)
        session.prompt("two")
        session.answer("two!")
        path.write_bytes(session.data)

        tip = take_in(path.parent)["aaa"].tip

        assert ("", tip) == (repo.store.find_session("aaa").live, repo.commit("aaa").id)

    def test_once_the_file_has_gone_on_without_it_it_is_an_older_stand(
        self, repo: Any, take_in: Import, path: Path, session: ClaudeSession
    ) -> None:
        """#27: the runtime went on from its file, so its agent never heard what only the recording has."""
        take_in(path.parent)
        rest = repo.store.find_session("aaa").live

        for word in ("And now?", "More?"):
            session.prompt(word)
            session.answer("Gladly.")
            path.write_bytes(session.data)
            take_in(path.parent)

        row = repo.store.find_session("aaa")
        assert ("", (rest,)) == (row.live, row.older)
        assert ["one", "one!", "And now?", "Gladly.", "More?", "Gladly."] == said_in(repo, "aaa")
        assert ["one", "one!", "two", "two!"] == said_in(repo, "aaa~1")

    def test_a_file_that_had_gone_on_before_it_was_first_imported_leaves_the_recording_on_its_branch(
        self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
    ) -> None:
        """#27"""
        record(repo, *turn("one", 1), *turn("two", 3))
        session.prompt("And now?")
        session.answer("Gladly.")
        (tmp_path / "aaa.jsonl").write_bytes(session.data)

        take_in(tmp_path)

        assert ["one", "one!", "And now?", "Gladly."] == said_in(repo, "aaa")
        assert ["one", "one!", "two", "two!"] == said_in(repo, "live/aaa")

    def test_the_files_chain_is_the_same_with_and_without_a_recording(
        self, repo: Any, take_in: Import, path: Path, tmp_path: Path
    ) -> None:
        import harken
        from harken import runtimes
        from harken.runtimes.importer import Importer

        tip = take_in(tmp_path)["aaa"].tip

        with harken.open(tmp_path / "other" / "store.db") as other:
            (fresh,) = Importer(other.store, [runtimes.get("claude-code")]).run([path])

        assert fresh.tip == tip


class TestARunOnAnImportedSession:
    def test_shows_at_once(self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession) -> None:
        (tmp_path / "aaa.jsonl").write_bytes(session.data)
        tip = take_in(tmp_path)["aaa"].tip

        record(repo, *turn("two", 3))

        assert tip == repo.store.find_session("aaa").tip
        assert ["one", "one!", "two", "two!"] == said_in(repo, "aaa")

    def test_goes_on_from_the_file_and_not_from_what_the_file_was_found_to_lack(
        self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
    ) -> None:
        """#27: the runtime reads its own file, so its agent never heard what only the earlier run had."""
        (tmp_path / "aaa.jsonl").write_bytes(session.data)
        record(repo, *turn("one", 1), *turn("two", 3))
        take_in(tmp_path)

        record(repo, *turn("three", 5))

        assert ["one", "one!", "three", "three!"] == said_in(repo, "aaa")
        assert ["one", "one!", "two", "two!"] == said_in(repo, "aaa~1")
        assert 4 == repo.store.find_session("aaa").messages
        session.prompt("three")
        session.answer("three!")
        (tmp_path / "aaa.jsonl").write_bytes(session.data)
        take_in(tmp_path)
        assert ["one", "one!", "three", "three!"] == said_in(repo, "aaa")
        assert ["one", "one!", "two", "two!"] == said_in(repo, "aaa~1")

    def test_leaves_no_older_tip_of_what_the_file_was_only_late_with(
        self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
    ) -> None:
        """#27: the second run began before an import had seen that the file held the end of the first."""
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(session.data)
        first = Metric(cost_usd=0.25, status="success", time=5_000_000)
        record(repo, *turn("one", 1), *turn("two", 3), first)
        take_in(tmp_path)
        record(repo, *turn("three", 6), Metric(cost_usd=0.75, status="success", time=8_000_000))
        assert 1 == len(repo.store.find_session("aaa").older)

        for word, cost in (("two", 0.25), ("three", 0.75)):
            session.prompt(word)
            session.answer(f"{word}!")
            session.side({"type": "cost-state", "totalCostUSD": cost})
        path.write_bytes(session.data)
        take_in(tmp_path)

        row = repo.store.find_session("aaa")
        told = next(stats(repo, StatsRequest(sessions=("aaa",))))
        assert (("", ()), 750_000) == ((row.live, row.older), row.cost_usd_micros)
        assert isinstance(told, StatsAnswer)
        assert 750_000 == told.cost_usd_micros
        assert ["one", "one!", "two", "two!", "three", "three!"] == said_in(repo, "aaa")

    def test_leaves_none_where_the_recording_reports_again_of_the_last_request_before_it(
        self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
    ) -> None:
        """#27: the stream of a resumed session may begin with it."""
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(session.data)
        take_in(tmp_path)
        [asked] = [event for event in repo.events("aaa") if isinstance(event, Metric)]
        record(repo, asked.replace(time=3_000_000), *turn("two", 3))
        row, end = repo.store.find_session("aaa"), repo.commit("live/aaa").id
        with repo.store.write() as writer:  # as a third run leaves it that found the file without the second
            writer.save_session(msgspec.structs.replace(row, live="", older=(end,)))

        for word in ("two", "three"):
            session.prompt(word)
            session.answer(f"{word}!")
        path.write_bytes(session.data)
        take_in(tmp_path)

        assert () == repo.store.find_session("aaa").older
        assert ["one", "one!", "two", "two!", "three", "three!"] == said_in(repo, "aaa")

    def test_keeps_what_was_said_once_more_in_the_same_words(
        self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
    ) -> None:
        """#27: whoever asks again after a crash and hears the same has asked twice."""
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(session.data)
        lost = Metric(api_id="msg_lost", output_tokens=7, time=4_000_000)
        record(repo, *turn("one", 1), *turn("two", 3), lost)
        take_in(tmp_path)
        record(repo, *turn("two", 6))

        session.prompt("two")
        session.answer("two!")
        path.write_bytes(session.data)
        take_in(tmp_path)

        assert 1 == len(repo.store.find_session("aaa").older)

    @pytest.mark.parametrize("kept", [1, 2, 3])
    def test_is_the_same_conversation_however_much_of_it_the_file_gets(
        self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession, kept: int
    ) -> None:
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(session.data)
        take_in(tmp_path)
        record(repo, *turn("two", 3))
        record(repo, *turn("three", 5))
        for word in ("two", "three")[: kept - 1]:
            session.prompt(word)
            session.answer(f"{word}!")
        path.write_bytes(session.data)
        age(path)

        take_in(tmp_path, verify=True)

        assert ["one", "one!", "two", "two!", "three", "three!"] == said_in(repo, "aaa")
        assert (kept == 3) == (not repo.store.find_session("aaa").live)


class TestWhatTheRunSaid:
    def test_it_is_kept_when_the_file_is_imported(
        self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
    ) -> None:
        """#30"""
        (tmp_path / "aaa.jsonl").write_bytes(session.data)
        record(repo, *turn("one", 1), Metric(cost_usd=0.25, status="success", time=3_000_000))

        take_in(tmp_path)

        row = repo.store.find_session("aaa")
        assert FACTS == {name: getattr(row, name) for name in FACTS}
        assert 250_000 == row.cost_usd_micros

    def test_the_files_commits_are_seen_by_whoever_ran_it(
        self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
    ) -> None:
        """#30"""
        (tmp_path / "aaa.jsonl").write_bytes(session.data)
        record(repo, *turn("one", 1))
        tip = take_in(tmp_path)["aaa"].tip

        seen = [(sighting.principal, sighting.machine) for sighting in repo.store.sightings(tip)]

        assert [("claude-code:aaa", ""), ("jill", "m1")] == seen
        assert tip == repo.resolve("jill", repo.store.get_commit(tip).time).id

    def test_show_says_what_the_run_said_of_itself(
        self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
    ) -> None:
        (tmp_path / "aaa.jsonl").write_bytes(session.data)
        record(repo, *turn("one", 1))
        tip = take_in(tmp_path)["aaa"].tip

        shown = show(repo, ShowRequest(ref=tip))
        (listed,) = sessions(repo, SessionsRequest())

        assert ("claude-code:aaa", "") == (shown.principal, shown.ticket_id), "the commit is the file's"
        assert FACTS == {name: getattr(shown.run, name) for name in FACTS}
        assert FACTS == {name: getattr(listed, name) for name in FACTS}

    def test_show_says_nothing_of_a_run_where_there_was_none(
        self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
    ) -> None:
        (tmp_path / "aaa.jsonl").write_bytes(session.data)
        tip = take_in(tmp_path)["aaa"].tip

        assert show(repo, ShowRequest(ref=tip)).run is None

    def test_a_run_of_a_session_that_was_imported_says_it_too(
        self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
    ) -> None:
        (tmp_path / "aaa.jsonl").write_bytes(session.data)
        tip = take_in(tmp_path)["aaa"].tip

        record(repo, *turn("two", 3))

        row = repo.store.find_session("aaa")
        assert (tip, "T-7") == (row.tip, row.ticket_id)

    def test_the_cost_that_claude_code_writes_down_is_read(
        self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
    ) -> None:
        """#30"""
        session.side({"type": "cost-state", "totalCostUSD": 0.5})
        session.side({"type": "cost-state", "totalCostUSD": 0.75})
        (tmp_path / "aaa.jsonl").write_bytes(session.data)

        result = take_in(tmp_path)["aaa"]

        assert 750_000 == result.figures.cost_usd_micros == repo.store.find_session("aaa").cost_usd_micros


class TestTheRest:
    def test_is_what_comes_after_the_last_thing_in_common(self) -> None:
        recorded = [*turn("one", 1), *turn("two", 3), *turn("three", 5)]

        assert recorded[4:] == live_rest(recorded, recorded[:4]).events

    def test_is_nothing_where_everything_said_was_kept(self) -> None:
        recorded = [*turn("one", 1), System(subtype="shutdown")]

        assert [] == live_rest(recorded, turn("one", 9)).events

    def test_a_call_under_another_id_is_not_taken_for_something_new(self) -> None:
        said = turn("one", 1)
        recorded = [*said, ToolCall(id="item_1", name="shell"), ToolResult(id="item_1", output="ok")]
        kept = [*said, ToolCall(id="call_abc", name="shell"), ToolResult(id="call_abc", output="ok")]

        assert [] == live_rest(recorded, kept).events

    def test_what_is_said_twice_is_found_twice(self) -> None:
        """#27: an answer that was given before does not hide the one behind it."""
        done = Response(content="Done.")
        recorded = [Prompt(content="a"), done, Prompt(content="b"), done]
        again = [Prompt(content="go on"), Response(content="A1"), Prompt(content="go on")]

        assert recorded[2:] == live_rest(recorded, recorded[:2]).events
        assert again[2:] == live_rest(again, again[:2]).events

    def test_the_file_has_gone_on_where_somebody_said_something_later(self) -> None:
        recorded, later = [*turn("one", 1), *turn("two", 3)], turn("three", 9)

        assert (False, True) == (
            live_rest(recorded, recorded[:2]).gone_on,
            live_rest(recorded, [*recorded[:2], *later]).gone_on,
        )

    def test_what_a_runtime_injects_is_no_going_on(self) -> None:
        recorded = [*turn("one", 1), *turn("two", 3)]
        note = Prompt(content="a reminder", source="injected", time=9_000_000)

        assert (recorded[3:], False) == live_rest(recorded, [*recorded[:3], note])

    @given(st.lists(st.sampled_from("abcde"), max_size=8), st.data())
    def test_behind_what_was_kept_it_is_all_that_was_recorded(self, words: list[str], data: st.DataObject) -> None:
        recorded = [Prompt(content=word) for word in words]
        cut = data.draw(st.integers(0, len(recorded)))

        assert recorded[cut:] == live_rest(recorded, recorded[:cut]).events


def test_every_door_tells_of_where_the_session_stands(
    repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
) -> None:
    """#27"""
    (tmp_path / "aaa.jsonl").write_bytes(session.data)
    record(repo, *turn("one", 1), *turn("two", 3))
    take_in(tmp_path)

    row, (agent,), whole = repo.store.find_session("aaa"), repo.agents("aaa"), repo.materialize("aaa")

    assert (row.stand, 4) == (agent.tip, agent.messages)
    assert (4, repo.commit("aaa").time) == (row.messages, max(row.ended, repo.commit("aaa").time))
    assert whole.message_count == row.messages


def test_a_run_on_an_imported_session_counts_into_its_row(
    repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
) -> None:
    """#27"""
    (tmp_path / "aaa.jsonl").write_bytes(session.data)
    take_in(tmp_path)

    record(repo, *turn("two", 3))

    row = repo.store.find_session("aaa")
    assert (4, repo.commit("aaa").time) == (row.messages, row.ended)


def test_views_and_numbers_know_what_only_the_recording_has(
    repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
) -> None:
    """#27"""
    (tmp_path / "aaa.jsonl").write_bytes(session.data)
    record(repo, *turn("one", 1), *turn("two", 3))
    take_in(tmp_path)

    said = [event.content for event in repo.events("aaa") if isinstance(event, Prompt | Response)]

    assert ["one", "one!", "two", "two!"] == said


class TestFigures:
    """What a recording tells and the file does not say again, or not yet."""

    def of_codex(self, *turns: int) -> list[Event]:
        """A recording of Codex: turns, and behind each the total of the thread."""
        events: list[Event] = []
        for number in turns:
            total = Metric(
                scope="total", api_id=f"codex:{THREAD}", input_tokens=number * 100, output_tokens=number * 11
            )
            events += [*turn(f"turn {number}", number * 10), total.replace(message_id=f"end {number}")]
        return events

    def rollout(self, turns: int, told: int) -> bytes:
        file = Rollout()
        for number in range(1, turns + 1):
            file.user(f"turn {number}").model(f"turn {number}!")
            if number <= told:
                file.tokens(number * 100, number * 11)
        return file.data

    def usage(self, repo: Any) -> tuple[int | None, int | None]:
        figures = next(iter(repo.stats([THREAD]))).figures
        return figures.usage.input, figures.usage.output

    @pytest.mark.parametrize(("turns", "told"), [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 2), (3, 3)])
    def test_a_threads_total_counts_once_however_much_the_file_holds(
        self, repo: Any, take_in: Import, tmp_path: Path, turns: int, told: int
    ) -> None:
        """The recording heard three turns; the file has some of them, and totals of some."""
        row = SessionRow(session=THREAD, runtime="codex")
        tracker = Tracker(repo, TrackerSettings(session_id=THREAD, branch=f"live/{THREAD}", row=row))
        tracker.feed(self.of_codex(1, 2, 3))
        tracker.close()
        assert (300, 33) == self.usage(repo)
        (tmp_path / f"rollout-x-{THREAD}.jsonl").write_bytes(self.rollout(turns, told))

        take_in(tmp_path)

        assert (300, 33) == self.usage(repo)

    @pytest.mark.parametrize("between", [False, True], ids=["imported at the end", "imported between the runs"])
    def test_after_a_second_run_the_session_stands_at_its_file(
        self, repo: Any, take_in: Import, tmp_path: Path, between: bool
    ) -> None:
        """The total that the second run tells is of the whole thread, not of what the file got since the first."""
        import harken
        from harken import runtimes
        from harken.runtimes.importer import Importer

        path = tmp_path / f"rollout-x-{THREAD}.jsonl"
        row = SessionRow(session=THREAD, runtime="codex")
        for number in (1, 2):
            tracker = Tracker(repo, TrackerSettings(session_id=THREAD, branch=f"live/{THREAD}", row=row))
            tracker.feed(self.of_codex(number))
            tracker.close()
            path.write_bytes(self.rollout(number, number))
            if between or number == 2:
                take_in(tmp_path)

        with harken.open(tmp_path / "other" / "store.db") as other:
            (fresh,) = Importer(other.store, [runtimes.get("codex")]).run([path])
        assert fresh.tip == repo.commit(THREAD).id
        assert path.read_bytes() == repo.materialize(THREAD, stop="root").bytes
        assert (200, 22) == self.usage(repo)

    def test_a_cost_that_only_the_run_told_is_known(
        self, repo: Any, take_in: Import, tmp_path: Path, session: ClaudeSession
    ) -> None:
        (tmp_path / "aaa.jsonl").write_bytes(session.data)
        record(repo, *turn("one", 1), Metric(cost_usd=0.25, status="success", time=3_000_000))
        before = next(iter(repo.stats(["aaa"]))).figures.cost_usd_micros

        take_in(tmp_path)

        assert 250_000 == before == next(iter(repo.stats(["aaa"]))).figures.cost_usd_micros


def test_a_session_of_which_bytes_were_evicted_is_imported_all_the_same(
    repo: Any, take_in: Import, path: Path, session: ClaudeSession
) -> None:
    """What it holds and what was recorded of it cannot be compared any more: the recording is an older tip."""
    take_in(path.parent)
    live = repo.store.find_session("aaa").live
    session.prompt("two")
    session.answer("two!")
    path.write_bytes(session.data)
    with repo.store.write() as writer:
        writer.evict(repo.store.chain(repo.store.find_session("aaa").tip)[-1].artifact)

    taken = take_in(path.parent)["aaa"]

    row = repo.store.find_session("aaa")
    assert ("grown", taken.tip, (live,)) == (taken.status, row.stand, row.older)


class TestTheGraphOfASessionThatWasRunAgainAndAgain:
    @pytest.fixture
    def past(self, repo: Any, take_in: Import, path: Path, session: ClaudeSession) -> list[str]:
        """Where the recordings of three runs ended, each of which was imported since."""
        ends = []
        for number, word in enumerate(("two", "three", "four")):
            if number:
                record(repo, *turn(word, 1 + 2 * number))
            ends.append(repo.commit("live/aaa").id)
            session.prompt(word)
            session.answer(f"{word}!")
            path.write_bytes(session.data)
            age(path)
            take_in(path.parent)
        return ends

    def drawn(self, repo: Any, ref: str = "aaa", **how: Any) -> set[str]:
        return {commit.id for commit in repo.family(ref, **how).commits}

    def test_has_no_line_for_what_was_recorded_of_them(self, repo: Any, past: list[str]) -> None:
        on_the_chain = {commit.id for commit in repo.history("aaa")}

        assert 3 == len(set(past) - on_the_chain)
        assert on_the_chain == self.drawn(repo)
        assert set(past) <= self.drawn(repo, None, superseded=True), "`--all` draws them"

    def test_has_one_for_what_was_asked_for_or_has_a_name(self, repo: Any, past: list[str]) -> None:
        repo.tag(past[1], "kept")

        assert [past[1]] == [end for end in past if end in self.drawn(repo)]
        assert past[2] in self.drawn(repo, past[2])
