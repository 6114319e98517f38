"""Events for people, a line each: a word for who speaks, and the beginning of what is said."""

from __future__ import annotations

from harken.events import (
    Error,
    Event,
    Metric,
    Output,
    Prompt,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    TranscriptEdit,
)
from harken.events.base import Tokens, excerpt
from harken.events.tools import doing

WIDTH = 110


def line(event: Event, *, width: int = WIDTH, folder: str = "") -> str:
    """The event on one line; paths below the folder that was worked in stand as from there."""
    who, what = parts(event, folder)
    return f"{who:>9}  {excerpt(what, width)}"


def parts(event: Event, folder: str = "") -> tuple[str, str]:
    """Who speaks, in a word, and all that is said."""
    match event:
        case Prompt():
            return ("user" if event.source != "injected" else "injected"), event.content
        case Response():
            return "assistant", event.content
        case Thinking():
            return "thinking", event.content or "(sealed)"
        case ToolCall():
            told = doing(event, folder)
            rest = "" if ": " in told else event.input[:1000].decode("utf-8", "replace")
            return "call", f"{told} {rest}".rstrip()
        case ToolResult():
            return ("failed" if event.is_error else "result"), event.output
        case System():
            return "system", f"{event.subtype} {event.message}".strip()
        case Error():
            return "error", event.message
        case Metric():
            return "usage", _used(event)
        case Output():
            # What is understood and no part of the conversation is not unread.
            return "unread" if event.why else "other", event.why or event.raw[:1000].decode("utf-8", "replace")
        case TranscriptEdit():
            return "edit", f"{event.action} {event.start}:{event.n}"
    return event.kind[:9], ""


def _used(event: Metric) -> str:
    if event.tokens == Tokens() and event.cost_usd is not None:
        return f"${event.cost_usd:.4f}" + (" so far" if event.scope else "")
    return f"{_number(event.input_tokens)} tokens in, {_number(event.output_tokens)} out"


def _number(count: int | None) -> str:
    return "unknown" if count is None else str(count)
