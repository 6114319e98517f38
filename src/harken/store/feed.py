"""The feed: every change of a store by its number, so that whoever follows the store misses nothing.

A transaction collects its changes and writes them last, as one row (several if they are many): the row's number is
that of its last change, so the newest number is the table's greatest key. Changes name rows by their numbers, which
are never given out twice; their full names are looked up when somebody asks. What a name or a gone artifact is called
is written out.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from harken import clock
from harken.errors import Corrupt

from . import sql
from .blob_writer import ChangeLog
from .db import Row, checked
from .values import CHANGES, Change, untext

if TYPE_CHECKING:
    from .db import Database
    from .sqlite import SqliteStore

ABOUT_ARTIFACTS = ("artifact", "policy", "eviction", "erasure")
ABOUT_COMMITS = ("commit", "sighting", "annotation", "link")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05


def retell(db: Database) -> None:
    """Inside a repair: write the feed anew from what is there. Whoever followed it starts over anyway."""
    db.do("DELETE FROM changes")
    log = ChangeLog(db)
    for kind, statement in (
        ("artifact", "SELECT n, '' FROM artifacts ORDER BY n"),
        ("policy", "SELECT n, policy FROM artifacts WHERE policy IS NOT NULL ORDER BY n"),
        ("commit", f"SELECT n, '' FROM commits WHERE sum IS NOT x'{sql.LOST.hex()}' ORDER BY n"),
        (
            "sighting",
            'SELECT s."commit", p.principal FROM sightings s JOIN principals p ON p.n = s.principal ORDER BY s.n',
        ),
        ("name", "SELECT name, kind FROM names ORDER BY name"),
        ("session", "SELECT n, '' FROM sessions ORDER BY n"),
        ("annotation", 'SELECT "commit", key FROM annotations ORDER BY n'),
        ("erasure", "SELECT artifact, '' FROM tombstones ORDER BY artifact"),
    ):
        for subject, detail in db.all(statement):
            log.add(kind, subject, detail)
    log.write()


def told_of(db: Database, kind: str) -> set[int]:
    """The numbers of the rows that changes of this kind are about, as far as the feed can be read."""
    found: set[int] = set()
    for row in db.all("SELECT n, count, what, sum FROM changes"):
        with contextlib.suppress(Corrupt, ValueError, msgspec.DecodeError):
            found.update(
                about
                for _, told, about, _ in unpacked([checked("changes", row)])
                if told == kind and isinstance(about, int)
            )
    return found


def unpacked(rows: list[Row], after: int | None = None) -> Iterator[tuple[int, str, Any, Any]]:
    """Number, kind, subject and detail of every change in these rows, as they were written, or of those after a number;
    a gap is no answer."""
    for last, count, what in rows:
        before = last - count
        if after is not None and before > after:
            raise ValueError(f"the changes from {after + 1} to {before} are missing")
        changes = msgspec.msgpack.decode(what)
        if len(changes) != count:
            raise ValueError(f"{len(changes)} changes where {count} were written")
        # A row may hold thousands, and be asked for again and again by one who takes them piece by piece.
        known = 0 if after is None else max(0, after - before)
        for number, (kind, subject, *detail) in enumerate(changes[known:], before + known + 1):
            yield number, CHANGES[kind], subject, detail[0] if detail else ""
        after = last if after is None else max(after, last)  # a damaged key may lead to rows from before


def changes_of(store: SqliteStore, rows: list[Row], number: int, limit: int) -> list[Change]:
    """The changes after a number, with full names; one whose row is damaged says so."""
    wanted = list(islice(unpacked(rows, max(number, 0)), limit))
    called: dict[str, dict[int, str]] = {}
    damaged: dict[str, dict[int, str]] = {}
    for table, kinds in (("artifact", ABOUT_ARTIFACTS), ("commit", ABOUT_COMMITS), ("session", ("session",))):
        subjects = {change[2] for change in wanted if change[1] in kinds and isinstance(change[2], int)}
        found, problems = _look_up_all(store, table, subjects)
        called |= dict.fromkeys(kinds, found)
        damaged |= dict.fromkeys(kinds, problems)
    return [
        Change(
            number=n,
            kind=kind,
            subject=_named(subject, called.get(kind, {})),
            detail=untext(detail),
            problem=damaged[kind].get(subject, "") if kind in damaged and isinstance(subject, int) else "",
        )
        for n, kind, subject, detail in wanted
    ]


def _look_up_all(store: SqliteStore, kind: str, numbers: set[int]) -> tuple[dict[int, str], dict[int, str]]:
    """What the rows of these numbers are called, and why some of them cannot be read."""
    try:
        return _look_up(store, kind, numbers), {}
    except Corrupt as problem:
        if len(numbers) < 2:
            return {}, dict.fromkeys(numbers, str(problem))
    # One bad row stops no other: halves that can be read are read at once.
    found, problems = dict[int, str](), dict[int, str]()
    ordered = sorted(numbers)
    for half in (ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]):
        names, bad = _look_up_all(store, kind, set(half))
        found |= names
        problems |= bad
    return found, problems


def _named(subject: Any, names: dict[int, str]) -> str:
    if isinstance(subject, int):
        return names.get(subject, "")
    return subject.hex() if isinstance(subject, bytes) else str(subject)


def _look_up(store: SqliteStore, kind: str, numbers: set[int]) -> dict[int, str]:
    """What the rows of these numbers are called; `Corrupt` where one is damaged."""
    if kind == "commit":
        return {number: name for number, name in store.names_of(numbers).items() if number is not None}
    if kind == "session":
        return {row[0]: untext(row[1]) for row in store.rows_at("sessions", sql.SESSIONS_NUMBERED, numbers)}
    fact = store.db.one(sql.FACT, ("artifacts",))
    highest_gone = checked("facts", fact)[1] if fact else 0
    rows = store.rows_at("artifacts", sql.ARTIFACTS_AT, numbers, gone=highest_gone)
    return {row[0]: row[1].hex() for row in rows}


class Bell:
    """Wakes those who wait for a change: at once in this process, after a look in another."""

    def __init__(self) -> None:
        self._rung = threading.Condition(threading.Lock())

    def ring(self) -> None:
        """Something changed."""
        with self._rung:
            self._rung.notify_all()

    def wait(self, there: Callable[[], bool], timeout: float) -> bool:
        """Whether it is there within the time; looked for less and less often."""
        deadline, pause = clock.monotonic() + timeout, _FIRST_PAUSE
        while not there():
            left = deadline - clock.monotonic()
            if left <= 0:
                return False
            with self._rung:
                self._rung.wait(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        return True
