"""What a session amounts to: who prompted, which tools ran, how often it was compacted, what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from harken.events import Error, Event, Metric, Prompt, Response, System, ToolCall, ToolResult

from .usage import Usage, UsageCounter

ATTACHED = "attachment:"
"""What the origins of texts begin with that came along with a prompt instead of standing in its place."""


class Prompts(msgspec.Struct, frozen=True, kw_only=True):
    """What stood in the user's place."""

    human: int = 0
    """Records that a person wrote."""
    injected: int = 0
    """Records that another agent or the harness put there."""
    tool_result: int = 0


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a session, or of several."""

    usage: Usage = Usage()
    prompts: Prompts = Prompts()
    injected: dict[str, int] = {}
    """Injected prompts by what they are."""
    tools: dict[str, int] = {}
    """Calls by the tool's name."""
    responses: int = 0
    errors: int = 0
    compactions: int = 0
    started: int | None = None
    ended: int | None = None


def stats(events: Iterable[Event]) -> Stats:
    """The figures of a stream of events. A record counts once, however many things it says."""
    counter = UsageCounter()
    who: dict[int, str] = {}
    origins: dict[int, str] = {}
    record, compacted = 0, -1
    tools: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    started = ended = None
    for event in events:
        record += event.index == 0
        if event.time is not None:
            started = event.time if started is None else min(started, event.time)
            ended = event.time if ended is None else max(ended, event.time)
        if record == compacted and event.index:
            continue  # what a compaction puts in the place of the conversation was said before
        match event:
            case Prompt() if event.origin.startswith(ATTACHED):
                pass
            case Prompt() | ToolResult():
                kind = _kind(event)
                if record not in who or _RANK[kind] > _RANK[who[record]]:
                    who[record] = kind
                    origins[record] = event.origin if isinstance(event, Prompt) else ""
            case ToolCall():
                tools[event.name] += 1
            case Response():
                counted["responses"] += 1
            case Error():
                counted["errors"] += 1
            case System(subtype="compact_boundary"):
                counted["compactions"] += 1
                compacted = record
            case Metric():
                counter.add(event)
    kinds = Counter(who.values())
    return Stats(
        usage=counter.total(),
        prompts=Prompts(human=kinds["human"], injected=kinds["injected"], tool_result=kinds["tool_result"]),
        injected=dict(sorted(Counter(origins[r] for r, kind in who.items() if kind == "injected").items())),
        tools=dict(tools.most_common()),
        responses=counted["responses"],
        errors=counted["errors"],
        compactions=counted["compactions"],
        started=started,
        ended=ended,
    )


# Of a record that says several things: a result makes it a tool's, else a person's words make it a person's.
_RANK = {"injected": 0, "human": 1, "tool_result": 2}


def _kind(event: Prompt | ToolResult) -> str:
    if isinstance(event, ToolResult):
        return "tool_result"
    return "injected" if event.source == "injected" else "human"
