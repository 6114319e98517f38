"""The files of threads that belong to one: those that it started, and those that it goes on from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harken.errors import HarkenError
from harken.formats.codex.threads import parent_of
from harken.formats.kit.jsonl import parse
from harken.formats.kit.openai import text_of
from harken.ids import is_safe_name
from harken.runtimes.files import OpenFile

_HEAD = 1 << 20
"""Bytes in which the first record is looked for: it has the instructions of the thread."""
_ROOTS = ("sessions", "archived_sessions")
_MOST_SOURCES = 32
"""A fork of a fork of a fork: nobody goes on."""


class _Thread(msgspec.Struct, frozen=True, kw_only=True):
    path: Path
    thread: str
    parent: str
    source: str


def relatives(path: Path) -> Iterator[Path]:
    """The threads that this one started, and theirs, as far as they lie in the folder of its day or the next; before
    them what it goes on from, wherever it lies."""
    own = _head(path)
    if own is None:
        return
    yield from _sources(own)
    around = {found.thread: found for other in _around(path) if other != path and (found := _head(other))}
    known = {own.thread}
    while started := [name for name, one in around.items() if one.parent in known and name not in known]:
        known.update(started)
        yield from (around[name].path for name in started)


def _head(path: Path) -> _Thread | None:
    """What the first record of a file says; None where it is of no thread."""
    with contextlib.suppress(HarkenError), OpenFile(path) as file:
        record = parse(file.read(0, _HEAD).partition(b"\n")[0]) or {}
        meta = record.get("payload")
        if record.get("type") == "session_meta" and isinstance(meta, dict) and (thread := text_of(meta.get("id"))):
            base = meta.get("history_base")
            source = text_of(meta.get("forked_from_id")) or text_of(
                base.get("thread_id") if isinstance(base, dict) else ""
            )
            return _Thread(path=path, thread=thread, parent=parent_of(meta), source=source)
    return None


def _around(path: Path) -> Iterator[Path]:
    """The threads of the same day and the next one; of a folder that is no day's, those in it."""
    folders = [path.parent]
    if len(path.parents) > 3 and path.parents[3].name in _ROOTS:
        days = sorted(day for day in path.parents[2].glob("*/*") if day.is_dir())
        folders = [day for day in days if day >= path.parent][:2]
    for folder in folders:
        yield from sorted(folder.glob("rollout-*.jsonl*"))


def _sources(thread: _Thread) -> Iterator[Path]:
    """The files that a thread goes on from, the nearest first."""
    path, seen = thread.path, {thread.thread}
    root = next((folder for folder in path.parents[:5] if folder.name in _ROOTS), path.parent)
    roots = [root.with_name(name) for name in _ROOTS] if root.name in _ROOTS else [root]
    while thread.source and thread.source not in seen and len(seen) < _MOST_SOURCES and is_safe_name(thread.source):
        seen.add(thread.source)
        named = (
            file for one in roots for file in sorted(one.glob("**/rollout-*.jsonl*")) if thread.source in file.name
        )
        found = next((head for file in named if (head := _head(file)) and head.thread == thread.source), None)
        if found is None:
            return
        yield found.path
        thread = found
