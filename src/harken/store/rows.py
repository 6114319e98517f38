"""From rows of the tables to the values of `base.py`; every row is checked against its sum on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from harken import clock, ids
from harken.errors import Corrupt

from .db import untext
from .values import Commit, Link, SessionRow

_UNREADABLE = (TypeError, AttributeError, ValueError, OverflowError, KeyError, IndexError, msgspec.MsgspecError)
FSCK = "`harken fsck` says what is lost"
Row = tuple[Any, ...]
SESSION_WORDS = (
    "parent",
    "agent",
    "title",
    "source",
    "template",
    "principal",
    "machine",
    "ticket_id",
    "thread_id",
)
"""Texts of a session's row, in the order of its columns."""
Names = dict[int | None, str]
"""The full names of commits by their row numbers; None is no commit."""


def checked(table: str, row: Row) -> Row:
    """The row without its sum, which is its last column; `Corrupt` where it is not what was written."""
    try:
        total = ids.row_sum(table, row[:-1])
    except (TypeError, ValueError, OverflowError):  # no value that we write
        total = b""
    if total != row[-1]:
        raise Corrupt(f"row {row[0]!r} of the table {table} is not what was written", hint=FSCK)
    return row[:-1]


@contextmanager
def readable() -> Iterator[None]:
    """A block that makes values of checked rows; where they hold what cannot be, that is said."""
    try:
        yield
    except _UNREADABLE as error:
        raise Corrupt(f"a row cannot be read: {error!r}", hint=FSCK) from error


def span(prefix: str) -> tuple[bytes, bytes]:
    """The least and the greatest eight bytes that a name with this beginning can start with."""
    digits = prefix[:16]
    return bytes.fromhex(digits.ljust(16, "0")), bytes.fromhex(digits.ljust(16, "f"))


def ranges(prefix: str) -> list[tuple[str | bytes, str | bytes]]:
    """The least text that begins like this and the least that comes after all of them, as text and as bytes.

    Text that is not UTF-8 is kept as bytes, and SQLite sorts those apart."""
    try:
        found: list[tuple[str | bytes, str | bytes]] = [(prefix, _after(prefix))]
    except UnicodeEncodeError:
        found = []
    data = prefix.encode("utf-8", "surrogatepass")
    stripped = data.rstrip(b"\xff")
    return [*found, (data, stripped[:-1] + bytes([stripped[-1] + 1]))]


def _after(prefix: str) -> str | bytes:
    prefix.encode()
    cut = prefix.rstrip("\U0010ffff")
    if not cut:
        return b""  # bytes, even none, come after all text
    following = ord(cut[-1]) + 1
    return cut[:-1] + chr(0xE000 if following == 0xD800 else following)


def full_name(id: bytes, seal: bytes, twin: int) -> str:
    """A commit's name as callers know it."""
    return id.hex() + seal.hex() if twin else id.hex()


def first_of_chain(number: int) -> int:
    """The row number of the first commit of the chain a commit lies in."""
    return number >> 32 << 32


def parent_of(number: int, fork: int | None) -> int | None:
    """The row number of a commit's parent."""
    return fork if number == first_of_chain(number) else number - 1


def link_of(row: Row, origin: Row) -> Link:
    """A commit as materialize needs it; the row has been checked."""
    id = full_name(row[1], row[2], row[3])
    return Link(id, row[6].hex(), origin[2], origin[1], row[10], row[11], row[12] == 1)


def commit_of(row: Row, parent: str, origin: Row, principal: Row) -> Commit:
    """A commit; the row has been checked."""
    _, id, seal, twin, digits, _, artifact, time, _, _, messages, tokens, approximate, links = row
    name = full_name(id, seal, twin)
    spawned, forked = _links_of(links) if links else (None, "")
    session_id, format, commit_type, checkpoint, template, ticket_id, thread_id = origin
    return Commit(
        artifact=artifact.hex(),
        format=format,
        parent=parent,
        commit_type=commit_type,
        checkpoint=checkpoint,
        time=time,
        template=template,
        principal=principal[0],
        machine=principal[1],
        session_id=session_id,
        ticket_id=ticket_id,
        thread_id=thread_id,
        message_count=messages,
        token_count=tokens,
        approximate=approximate == 1,
        spawned_from=spawned,
        forked_from=forked,
        id=name,
        seal=seal.hex(),
        short=ids.commit_ref(name, digits or ids.COMMIT_SHORT),
        created_at=clock.format_seconds(time),
    )


def _links_of(links: str) -> tuple[dict[str, Any] | None, str]:
    known = msgspec.json.decode(links)
    return known.get("spawned_from"), known.get("forked_from", "")


def words(row: Row) -> Row:
    """The texts of a row, as callers know them."""
    return tuple(map(untext, row))


def session_of(row: Row, names: Names, older: tuple[str, ...]) -> SessionRow:
    """A session; the row has been checked."""
    return SessionRow(
        session=untext(row[1]),
        version=row[2],
        runtime=untext(row[3]),
        tip=names[row[4]],
        live=names[row[5]],
        older=older,
        **dict(zip(SESSION_WORDS, words(row[7:16]), strict=True)),
        started=row[16],
        ended=row[17],
        messages=row[18],
        cost_usd_micros=row[19],
        state=row[20],
    )
