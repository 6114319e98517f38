"""Artifacts in SQLite: how long they stay, and how their bytes go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harken import ids
from harken.errors import Conflict

from . import sql, values
from .blob_writer import SqliteBlobWriter, place_artifact

if TYPE_CHECKING:
    from .sqlite import SqliteStore


class SqliteEvictor(SqliteBlobWriter):
    """What changes artifacts that are there."""

    @property
    def store(self) -> SqliteStore:
        """Whose transaction it is."""
        return self._store

    def draw(self, what: str) -> int:
        """The next free number of a kind."""
        return self._draw(what)

    def tell(self, kind: str, number: int) -> None:
        """Note a change in the feed."""
        self._changes.add(kind, number)

    def place_again(self, artifact: str, data: bytes, row: tuple[Any, ...]) -> None:
        """Keep other bytes in the place of an artifact's: a tombstone says why they are not what its name says."""
        self._place(artifact, data, "", row)

    def set_policy(self, artifact: str, policy: str, *, expires: int | None = None) -> None:
        """How long the artifact must stay."""
        values.check_policy(policy, expires)
        self.begin()
        self._set_policy(self._artifact(artifact), policy, expires)

    def evict(self, artifact: str) -> None:
        """Let the bytes go and keep the name; the room they took is gc's to give back."""
        self.begin()
        self._flush()
        row = self._artifact(artifact)
        if row[5] == "pin":
            raise Conflict(f"{ids.artifact_ref(artifact)} is pinned", hint="unpin it first")
        self.drop_bytes(row)

    def drop_bytes(self, row: tuple[Any, ...]) -> None:
        """Evict the artifact of this row, whatever its policy."""
        self.begin()
        self._db.do(sql.DROP_PARTS, (row[0],))
        place_artifact(self._db, row, None, None)
        self._changes.add("eviction", row[0])

    def drop_artifact(self, number: int, id: bytes) -> None:
        """Remove an artifact, its name too. Its number is not given out again: the feed has spoken of it."""
        self.begin()
        fact = ("artifacts", self._draw("artifact") - 1)
        self._next.pop("artifact")
        self._db.do(sql.SET_FACT, (*fact, ids.row_sum("facts", fact)))
        for statement in (sql.DROP_PARTS, sql.DROP_TOMBSTONE, sql.DROP_ARTIFACT):
            self._db.do(statement, (number,))
        self._changes.add("eviction", id)
