"""Events as a rollout that Codex resumes.

Codex wants one `session_meta` and then items; it repairs little and refuses a foreign `model_provider`, so none is
written. Names and ids of tools go through as they are. What a rollout cannot say is listed as losses. A rollout's own
lines become the beginning of another thread by `rewrite`: what resuming and forking in Codex itself come to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harken import ids
from harken.clock import format_instant, parse_instant
from harken.events import Event
from harken.formats.base import Written
from harken.formats.kit.jsonl import Record, encode
from harken.formats.kit.openai import text_of
from harken.formats.kit.openai_writing import Timed, to_items

from .records import ITEM, SESSION_META, iter_lines, kind_of
from .usage import base_offset

ORIGINATOR = "harken"
CLI_VERSION = "0.166.0"
"""The Codex whose files these are like."""


def write(events: Sequence[Event]) -> Written:
    """The events as a rollout; the thread's id follows from what they say."""
    items, losses = to_items(events)
    body = b"".join(encode(item) for _, item in items)
    start = next((time for time, _ in items if time is not None), 0)
    return Written(data=_rollout(items, thread_id(body, start), "/", start), losses=losses)


def write_session(events: Sequence[Event], *, session_id: str, cwd: str, time: int) -> Written:
    """The events as the rollout of a given thread."""
    items, losses = to_items(events)
    return Written(data=_rollout(items, session_id, cwd, time), losses=losses)


def thread_id(content: bytes, time: int) -> str:
    """An id of the shape Codex gives its threads (a UUID of version 7), made from the time and the content."""
    digits = f"{max(time, 0) // 1000 & (1 << 48) - 1:012x}7" + ids.artifact_id(content)[:19]
    digits = digits[:16] + "89ab"[int(digits[16], 16) % 4] + digits[17:]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


def _stamp(time: int) -> str:
    return format_instant(time)[:-4] + "Z"


def line_of(time: int, kind: str, payload: Record) -> bytes:
    return encode({"timestamp": _stamp(time), "type": kind, "payload": payload}) + b"\n"


def new_meta(session_id: str, cwd: str, time: int) -> Record:
    return {
        "id": session_id,
        "session_id": session_id,
        "timestamp": _stamp(time),
        "cwd": cwd,
        "originator": ORIGINATOR,
        "cli_version": CLI_VERSION,
        "source": "cli",
    }


def _rollout(items: list[Timed], session_id: str, cwd: str, time: int) -> bytes:
    lines = [line_of(time, SESSION_META, new_meta(session_id, cwd, time))]
    for at, item in items:
        time = time if at is None else at
        lines.append(line_of(time, ITEM, item))
    return b"".join(lines)


_THREAD = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def rewrite(data: bytes, *, session_id: str, cwd: str = "", time: int | None = None) -> bytes:
    """The rollout as the beginning of another thread, for Codex to resume.

    One `session_meta` of the new thread comes first: it names the old one and keeps its instructions, but not its
    `model_provider`, which Codex would insist on, nor what it said of the run that wrote it. The other lines follow
    as they are; bare lines of old files are wrapped.
    """
    old = next((payload for kind, payload in _payloads(data) if kind == SESSION_META), {})
    if time is None:
        time = _first_time(data)
    meta = new_meta(session_id, cwd or text_of(old.get("cwd")) or "/", time)
    if _THREAD.fullmatch(thread := text_of(old.get("id"))) and thread != session_id:
        meta["forked_from_id"] = thread
    base = old.get("base_instructions")
    if isinstance(base, dict) and (text := text_of(base.get("text"))):
        meta["base_instructions"] = {"text": text}
    return line_of(time, SESSION_META, meta) + b"".join(_moved(data, time))


def with_base(data: bytes, base: bytes) -> bytes:
    """A fork that only points at another thread's file, with the part of that file it goes on from before it.

    `base` is the other file; the fork's own first line says how many bytes of it count. Where it says nothing, or
    more than there is, the fork is left as it is.
    """
    first = next((payload for kind, payload in _payloads(data) if kind == SESSION_META), {})
    end = base_offset(first)
    if end is None or end > len(base) or not base[:end].endswith(b"\n"):
        return data
    return base[:end] + data


def _payloads(data: bytes) -> Iterator[tuple[str, Record]]:
    return (kind_of(line.record) for line in iter_lines(data) if line.record is not None)


def _first_time(data: bytes) -> int:
    times = (parse_instant(line.record.get("timestamp")) for line in iter_lines(data) if line.record)
    return next((time for time in times if time is not None), 0)


def _moved(data: bytes, time: int) -> Iterator[bytes]:
    for line in iter_lines(data):
        raw = data[line.start : line.end]
        if line.record is not None:
            kind, payload = kind_of(line.record)
            if not isinstance(line.record.get("payload"), dict):
                # A bare line of an old file; what has no counterpart today is left out.
                time = parse_instant(line.record.get("timestamp")) or time
                raw = line_of(time, ITEM, payload) if kind == ITEM else b""
            elif kind == SESSION_META:
                raw = b""
        if raw:
            yield raw if raw.endswith(b"\n") else raw + b"\n"
