"""The tracker: events in, commits out, and never in the agent's way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

import harken
from harken.context import Tracker, TrackerSettings
from harken.errors import HarkenError
from harken.events import Event, Metric, Output, Prompt, Response, System, ToolCall, ToolResult
from harken.repo import Repo
from harken.store import Store, Writer
from support.contexts import START, heard, keep, memory_repo, turn


@pytest.fixture
def repo() -> Repo:
    return memory_repo()


def tracker(repo: Repo, **facts: object) -> Tracker:
    return Tracker(repo, TrackerSettings(session_id="live", principal="me", template="t", **facts))  # type: ignore[arg-type]


class Broken:
    """A store whose disk is full until it is mended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.failing = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    @contextmanager
    def write(self) -> Iterator[Writer]:
        with self._store.write() as writer:
            yield writer
            if self.failing:
                raise HarkenError("no space left")


@pytest.mark.parametrize(
    "metric", [Metric(cost_usd=1e30, status="success"), Metric(cost_usd=1e13), Metric(output_tokens=2**70)]
)
@pytest.mark.parametrize("where", ["memory:", "store.db"])
def test_a_figure_that_cannot_be_stops_no_checkpoint(tmp_path: Path, where: str, metric: Metric) -> None:
    with harken.open(where if where == "memory:" else tmp_path / where) as repo:
        live = tracker(repo)
        live.feed([Prompt(content="go", message_id="m1"), metric])
        live.checkpoint()
        live.feed([Response(content="done", message_id="m2"), Metric(cost_usd=0.5, status="success")])

        assert live.checkpoint() == repo.commit("live").short
        assert 4 == len(heard(repo, "live"))
        assert 500_000 == repo.store.find_session("live").cost_usd_micros


class TestWhereTheAgentStands:
    def test_is_nowhere_before_the_first_checkpoint(self, repo: Repo) -> None:
        assert "" == tracker(repo).current

    def test_is_settled_before_its_tools_run(self, repo: Repo) -> None:
        live = tracker(repo)
        live.feed([Prompt(content="go", message_id="m1")])
        live.feed([ToolCall(id="c", name="Read", message_id="m2")])

        assert live.current == repo.commit("live").short
        assert 2 == len(heard(repo, "live"))

    def test_can_be_asked_for_at_any_moment(self, repo: Repo) -> None:
        live = tracker(repo)
        live.feed([Prompt(content="go", message_id="m1")])

        assert live.checkpoint() == live.current
        assert ["explicit"] == [commit.checkpoint for commit in repo.history("live")]

    def test_does_not_change_where_nothing_is_new(self, repo: Repo) -> None:
        live = tracker(repo)
        live.feed(turn(1))
        before = live.current

        live.checkpoint()
        live.close()

        assert before == live.current

    def test_waits_while_a_message_goes_on(self, repo: Repo) -> None:
        live = tracker(repo)
        live.feed([Response(content="let me", api_id="a")], more=True)

        assert "" == live.current
        live.feed([ToolCall(name="Read", api_id="a")])
        assert 1 == len(repo.history("live"))


class TestCommits:
    def test_carry_what_the_tracker_was_told(self, repo: Repo) -> None:
        live = tracker(repo, ticket_id="tkt-1", thread_id="th-1", machine="box")
        live.feed(turn(1))

        tip = live.tip
        assert tip is not None
        assert ("live", "me", "t", "tkt-1", "th-1", "box", "events-v1") == (
            tip.session_id,
            tip.principal,
            tip.template,
            tip.ticket_id,
            tip.thread_id,
            tip.machine,
            tip.format,
        )

    def test_are_named_after_the_events_and_not_after_the_clock(self) -> None:
        names = []
        for _ in range(2):
            repo = memory_repo()
            repo.clock()
            live = tracker(repo)
            live.feed(turn(1, time=START))
            live.feed(turn(2, time=START - 60_000_000))
            names.append([commit.id for commit in repo.history("live")])

        assert names[0] == names[1]

    def test_never_go_back_in_time(self, repo: Repo) -> None:
        live = tracker(repo)
        live.feed(turn(1, time=START))
        live.feed(turn(2, time=START - 60_000_000))

        times = [commit.time for commit in repo.history("live")]
        assert sorted(times, reverse=True) == times

    def test_go_on_from_the_commit_they_were_given(self, repo: Repo) -> None:
        base = keep(repo, turn(1))
        live = tracker(repo, parent=base.id, forked_from=base.id)
        live.feed(turn(2))

        assert [*turn(1), *turn(2)] == heard(repo, "live")
        assert ["", base.id, ""] == [commit.forked_from for commit in repo.history("live")]

    def test_fill_the_sessions_row(self, repo: Repo) -> None:
        live = tracker(repo)
        live.feed(turn(1, time=START))

        row = repo.sessions()[0]
        assert ("live", START, START + 3_000_000, 2) == (row.session, row.started, row.ended, row.messages)


