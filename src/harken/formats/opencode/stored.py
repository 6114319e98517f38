"""What OpenCode kept of a session before 1.2, a JSON file for each thing, as the rows that its database has of it.

So did the program itself when it moved them there: the name of a file is the id, what the file says is the `data`
without its ids. What the files do not tell (when a part was made) is taken from what they do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harken.formats.kit.jsonl import NotJson, Record, encode, parse_document, refusal

from .records import SESSION, inside, number, text

_PLAIN = {"project_id": "projectID", "parent_id": "parentID", "slug": "slug", "directory": "directory",
          "title": "title", "version": "version"}  # fmt: skip
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class StoredFile(msgspec.Struct, frozen=True):
    """A file of a message or of a part."""

    name: str
    """What it is called, without the ending."""
    data: bytes
    record: Record
    """What it says; empty where it is no JSON object."""

    @property
    def id(self) -> str:
        """What it calls itself, else what it is called."""
        return text(self.record.get("id")) or self.name


def stored_file(name: str, data: bytes) -> StoredFile:
    """A file by its content."""
    return StoredFile(name, data, _record(data))


StoredMessage = tuple[StoredFile, Sequence[StoredFile]]
"""The file of a message, and those of its parts."""


def session_rows(name: str, session: bytes, messages: Sequence[StoredMessage]) -> bytes:
    """The rows of a session: its messages in the order of their times and ids, each with its parts in the order of
    their files' names, then the session's own."""
    info = _record(session)
    own = text(info.get("id")) or name
    made: list[tuple[int, str, bytes]] = []
    for file, parts in messages:
        created, updated = _times(file.record)
        columns = {"id": file.id, "session_id": own}
        rows = [_row("message", columns, created, updated, file.data)]
        for part in sorted(parts, key=lambda each: each.name):
            columns = {"id": part.id, "message_id": file.id, "session_id": own}
            begun, ended = _times(part.record)
            rows.append(_row("part", columns, begun or created, ended or begun or updated, part.data))
        made.append((created, file.id, b"".join(rows)))
    return b"".join(rows for *_, rows in sorted(made)) + _session_row(own, info, session)


def _record(data: bytes) -> Record:
    try:
        found = parse_document(data)
    except (NotJson, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _times(record: Record) -> tuple[int, int]:
    """When something was made and last changed, in milliseconds; 0 where it does not say."""
    created, updated = (number(inside(record, "time", name)) for name in ("created", "updated"))
    return created, updated or created


_IDS = {"id": "id", "session_id": "sessionID", "message_id": "messageID"}
"""The columns that hold an id, and what they are called in a file."""


def _row(table: str, columns: dict[str, str], created: int, updated: int, data: bytes) -> bytes:
    told = columns | {"time_created": created, "time_updated": updated}
    left = {_IDS[column]: encode(value) for column, value in columns.items()}
    return b'{"%s":%s,"data":%s}}\n' % (table.encode(), encode(told)[:-1], _on_one_line(data, left))


def _on_one_line(data: bytes, left: Mapping[str, bytes]) -> bytes:
    """A file's object without the blanks between its tokens, and without ids that the columns hold: every other token
    as it stands. A text, where the file is no such object."""
    try:
        if not refusal(data):
            found = _decode(data)
            kept = {key: value for key, value in found.items() if left.get(key) != bytes(value)}
            return msgspec.json.format(msgspec.json.encode(kept), indent=-1)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    return encode(data.decode("utf-8", "replace"))


def _session_row(name: str, info: Record, data: bytes) -> bytes:
    """The session's own row, with the columns that the program gave it; all that the file says stands behind them."""
    row: Record = {"id": name} | {column: info.get(key) for column, key in _PLAIN.items()}
    row |= {"slug": text(info.get("slug")), "share_url": inside(info, "share", "url")}
    row |= {f"summary_{key}": inside(info, "summary", key) for key in ("additions", "deletions", "files")}
    row["summary_diffs"] = _as_text(inside(info, "summary", "diffs"))
    row |= {key: _as_text(info.get(key)) for key in ("revert", "permission")}
    row |= {f"time_{key}": inside(info, "time", key) for key in ("created", "updated", "compacting", "archived")}
    return b'{"%s":%s,"data":%s}}\n' % (SESSION.encode(), encode(row)[:-1], _on_one_line(data, {}))


def _as_text(value: Any) -> str | None:
    return None if value is None else encode(value).decode("utf-8", "replace")
