"""A rollout's own lines as the beginning of another thread: what resuming and forking in Codex itself come to."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from harken.clock import parse_instant

from .records import ITEM, SESSION_META, Line, Record, iter_lines, kind_of
from .write import line_of, new_meta

_OF_THE_RUN = frozenset(
    {
        "model_provider",
        "history_mode",
        "history_base",
        "parent_thread_id",
        "thread_source",
        "agent_nickname",
        "agent_role",
        "agent_path",
        "multi_agent_version",
        "subagent_history_start_ordinal",
        "forked_from_ordinal_exclusive",
        "runtime_workspace_roots",
        "context_window",
    }
)
"""What a `session_meta` says of the run that wrote it, and no longer holds for the one that continues it."""


def rewrite(data: bytes, *, session_id: str, cwd: str = "", time: int | None = None) -> bytes:
    """The rollout as the beginning of another thread, for Codex to resume: the way Codex itself forks by copy.

    A `session_meta` of the new thread comes first, naming the old one; the lines follow as they are, except that no
    `session_meta` keeps its `model_provider`, and that bare lines of old files are wrapped.
    """
    known = [
        found[1] for line in iter_lines(data) if line.record and (found := kind_of(line.record))[0] == SESSION_META
    ]
    old = known[0] if known else {}
    if time is None:
        time = _first_time(data)
    meta = {key: value for key, value in old.items() if key not in _OF_THE_RUN} | new_meta(
        session_id, cwd or str(old.get("cwd") or "/"), time
    )
    if isinstance(thread := old.get("id"), str) and thread != session_id:
        meta["forked_from_id"] = thread
    return line_of(time, SESSION_META, meta) + b"".join(_moved(data, time))


def _first_time(data: bytes) -> int:
    times = (parse_instant(line.record.get("timestamp")) for line in iter_lines(data) if line.record)
    return next((time for time in times if time is not None), 0)


def _moved(data: bytes, time: int) -> Iterator[bytes]:
    for line in iter_lines(data):
        raw = data[line.start : line.end]
        if line.record is None or isinstance(line.record.get("payload"), dict):
            raw = _without_provider(line, raw)
        else:
            time = parse_instant(line.record.get("timestamp")) or time
            raw = _wrapped(line.record, time)
        if raw:
            yield raw if raw.endswith(b"\n") else raw + b"\n"


def _without_provider(line: Line, raw: bytes) -> bytes:
    record = line.record
    if record is None or record.get("type") != SESSION_META or "model_provider" not in record["payload"]:
        return raw
    payload = {key: value for key, value in record["payload"].items() if key != "model_provider"}
    return orjson.dumps({**record, "payload": payload})


def _wrapped(record: Record, time: int) -> bytes:
    """A bare line of an old file as Codex writes it today; what has no counterpart is left out."""
    kind, payload = kind_of(record)
    return line_of(time, ITEM, payload) if kind == ITEM else b""