class TestWhenTheStoreFails:
    def test_the_agent_goes_on_and_is_told(self, repo: Repo) -> None:
        warnings: list[str] = []
        repo.store = broken = Broken(repo.store)  # type: ignore[assignment]
        live = tracker(repo, on_warning=warnings.append)
        broken.failing = True

        live.feed(turn(1))

        assert ["a checkpoint failed and is made up for by the next: no space left"] == warnings
        assert ("", 4) == (live.current, live.pending)

    def test_the_next_checkpoint_holds_what_was_missed(self, repo: Repo) -> None:
        repo.store = broken = Broken(repo.store)  # type: ignore[assignment]
        live = tracker(repo)
        live.feed(turn(1))
        broken.failing = True
        live.feed(turn(2))
        broken.failing = False
        live.feed([Prompt(content="and now?", message_id="m9"), Response(content="well", message_id="m10")])

        assert [*turn(1), *turn(2)] == heard(repo, "live")[:8]
        assert (10, 0) == (len(heard(repo, "live")), live.pending)

    def test_closing_tells_what_could_not_be_stored_and_can_be_done_again(self, repo: Repo) -> None:
        repo.store = broken = Broken(repo.store)  # type: ignore[assignment]
        live = tracker(repo)
        broken.failing = True
        live.feed(turn(1))

        with pytest.raises(HarkenError, match=f"{len(turn(1))} events could not be stored"):
            live.close()

        broken.failing = False
        live.close()
        assert 0 == live.pending
        assert len(turn(1)) == len(repo.conversation("live"))

    def test_what_was_tried_twice_costs_once(self, repo: Repo) -> None:
        repo.store = broken = Broken(repo.store)  # type: ignore[assignment]
        live = tracker(repo)
        broken.failing = True
        live.feed([*turn(1), Metric(cost_usd=0.25)])
        live.checkpoint()
        broken.failing = False
        live.close()

        row = repo.store.find_session("live")
        assert row is not None
        assert 250_000 == row.cost_usd_micros

    def test_a_compaction_keeps_its_place(self, repo: Repo) -> None:
        repo.store = broken = Broken(repo.store)  # type: ignore[assignment]
        live = tracker(repo)
        broken.failing = True
        summary = Prompt(content="in short", source="injected", message_id="m5")
        live.feed([*turn(1), System(subtype="compact_boundary", message_id="m4"), summary])
        live.feed(turn(2))
        broken.failing = False
        live.close()

        assert ["m4", "m5", *(event.message_id for event in turn(2))] == [e.message_id for e in heard(repo, "live")]
        assert 10 == len(heard(repo, "live", stop="root"))


class TestAnEventThatCannotBeWritten:
    def test_is_kept_as_far_as_it_goes_and_stops_nothing(self, repo: Repo) -> None:
        live = tracker(repo)
        live.feed([Prompt(content="when?", time=2**63, message_id="m0"), Response(content="!", message_id="m1")])
        live.feed(turn(1))

        first, *rest = heard(repo, "live")

        assert isinstance(first, Output)
        assert b"when?" in first.raw
        assert ["m1", *(event.message_id for event in turn(1))] == [event.message_id for event in rest]
        assert 0 == live.pending


class TestABranch:
    def test_moves_along_and_its_moves_are_not_written_down(self, repo: Repo) -> None:
        live = tracker(repo, branch="live/s")
        live.feed(turn(1))
        live.feed(turn(2))

        assert live.current == repo.commit("live/s").short
        assert [] == repo.store.moves()

    def test_that_somebody_else_took_is_left_to_them_and_nothing_is_lost(self, repo: Repo) -> None:
        warnings: list[str] = []
        live = tracker(repo, branch="live/s", on_warning=warnings.append)
        live.feed(turn(1))
        other = keep(repo, turn(9), "live/s")
        live.feed(turn(2))
        live.feed(turn(3))

        assert other.id == repo.commit("live/s").id
        assert [*turn(1), *turn(2), *turn(3)] == heard(repo, live.current)
        assert ["this run goes on without its branch"] == [text.partition(":")[0] for text in warnings]


