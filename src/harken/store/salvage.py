"""Salvage: every row of a damaged store that is what was written, in a new file.

Rows are read page by page (`pages.py`), so that one unreadable page costs what lies on it and nothing else. A row is
taken only if its sum agrees, and a frame only if its hash does: what comes in is true. Where a single bit was turned
over, the sum also tells which one, and the row is put right. Indexes are not read, they are made anew; but of a lost
row of `origins` the index has a copy, which the seal of a commit can vouch for. Numbers stay what they are.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any

from harken import ids

from . import sql
from .db import Row
from .lost import quarantined, stands_for_lost
from .pages import PAGE, TABLE_LEAF, Cell, Pages, StoredRow
from .wal import Log

_WITHOUT_NUMBER = {"facts", "parts"}
_WITH_DATA = {"frames", "loose"}
_TYPES: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "TEXT": (str, bytes), "BLOB": (bytes,), "": (int, str, bytes)}
_LOOKED_AT = 64
"""Pages that tell whether a file was a store: each table and index has one of the first."""
_MENDED = 64
"""Rows that are tried bit by bit at most: that takes up to half a second each."""


class Salvage:
    """Fills a new file from the pages of another."""

    def __init__(self, pages: Pages, new: sqlite3.Connection, now: int) -> None:
        self._pages, self._new, self._now = pages, new, now
        self._columns: dict[str, list[tuple[str, str]]] = {
            table: [(name, kind) for _, name, kind, *_ in new.execute(f"PRAGMA table_info({table})")]
            for (table,) in new.execute(sql.TABLES).fetchall()
        }
        self._ids: dict[Any, bytes] = {}
        """The names of artifacts by their numbers, over which the sums of commits are."""
        self.origins: dict[int, Row] = {}
        """Rows of `origins` as their index has them, by number; nobody has vouched for them yet."""
        self.indexed: dict[int, set[str]] = {}
        """Texts that an index has for a row, by its number: among them are the names of sessions whose row is lost."""
        self.aside: set[tuple[str, object]] = set()
        """Table and number of the rows that are in quarantine; they are in `lost` already."""
        self.taken = 0
        """How many rows are in the new file."""
        self.lost: list[str] = []
        """What was there and could not be read, in words."""

    def run(self) -> None:
        """Take what is true, put right what one bit made wrong, and set the rest aside."""
        commits: list[tuple[int, Cell]] = []
        doubtful: list[tuple[int, Cell]] = []
        for kind, cell in self._pages.cells():
            record = self._read(kind, cell)
            if record is not None and kind == TABLE_LEAF and len(record.values) == len(self._columns["commits"]):
                commits.append((kind, cell))
            elif not (record and self._take(kind, record)) and self._could_be_ours(kind, record):
                doubtful.append((kind, cell))
        doubtful = [place for place in doubtful[:_MENDED] if not self._mend(*place)] + doubtful[_MENDED:]
        for kind, cell in commits:  # after the artifacts, on whose names their sums depend
            if not self._take(kind, self._pages.record(kind, cell)):
                doubtful.append((kind, cell))
        for n, (kind, cell) in enumerate(doubtful):
            if n >= 2 * _MENDED or not self._mend(kind, cell):
                self._set_aside(kind, cell)

    def _read(self, kind: int, cell: Cell, flipped: int | None = None) -> StoredRow | None:
        with contextlib.suppress(ValueError):
            return self._pages.record(kind, cell, flipped=flipped)
        return None

    def _could_be_ours(self, kind: int, record: StoredRow | None) -> bool:
        """Whether this may be a row of a table: an entry of an index ends with a number, and has no sum."""
        if record is None:
            return True
        if kind == TABLE_LEAF:  # the schema, and what `ANALYZE` writes, begin with a text, where ours have a number
            return not (record.values and isinstance(record.values[0], str))
        *texts, number = record.values or (None,)
        if len(texts) == len(sql.ORIGIN_COLUMNS) and isinstance(number, int):
            self.origins[number] = (number, *texts)
        if len(texts) == 1 and isinstance(texts[0], str) and isinstance(number, int):
            self.indexed.setdefault(number, set()).add(texts[0])
        return not isinstance(number, int) and any(
            len(record.values) == len(self._columns[table]) for table in _WITHOUT_NUMBER
        )

    def _take(self, kind: int, record: StoredRow) -> bool:
        """Whether this is a row of one of our tables, as it was written; then it is in the new file."""
        for table in self._tables(kind, record):
            row = _row(kind, record)
            if table == "quarantine" and self._fits(table, row):
                self._add(table, row)
                return True
            if self._is_true(table, row):
                if table in _WITH_DATA and ids.frame_hash(row[-1]) != row[1]:
                    self.lost.append(f"frame {row[0] if table == 'frames' else -row[0]}: its bytes are damaged")
                    self._quarantine(table, row, "its bytes are damaged")
                else:
                    self._add(table, row)
                return True
        return False

    def is_ours(self, kind: int, cell: Cell) -> bool:
        """Whether there is a row of one of our tables, as it was written."""
        record = self._read(kind, cell)
        return record is not None and any(
            table != "quarantine" and self._is_true(table, _row(kind, record)) for table in self._tables(kind, record)
        )

    def _tables(self, kind: int, record: StoredRow) -> list[str]:
        """The tables that have rows of this shape."""
        return [
            table
            for table, columns in self._columns.items()
            if len(columns) == len(record.values) and (table in _WITHOUT_NUMBER) == (kind != TABLE_LEAF)
        ]

    def _is_true(self, table: str, row: Row) -> bool:
        """Whether the row's sum agrees."""
        facts, total = (row[:-2], row[-2]) if table in _WITH_DATA else (row[:-1], row[-1])
        if total == sql.LOST:  # an earlier repair said so
            return stands_for_lost(table, row)
        if table == "commits":
            if row[6] not in self._ids:
                return False
            facts = (*facts[:6], self._ids[row[6]], *facts[7:])
        try:
            return ids.row_sum(table, facts) == total and (table not in _WITH_DATA or isinstance(row[-1], bytes))
        except (TypeError, ValueError, OverflowError):
            return False

    def _add(self, table: str, row: Row) -> None:
        marks = ", ".join("?" * len(row))
        self._new.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)
        self.taken += table not in ("migrations", "facts")
        if table == "artifacts":
            self._ids[row[0]] = row[1]

    def _mend(self, kind: int, cell: Cell) -> bool:
        """Whether turning one bit over makes the row true."""
        for bit in range(8 * self._pages.length(cell)):
            record = self._read(kind, cell, bit)
            if record is not None and any(
                table != "quarantine" and self._is_true(table, _row(kind, record))
                for table in self._tables(kind, record)
            ):
                return self._take(kind, record)
        return False

    # -- what cannot be taken ----------------------------------------------------------------------------------

    def _set_aside(self, kind: int, cell: Cell) -> None:
        """Into quarantine with what is not true, as far as it can be read at all."""
        record = self._read(kind, cell)
        row = _row(kind, record) if record else ()
        table = next((one for one in self._tables(kind, record) if self._fits(one, row)), "") if record else ""
        if table:
            self._quarantine(table, row, "its sum differs")
            self.aside.add((table, row[0]))
            self.lost.append(_words(table, row))
        elif kind == TABLE_LEAF:
            self.lost.append(f"a row on page {cell.page}: it cannot be read")

    def _fits(self, table: str, row: Row) -> bool:
        """Whether every value is of the type that its column has."""
        return all(
            value is None or isinstance(value, _TYPES[kind])
            for value, (_, kind) in zip(row, self._columns[table], strict=True)
        )

    def _quarantine(self, table: str, row: Row, why: str) -> None:
        named = {name: value for value, (name, _) in zip(row, self._columns[table], strict=True)}
        self._new.execute(sql.QUARANTINE, quarantined(self._now, table, named, why))


