"""Events as a rollout that Codex resumes.

Codex wants one `session_meta` and then items; it repairs little. A thread goes on only with the provider that its
`session_meta` names and that the settings know, so whoever writes for a certain Codex says which one that is. The
items are for the model; what a person sees on the screen, and by what the list of threads calls one, are the
`event_msg` lines beside them. Names and ids of tools go through as they are. What a rollout cannot say is listed as
losses. A rollout's own lines become the beginning of another thread by `rewrite`: what resuming and forking in Codex
itself come to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from harken import ids
from harken.clock import format_millis, parse_instant
from harken.events import Event
from harken.formats.base import Loss, Written
from harken.formats.kit.jsonl import Record, encode
from harken.formats.kit.openai import joined_text, text_of
from harken.formats.kit.openai_writing import SaidItem, to_items

from .classify import as_injected, speaks
from .records import BETWEEN_AGENTS, COMPACTED, EVENT, ITEM, SESSION_META, STATE, iter_lines, kind_of
from .truncate import BYTES_PER_TOKEN, FALLBACK_BUDGET
from .usage import base_offset

ORIGINATOR = "harken"
CLI_VERSION = "0.166.0"
"""The Codex whose files these are like."""
HISTORY_MODES = ("legacy", "paginated")
"""Those that it knows; it refuses a file that names another."""


def write(events: Sequence[Event]) -> Written:
    """The events as a rollout; the thread's id follows from what they say."""
    items, losses = to_items(events)
    body = b"".join(encode(said.item) for said in items)
    start = next((said.time for said in items if said.time is not None), 0)
    return Written(data=_rollout(items, thread_id(body, start), "/", start), losses=losses)


def write_session(
    events: Sequence[Event], *, session_id: str, cwd: str, time: int, provider: str = "", longest: int = 0
) -> Written:
    """The events as the rollout of a given thread, for a Codex that uses that provider, and that keeps so many bytes of
    a tool's output when it loads the file."""
    items, losses = to_items(events)
    if longest and (count := sum(_size(said.item.get("output")) > longest for said in items)):
        more = ", more of them with a model that it knows" if longest == FALLBACK_BUDGET else ""
        why = f"Codex keeps {longest} bytes of each when it loads them{more}"
        losses += (Loss(what="middle of a long result", count=count, why=why),)
    return Written(data=_rollout(items, session_id, cwd, time, provider), losses=losses)


def output_budget(model: object, tokens: object) -> int:
    """How many bytes of one tool output Codex keeps, by the model and the limit it is set to: a fifth more than that
    limit, which is 10 000 tokens for the models it knows, its default among them, and 10 000 bytes for others."""
    if isinstance(tokens, int):
        return max(tokens, 0) * BYTES_PER_TOKEN * 6 // 5
    return FALLBACK_BUDGET if model else FALLBACK_BUDGET * BYTES_PER_TOKEN


def _size(output: Any) -> int:
    """How many bytes of text a tool's output has."""
    if isinstance(output, list):
        return sum(_size(part.get("text")) for part in output)
    return len(output.encode()) if isinstance(output, str) else 0


def thread_id(content: bytes, time: int) -> str:
    """An id of the shape Codex gives its threads (a UUID of version 7), made from the time and the content."""
    digits = f"{max(time, 0) // 1000 & (1 << 48) - 1:012x}7" + ids.artifact_id(content)[:19]
    digits = digits[:16] + "89ab"[int(digits[16], 16) % 4] + digits[17:]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


def line_of(time: int, kind: str, payload: Record) -> bytes:
    return encode({"timestamp": format_millis(time), "type": kind, "payload": payload}) + b"\n"


def new_meta(session_id: str, cwd: str, time: int, provider: str = "") -> Record:
    return {
        "id": session_id,
        "session_id": session_id,
        "timestamp": format_millis(time),
        "cwd": cwd,
        "originator": ORIGINATOR,
        "cli_version": CLI_VERSION,
        "source": "cli",
    } | ({"model_provider": provider} if provider else {})


def _rollout(items: list[SaidItem], session_id: str, cwd: str, time: int, provider: str = "") -> bytes:
    lines = [line_of(time, SESSION_META, new_meta(session_id, cwd, time, provider))]
    for said in items:
        time = time if said.time is None else said.time
        lines.append(line_of(time, ITEM, as_injected(said.item, said.origin) if said.origin else said.item))
        if said.shown:
            lines.append(line_of(time, EVENT, _on_screen(said.item, said.shown)))
    return b"".join(lines)


