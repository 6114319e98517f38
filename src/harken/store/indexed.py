"""What the indexes of a damaged file still say of rows that a repair did not find: how many there were, which names.

Indexes have no sums. So what they say is told, and a branch or tag is put back only where its moves, which have sums,
agree.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection
from pathlib import Path

from harken import ids

from . import sql
from .commits import full_name, parent_of

_INDEXES = {"annotations": "annotations_by_commit", "sightings": "sightings_by_commit"}


class LostRows:
    """Compares a file with what was salvaged of it."""

    def __init__(self, damaged: Path, new: Path) -> None:
        self._damaged, self._new = damaged, new
        self.lost: list[str] = []
        self.back: list[str] = []
        """The branches and tags that were put back."""

    def run(self, unreadable: Collection[str], aside: Collection[tuple[str, object]]) -> None:
        """Find what is lost of tables, some of which could not be read whole; rows that are set aside are told of."""
        with contextlib.ExitStack() as opened:
            where = f"{self._damaged.absolute().as_uri()}?mode=ro&immutable=1"
            old = opened.enter_context(contextlib.closing(sqlite3.connect(where, uri=True)))
            new = opened.enter_context(contextlib.closing(sqlite3.connect(self._new, isolation_level=None)))
            known = {table: {n for one, n in aside if one == table} for table in (*_INDEXES, "names")}
            for table, index in _INDEXES.items():
                said = _read(old, f"SELECT n, 0 FROM {table} INDEXED BY {index}")
                if missing := said.keys() - known[table] - _read(new, f"SELECT n, 0 FROM {table}").keys():
                    self.lost.append(f"{table}: {len(missing)} on pages that cannot be read")
                elif table in unreadable and not said:
                    self._some(new, table)
            before = len(self.lost) + len(self.back)
            if not Path(f"{self._damaged}-wal").exists():  # else the last moves are in there
                self._names(old, new, known["names"])
            if "names" in unreadable and before == len(self.lost) + len(self.back):
                self._some(new, "names")
            if "moves" in unreadable:
                self._some(new, "moves")

    def _some(self, new: sqlite3.Connection, table: str) -> None:
        (left,) = new.execute(f"SELECT count(*) FROM {table}").fetchone()
        self.lost.append(f"{table}: what lay on pages that cannot be read; {left} are left")

    def _names(self, old: sqlite3.Connection, new: sqlite3.Connection, known: Collection[object]) -> None:
        targets = _read(old, "SELECT n, target FROM names INDEXED BY names_by_target")
        there = _read(new, "SELECT n, name FROM names")
        moved = {name: (kind, to) for name, kind, to in new.execute("SELECT name, kind, after FROM moves ORDER BY n")}
        for n, name in _read(old, "SELECT n, name FROM names INDEXED BY sqlite_autoindex_names_1").items():
            if n in there or n in known or not isinstance(name, str) or name in there.values():
                continue
            kind, to = moved.get(name, ("name", None))
            target = targets.get(n)
            if to is None or not isinstance(target, int) or not _leads(new, target, to, kind):
                self.lost.append(f"{kind} {name}: its row")
                continue
            row = (n, name, kind, target)
            new.execute(sql.ADD_NAME, (*row, ids.row_sum("names", row)))
            id, seal, twin = new.execute("SELECT id, seal, twin FROM commits WHERE n = ?", (target,)).fetchone()
            self.back.append(f"{kind} {name} at {ids.commit_ref(full_name(id, seal, twin))}")


def _leads(new: sqlite3.Connection, target: int, to: int, kind: str) -> bool:
    """Whether a name that was moved to one commit can point at another: a branch goes on with commits that stand on it,
    a tag stays."""
    at: int | None = target
    while at is not None:
        row = new.execute("SELECT parent FROM commits WHERE n = ?", (at,)).fetchone()
        if row is None or at == to or kind != "branch":
            return row is not None and at == to
        at = parent_of(at, row[0])
    return False


def _read(connection: sqlite3.Connection, statement: str) -> dict[int, object]:
    """Rows by their number; nothing where they cannot be read."""
    try:
        return dict(connection.execute(statement).fetchall())
    except (sqlite3.Error, UnicodeDecodeError):
        return {}
