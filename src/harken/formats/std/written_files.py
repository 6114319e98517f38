"""Which files a document says were created and modified: by what developers hand in, and by calls that write."""

from __future__ import annotations

from collections.abc import Iterator

from .document import Json
from .file_edits import WAS_THERE, edits_of, path_in
from .parts import inner, own_calls, text, values


def written_files(data: Json) -> tuple[list[str], list[str]]:
    """The paths created and the paths modified, each once and in the order in which they are told. What a developer
    hands in stands above what its calls look like; a file that was created and then changed was created."""
    created, modified = _handed_in(data)
    seen = set[str]()
    for call in _all_calls(data):
        for path, is_new in _writes(call):
            if path not in created and path not in modified:
                (created if is_new and path not in seen else modified)[path] = None
        if path := path_in(inner(inner(call, "input"), "params")):
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
    name = text(call, "x_harken_name") or text(call, "tool_name")
    for edit in edits_of(name, inner(inner(call, "input"), "params"), text(call, "x_harken_input")):
        if edit.kind == "write":
            yield edit.path, not WAS_THERE.search(text(inner(inner(call, "output"), "result"), "display")[:200])
        elif edit.kind != "delete":
            yield edit.path, edit.kind == "create"
