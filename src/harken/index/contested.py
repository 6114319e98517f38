"""Messages of which a session has had several texts: the index has the one that the session says as it stands.

Commits are read in the order in which they came, and what came last takes the place of what was there. Mostly that is
right: a record has grown. But an older copy of a source may come after the newer one, and a source may change back to
what it was, in commits that were read long ago. So when a session's row has changed, it is seen whether the texts that
took the places of others are those of the commits it stands on; if not, these are read once more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from harken.context.chains import readable_sessions
from harken.errors import HarkenError
from harken.store.base import Store

_TEXTS = (
    'SELECT c.key, lower(hex(k."commit")), c.beside FROM contested c'
    ' JOIN messages m ON m.key = c.key JOIN commits k ON k.n = m."commit" WHERE c.session = ?'
)


class SaidChains(NamedTuple):
    """What a session and its agents stand on."""

    tip: str
    older: list[str]
    """The commits that only its older tips stand on, the oldest first: what it does not say any more is as they say
    it, and not as whatever came last."""
    commits: list[str]
    """Those that it stands on, its agents' before them, each chain from its root on."""


class Contested:
    """Finds out what has to be read once more."""

    def __init__(self, store: Store, connection: sqlite3.Connection) -> None:
        self._store = store
        self._db = connection

    def sessions(self, names: Iterable[str]) -> dict[int, str]:
        """The sessions with such messages among these and those whose agents these are, by their numbers."""
        known = {number for (number,) in self._db.execute("SELECT DISTINCT session FROM contested")}
        if not known:
            return {}
        asked = dict.fromkeys(part for name in names for part in (name, name.partition("/")[0]))
        found = (
            (self._db.execute("SELECT n FROM sessions WHERE session = ?", (name,)).fetchone(), name) for name in asked
        )
        return {row[0]: name for row, name in found if row is not None and row[0] in known}

    def standing(self, session: str) -> SaidChains | None:
        """None as long as not all of it was taken in, or where it cannot be read."""
        try:
            own = self._store.find_session(session)
            agents = readable_sessions(self._store, f"{session}/")
            tips = [row.stand for row in (own, *agents) if row is not None and row.stand]
            if own is None or not own.stand or any(self._number(tip) is None for tip in tips):
                return None
            said = self._below(reversed(tips))
            older = self._below(tip for tip in reversed(own.older) if self._number(tip) is not None)
            return SaidChains(own.stand, [name for name in older if name not in set(said)], list(said))
        except HarkenError:
            return None

    def misplaced(self, number: int, standing: SaidChains) -> list[int]:
        """The keys of messages whose texts are of other commits than those that the session stands on."""
        on = set(standing.commits)
        return [
            key
            for key, commit, beside in self._db.execute(_TEXTS, (number,)).fetchall()
            if commit not in on and not (beside and self._is_silent_still(beside, standing, on))
        ]

    def note(self, number: int, keys: Iterable[int], standing: SaidChains) -> None:
        """Write down which of these it does not say, now that all it says was read."""
        still = set(keys).intersection(self.misplaced(number, standing))
        silent = [(standing.tip, number, key) for key in still]
        self._db.executemany("UPDATE contested SET beside = ? WHERE session = ? AND key = ?", silent)

    def _is_silent_still(self, beside: str, standing: SaidChains, on: set[str]) -> bool:
        """Whether a session that did not say something when it stood there has only gone on from there since: what it
        said then was read, and would be where it stands."""
        if beside == standing.tip:
            return True
        then, now = self._number(beside), self._number(standing.tip)
        if then is None or now is None or now < then:
            return False
        return self._store.get_commit(beside).parent in on

    def _below(self, tips: Iterable[str]) -> dict[str, None]:
        """The commits of these chains."""
        return {step.id: None for tip in tips for step in reversed(self._store.walk(tip))}

    def _number(self, commit: str) -> int | None:
        row = self._db.execute('SELECT n FROM commits WHERE "commit" = ?', (bytes.fromhex(commit),)).fetchone()
        return row[0] if row is not None else None
