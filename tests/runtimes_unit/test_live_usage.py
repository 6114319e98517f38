"""What a live run cost, counted once: the figures are those the real Claude Code 2.1.325 printed for such runs."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from harken.analytics import stats
from harken.events import Event, Metric, Tokens
from harken.events.tally import Tally
from harken.formats.claude_stream import ClaudeStreamReader

AGENT = {"parent_tool_use_id": "t1", "agent_id": "a1"}


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


def test_what_a_message_had_when_it_began_is_not_what_it_used() -> None:
    """#29: a run that was cut short has no total, and the stream tells the input alone."""
    total = stats(heard([said(1), said(2)]))
    assert (total.usage.input, total.usage.output) == (200, None)


class TestSubAgents:
    """#29: the total of a run includes its sub-agents, whose requests the stream tells as well."""

    RUN: ClassVar = [
        said(1),
        said(2) | AGENT,
        said(3) | AGENT,
        said(4),
        result(4, 4, 0.5) | {"usage": {"input_tokens": 200, "output_tokens": 20}},
    ]

    def tallies(self, *lines: dict[str, Any]) -> tuple[Tally, Tally]:
        events = heard(list(lines))
        main, agent = ([event for event in events if event.agent_id == name] for name in ("", "a1"))
        return Tally.of(main), Tally.of(agent)

    def test_count_once_in_the_whole(self) -> None:
        main, agent = self.tallies(*self.RUN)

        assert Tokens(input=200, output=20) == main.tokens
        assert Tokens(input=200) == agent.tokens, "what it said in all is known of all agents together"
        assert Tokens(input=400, output=44) == Tally.merge([main, agent]).tokens == Tally.merge([agent, main]).tokens
        assert Tokens(input=400, output=44) == Tally.of(heard(self.RUN)).tokens

    def test_whose_last_words_come_after_a_result_count_once_all_the_same(self) -> None:
        """Claude Code puts all it used into the first result and nothing into the next, as `usage` of the turns does
        not."""
        late = result(4, 0, 0.5) | {"usage": {"input_tokens": 100, "output_tokens": 11}}
        first = self.RUN[-1] | {"usage": {"input_tokens": 100, "output_tokens": 9}}

        main, agent = self.tallies(*self.RUN[:3], first, said(4), late)

        assert (Tokens(input=200, output=20), 44) == (main.tokens, Tally.merge([main, agent]).tokens.output)

    def test_of_a_run_that_was_cut_short_count_as_far_as_they_are_told(self) -> None:
        main, agent = self.tallies(*self.RUN[:-1])

        assert Tokens(input=400) == Tally.merge([main, agent]).tokens

    def test_that_were_imported_count_as_their_file_says(self) -> None:
        main, _ = self.tallies(*self.RUN)
        file = Tally.of([Metric(api_id=f"msg_{n}", input_tokens=100, output_tokens=12) for n in (2, 3)])

        assert Tokens(input=400, output=44) == Tally.merge([main, file]).tokens
