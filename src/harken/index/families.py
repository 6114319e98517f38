"""Sessions and their sub-agents: who counts with whom, and under which session the index has what each said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harken import ids

from .file import StoreIndex

_MEMBERS = "SELECT session, coalesce(parent, ''), coalesce(agent, '') FROM sessions WHERE runtime IS NOT NULL"


class FamilyMember(NamedTuple):
    """A session, or that of a sub-agent."""

    session: str
    parent: str
    """The session that made it; empty for one that nobody made."""
    agent: str

    @property
    def told_under(self) -> str:
        """The session that the index has its words under: what a sub-agent called SESSION/AGENT says stands under
        SESSION, with the name of the agent; one with an id of its own is told under that."""
        return self.session.partition("/")[0] if self.parent else self.session


class Families:
    """The sessions of a store with their sub-agents. One whose session is not in the store counts with nobody."""

    def __init__(self, members: Iterable[FamilyMember]) -> None:
        several = list(members)
        self.tops = ids.tops({one.session: one.parent for one in several})
        """For each session the one that it counts with."""
        self._apart = {(one.told_under, one.agent): one.session for one in several if one.told_under not in self.tops}

    def top(self, session: str, agent: str = "") -> str:
        """The session that something counts with which the index has under a session, of one of its agents; empty where
        nobody in the store is meant."""
        return self.tops.get(session) or self.tops.get(self._apart.get((session, agent), ""), "")

    def is_top(self, session: str) -> bool:
        """Whether a session counts with no other."""
        return self.tops.get(session) == session


def indexed_families(index: StoreIndex) -> Families:
    """Those that the index knows."""
    return Families(map(FamilyMember._make, index.query(_MEMBERS)))
