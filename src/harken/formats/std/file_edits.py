"""What a call does to files, as its arguments say: tools that write and edit, and patches wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Literal

import msgspec

from .document import Json
from .parts import text, values

WAS_THERE = re.compile(r"\b(?:updated|overwr\w+|modified)\b", re.I)
"""What a tool says that wrote over a file."""
EditKind = Literal["write", "create", "modify", "delete"]
_WRITERS = frozenset({"write", "write_file", "writefile", "create_file", "create"})
_EDITORS = frozenset(
    {"edit", "multiedit", "notebookedit", "edit_file", "str_replace", "insert", "update_file", "replace"}
)
_PATHS = ("file_path", "notebook_path", "path")
_CONTENTS = ("content", "contents", "file_text")
_BEFORE, _AFTER = ("old_string", "old_str"), ("new_string", "new_str")
_PATCH = "*** Begin Patch"
_HEAD = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_KINDS: dict[str, EditKind] = {
    "Add": "create", "Update": "modify", "Delete": "delete", "add": "create", "update": "modify", "delete": "delete",
}  # fmt: skip


class FileEdit(msgspec.Struct, kw_only=True):
    """What is done to one file."""

    path: str
    kind: EditKind
    """`write` where only the file itself could tell whether it was there before."""
    added: int | None = None
    removed: int | None = None
    """Lines; None where the call does not say."""


def path_in(params: Json) -> str:
    """The file that arguments name; empty where they name none."""
    return next((found for name in _PATHS if (found := text(params, name))), "")


def edits_of(tool: str, params: Json, raw: str = "") -> list[FileEdit]:
    """What a call does to files; `raw` is its arguments as text, where they are no object."""
    name, path = tool.rpartition("__")[2].lower(), path_in(params)
    if name in _WRITERS:
        return [_written(path, params)] if path else []
    if name in _EDITORS:
        return [_edited(path, params)] if path else []
    return [*_listed(params), *(edit for patch in _patches(params, raw) for edit in _patched(patch))]


def _written(path: str, params: Json) -> FileEdit:
    content = _first(params, _CONTENTS)
    return FileEdit(path=path, kind="write", added=None if content is None else len(content.splitlines()))


def _edited(path: str, params: Json) -> FileEdit:
    edits = values(params.get("edits")) or [params]
    counts = [_replaced(edit) for edit in edits]
    is_new = not _first(edits[0], _BEFORE) and _first(edits[0], _BEFORE) is not None
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return FileEdit(path=path, kind="write" if is_new else "modify")
    added, removed = sum(count[0] for count in known), sum(count[1] for count in known)
    return FileEdit(path=path, kind="write" if is_new else "modify", added=added, removed=removed)


def _replaced(edit: Json) -> tuple[int, int] | None:
    """How many lines come and go; not known where a text is replaced wherever it stands."""
    before, after = _first(edit, _BEFORE), _first(edit, _AFTER)
    if before is None or after is None or edit.get("replace_all"):
        return None
    old, new = before.splitlines(), after.splitlines()
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    old, new = old[same:], new[same:]
    while old and new and old[-1] == new[-1]:
        old.pop()
        new.pop()
    return len(new), len(old)


def _first(params: Json, names: Iterable[str]) -> str | None:
    return next((found for name in names if isinstance(found := params.get(name), str)), None)


# -- patches -----------------------------------------------------------------------------------------------------------


def _patches(params: Json, raw: str) -> Iterator[str]:
    """The patches among arguments: a text, or one of the words of a shell command."""
    words: Iterable[Any] = chain.from_iterable(
        value if isinstance(value, list) else (value,) for value in params.values()
    )
    yield from (word for word in chain(words, [raw]) if isinstance(word, str) and _PATCH in word)


def _patched(patch: str) -> Iterator[FileEdit]:
    """The files of a patch. One that is moved goes here and comes there."""
    edit: FileEdit | None = None
    for line in patch[patch.index(_PATCH) :].splitlines():
        if found := _HEAD.match(line):
            if edit is not None:
                yield edit
            kind = _KINDS[found[1]]
            counted = None if kind == "delete" else 0
            edit = FileEdit(path=found[2].strip(), kind=kind, added=counted, removed=counted)
        elif edit is not None and (moved := _MOVE.match(line)):
            yield FileEdit(path=edit.path, kind="delete")
            edit = FileEdit(path=moved[1].strip(), kind="create")
        elif line.startswith("*** End Patch"):
            break
        elif edit is not None and edit.added is not None and edit.removed is not None:
            edit.added += line.startswith("+")
            edit.removed += line.startswith("-")
    if edit is not None:
        yield edit


def _listed(params: Json) -> Iterator[FileEdit]:
    """The files of a patch that was read already, each with what is done to it."""
    for change in values(params.get("changes")):
        path, kind = text(change, "path"), text(change, "kind")
        if path and kind in _KINDS:
            yield FileEdit(path=path, kind=_KINDS[kind])
