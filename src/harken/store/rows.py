"""From rows of the tables to the values of `base.py`, and from names to the rows they may be in."""

from __future__ import annotations

from typing import Any

import msgspec

from harken.errors import Corrupt

from .base import Move, Name, SessionRow
from .db import untext

FSCK = "`harken fsck` says what is lost"
Row = tuple[Any, ...]


def span(prefix: str) -> tuple[bytes, bytes]:
    """The least and the greatest eight bytes that a name with this beginning can start with."""
    digits = prefix[:16]
    return bytes.fromhex(digits.ljust(16, "0")), bytes.fromhex(digits.ljust(16, "f"))


def full_name(id: bytes | None, seal: bytes, twin: int) -> str:
    """A commit's name as callers know it; empty for no commit."""
    if id is None:
        return ""
    return id.hex() + seal.hex() if twin else id.hex()


def first_of_chain(number: int) -> int:
    """The row number of the first commit of the chain a commit lies in."""
    return number >> 32 << 32


def name_of(row: Row) -> Name:
    """A branch or a tag."""
    return Name(name=row[0], kind=row[1], target=full_name(*row[2:5]))


def links_of(links: str) -> tuple[dict[str, Any] | None, str]:
    """`spawned_from` and `forked_from`."""
    try:
        known = msgspec.json.decode(links)
        return known.get("spawned_from"), known.get("forked_from", "")
    except (msgspec.DecodeError, AttributeError) as error:
        raise Corrupt(f"the links of a commit cannot be read: {error}", hint=FSCK) from None


def move_of(row: Row) -> Move:
    """A deliberate move of a name."""
    return Move(
        number=row[0],
        name=row[1],
        kind=row[2],
        before=full_name(*row[3:6]),
        after=full_name(*row[6:9]),
        time=row[9],
        who=untext(row[10]),
        why=untext(row[11]),
    )


def session_of(row: Row) -> SessionRow:
    """A session."""
    return SessionRow(
        session=untext(row[0]),
        runtime=untext(row[1]),
        tip=full_name(*row[2:5]),
        parent=untext(row[5]),
        agent=untext(row[6]),
        title=untext(row[7]),
        source=untext(row[8]),
        started=row[9],
        ended=row[10],
        messages=row[11],
        state=row[12],
    )
