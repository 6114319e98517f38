"""What the page asks of chains and sessions: who made whom, what was folded, how a session stands. Of chains that
grow it is kept which deltas they have."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from harken.context import agents_below, get_session, names_agents
from harken.context.chains import readable_sessions
from harken.context.describe import read_deltas
from harken.context.ending import SessionEnding, ending
from harken.context.walk import DELTA
from harken.errors import HarkenError
from harken.events import Event
from harken.store import Commit, SessionRow, Store

if TYPE_CHECKING:
    from harken.index import IndexProgress, StoreIndex
    from harken.index.search import Hit, SearchResult


KEPT_CHAINS, KEPT_DELTAS = 200, 400_000
"""How many chains are kept, and how many deltas these have together."""
NEAR = 64
"""Commits that are walked back for a chain that is kept."""


class Chains:
    """The chains of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._deltas: OrderedDict[str, frozenset[str]] = OrderedDict()
        """The deltas of chains that were asked for lately, by the commits that they stood at."""
        self._epoch = ""

    @property
    def version(self) -> tuple[str, int]:
        """As long as this is the same, so is what can be said of the store."""
        return str(self._store.epoch), self._store.last_change()

    def rows(self) -> list[SessionRow]:
        """The sessions that can be read, those of sub-agents included."""
        return list(readable_sessions(self._store))

    def family(self, session: str) -> tuple[SessionRow, list[SessionRow]]:
        """A session, and its sub-agents."""
        row = get_session(self._store, session)
        return row, agents_below(self._store, row)

    def tells_agents(self, row: SessionRow) -> bool:
        """Whether the records of a session name its agents themselves, as a log's do."""
        return bool(row.stand) and names_agents(self._store.get_commit(row.stand).format)

    def maker(self, row: SessionRow) -> tuple[str, str]:
        """The session that spawned a sub-agent and the call it did so with, as far as its chain says."""
        try:
            first = self._store.get_commit(self._store.beginning(row.stand, 1)[0].id) if row.stand else None
        except HarkenError:  # its chain cannot be read
            first = None
        origin = (first.spawned_from if first is not None else None) or {}
        return str(origin.get("session") or row.parent), str(origin.get("call_id") or "")

    def deltas_behind(self, tip: str) -> frozenset[str]:
        """The deltas of a chain; none where it cannot be read. One that has grown a little since it was last asked for
        is not walked to its root again."""
        epoch = self._store.epoch
        with self._lock:
            if epoch != self._epoch:  # something was erased
                self._deltas.clear()
                self._epoch = epoch
            known = dict(self._deltas)
        try:
            found = self._grown(tip, known) if tip else frozenset()
        except HarkenError:
            return frozenset()
        with self._lock:
            self._deltas[tip] = found
            self._deltas.move_to_end(tip)
            while len(self._deltas) > 1 and (
                len(self._deltas) > KEPT_CHAINS or sum(map(len, self._deltas.values())) > KEPT_DELTAS
            ):
                self._deltas.popitem(last=False)
        return found

    def _grown(self, tip: str, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
        steps = self._store.walk(tip, limit=NEAR) if known else []
        at = next((at for at, step in enumerate(steps) if step.id in known), None)
        if at is None:
            return frozenset(step.id for step in self._store.walk(tip) if step.commit_type == DELTA)
        return known[steps[at].id] | {step.id for step in steps[:at] if step.commit_type == DELTA}

    def folded_messages(self, below: str) -> int | None:
        """The prompts and responses from a commit back to the compaction before it; None where nobody counted."""
        try:
            steps = self._store.walk(below, stop=("compaction",)) if below else []
        except HarkenError:
            return None
        counts = [step.message_count for step in steps if step.message_count is not None]
        return sum(counts) if counts else None

    def ending(self, tip: str) -> SessionEnding:
        """How the session that stands at a commit ended."""
        return ending(self._store, tip)

    def named(self, commits: Sequence[str]) -> set[str]:
        """Those of the commits that a branch or a tag points at."""
        return {commit for commit, names in self._store.names_at(commits).items() if names}

    def read(self, commits: Sequence[Commit]) -> Iterator[tuple[Commit, list[Event] | HarkenError]]:
        """What each commit adds, or why it cannot be read."""
        return ((commit, events) for commit, _, events in read_deltas(self._store, commits))

    def search(
        self,
        index: StoreIndex,
        words: str,
        reached: IndexProgress,
        *,
        limit: int,
        present: int,
        choose: Callable[[Sequence[Hit]], Container[int]],
    ) -> SearchResult:
        """The messages that a query finds, with pieces of the texts of those that `choose` names by their places."""
        from harken.index.query import parse
        from harken.index.search import search

        return search(index, self._store, parse(words), reached, limit=limit, present=present, choose=choose)
