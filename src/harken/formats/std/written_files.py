"""Which files a document says were created and modified: by what developers hand in, and by calls that write."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .document import Json
from .parts import inner, own_calls, text, values

_WRITERS = frozenset({"write", "write_file", "create_file", "create"})
_EDITORS = frozenset({"edit", "multiedit", "notebookedit", "edit_file", "str_replace", "insert", "update_file"})
_PATCH = re.compile(r"^\*\*\* (Add|Update) File: (.+)$", re.M)
_MOVE = re.compile(r"^\*\*\* Move to: (.+)$", re.M)
_WAS_THERE = re.compile(r"\b(?:updated|overwr\w+|modified)\b", re.I)


def written_files(data: Json) -> tuple[list[str], list[str]]:
    """The paths created and the paths modified, each once and in the order in which they are told. What a developer
    hands in stands above what its calls look like; a file that was created and then changed was created."""
    created, modified = _handed_in(data)
    seen = set[str]()
    for call in _all_calls(data):
        for path, is_new in _writes(call):
            if path not in created and path not in modified:
                (created if is_new and path not in seen else modified)[path] = None
        if path := _path(inner(inner(call, "input"), "params")):
            seen.add(path)
    return list(created), [path for path in modified if path not in created]


def handed_in_files(data: Json) -> list[str]:
    """The paths that developers hand in as created or modified, each once."""
    created, modified = _handed_in(data)
    return list(created | modified)


def _handed_in(data: Json) -> tuple[dict[str, None], dict[str, None]]:
    created: dict[str, None] = {}
    modified: dict[str, None] = {}
    for sub in values(data.get("sub_sessions")):
        changes = inner(inner(sub, "output"), "changes")
        created.update(dict.fromkeys(_paths(changes.get("files_created"))))
        modified.update(dict.fromkeys(_paths(changes.get("files_modified"))))
    return created, modified


def _paths(changes: object) -> Iterator[str]:
    """The paths of file changes, which are objects or the paths themselves."""
    for change in changes if isinstance(changes, list) else ():
        path = change if isinstance(change, str) else text(change, "path")
        if path:
            yield path


def _all_calls(data: Json) -> Iterator[Json]:
    """The calls of every agent, in the order of their start as far as that is told."""
    calls = own_calls(data) + [
        call for sub in values(data.get("sub_sessions")) for call in values(sub.get("tool_calls"))
    ]
    yield from sorted(calls, key=lambda call: text(call, "started_at"))


def _writes(call: Json) -> Iterator[tuple[str, bool]]:
    """The files that a call wrote, and whether they look new."""
    if inner(call, "output").get("status") == "failed":
        return
    name = (text(call, "x_harken_name") or text(call, "tool_name")).lower()
    params = inner(inner(call, "input"), "params")
    if name in _WRITERS:
        if path := _path(params):
            yield path, not _WAS_THERE.search(text(inner(inner(call, "output"), "result"), "display")[:200])
    elif name in _EDITORS:
        if path := _path(params):
            yield path, False
    else:
        yield from _patched(params)


def _patched(params: Json) -> Iterator[tuple[str, bool]]:
    """The files of a patch as Codex writes them: as text, also among the words of a shell command, or as a list."""
    for value in params.values():
        for word in value if isinstance(value, list) else (value,):
            if isinstance(word, str) and "*** Begin Patch" in word:
                yield from ((found[2].strip(), found[1] == "Add") for found in _PATCH.finditer(word))
                yield from ((found[1].strip(), True) for found in _MOVE.finditer(word))
            elif isinstance(word, dict) and (path := text(word, "path")) and text(word, "kind") in ("add", "update"):
                yield path, word["kind"] == "add"


def _path(params: Json) -> str:
    return text(params, "file_path") or text(params, "notebook_path") or text(params, "path")
