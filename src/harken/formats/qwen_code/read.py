"""A file as events: nothing is dropped.

A record that says several things gives several events under one `message_id` (its uuid, else `@<byte offset>`), told
apart by `index`. Records of bookkeeping are `output` events without a reason; what nobody can read has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import force_setattr

from harken.clock import parse_instant
from harken.events import Error, Event, Output, Prompt, System
from harken.events.base import clean
from harken.formats.kit.jsonl import Record, encode, lines, take_apart

from .branch import path, survey, together
from .parts import heard_events, history_events, result_events, said_events
from .records import (
    ASSISTANT,
    BOOTSTRAP,
    COMMAND,
    COMPRESSION,
    REALTIME,
    SYSTEM,
    TELEMETRY,
    TOOL_RESULT,
    USER,
    history_of,
    inner,
    parts_of,
    place_of,
    stretches,
    text,
)
from .usage import FAILURE, QwenMeter, answer_metric, event_of, is_response, telemetry_metric

BOUNDARY = "compact_boundary"
FAILED = frozenset({"error", "cancelled"})
"""What `toolCallResult.status` says of a call that brought nothing."""
_TOLD = frozenset({COMMAND, "rewind", BOOTSTRAP, COMPRESSION})
"""Subtypes of `system` records that are told as notices."""


def read(data: bytes) -> Iterator[Event]:
    """Every event of the file, in its order."""
    reader = QwenReader()
    for start, end in lines(data):
        objects, rest = take_apart(data, start, end)
        for value, first, last in objects:
            yield from reader.record(value, f"@{first}", data[first:last].rstrip(b"\r\n"))
        if rest is not None:
            yield Output(message_id=f"@{rest.start}", raw=rest.raw, why=rest.why)


class QwenReader:
    """Turns records into events, one after the other; what it remembers is which reports of usage repeat another."""

    def __init__(self, meter: QwenMeter | None = None) -> None:
        self._meter = meter or QwenMeter()

    def record(self, record: Record, place: str, raw: bytes) -> list[Event]:
        """The events of one record, at least one; `place` names it where it has no uuid."""
        uuid = clean(text(record, "uuid"))
        made = list(self._events(record, uuid, raw)) or [Output(raw=raw)]
        agent = clean(text(record, "agentId")) if record.get("isSidechain") is True else ""
        name, time = uuid or place, parse_instant(record.get("timestamp"))
        for index, event in enumerate(made):  # nobody has them yet: to make them anew would take three times as long
            if index:
                force_setattr(event, "index", index)
            force_setattr(event, "message_id", name)
            force_setattr(event, "time", time)
            if agent:
                force_setattr(event, "agent_id", agent)
        return made

    def _events(self, record: Record, uuid: str, raw: bytes) -> Iterable[Event]:
        kind = record.get("type")
        if kind == SYSTEM:
            return self._system(record, uuid, raw)
        if kind == ASSISTANT:
            return self._assistant(record, uuid, raw)
        if kind not in (USER, TOOL_RESULT):
            self._meter.age()
            return [Output(raw=raw, why=f"unknown record type {kind!r:.80}")]
        self._meter.clear()
        parts = parts_of(record)
        if parts is None:
            return [Output(raw=raw, why=f"a {kind} record without parts")]
        if kind == USER:
            return heard_events(stretches(parts, place_of(record)))
        return result_events(parts, text(inner(record, "toolCallResult"), "status") in FAILED)

    def _assistant(self, record: Record, uuid: str, raw: bytes) -> list[Event]:
        parts = parts_of(record)
        made = list(said_events(parts or [], clean(text(record, "model"))))
        if parts is None and "message" in record:
            made.insert(0, Output(raw=raw, why="an assistant record without parts"))
        metric = answer_metric(record, uuid) if self._meter.answer(record) else None
        return made if metric is None else [*made, metric]

    def _system(self, record: Record, uuid: str, raw: bytes) -> list[Event]:
        subtype = text(record, "subtype")
        if subtype == TELEMETRY:
            return self._telemetry(record, uuid)
        if (history := history_of(record)) is not None:
            self._meter.clear()
            boundary = System(subtype=BOUNDARY, metadata=encode(inner(record, "systemPayload").get("info")))
            return [boundary, *history_events(history)]
        self._meter.age()
        if subtype not in _TOLD:
            return []
        said = text(inner(record, "systemPayload"), "rawCommand")
        return [System(subtype=subtype, message=clean(said), metadata=raw)]

    def _telemetry(self, record: Record, uuid: str) -> list[Event]:
        event = event_of(record)
        if is_response(event):
            metric = telemetry_metric(record, uuid) if self._meter.response(event) else None
            return [] if metric is None else [metric]
        self._meter.age()
        if event.get("event.name") != FAILURE:
            return []
        return [Error(message=clean(text(event, "error_message") or text(event, "error_type") or FAILURE))]


# -- the conversation as it stands -------------------------------------------------------------------------------------


def read_conversation(data: bytes) -> list[Event]:
    """What the model would be sent, as events in the order it reads them.

    A command that the program answered by itself was never sent; a sub-agent that is a fork begins with the history of
    the agent that started it."""
    reader = QwenReader()
    said: list[list[Event]] = []
    asked: Record | None = None
    """The record before, where it is a prompt that may turn out to be a command."""
    for fragments in path(survey(data)):
        record = together([each.record for each in fragments])
        if text(record, "subtype") == REALTIME:
            continue
        place = fragments[0]
        events = reader.record(record, f"@{place.start}", data[place.start : place.end].rstrip(b"\r\n"))
        if text(record, "subtype") == COMMAND and record.get("type") == SYSTEM:
            if asked is not None and _answered_alone(record, asked):
                said = [made for made in said if not _is_of(made, asked)]
            asked = None
        elif record.get("type") != SYSTEM and "message" in record:
            asked = record if record.get("type") == USER else None
        said.append([*events, *_inherited(record, events)])
    return [event for made in said for event in made]


def _is_of(events: Iterable[Event], record: Record) -> bool:
    return any(event.message_id == clean(text(record, "uuid")) for event in events)


def _answered_alone(command: Record, asked: Record) -> bool:
    """Whether a prompt is a command that the program answered by itself."""
    payload, parts = inner(command, "systemPayload"), parts_of(asked)
    shown = payload.get("outputHistoryItems")
    return (
        payload.get("phase") == "result"
        and payload.get("sentToModel") is not True
        and isinstance(shown, list)
        and bool(shown)
        and all(text(item, "type") == ASSISTANT for item in shown)
        and "subtype" not in asked
        and parts == [{"text": payload.get("rawCommand")}]
    )


def _inherited(record: Record, before: list[Event]) -> Iterator[Event]:
    """What a fork of an agent knew from the beginning."""
    if record.get("type") != SYSTEM or record.get("subtype") != BOOTSTRAP:
        return
    history = inner(record, "systemPayload").get("history")
    for number, event in enumerate(history_events(history if isinstance(history, list) else []), len(before)):
        one = before[0]
        told: Event = event.replace(message_id=one.message_id, agent_id=one.agent_id, time=one.time, index=number)
        yield told


def first_prompt(record: Record) -> str:
    """The words that a sub-agent's first record says."""
    found = heard_events(stretches(parts_of(record) or [], place_of(record)))
    return next((event.content for event in found if isinstance(event, Prompt)), "")
