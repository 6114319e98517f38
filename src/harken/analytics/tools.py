"""Which tools were used, how long they took, how often they failed and were tried again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median_low

import msgspec

from harken.events import Event, ToolCall, ToolResult

from .calls import answered_calls


class ToolUse(msgspec.Struct, kw_only=True, frozen=True):
    """What became of the calls of one tool."""

    calls: int = 0
    failed: int = 0
    unanswered: int = 0
    """Calls without a result."""
    retries: int = 0
    """Calls with the same arguments as the agent's last call of this tool, which had failed."""
    durations: tuple[int, ...] = ()
    """Microseconds from call to result, in order, where both have a time."""

    @property
    def took(self) -> int:
        """Microseconds altogether."""
        return sum(self.durations)

    @property
    def median(self) -> int | None:
        """What a call took in the middle; None where nobody knows."""
        return median_low(self.durations) if self.durations else None

    def __add__(self, other: ToolUse) -> ToolUse:
        """Two sessions together."""
        return ToolUse(
            calls=self.calls + other.calls,
            failed=self.failed + other.failed,
            unanswered=self.unanswered + other.unanswered,
            retries=self.retries + other.retries,
            durations=(*self.durations, *other.durations),
        )


Tools = dict[str, ToolUse]
"""By the tool's name, the most used first."""


def of(events: Iterable[Event]) -> Tools:
    """The tools of a stream of events."""
    found: Tools = {}
    last: dict[tuple[str, str], tuple[ToolCall, bool]] = {}
    for call, result in answered_calls(events):
        failed = result is not None and result.is_error
        before = last.get((call.agent_id, call.name))
        again = before is not None and before[1] and before[0].input == call.input
        last[call.agent_id, call.name] = (call, failed)
        found[call.name] = found.get(call.name, ToolUse()) + ToolUse(
            calls=1, failed=failed, unanswered=result is None, retries=again, durations=_took(call, result)
        )
    return ranked(found)


def ranked(tools: Mapping[str, ToolUse]) -> Tools:
    """The most used first."""
    return {name: tools[name] for name in sorted(tools, key=lambda name: (-tools[name].calls, name))}


def _took(call: ToolCall, result: ToolResult | None) -> tuple[int, ...]:
    if result is None or call.time is None or result.time is None:
        return ()
    return (max(0, result.time - call.time),)
