"""Files that were touched, as the calls of tools say: which tool takes a path, and what it does with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from harken.events import Event, ToolCall
from harken.events.base import clean

from .calls import answered_calls

READ, WRITE, EDIT, DELETE = "read", "write", "edit", "delete"
_PATHS = ("file_path", "notebook_path", "filePath", "path", "file", "filename", "absolute_path")
"""The arguments that name a file, in every runtime we know."""
_DOES = (
    (DELETE, ("delete", "remove", "unlink")),
    (EDIT, ("edit", "replace", "patch", "insert", "update")),
    (WRITE, ("write", "create", "save")),
    (READ, ("read", "view", "open", "cat")),
)
_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (?:(Add|Update|Delete) File|Move to): (.+?)\s*$", re.M)
_PATCHES = {"Add": WRITE, "Update": EDIT, "Delete": DELETE, "": WRITE}


def touched(call: ToolCall) -> list[tuple[str, str]]:
    """The files that a call names, each with what was to be done to it; none where the tool is not one for files."""
    if not _op(call.name) and _PATCH.encode() not in call.input:
        return []  # most calls are of such tools, and taking arguments apart takes time
    return touched_by(call.name, arguments(call), call.input)


def arguments(call: ToolCall) -> Any:
    """What a tool was called with, as values; None where it is not JSON."""
    try:
        return json.loads(call.input)
    except (ValueError, RecursionError):
        return None


def touched_by(tool: str, given: Any, text: bytes) -> list[tuple[str, str]]:
    """`touched`, for whoever has taken the arguments apart already."""
    if _PATCH.encode() in text:
        patches = "\n".join(_strings(given)) if given is not None else text.decode("utf-8", "replace")
        return list(dict.fromkeys((clean(path), _PATCHES[how]) for how, path in _PATCHED.findall(patches)))
    op = _op(tool)
    if not op or not isinstance(given, dict):
        return []
    path = next((given[key] for key in _PATHS if isinstance(given.get(key), str) and given[key]), "")
    return [(clean(path), op)] if path else []


def _op(tool: str) -> str:
    """What a tool does to the file it names; empty for one that works on something else."""
    name = tool.rpartition("__")[2].lower()
    return next((op for op, words in _DOES if any(word in name for word in words)), "")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


class FileUse(msgspec.Struct, kw_only=True, frozen=True):
    """What was done to a file, as calls say; whether it worked is told by their results."""

    read: int = 0
    write: int = 0
    edit: int = 0
    delete: int = 0


def of(events: Iterable[Event]) -> dict[str, FileUse]:
    """The files that the calls of a stream name, by path; a call that several records repeat counts once."""
    found: dict[str, FileUse] = {}
    for call, _ in answered_calls(events):
        for path, op in touched(call):
            known = found.get(path, FileUse())
            found[path] = msgspec.structs.replace(known, **{op: getattr(known, op) + 1})
    return dict(sorted(found.items()))
