"""When a live conversation is checkpointed, as a pure fold."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harken.context import turns
from harken.errors import BadRequest
from harken.events import Event, Metric, Prompt, Response, System, Thinking, ToolCall, ToolResult, TranscriptEdit

ASK = Prompt(content="?", message_id="m1")
THINK = Thinking(content="hm", api_id="a1", message_id="m2")
SAY = Response(content="!", api_id="a1", message_id="m3")
CALL = ToolCall(id="c", name="Read", api_id="a1", message_id="m4")
RESULT = ToolResult(id="c", output="x", message_id="m5")
ANSWER = Response(content="so", api_id="a2", message_id="m6")
BOUNDARY = System(subtype="compact_boundary", message_id="m7")
SUMMARY = Prompt(content="in short", source="injected", message_id="m8")


def cuts(events: Sequence[Event], frequency: str = "turn", *, resting: bool = True) -> list[tuple[int, str]]:
    """(how many events came before, why) for each checkpoint that is due."""
    rule, position = turns.frequency(frequency), turns.Position()
    found = []
    for number, event in enumerate(events):
        position, reason = turns.before(rule, position, event)
        if reason:
            found.append((number, reason))
        position, reason = turns.after(rule, position, event)
        if reason:
            found.append((number + 1, reason))
    if resting:
        position, reason = turns.at_rest(rule, position)
        if reason:
            found.append((len(events), reason))
    return found


class TestATurn:
    def test_ends_with_the_assistants_message_and_before_its_tools_run(self) -> None:
        assert [(4, "turn_boundary"), (6, "turn_boundary")] == cuts([ASK, THINK, SAY, CALL, RESULT, ANSWER])

    def test_ends_with_a_message_that_has_no_words(self) -> None:
        assert [(2, "turn_boundary")] == cuts([ASK, CALL])

    def test_does_not_end_with_a_thought_alone(self) -> None:
        assert [] == cuts([ASK, THINK])

    def test_ends_between_two_messages_in_a_row(self) -> None:
        assert [(1, "turn_boundary"), (2, "turn_boundary")] == cuts([SAY, ANSWER])

    def test_takes_in_the_usage_that_is_reported_with_it(self) -> None:
        assert [(2, "turn_boundary")] == cuts([SAY, Metric(output_tokens=1, api_id="a1"), RESULT], resting=False)

    def test_takes_in_the_usage_that_names_it_as_its_cause(self) -> None:
        said, usage = Response(content="!", message_id="m3"), Metric(output_tokens=1, message_id="m4", cause="m3")

        assert [(2, "turn_boundary")] == cuts([said, usage, RESULT], resting=False)

    def test_is_one_where_the_source_has_no_ids(self) -> None:
        assert [(3, "turn_boundary")] == cuts([Thinking(content="hm"), Response(content="!"), ToolCall(name="x")])


class TestFrequency:
    def test_tool_adds_every_result(self) -> None:
        assert [(2, "turn_boundary"), (3, "tool_call"), (4, "turn_boundary")] == cuts(
            [ASK, CALL, RESULT, ANSWER], "tool"
        )

    def test_every_n_counts_turns(self) -> None:
        assert [(4, "turn_boundary")] == cuts([ASK, CALL, RESULT, ANSWER, ASK, SAY], "every=2")

    def test_end_waits_for_the_end(self) -> None:
        events = [ASK, CALL, RESULT, ANSWER, Metric(status="success")]

        assert [(5, "session_end")] == cuts(events, "end")

    def test_a_running_cost_and_an_embedded_figure_end_neither_the_run_nor_the_message(self) -> None:
        words, call = Response(content="a", api_id="m1"), ToolCall(name="x", api_id="m1")
        told = [Metric(cost_usd=1.0, scope="so_far"), Metric(api_id="m9", output_tokens=1, scope="embedded")]

        assert [] == cuts([ASK, *told, ASK], "end")
        assert [(5, "turn_boundary")] == cuts([ASK, words, *told, call])

    @pytest.mark.parametrize("text", ["", "often", "every=0", "every=-1", "every=x", "TURN", "every=1e3"])
    def test_anything_else_is_refused(self, text: str) -> None:
        with pytest.raises(BadRequest, match="no checkpoint frequency"):
            turns.frequency(text)


class TestCompaction:
    @pytest.mark.parametrize("frequency", ["turn", "end", "every=9"])
    def test_is_checkpointed_whatever_the_frequency(self, frequency: str) -> None:
        assert [(2, "compaction"), (3, "compaction")] == cuts([ASK, BOUNDARY, SUMMARY, ASK], frequency)

    def test_what_a_person_says_behind_the_boundary_is_no_summary(self) -> None:
        assert [(1, "compaction")] == cuts([BOUNDARY, ASK])

    def test_an_edit_of_the_transcript_is_one(self) -> None:
        assert [(2, "compaction")] == cuts([ASK, TranscriptEdit(action="compact", n=1)])


def test_a_shutdown_ends_the_session() -> None:
    assert [(2, "session_end")] == cuts([ASK, System(subtype="shutdown")])
