"""Events and messages as lines of the log: one way in for every kind, and back to the same events.

An assistant's record is one line: what it thought, what it said and what it called, in this order. Events that do not
follow each other that way stand on lines of their own with the same `message_id`; `index` says where each goes on.

The log is read by programs in a year's time. A mistake of today's caller (an agent instead of its id, a list with a
None in it) is cheap to tell now and cannot be mended later, so each thing is checked before an id is spent on it.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from harken.clock import format_instant, in_calendar
from harken.errors import BadRequest
from harken.events import KINDS, Event, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats.kit.jsonl import MAX_DEPTH, MAX_LINE, SHORT, encode_slowly, refusal

from .lines import LogLine
from .reading import EMBEDDED, ENTRY, INSTRUCTIONS, PLAIN, ROLES, TEXTS

GivenCause = str | Sequence[str] | None

ENTRIES = "entries"
"""The key under which stands what the transcript entries of a line say beyond its events, one object for each event."""
ENVELOPE = frozenset(
    {"message_id", "event_type", "agent_id", "timestamp", "substance", "cause", "index", "api_id", ENTRIES}
)
"""Keys of a line that are about the record, not part of the message."""

_STAGES = {"thinking": 0, "response": 1, "tool_call": 2}
# Written even when empty: without them the line would not say what happened.
_ALWAYS = frozenset({("piece_of_text", "content"), ("transcript_edit", "action"), ("error", "message")})
_BARE = {kind: cls() for kind, cls in KINDS.items()}


def records_of(events: Iterable[Event]) -> list[LogLine]:
    """The lines for any sequence of events."""
    return [record_of(run) for run in runs(events)]


def runs(events: Iterable[Event]) -> list[list[Event]]:
    """The events in groups that are a line each."""
    grouped: list[list[Event]] = []
    for event in events:
        if grouped and _continues(grouped[-1][-1], event):
            grouped[-1].append(event)
        else:
            grouped.append([event])
    return grouped


def _continues(before: Event, event: Event) -> bool:
    first, second = _STAGES.get(before.kind), _STAGES.get(event.kind)
    if first is None or second is None or second < first or (first == second == 1):
        return False
    return (
        event.index == before.index + 1
        and event.message_id == before.message_id
        and event.agent_id == before.agent_id
        and event.time == before.time
        and event.substance == before.substance
        and event.cause == before.cause
        and event.api_id == before.api_id
        and getattr(event, "call_id", "") == getattr(before, "call_id", "")
    )


def record_of(events: Sequence[Event]) -> LogLine:
    """The line for the events of one record: a single event, or an assistant's thinking, words and calls."""
    first = events[0]
    if len(events) > 1 and len(runs(events)) > 1:
        raise BadRequest("these events do not make one line", hint="`records_of` takes any sequence of events")
    data: LogLine = {}
    if first.message_id:
        data["message_id"] = first.message_id
    data["event_type"] = ENTRY if first.kind in _ENTRIES and not _is_notice(first) else first.kind
    data["agent_id"] = first.agent_id
    if first.time is not None and in_calendar(first.time):
        data["timestamp"] = format_instant(first.time)
    if first.kind in _STAGES:
        data["role"] = "assistant"
        for event in events:
            _ENTRIES[event.kind](data, event)
        data |= {"call_id": asked} if (asked := getattr(first, "call_id", "")) else {}
    elif data["event_type"] == ENTRY:
        _ENTRIES[first.kind](data, first)
    elif isinstance(first, Output):
        _output(data, first)
    else:
        _plain(data, first)
    return _links(data, first)


def _links(data: LogLine, event: Event) -> LogLine:
    if event.substance is not None:
        data["substance"] = event.substance
    if event.cause is not None:
        data["cause"] = event.cause if isinstance(event.cause, str) else list(event.cause)
    if event.index:
        data["index"] = event.index
    if event.api_id:
        data["api_id"] = event.api_id
    return data


def _is_notice(event: Event) -> bool:
    """A notice of the runtime is no part of a transcript; instructions are."""
    return isinstance(event, System) and event.subtype != INSTRUCTIONS


def _prompt(data: LogLine, event: Prompt) -> None:
    data |= {"role": "user", "content": event.content}
    if event.source != "user":
        data["source"] = event.source
    data |= {key: value for key in TEXTS if (value := getattr(event, key))}
    if event.recipients:
        data["recipients"] = list(event.recipients)
    _images(data, event)


