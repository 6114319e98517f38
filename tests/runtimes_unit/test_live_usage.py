"""What a live run cost, counted once: the figures are those the real Claude Code 2.1.325 printed for such runs."""

from __future__ import annotations

import json
from typing import Any

from harken.analytics import stats
from harken.events import Event
from harken.formats.claude_stream import ClaudeStreamReader


def result(total: int, added: int | None, cost: float) -> dict[str, Any]:
    """A `result` line: the totals go back to the session's beginning, whichever process they were made in."""
    line: dict[str, Any] = {"type": "result", "subtype": "success", "total_cost_usd": cost, "result": "x"}
    line["modelUsage"] = {"m": {"inputTokens": total * 100, "outputTokens": total * 11}}
    if added is not None:
        line["model_usage_since_last_result"] = {"m": {"inputTokens": added * 100, "outputTokens": added * 11}}
    return line


def said(number: int) -> dict[str, Any]:
    """An assistant line, with the figures that the stream has before the message is whole."""
    message = {"id": f"msg_{number}", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "x"}]}
    return {"type": "assistant", "message": message | {"usage": {"input_tokens": 100, "output_tokens": 1}}}


def heard(*processes: list[dict[str, Any]]) -> list[Event]:
    """The events of several processes that went on with one session, each read by a reader of its own."""
    events: list[Event] = []
    for lines in processes:
        reader = ClaudeStreamReader()
        for line in lines:
            events += reader.feed(json.dumps(line).encode())
    return events


def test_a_resumed_session_does_not_count_what_came_before_again() -> None:
    first = [said(1), said(2), result(2, 2, 0.25)]
    again = [said(3), result(3, 1, 0.5)]
    more = [said(4), result(4, 1, 0.75), said(5), result(5, 1, 1.0)]
    total = stats(heard(first, again, more))
    assert (total.usage.input, total.usage.output, total.cost_usd_micros) == (500, 55, 1_000_000)


def test_older_builds_say_only_the_totals_of_the_process() -> None:
    total = stats(heard([said(1), result(1, None, 0.25), said(2), result(2, None, 0.5)]))
    assert (total.usage.input, total.usage.output, total.cost_usd_micros) == (200, 22, 500_000)
