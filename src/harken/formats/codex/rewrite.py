"""A rollout's own lines as the beginning of another thread: what resuming and forking in Codex itself come to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harken.clock import parse_instant
from harken.formats.kit.openai import Record, text_of

from .records import ITEM, SESSION_META, iter_lines, kind_of
from .usage import base_offset
from .write import line_of, new_meta

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