def _on_screen(message: Record, text: str) -> Record:
    """The event by which Codex shows a message."""
    if message.get("role") == "assistant":
        return {"type": "agent_message", "message": text}
    return {"type": "user_message", "message": text, "images": []}


def _is_shown(kind: str, payload: Record) -> bool:
    """Whether an item is a message that people see: the model's, or the user's that is no injected one."""
    if kind != ITEM or payload.get("type") != "message":
        return False
    return payload.get("role") == "assistant" or (payload.get("role") == "user" and speaks(payload)[0] == "user")


_THREAD = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def rewrite(data: bytes, *, session_id: str, cwd: str = "", time: int | None = None, provider: str = "") -> bytes:
    """The rollout as the beginning of another thread, for Codex to resume.

    One `session_meta` of the new thread comes first: it names the old one and keeps its instructions and the way its
    lines tell what is shown (`history_mode`), but names the provider of the Codex that goes on, and nothing of the run
    that wrote it. The other lines follow as they are, but for the thread's id in events, by which Codex tells whether
    they are its own; bare lines of old files are wrapped.
    """
    metas = [payload for kind, payload in _payloads(data) if kind == SESSION_META]
    old = metas[0] if metas else {}
    if time is None:
        time = _first_time(data)
    meta = new_meta(session_id, cwd or text_of(old.get("cwd")) or "/", time, provider)
    if _THREAD.fullmatch(thread := text_of(old.get("id"))) and thread != session_id:
        meta["forked_from_id"] = thread
    if (mode := text_of(old.get("history_mode"))) in HISTORY_MODES:
        meta["history_mode"] = mode
    base = old.get("base_instructions")
    if isinstance(base, dict) and (text := text_of(base.get("text"))):
        meta["base_instructions"] = {"text": text}
    threads = {text_of(each.get("id")) for each in metas}
    return line_of(time, SESSION_META, meta) + b"".join(_moved(data, time, threads, session_id))


_MARKS = (SESSION_META, STATE)
_OF_OLD = (*_MARKS, ITEM, COMPACTED, BETWEEN_AGENTS)
"""What the bare lines of the first versions are; one that is nothing of these stays as it is, as a broken line does."""


def _is_of_old_shape(record: Record) -> bool:
    """Whether it is a bare line that is known."""
    return not isinstance(record.get("payload"), dict) and kind_of(record)[0] in _OF_OLD


def in_present_shape(data: bytes) -> bytes | None:
    """A rollout of the first versions, whose lines are bare, as today's Codex writes it: the thread is the same. None
    where its lines are today's."""
    if not any(line.record is not None and _is_of_old_shape(line.record) for line in iter_lines(data)):
        return None
    first = next((payload for kind, payload in _payloads(data) if kind == SESSION_META), {})
    thread = text_of(first.get("id")) or thread_id(data, _first_time(data))
    return rewrite(data, session_id=thread)


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


_SHOWING = frozenset({"user_message", "agent_message", "item_completed"})
"""Events that put something on the screen."""


def _moved(data: bytes, time: int, threads: set[str], thread: str) -> Iterator[bytes]:
    # The first versions wrote none, and Codex would come up with an empty screen.
    is_blank = not any(kind == EVENT and text_of(payload.get("type")) in _SHOWING for kind, payload in _payloads(data))
    for line in iter_lines(data):
        raw = data[line.start : line.end]
        if line.record is not None:
            kind, payload = kind_of(line.record)
            if _is_of_old_shape(line.record):
                time = parse_instant(line.record.get("timestamp")) or time
                # What only marks something has no counterpart today.
                raw = b"" if kind in _MARKS else line_of(time, kind, payload)
            elif kind == SESSION_META:
                raw = b""
            elif kind == EVENT and text_of(payload.get("thread_id")) in threads:
                raw = encode({**line.record, "payload": {**payload, "thread_id": thread}})
        if raw:
            yield raw if raw.endswith(b"\n") else raw + b"\n"
            if is_blank and line.record is not None and _is_shown(kind, payload):
                time = parse_instant(line.record.get("timestamp")) or time
                yield line_of(time, EVENT, _on_screen(payload, joined_text(payload.get("content"))))