def _instructions(data: LogLine, event: System) -> None:
    data |= {"role": "system", "content": event.message}
    if event.metadata:
        data["metadata"] = embedded(event.metadata)


def _tool_result(data: LogLine, event: ToolResult) -> None:
    data |= {"role": "tool", "tool_call_id": event.id, "content": event.output}
    if event.name:
        data["name"] = event.name
    if event.is_error:
        data["is_error"] = True
    _images(data, event)


def _images(data: LogLine, event: Prompt | ToolResult) -> None:
    if event.images:
        keys = ("media_type", "data", "url", "at")
        data["images"] = [
            {key: value for key in keys if (value := getattr(image, key)) not in ("", None)} for image in event.images
        ]


def _thinking(data: LogLine, event: Thinking) -> None:
    before = data.get("thinking")
    if before is None and not event.signature and event.redacted is None:
        data["thinking"] = event.content
        return
    thoughts = [{"content": before}] if isinstance(before, str) else before or []
    more = {"signature": event.signature or None, "redacted": event.redacted}
    known = {key: value for key, value in more.items() if value is not None}
    data["thinking"] = [*thoughts, {"content": event.content, **known}]


def _response(data: LogLine, event: Response) -> None:
    data["content"] = event.content
    if event.model:
        data["model"] = event.model


def _tool_call(data: LogLine, event: ToolCall) -> None:
    function: LogLine = {"name": event.name}
    try:
        function["arguments"] = event.input.decode()
    except UnicodeDecodeError:
        function["arguments_base64"] = base64.b64encode(event.input).decode()
    call: LogLine = {"id": event.id, "type": "function", "function": function}
    if event.server_tool:
        call["server_tool"] = True
    data.setdefault("tool_calls", []).append(call)


_ENTRIES: dict[str, Callable[[LogLine, Any], None]] = {
    "prompt": _prompt,
    "system": _instructions,
    "tool_result": _tool_result,
    "thinking": _thinking,
    "response": _response,
    "tool_call": _tool_call,
}


def _output(data: LogLine, event: Output) -> None:
    try:
        data["raw"] = event.raw.decode()
    except UnicodeDecodeError:
        data["raw_base64"] = base64.b64encode(event.raw).decode()
    if event.why:
        data["why"] = event.why
    if event.media_type:
        data["media_type"] = event.media_type


def _plain(data: LogLine, event: Event) -> None:
    bare = _BARE[event.kind]
    for name in PLAIN[event.kind]:
        value = getattr(event, name)
        if value == getattr(bare, name) and (event.kind, name) not in _ALWAYS:
            continue
        if name in EMBEDDED:
            value = embedded(value)
        elif isinstance(value, float) and not math.isfinite(value):
            value = str(value)
        data[name] = value


def embedded(text: bytes) -> Any:
    """JSON text as the object it is where that gives back the same bytes and a reader follows it, else as text."""
    try:
        value = None if refusal(text) else orjson.loads(text)
        # What is deeper than orjson writes (254 levels) is text, too.
        if isinstance(value, (dict, list)) and orjson.dumps(value) == text and not _looks_encoded(value):
            return value
    except (orjson.JSONDecodeError, TypeError):
        pass
    try:
        return text.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(text).decode()}


def _looks_encoded(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"base64"}


def encode(data: LogLine) -> bytes:
    """The line, newline included. What a reader would not read again is refused."""
    try:
        line = orjson.dumps(data, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        line = _encode_oddities(data)
    if len(line) > MAX_LINE + 1:
        raise BadRequest(
            f"a line of {len(line)} bytes is too long for a session log (at most {MAX_LINE})", hint=_ELSEWHERE
        )
    if len(line) > SHORT and (why := refusal(line)):
        raise BadRequest(f"{why}, which no reader of a session log follows", hint=_ELSEWHERE)
    if b"null" in line and _holds_not_finite(data):
        raise BadRequest("JSON has no NaN and no infinity", hint="log such a number as text, or leave it out")
    return line


_ELSEWHERE = "keep large content in a file or in the store and log a reference to it"


def _encode_oddities(data: LogLine) -> bytes:
    """Lone surrogates and whole numbers beyond 64 bits: no business of orjson's, but not to be lost either."""
    try:
        return _without_orjson(data) + b"\n"
    except (TypeError, ValueError) as problem:
        raise BadRequest(
            f"cannot be written as JSON: {problem}",
            hint="log text, finite numbers, true, false, and lists and objects of them",
        ) from None


def _without_orjson(data: LogLine) -> bytes:
    try:
        return json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()
    except RecursionError:
        if _nests_deeper(data, MAX_DEPTH):
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep") from None
        return encode_slowly(data)


def _holds_not_finite(data: LogLine) -> bool:
    """Whether there is a NaN or an infinity, which orjson would quietly make null of."""
    pending: list[Any] = [data]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, (list, tuple)):
            pending.extend(value)
        elif isinstance(value, float) and not math.isfinite(value):
            return True
    return False