class TestASessionThatOthersGoOnWith:
    def test_holds_what_each_of_two_trackers_was_acknowledged(self, repo: Repo) -> None:
        """#18, #42: each has read the row before the other one writes."""
        one, two = tracker(repo), tracker(repo)
        for number in range(4):
            (one, two)[number % 2].feed(turn(number))

        assert [event for number in range(4) for event in turn(number)] == heard(repo, "live")
        row = repo.store.find_session("live")
        assert row is not None
        assert (two.tip and two.tip.id, 8) == (row.tip, row.messages)

    def test_holds_what_somebody_kept_by_hand(self, repo: Repo) -> None:
        """#18"""
        live = tracker(repo)
        live.feed(turn(1))
        keep(repo, turn(2), "live", session_id="live")
        live.feed(turn(3))

        assert [event for number in (1, 2, 3) for event in turn(number)] == heard(repo, "live")

    def test_adds_up_what_both_have_cost(self, repo: Repo) -> None:
        one, two = tracker(repo), tracker(repo)
        one.feed([Metric(cost_usd=1.0, status="success"), *turn(1)])
        two.feed([Metric(cost_usd=0.5, status="success"), *turn(2)])
        one.feed([Metric(cost_usd=1.25, status="success"), *turn(3)])

        row = repo.store.find_session("live")
        assert row is not None
        assert 1_750_000 == row.cost_usd_micros

    def test_skips_nothing_of_a_replay_since_nobody_can_tell_the_streams_apart(self, repo: Repo) -> None:
        one, two = tracker(repo), tracker(repo)
        one.feed(turn(1))
        two.feed(turn(2))

        assert 0 == tracker(repo).kept

    def test_that_goes_by_its_file_by_now_is_only_told_what_the_run_says(self, repo: Repo) -> None:
        """#42"""
        live = tracker(repo)
        live.feed(turn(1))
        row = repo.store.find_session("live")
        assert row is not None
        with repo.store.write() as writer:
            imported = msgspec.structs.replace(row, source="live.jsonl", state=b"of the import", messages=7)
            writer.save_session(imported, expect=row.version)
        live.feed(turn(2))

        now = repo.store.find_session("live")
        assert now is not None
        assert (row.tip, b"of the import", 7) == (now.tip, now.state, now.messages)
        assert live.tip is not None
        assert [*turn(1), *turn(2)] == heard(repo, live.tip)


class TestARuntimeThatCompacts:
    def test_its_summary_stands_for_what_was_before(self, repo: Repo) -> None:
        live = tracker(repo)
        boundary = System(subtype="compact_boundary", message_id="m4")
        summary = Prompt(content="in short", source="injected", message_id="m5")
        live.feed([*turn(1), boundary])
        live.feed([summary])
        live.feed(turn(2))

        assert [boundary, summary, *turn(2)] == heard(repo, "live")
        assert [*turn(1), boundary, summary, *turn(2)] == heard(repo, "live", stop="root")

    @pytest.mark.parametrize(
        "metadata",
        [
            b'{"type":"system","compact_metadata":{"preserved_messages":{"anchor_uuid":"m5","uuids":["m1c","m1d"]}}}',
            b'{"compactMetadata":{"preservedSegment":{"headUuid":"m1c","anchorUuid":"m5","tailUuid":"m1d"}}}',
            b'{"preserved_segment":{"head_uuid":"m1c","tail_uuid":"m1d"}}',
        ],
    )
    def test_what_it_kept_word_for_word_follows_the_summary(self, repo: Repo, metadata: bytes) -> None:
        live = tracker(repo)
        boundary = System(subtype="compact_boundary", message_id="m4", metadata=metadata)
        summary = Prompt(content="in short", source="injected", message_id="m5")
        live.feed([*turn(1), boundary, summary, *turn(2)])

        assert [boundary, summary, *turn(1)[2:], *turn(2)] == heard(repo, "live")

    @pytest.mark.parametrize("metadata", [b"", b"[]", b"{", b'{"compact_metadata":7}', b"[" * 5000])
    def test_odd_facts_about_it_are_no_facts(self, repo: Repo, metadata: bytes) -> None:
        live = tracker(repo)
        boundary = System(subtype="compact_boundary", message_id="m4", metadata=metadata)
        live.feed([*turn(1), boundary, Prompt(content="in short", source="injected", message_id="m5")])

        assert ["m4", "m5"] == [event.message_id for event in heard(repo, "live")]

    def test_one_that_does_not_show_its_summary_hides_nothing(self, repo: Repo) -> None:
        live = tracker(repo)
        live.feed([*turn(1), System(subtype="microcompact_boundary", message_id="m4"), *turn(2)])

        assert 9 == len(heard(repo, "live"))


class TestFeedingAgain:
    def test_skips_what_is_kept(self, repo: Repo) -> None:
        stream: list[Event] = [*turn(1), *turn(2), *turn(3)]
        first = tracker(repo)
        first.feed(stream[:6])
        again = tracker(repo)
        again.feed(stream)

        assert stream == heard(repo, "live")

    def test_a_state_nobody_can_read_is_no_state(self, repo: Repo) -> None:
        live = tracker(repo)
        live.feed(turn(1))
        row = repo.sessions()[0]
        with repo.store.write() as writer:
            writer.save_session(type(row)(session=row.session, runtime="", state=b"\xff not ours"))

        assert 0 == tracker(repo).kept


@pytest.mark.parametrize("where", ["memory:", "store.db"])
def test_several_threads_may_feed_and_ask(where: str, tmp_path: Path) -> None:
    repo = harken.open(where if where == "memory:" else tmp_path / where)
    live = tracker(repo, frequency="tool")

    def feed(base: int) -> None:
        for number in range(20):
            live.feed([ToolResult(id=f"{base}-{number}", output="x", message_id=f"{base}-{number}")])
            assert live.current

    threads = [threading.Thread(target=feed, args=(base,)) for base in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    live.close()

    assert 80 == len({event.message_id for event in heard(repo, "live")})
    repo.close()
