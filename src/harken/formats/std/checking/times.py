"""Rules about times: they can be read, they are in order, and durations are what they say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harken import clock
from harken.formats.std.document import Json
from harken.formats.std.findings import DocumentFinding
from harken.formats.std.models import TASK
from harken.formats.std.parts import is_uncounted, number, objects, text

from .rule_table import found
from .schema import shown

_SECOND = clock.SECOND
"""How far apart two times may be that should be one: many are written in whole seconds."""
_FARTHEST = 14 * 60 * 60 * _SECOND
"""How far a zone is from UTC at most."""
_ZONE = re.compile(r"[T ].*(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)$|^[^T ]*$")
"""A time that says its zone, or a mere date."""


def time_findings(data: Json) -> Iterator[DocumentFinding]:
    """What is wrong with the times of a document."""
    session = _ends(data, ("created_at", "completed_at"))
    yield from _readable(data, "", ("created_at", "completed_at", "updated_at"))
    yield from _forwards(data, "", ("created_at", "completed_at"), session)
    yield from _forwards(data, "", ("created_at", "updated_at"), _ends(data, ("created_at", "updated_at")))
    yield from _calls(data.get("tool_calls"), "tool_calls", session, "the session")
    for place, annotation in objects(data.get("phase_annotations")):
        yield from _readable(annotation, f"phase_annotations[{place}]", ("annotated_at",))
    spans = {}
    for _, call in objects(data.get("tool_calls")):
        if call.get("tool_name") == TASK and (name := text(call, "call_id")):
            spans[name] = _ends(call, ("started_at", "ended_at"))
    for place, sub in objects(data.get("sub_sessions")):
        yield from _sub_session(sub, f"sub_sessions[{place}]", session, spans)
    yield from _messages(data, session)


Ends = tuple[int | None, int | None]
"""When something began and when it ended, as far as that is known."""


def _ends(value: Json, keys: tuple[str, str]) -> Ends:
    return clock.parse_instant(value.get(keys[0])), clock.parse_instant(value.get(keys[1]))


def _readable(value: Json, path: str, keys: Iterable[str]) -> Iterator[DocumentFinding]:
    for key in keys:
        said = value.get(key)
        if not isinstance(said, str) or (said[-1:] == "Z" and clock.parse_instant(said) is not None):
            continue
        where = f"{path}.{key}" if path else key
        if clock.parse_instant(said) is None:
            yield found("unreadable-time", where, f"`{key}` is {shown(said)}, which is no time of ISO 8601")
        elif not _ZONE.search(said):
            yield found("time-zone", where, f"`{key}` says no time zone; it is taken as UTC")


def _forwards(value: Json, path: str, keys: tuple[str, str], ends: Ends) -> Iterator[DocumentFinding]:
    if ends[0] is not None and ends[1] is not None and ends[1] < ends[0] and _can_tell(value, keys, ends[0] - ends[1]):
        message = f"`{keys[1]}` ({value[keys[1]]}) is before `{keys[0]}` ({value[keys[0]]})"
        yield found("time-reversed", f"{path}.{keys[1]}" if path else keys[1], message)


def _can_tell(value: Json, keys: tuple[str, str], apart: int) -> bool:
    """Whether two times can be compared: where one of them alone says its zone, the other may be hours away."""
    zones = {bool(_ZONE.search(value[key])) for key in keys}
    return len(zones) == 1 or apart > _FARTHEST


def _within(ends: Ends, outer: Ends, keys: tuple[str, str], path: str, name: str) -> Iterator[DocumentFinding]:
    """Neither end lies more than a second outside."""
    for key, instant in zip(keys, ends, strict=True):
        if instant is None:
            continue
        if outer[0] is not None and instant < outer[0] - _SECOND:
            yield found("time-outside", f"{path}.{key}", f"`{key}` is before {name} began")
        elif outer[1] is not None and instant > outer[1] + _SECOND:
            yield found("time-outside", f"{path}.{key}", f"`{key}` is after {name} ended")


_CALL = ("started_at", "ended_at")
_SUB = ("started_at", "completed_at")


def _calls(calls: object, path: str, outer: Ends, name: str) -> Iterator[DocumentFinding]:
    last: int | None = None
    for place, call in objects(calls):
        ends = _ends(call, _CALL)
        if not _is_in_order(call, ends, outer):
            where = f"{path}[{place}]"
            yield from _readable(call, where, _CALL)
            yield from _forwards(call, where, _CALL, ends)
            yield from _within(ends, outer, _CALL, where, name)
            yield from _duration(call, where, ends)
        if ends[0] is not None and not is_uncounted(call):
            if last is not None and ends[0] < last:
                yield found(
                    "call-order", f"{path}[{place}].started_at", "the call began before the one that stands before it"
                )
            last = ends[0]


def _is_in_order(call: Json, ends: Ends, outer: Ends) -> bool:
    """Whether there is surely nothing to say of a call's times, told at once: of most there is not."""
    begun, ended, took = ends[0], ends[1], call.get("duration_ms")
    return (
        begun is not None
        and ended is not None
        and begun <= ended
        and call["started_at"][-1] == "Z" == call["ended_at"][-1]
        and (outer[0] is None or begun >= outer[0])
        and (outer[1] is None or ended <= outer[1])
        and type(took) is int
        and took * 1000 == ended - begun
    )


def _duration(call: Json, path: str, ends: Ends) -> Iterator[DocumentFinding]:
    said = number(call.get("duration_ms"))
    if said is not None and said < 0:
        yield found(
            "duration", f"{path}.duration_ms", f"`duration_ms` is {shown(said)}; nothing takes less than no time"
        )
    elif said is not None and ends[0] is not None and ends[1] is not None and ends[1] >= ends[0]:
        took = (ends[1] - ends[0]) / 1000
        if abs(said - took) > _SECOND / 1000:
            message = f"`duration_ms` is {shown(said)}, but from start to end it took {took:.0f}"
            yield found("duration", f"{path}.duration_ms", message)


def _sub_session(sub: Json, path: str, session: Ends, triggers: dict[str, Ends]) -> Iterator[DocumentFinding]:
    ends = _ends(sub, _SUB)
    yield from _readable(sub, path, _SUB)
    yield from _forwards(sub, path, _SUB, ends)
    yield from _within(ends, session, _SUB, path, "the session")
    call = triggers.get(text(sub, "triggered_by_call_id"), (None, None))
    yield from _within((ends[0], None), (call[0], None), _SUB, path, "its call")
    if ends[1] is not None and call[1] is not None and ends[1] > call[1] + _SECOND:
        yield found("outlives-call", f"{path}.completed_at", "the sub-session went on after its call had ended")
    yield from _calls(sub.get("tool_calls"), f"{path}.tool_calls", ends, "the sub-session")


def _messages(data: Json, session: Ends) -> Iterator[DocumentFinding]:
    last: int | None = None
    for place, message in objects(data.get("messages")):
        path, instant = f"messages[{place}]", clock.parse_instant(message.get("timestamp"))
        yield from _readable(message, path, ("timestamp",))
        yield from _within((instant, None), session, ("timestamp", ""), path, "the session")
        if instant is not None:
            if last is not None and instant < last:
                yield found(
                    "message-order", f"{path}.timestamp", "the message is older than the one that stands before it"
                )
            last = instant