def _nests_deeper(value: Any, limit: int) -> bool:
    """Whether lists and objects stand inside each other more than so many deep."""
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for item in level
            if isinstance(item, (dict, list, tuple))
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return any(isinstance(item, (dict, list, tuple)) for item in level)


def check_agent(agent_id: Any) -> None:
    """Whose record it is must be said, in words."""
    if not isinstance(agent_id, str) or not agent_id:
        raise BadRequest(f"{agent_id!r:.80} is no agent id", hint="ids are text; `allocate_agent_id` gives a fresh one")


def check_text(**named: Any) -> None:
    """Each of these is text, or left out."""
    for name, value in named.items():
        if value is not None and not isinstance(value, str):
            raise BadRequest(f"{name} must be text, not {type(value).__name__}", hint=f"pass {name} as a str")


def links(substance: Any, cause: Any) -> dict[str, Any]:
    """The link as it stands on the line: one of the two, or none. An empty list of causes is none."""
    if isinstance(cause, (list, tuple)):
        cause = list(cause) or None
    if substance is not None and cause is not None:
        raise BadRequest(
            "an event cannot have both a substance and a cause",
            hint="substance says 'the same content as', cause says 'triggered by'",
        )
    if substance is not None:
        _check_message_id("substance", substance)
        return {"substance": substance}
    if cause is None:
        return {}
    for one in cause if isinstance(cause, list) else (cause,):
        _check_message_id("cause", one)
    return {"cause": cause}


def _check_message_id(what: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        hint = "it is the id of a message" + (", or a list of ids" if what == "cause" else "")
        raise BadRequest(f"{value!r:.80} is no {what}", hint=hint)


def check_event(event: Any) -> None:
    """An event goes on the line as it is, so what it names must be text."""
    if not isinstance(event, Event):
        raise BadRequest(
            f"{type(event).__name__} is no event", hint="`harken.events` has them; or use the log_… methods"
        )
    check_text(message_id=event.message_id, agent_id=event.agent_id, substance=event.substance)
    for one in event.cause if isinstance(event.cause, (list, tuple)) else (event.cause or "",):
        if not isinstance(one, str):
            raise BadRequest(f"{one!r:.80} is no cause", hint="it is the id of a message, or a tuple of ids")


def message_of(message: Any) -> dict[str, Any]:
    """A message as it goes on the line: with a role, and without keys that stand for nothing."""
    if not isinstance(message, dict):
        raise BadRequest(
            f"a message is a dict, not {type(message).__name__}",
            hint='for example {"role": "user", "content": "Hello"}',
        )
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise BadRequest(f"there is no role {role!r:.80}", hint="there are " + ", ".join(ROLES))
    if not ENVELOPE.isdisjoint(message):
        own = sorted(ENVELOPE & message.keys())[0]
        raise BadRequest(f"a message cannot bring its own {own}", hint="pass it as an argument")
    if role == "assistant":
        return _without_nothing(message)
    if None in message.values():
        return {key: value for key, value in message.items() if value is not None}
    return message


def _without_nothing(message: dict[str, Any]) -> dict[str, Any]:
    """An assistant's message without the keys under which nothing stands; some providers send them all."""
    data = {key: value for key, value in message.items() if value is not None}
    if "tool_calls" in data:
        if not data["tool_calls"]:
            del data["tool_calls"]
        elif data.get("content") == "":
            del data["content"]  # empty words beside a call: nobody said anything
    return data


EDITS = ("truncate", "compact", "restore", "place")


def edit_of(action: Any, n: Any, start: Any, content: Any) -> dict[str, Any]:
    """An edit of a transcript as it goes on the line."""
    check_text(content=content)
    if action not in EDITS or {type(start), type(n)} != {int} or not 0 <= start <= n:
        hint = "truncate, compact, restore or place, 0 <= start <= n"
        raise BadRequest(f"no edit {action!r} from {start!r} to {n!r}", hint=hint)
    data: dict[str, Any] = {"action": action, "n": n}
    if start:
        data["start"] = start
    if content is not None:
        data["content"] = content
    return data
