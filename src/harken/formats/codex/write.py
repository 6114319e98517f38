"""Events as a rollout that Codex resumes.

Codex wants one `session_meta` and then items; it repairs little and refuses a foreign `model_provider`, so none is
written. Names and ids of tools go through as they are. What a rollout cannot say is listed as losses.
"""

from __future__ import annotations

from collections.abc import Sequence

from harken import ids
from harken.clock import format_instant
from harken.events import Event
from harken.formats.base import Written
from harken.formats.kit.jsonl import encode
from harken.formats.kit.openai import Record
from harken.formats.kit.openai_writing import Timed, to_items

from .records import ITEM, SESSION_META

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
