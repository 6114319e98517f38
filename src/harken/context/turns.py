"""When a live conversation is checkpointed: a pure fold, one event in, perhaps a reason out.

A turn ends where an assistant's message ends, whether it has words or only calls, and before its tools run. Where the
end of a message shows only in what comes next, `before` tells; where the stream rests, `at_rest` does. Whatever the
frequency, a compaction, the end of a session and an explicit wish are always honoured.
"""

from __future__ import annotations

import re

import msgspec

from harken.errors import BadRequest
from harken.events import Event, Metric, Prompt, Response, System, Thinking, ToolCall, ToolResult, TranscriptEdit
from harken.formats.base import message_key

TURN = "turn_boundary"
TOOL = "tool_call"
COMPACTION = "compaction"
END = "session_end"
EXPLICIT = "explicit"

_BOUNDARIES = ("compact_boundary", "microcompact_boundary")
_EVERY = re.compile(r"every=([1-9][0-9]{0,8})")


class Frequency(msgspec.Struct, frozen=True):
    """How often: at each turn, at each tool's answer as well, at every n-th turn, or only at the end."""

    turns: int = 1
    """Turns per checkpoint; 0 for none before the end."""
    tools: bool = False


def frequency(text: str) -> Frequency:
    """The frequency a setting names: `turn`, `tool`, `every=N` or `end`."""
    known = {"turn": Frequency(1), "tool": Frequency(1, True), "end": Frequency(0)}
    if text in known:
        return known[text]
    if found := _EVERY.fullmatch(text):
        return Frequency(int(found[1]))
    raise BadRequest(f"there is no checkpoint frequency {text!r}", hint="there are: turn, tool, every=N, end")


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where in the conversation the stream stands."""

    message: str | None = None
    """The key of the assistant's message that is being said, or None."""
    spoken: bool = False
    """Whether that message has words or calls yet; thoughts alone are always followed by more."""
    turns: int = 0
    """Messages ended since the last checkpoint."""
    boundary: bool = False
    """Whether the last event announced that the runtime has compacted."""


def before(rule: Frequency, position: Position, event: Event) -> tuple[Position, str]:
    """Whether a checkpoint is due before this event."""
    if position.message is None or _continues(position.message, event):
        return position, ""
    return _ended(rule, position)


def after(rule: Frequency, position: Position, event: Event) -> tuple[Position, str]:
    """Whether a checkpoint is due behind this event."""
    match event:
        case Thinking() | Response() | ToolCall():
            key = message_key(event)
            spoken = not isinstance(event, Thinking) or (position.spoken and position.message == key)
            return Position(message=key, spoken=spoken, turns=position.turns), ""
        case System() if event.subtype in _BOUNDARIES:
            return Position(boundary=event.subtype == _BOUNDARIES[0]), COMPACTION
        case System(subtype="shutdown"):
            return Position(), END
        case Metric() if event.ends_run:
            return Position(), END
        case TranscriptEdit():
            return Position(), COMPACTION
        case Prompt() if is_summary(position, event):
            return Position(), COMPACTION
        case ToolResult() if rule.tools:
            return Position(), TOOL
    return msgspec.structs.replace(position, boundary=False), ""


def at_rest(rule: Frequency, position: Position) -> tuple[Position, str]:
    """Whether a checkpoint is due because nothing more follows for now."""
    return _ended(rule, position) if position.spoken else (position, "")


def _ended(rule: Frequency, position: Position) -> tuple[Position, str]:
    turns = position.turns + 1
    if rule.turns and turns >= rule.turns:
        return Position(), TURN
    return Position(turns=turns), ""


def is_summary(position: Position, event: Event) -> bool:
    """Whether the event is the summary that a runtime puts behind its compaction boundary."""
    return position.boundary and isinstance(event, Prompt) and (event.source == "injected" or "compact" in event.origin)


def _continues(key: str, event: Event) -> bool:
    if isinstance(event, (Thinking, Response, ToolCall)):
        return key == message_key(event)
    # Usage is reported with the message it belongs to, or right behind it: without an id, or naming it as its cause.
    if not isinstance(event, Metric) or event.ends_run:
        return False
    if event.scope:
        return True  # it is of something else, and comes when it comes
    return message_key(event) in ("", key) or key in event.causes()