def _row(kind: int, record: StoredRow) -> Row:
    """The columns; a row's number stands where its first column is empty."""
    return (record.number, *record.values[1:]) if kind == TABLE_LEAF else record.values


def _words(table: str, row: Row) -> str:
    """How a person would call a row that is lost."""
    kind = table.removesuffix("s")
    if table == "artifacts":
        return f"{ids.artifact_ref(row[1].hex())}: its row is damaged"
    if table == "commits":
        return f"{ids.commit_ref(row[1].hex())}: its row is damaged, or that of its artifact is lost"
    if table in ("sessions", "names"):
        return f"{kind} {row[1]}: its row is damaged"
    return f"{kind} {row[0]}: its row is damaged"


def has_rows(path: Path) -> bool:
    """Whether a file whose first page says nothing has a row of ours on one of the next: those hold the beginnings of
    our tables, and a sum that agrees is no accident."""
    with contextlib.ExitStack() as opened:
        pages = _pages(path, opened)
        connection = opened.enter_context(contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)))
        _make_tables(connection)
        found = Salvage(pages, connection, 0)
        return any(found.is_ours(kind, cell) for kind, cell in pages.cells(_LOOKED_AT))


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in (said for _, _, statements in sql.STEPS for said in statements):
        connection.execute(statement)


def salvage(damaged: Path, new: Path, now: int) -> Salvage:
    """Make a new file of what is true in a damaged one and its log, which nobody writes to; what was found on the
    way."""
    os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with contextlib.ExitStack() as opened:
        pages = _pages(damaged, opened)
        with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
            for pragma in (*sql.NEW_FILE, "PRAGMA synchronous = OFF", "PRAGMA journal_mode = MEMORY"):
                connection.execute(pragma).fetchall()
            connection.execute("BEGIN")
            _make_tables(connection)
            found = Salvage(pages, connection, now)
            found.run()
            for version, name, _ in sql.STEPS:
                row = (version, name, now)
                connection.execute(
                    "INSERT OR IGNORE INTO migrations VALUES (?, ?, ?, ?)", (*row, ids.row_sum("migrations", row))
                )
            for mark in sql.MARKS:
                connection.execute(mark.format(version=sql.STEPS[-1][0]))
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        return found


def _pages(path: Path, opened: contextlib.ExitStack) -> Pages:
    """The pages of a file and of its log, which are closed with the stack."""
    beside = Path(f"{path}-wal")
    return Pages(_open(path, opened), Log(_open(beside, opened), PAGE) if beside.is_file() else None)


def _open(path: Path, opened: contextlib.ExitStack) -> int:
    """A descriptor for reading, which is closed with the stack."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    opened.callback(os.close, file)
    return file
