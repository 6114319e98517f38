"""Times for events that have none."""

from __future__ import annotations

from harken.events import Prompt, ToolCall, ToolResult
from harken.formats.std.exporting.from_events import SessionFacts, document_of
from harken.formats.std.exporting.moments import Moments


def test_an_event_without_a_time_has_the_one_before_it_else_the_one_after_it() -> None:
    events = [Prompt(time=time) for time in (None, 5, None, 9)]

    moments = Moments(events)

    assert [5, 5, 5, 9] == [moments.of(event) for event in events]
    assert "1970-01-01T00:00:00.000009Z" == moments.text(events[3])


def test_where_no_time_is_known_the_given_one_stands() -> None:
    event = Prompt()

    assert 7 == Moments([event], otherwise=7).of(event)


def test_an_agent_of_which_only_the_call_is_kept_begins_with_it_also_where_nothing_has_a_time() -> None:
    call = ToolCall(message_id="m1", agent_id="main", id="c1", name="Task", input=b'{"prompt": "Look around."}')
    answer = ToolResult(message_id="m2", agent_id="main", id="c1", output="All quiet.")
    facts = SessionFacts(session="s", runtime="claude-code", title="Quiet", time=7_000_000)

    (sub,) = document_of([call, answer], facts, "std-008").document.data["sub_sessions"]

    assert ("1970-01-01T00:00:07.000000Z", []) == (sub["started_at"], sub["tool_calls"])
