"""Which files each agent changed: by its calls that worked."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harken.events import ToolCall
from harken.events.base import clean
from harken.formats.std.arguments import exact_params
from harken.formats.std.document import Json
from harken.formats.std.file_edits import WAS_THERE, FileEdit, edits_of, path_in

from .session_links import SessionLinks


class ChangedFile(msgspec.Struct, kw_only=True):
    """What an agent has done to a file so far."""

    is_new: bool
    """Whether it was not there before."""
    is_gone: bool = False
    added: int | None = 0
    removed: int | None = 0

    def add(self, edit: FileEdit) -> None:
        """One more change."""
        self.is_gone = edit.kind == "delete"
        self.added = None if self.added is None or edit.added is None else self.added + edit.added
        self.removed = None if self.removed is None or edit.removed is None else self.removed + edit.removed


Changed = dict[str, ChangedFile]


def changed_files(links: SessionLinks, homes: Mapping[int, str]) -> dict[str, Changed]:
    """Agent id to the files that it changed; of those with several sub-sessions the id of each, which `homes` has by
    the identity of the calls. A file that anybody has named before was there when it was written."""
    found: dict[str, Changed] = {}
    seen: set[str] = set()
    for event in links.tree.events:
        if not isinstance(event, ToolCall):
            continue
        result = links.result(event)
        params, is_exact = exact_params(event.input)
        raw = "" if is_exact else event.input.decode("utf-8", "replace")
        edits = edits_of(event.name, params, raw) if result is not None and not result.is_error else []
        for edit in edits:
            was_there = edit.path in seen or (result is not None and bool(WAS_THERE.search(result.output[:200])))
            is_new = edit.kind == "create" or (edit.kind == "write" and not was_there)
            if edit.kind == "write":
                edit.removed = 0 if is_new else None  # what it wrote over is not told
                edit.added = edit.added if is_new else None
            files = found.setdefault(homes.get(id(event)) or links.agent(event), {})
            files.setdefault(edit.path, ChangedFile(is_new=is_new)).add(edit)
            seen.add(edit.path)
        if path := path_in(params):
            seen.add(path)
    return found


def as_changes(files: Changed) -> Json:
    """The changes as a developer hands them in. What was made and removed again has left nothing."""
    left = {path: file for path, file in files.items() if not file.is_gone}
    return {
        "files_created": [_change(path, file) for path, file in left.items() if file.is_new],
        "files_modified": [_change(path, file) for path, file in left.items() if not file.is_new],
        "files_deleted": [clean(path) for path, file in files.items() if file.is_gone and not file.is_new],
    }


def _change(path: str, file: ChangedFile) -> Json:
    counts = {"lines_added": file.added, "lines_removed": file.removed}
    return {"path": clean(path)} | {name: count for name, count in counts.items() if count is not None}
