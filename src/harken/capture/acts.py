"""What a recorder writes down, one value per fact: the document is a fold over these (`recording`), and each act of a
program is a list of them on one line of the log, so that it is there whole or not at all.

Times are instants (see `harken.clock`); what goes into the document as it is, is plain JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import orjson

from harken.errors import BadRecord
from harken.formats.std.document import Json

KEY = "document_acts"
"""The key of a log line (or of a notice's metadata) under which they stand."""


class RecordedAct(msgspec.Struct, frozen=True, kw_only=True, tag_field="act", omit_defaults=True):
    """One fact of a recording."""

    time: int
    """When it was, or began."""


class RecordingBegun(RecordedAct, frozen=True, kw_only=True, tag="begun"):
    """The head of the document."""

    session_id: str
    task_title: str
    user_prompt: str
    orchestrator: Json
    participants: list[Json]
    pattern: str
    model: str = ""


class AgentJoined(RecordedAct, frozen=True, kw_only=True, tag="agent"):
    """A participant who was not there at the beginning."""

    agent: Json


class CallBegun(RecordedAct, frozen=True, kw_only=True, tag="call"):
    """A tool was called: by the orchestrator, or in a sub-session."""

    call_id: str
    tool_name: str
    tool_category: str
    input: Json
    sub: str | None = None


class CallEnded(RecordedAct, frozen=True, kw_only=True, tag="call_end"):
    """The tool answered."""

    call_id: str
    output: Json


class SubBegun(RecordedAct, frozen=True, kw_only=True, tag="sub"):
    """A sub-agent began to work on a task."""

    sub_session_id: str
    agent: Json
    call_id: str
    task: Json
    parent: str | None = None
    """The sub-session whose agent started it; None for the orchestrator."""


class SubEnded(RecordedAct, frozen=True, kw_only=True, tag="sub_end"):
    """The sub-agent stopped."""

    sub_session_id: str
    status: str
    output: Any = None
    tokens_used: int | None = None


class MessageSent(RecordedAct, frozen=True, kw_only=True, tag="message"):
    """One agent told another something."""

    message_id: str
    from_agent: str
    to_agent: str
    message_type: str
    payload: Any
    correlation_id: str | None = None
    reply_to: str | None = None


class RecordingEnded(RecordedAct, frozen=True, kw_only=True, tag="closed"):
    """The recorder was closed."""

    status: str


Act = (
    RecordingBegun
    | AgentJoined
    | CallBegun
    | CallEnded
    | SubBegun
    | SubEnded
    | MessageSent
    | RecordingEnded
)  # fmt: skip


def unfit(what: str) -> BadRecord:
    """What is told of acts that cannot be taken in."""
    return BadRecord(what, hint="the log was changed or damaged here; the rest of it is used")


def to_line(acts: Sequence[Act]) -> list[Json] | str:
    """The acts as they stand on a line: as they are, or as JSON text where a log would not give every value back as it
    was (a lone surrogate)."""
    plain: list[Json] = msgspec.to_builtins(acts)
    try:
        orjson.dumps(plain)
    except TypeError:
        return json.dumps(plain, separators=(",", ":"), allow_nan=False)
    return plain


def as_json(value: Any) -> bytes:
    """JSON text, as a log keeps it best; a lone surrogate and a large number are as good as any other value."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def from_line(value: object) -> list[Act]:
    """The acts of a line; `BadRecord` where these are none."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
        return msgspec.convert(found, list[Act])
    except (ValueError, RecursionError, OverflowError) as problem:
        raise unfit(f"no record of a session document: {problem}") from None


def acts_of(lines: Iterable[Json]) -> Iterable[list[Act] | BadRecord]:
    """The acts in the lines of a log, one list for each line that has some; a line that cannot be read is the error."""
    for line in lines:
        value = line.get(KEY)
        if value is None and line.get("event_type") == "system":
            value = _metadata(line.get("metadata")).get(KEY)
        if value is not None:
            try:
                yield from_line(value)
            except BadRecord as problem:
                yield problem


def _metadata(value: object) -> Json:
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
