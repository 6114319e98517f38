"""A rollout as events.

`response_item` lines are the conversation. `event_msg` lines repeat it for the screen: they are kept as what they are,
and speak for themselves only in a file that has no items of that role (some review threads). A `compacted` line says
that the conversation was replaced; the replacement follows it as events of the same record, each naming the message it
repeats as its `substance`, where that message is in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from harken.clock import parse_instant
from harken.events import Error, Event, Metric, Output, Prompt, Response, System, Thinking, Tokens
from harken.events.base import clean
from harken.formats.kit.jsonl import Record, Unread, take_apart
from harken.formats.kit.openai import SCREEN, Speaker, dump, item_events, joined_text, text_of

from .classify import speaks, split_injected
from .context import message_between_agents
from .records import (
    BETWEEN_AGENTS,
    COMPACTED,
    EVENT,
    ITEM,
    SESSION_META,
    TURN_CONTEXT,
    USAGE,
    RolloutLine,
    iter_lines,
    kind_of,
    why_unknown,
)
from .usage import Key, Meter, reasoning_of

_SPOKEN = {"user_message": "user", "agent_message": "assistant", "agent_reasoning": "reasoning"}
ERRORS = ("error", "stream_error")
"""Events that report a failure."""
_FIRST_OPINION = 4096
"""How much of a text is looked at to tell whether it is said again."""


def read(data: bytes) -> list[Event]:
    """Every event of the file, in its order."""
    return list(iter_read(data))


def iter_read(data: bytes) -> Iterator[Event]:
    """The same one by one."""
    return _read(data, apart=False)


def read_conversation(data: bytes) -> Iterator[Event]:
    """The same, with every kind of text that Codex put into one message as a prompt of its own.

    AGENTS.md and `<environment_context>` come in one message; only the first follows into another runtime.
    """
    return _read(data, apart=True)


_HELD = 8 << 20
"""The records of a larger file are parsed once more rather than held: they take several times its size."""


def _read(data: bytes, *, apart: bool) -> Iterator[Event]:
    held = list(_all_records(data)) if len(data) <= _HELD else None
    reader = _RolloutReader(_all_records(data) if held is None else held, apart)
    for record in _all_records(data) if held is None else held:
        yield from reader.record(record, data)


class _Found(NamedTuple):
    """A record of the file, or what is none."""

    start: int
    end: int
    record: Record
    unread: Unread | None = None


def _all_records(data: bytes) -> Iterator[_Found]:
    return (record for line in iter_lines(data) for record in _records(data, line))


def _records(data: bytes, line: RolloutLine) -> list[_Found]:
    """Every record on the line, and what on it is none."""
    if line.record is not None:
        return [_Found(line.start, line.end, line.record)]
    objects, rest = ([], None) if line.blank else take_apart(data, line.start, line.end)
    found = [_Found(start, end, record) for record, start, end in objects]
    return [*found, _Found(rest.start, line.end, {}, rest)] if rest is not None else found


class _Listener(Speaker):
    """Knows what was typed, and whether another agent does the typing."""

    def __init__(self) -> None:
        super().__init__()
        self.typed: set[str] = set()
        self.spawned = False

    def who(self, item: Record, text: str) -> tuple[str, str]:
        """What was typed is the user's; what looks injected is; in a sub-agent's thread the user is its parent."""
        source, origin = speaks(item)
        if source == "injected" and text not in self.typed:
            return source, origin
        return ("injected", "agent") if self.spawned else ("user", "")


class _RolloutReader:
    def __init__(self, found: Iterable[_Found], apart: bool) -> None:
        self._apart = apart
        self._listener = _Listener()
        self._roles: set[str] = set()
        self._said: dict[tuple[str, str], str] = {}
        self._started = False
        self._meter = Meter()
        self._has_usage = False
        for one in found:
            self._foresee(*kind_of(one.record))

    def _foresee(self, kind: str, payload: Record) -> None:
        if kind == ITEM:
            self._roles.add(text_of(payload.get("role")) or text_of(payload.get("type")))
        elif kind == EVENT and (text := typed_text(payload)) is not None:
            self._listener.typed.add(text)
        elif kind == USAGE:
            self._has_usage = True

    def record(self, found: _Found, data: bytes) -> Iterator[Event]:
        """The events of one record, at least one."""
        fields: dict[str, Any] = {"message_id": f"@{found.start}", "time": None}
        if found.unread is not None:
            yield Output(raw=found.unread.raw, why=found.unread.why, **fields)
            return
        raw = data[found.start : found.end].rstrip(b"\r\n")
        stamp = found.record.get("timestamp", found.record.get("created_at"))
        fields["time"] = parse_instant(stamp)
        kind, payload = kind_of(found.record)
        try:
            events = self._events(kind, payload, fields)
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as problem:
            yield Output(raw=raw, why=f"damaged {kind or 'record'}: {type(problem).__name__}", **fields)
            return
        yield from events or [Output(raw=raw, why=why_unknown(kind, payload), **fields)]

    def _events(self, kind: str, payload: Record, fields: dict[str, Any]) -> list[Event]:
        if kind == ITEM:
            return self._item(payload, fields)
        if kind == EVENT:
            return self._event(payload, fields)
        if kind == COMPACTED:
            return self._compacted(payload, fields)
        if kind == SESSION_META:
            return self._meta(payload, fields)
        if kind == BETWEEN_AGENTS:
            return self._item(message_between_agents(payload), fields)
        if kind == TURN_CONTEXT:
            self._listener.model = text_of(payload.get("model")) or self._listener.model
        if kind == USAGE:
            return self._metric(self._meter.record(payload), payload, fields)
        return []

    def _item(self, item: Record, fields: dict[str, Any]) -> list[Event]:
        events = self._heard(item, fields)
        for event in events:
            if isinstance(event, Prompt | Response):
                self._said[event.kind, event.content[:_FIRST_OPINION]] = event.message_id
        return [_cleaned(event) for event in events]

    def _heard(self, item: Record, fields: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        is_split = self._apart and joined_text(item.get("content")) not in self._listener.typed
        for one in split_injected(item) if is_split else [item]:
            events += item_events(one, {**fields, "index": fields.get("index", 0) + len(events)}, self._listener)
        return events

    def _meta(self, payload: Record, fields: dict[str, Any]) -> list[Event]:
        self._meter.meet(payload)
        known = {key: value for key, value in payload.items() if key not in ("base_instructions", "dynamic_tools")}
        events: list[Event] = [System(subtype="init", metadata=dump(known), **fields)]
        base = payload.get("base_instructions")
        text = text_of(base.get("text")) if isinstance(base, dict) else text_of(payload.get("instructions"))
        if text and not self._started:
            events.append(System(subtype="instructions", message=clean(text), **{**fields, "index": 1}))
        if not self._started:
            self._listener.spawned = is_spawned(payload)
        self._started = True
        return events

    def _compacted(self, payload: Record, fields: dict[str, Any]) -> list[Event]:
        about = {key: value for key, value in payload.items() if key not in ("replacement_history", "message")}
        events: list[Event] = [System(subtype="compact_boundary", metadata=dump(about) if about else b"", **fields)]
        replacement = payload.get("replacement_history")
        if not isinstance(replacement, list):
            # An old file: what is left are the user's own messages, and this.
            summary = clean(text_of(payload.get("message")))
            return [
                *events,
                Prompt(content=summary, source="injected", origin="compact_summary", **fields | {"index": 1}),
            ]
        for item in replacement:
            if isinstance(item, dict):
                events += self._again(item, {**fields, "index": len(events)})
        return events

    def _again(self, item: Record, fields: dict[str, Any]) -> list[Event]:
        """An item of a replacement; where it was said before, it names the message."""
        events = []
        for event in self._heard(item, fields):
            key = (event.kind, event.content[:_FIRST_OPINION]) if isinstance(event, Prompt | Response) else None
            events.append(_cleaned(event.replace(substance=self._said.get(key) if key else None)))
        return events

    def _event(self, payload: Record, fields: dict[str, Any]) -> list[Event]:
        name = text_of(payload.get("type"))
        if name in _SPOKEN:
            return [] if _SPOKEN[name] in self._roles else self._spoken(name, payload, fields)
        if name == "token_count":
            step = self._meter.step(payload)
            # In a delta that is read alone, a total that no record of it told is one that an earlier delta told.
            return self._metric(step if self._meter.thread or not self._has_usage else None, payload, fields)
        if name in ERRORS:
            return [Error(message=clean(text_of(payload.get("message"))), **fields)]
        if name in ("turn_aborted", "thread_rolled_back"):
            reason = clean(text_of(payload.get("reason")))
            return [System(subtype=name, message=reason, metadata=dump(payload), **fields)]
        return []

    def _spoken(self, name: str, payload: Record, fields: dict[str, Any]) -> list[Event]:
        fields = {**fields, "api_id": SCREEN + fields["message_id"]}
        if name == "agent_reasoning":
            return [Thinking(content=clean(text_of(payload.get("text"))), **fields)]
        text = clean(text_of(payload.get("message")))
        if name == "agent_message":
            return [Response(content=text, model=self._listener.model, **fields)]
        source, origin = self._listener.who({"content": text}, text)
        return [Prompt(content=text, source=source, origin=origin, **fields)]

    def _metric(self, step: tuple[Key, Tokens] | None, payload: Record, fields: dict[str, Any]) -> list[Event]:
        if step is None:
            return []
        key, tokens = step
        metric = Metric(
            model=self._listener.model,
            request_id=key[1],
            reasoning_tokens=reasoning_of(payload, tokens),
            **{**fields, "api_id": key[0]},
        )
        return [metric.with_tokens(tokens)]


def typed_text(payload: Record) -> str | None:
    """What a person typed, where the event says so."""
    name = payload.get("type")
    if name == "user_message":
        return text_of(payload.get("message"))
    item = payload.get("item")
    if name == "item_completed" and isinstance(item, dict) and item.get("type") == "UserMessage":
        return joined_text(item.get("content"))
    return None


def is_spawned(meta: Record) -> bool:
    """Whether the thread is a sub-agent's."""
    source = meta.get("source")
    return bool(text_of(meta.get("parent_thread_id"))) or (isinstance(source, dict) and "subagent" in source)


def _cleaned(event: Any) -> Event:
    """The event with text that can be written as UTF-8; lone surrogates came through an escape."""
    changes = {
        name: clean(value)
        for name in ("content", "message", "output", "id", "name", "signature")
        if isinstance(value := getattr(event, name, None), str) and not value.isascii()
    }
    cleaned: Event = event.replace(**changes) if changes else event
    return cleaned
