"""Where sessions come from, as far as the sessions that are there tell: which call started a sub-agent, and what a copy
goes on from.

A link is a function of what the store holds, not of the order in which that came: whenever a session tells more, those
whom it may concern are looked at again, in the same transaction. Links are outside names and seals, so chains stay.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from harken.context import chains, commit_at
from harken.context.chains import SourceMemory, Sources
from harken.context.names import RESUMED_BRANCH
from harken.errors import Corrupt, NotFound
from harken.formats.facts import Origin
from harken.store import SessionRow, Store, WalkStep, Writer

from . import memory
from .base import Runtime
from .keeping import SourceImport
from .memory import Beginnings, Rows


def take_alike(store: Store, item: SourceImport, relatives: Iterable[SessionRow]) -> None:
    """Have a source kept as the difference to what it nearly repeats: the conversation that a resume wrote it from, or
    a session whose first record it has. Which of the two is the copy does not matter for that."""
    name = store.find_name(RESUMED_BRANCH + item.identity.session)
    # Its own row has the runtime's name behind the id where a session of another runtime has the same.
    own = (item.identity.name, f"{item.identity.name}-{item.runtime.keeper}")
    others = [row.tip for row in relatives if row.session not in own]
    item.twins = set(others) if item.now.unnamed else set()
    for tip in others[:1] if name is None else [name.target]:
        try:
            item.alike = [step.artifact for step in reversed(store.walk(tip))]
        except Corrupt:
            return  # what is wrong with the other is its own affair; this one is kept whole
        # A guess, which is set right in place when it is linked: a row that grew then would take a page more.
        item.now = msgspec.structs.replace(item.now, forked_from=tip)


class Linker:
    """Links the sessions of one store."""

    def __init__(self, store: Store, runtimes: Mapping[str, Runtime], beginnings: Beginnings) -> None:
        self._store = store
        self._runtimes = runtimes
        self._beginnings = beginnings
        self._named: dict[str, frozenset[str]] = {}
        """Artifact to the names of the records in it; asked of copies and originals alone."""
        self._read: dict[str, dict[str, str]] = {}
        """Tip to the records of its chain, while sessions are linked."""
        self._compared: dict[tuple[str, str], tuple[int, int, int, str]] = {}
        """Two tips to what `_compare` says of them: of many copies, each pair is compared once."""

    def relink(self, writer: Writer, rows: Rows, told: Iterable[str]) -> None:
        """Look again at every session that those in `told` may concern. `rows` are those of this transaction. One that
        cannot be read keeps its links, and stops nobody else's."""
        told, concerned = set(told), dict[str, SessionRow]()
        families: dict[str, _Family] = {}
        for name in told:
            if (row := memory.find_row(self._store, name, rows)) is not None:
                concerned.update((each.session, each) for each in self._concerned(row, rows, families))
        for name in sorted(concerned):
            try:
                self._link(writer, concerned[name], rows, families)
            except Corrupt:
                if name in told:
                    raise
        self._read.clear()

    def link_copies(self, told: Iterable[SessionRow]) -> Iterable[SessionRow]:
        """Look again at the copies and originals of these sessions; the answer are the rows that changed."""
        ours = (row for row in told if row.runtime in self._runtimes and not row.parent)
        names = [row.session for row in ours if self._beginnings.relatives(row)]
        rows: Rows = {}
        if names:
            with self._store.write() as writer:
                self.relink(writer, rows, names)
        return rows.values()

    def _concerned(self, row: SessionRow, rows: Rows, families: dict[str, _Family]) -> Iterator[SessionRow]:
        """The session itself, the agents of its family, the threads it says it started, and its copies."""
        yield row
        top = memory.top_of(row)
        if top not in families:
            above = memory.find_row(self._store, top, rows)
            family = [rows.get(each.session, each) for each in chains.readable_sessions(self._store, f"{top}/")]
            members = {each.session: chains.recall(each) for each in (above, *family) if each is not None}
            families[top] = _Family(top, members)
            yield from (each for each in family if each.agent)
        threads = (thread for known in chains.recall(row).values() for thread in known.calls)
        found = (memory.find_row(self._store, thread, rows) for thread in threads)
        yield from (each for each in found if each is not None and each.parent and not each.agent)
        # A conversation may go on in another runtime, and so may a sub-agent's, which is named after its session.
        names = self._beginnings.copies(top) if row.parent else self._beginnings.relatives(row)
        found = (memory.find_row(self._store, name, rows) for name in names)
        yield from (each for each in found if each is not None and not each.parent)

    def _relatives(self, row: SessionRow, rows: Rows) -> list[SessionRow]:
        found = (memory.find_row(self._store, name, rows) for name in self._beginnings.relatives(row))
        return [each for each in found if each is not None and each.runtime == row.runtime and not each.parent]

    def _link(self, writer: Writer, row: SessionRow, rows: Rows, families: dict[str, _Family]) -> None:
        sources, parent = chains.recall(row), row.parent
        linked = dict(sources)
        for path, known in sources.items():
            if row.agent:
                parent, call = families[memory.top_of(row)].teller(row, known)
                spawned: dict[str, Any] | None = {"session": parent, "call_id": call, "inherits": False}
            elif parent:
                call = self._call_of(known.session or row.session, memory.find_row(self._store, parent, rows))
                spawned = {**(known.spawned_from or {"inherits": False}), "session": parent, "call_id": call}
            else:
                spawned = known.spawned_from
            try:
                forked = "" if row.parent else self._forked_from(row, known, rows)
            except Corrupt:
                forked = known.forked_from  # it cannot be compared with a relative, and stays as it was
            if (spawned, forked) != (known.spawned_from, known.forked_from):
                linked[path] = msgspec.structs.replace(known, spawned_from=spawned, forked_from=forked)
                for tip in filter(None, (known.chain.tip, *known.old_tips)):
                    writer.link(self._store.walk(tip)[-1].id, spawned_from=spawned, forked_from=forked)
        if linked != sources or parent != row.parent:
            changed = msgspec.structs.replace(row, parent=parent, state=chains.remember(linked))
            rows[row.session] = writer.save_session(changed, expect=row.version)

    @staticmethod
    def _call_of(thread: str, parent: SessionRow | None) -> str:
        """The call that started a thread, as the one that started it tells."""
        sources = chains.recall(parent).values()
        return next((known.calls[thread] for known in sources if thread in known.calls), "")

    # -- copies ------------------------------------------------------------------------------------------------------

    def _forked_from(self, row: SessionRow, known: SourceMemory, rows: Rows) -> str:
        """The commit that a source goes on from: a resume wrote it from there, it says so itself, or another session
        has its first records and went its own way before this one did."""
        if (name := self._store.find_name(RESUMED_BRANCH + (known.session or row.session))) is not None:
            return name.target
        if not known.chain.tip:
            return ""
        if known.origin is not None:
            return self._written_from(known.origin, rows)
        if known.copies:
            original = self._told_original(row, known, rows)
            return self._left_at(original, known) if original is not None else ""
        found = []
        for each in self._relatives(row, rows):
            if self._may_be_original(each, known):
                shared, theirs, own, commit = self._compare(row.runtime, each.tip, known.chain.tip)
                if shared and (theirs, each.session) < (own, row.session):
                    found.append((-shared, each.session, commit))
        return min(found)[2] if found else ""

    def _written_from(self, origin: Origin, rows: Rows) -> str:
        """The commit that a file says Harken wrote it from. Where its session has grown since and was imported anew, it
        may have none of that name: then the last one that is no younger."""
        with contextlib.suppress(NotFound):
            return self._store.get_commit(origin.commit).id
        source = memory.find_row(self._store, origin.source, rows) if origin.source else None
        chain = self._store.chain(source.tip) if source is not None and source.tip else []
        return next((each.id for each in chain if each.time <= origin.instant), "")

    def _told_original(self, row: SessionRow, known: SourceMemory, rows: Rows) -> SessionRow | None:
        for name in (known.copies, f"{known.copies}-{row.runtime}"):
            found = memory.find_row(self._store, name, rows)
            if found is not None and found.tip and found.runtime == row.runtime and found.session != row.session:
                return found
        return None

    def _may_be_original(self, row: SessionRow, known: SourceMemory) -> bool:
        """Whether another session may be what this one copies: one that says what it copies itself is no original."""
        theirs = chains.recall(row).values()
        if not row.tip or not any(
            each.first == known.first and not each.copies and each.origin is None for each in theirs
        ):
            return False
        return self._store.find_name(RESUMED_BRANCH + row.session) is None

    def _left_at(self, original: SessionRow, known: SourceMemory) -> str:
        """Where a source that names its original left it: at the offset it gives, else after the last record that both
        have, else at the last commit that is no younger than its beginning."""
        offset = (known.spawned_from or {}).get("offset")
        if isinstance(offset, int) and (commit := commit_at(self._store, original, offset)):
            return commit
        if commit := self._compare(original.runtime, original.tip, known.chain.tip)[3]:
            return commit
        chain = self._store.chain(original.tip)
        return next((each.id for each in chain if each.time <= (known.tally.started or 0)), chain[-1].id)

    def _compare(self, runtime: str, original: str, copy: str) -> tuple[int, int, int, str]:
        """How many records two chains share, when each had its first that the other has not, and the newest commit of
        the first that holds a shared one; none where both are the same chain, since neither then goes on from the
        other."""
        if (original, copy) not in self._compared:
            theirs, own = self._records(runtime, original), self._records(runtime, copy)
            shared = theirs.keys() & own.keys()
            newest = next(
                (step.id for step in self._store.walk(original) if not shared.isdisjoint(self._names(runtime, step))),
                "",
            )
            newest = "" if newest in own.values() else newest
            self._compared[original, copy] = len(shared), self._left(theirs, own), self._left(own, theirs), newest
        return self._compared[original, copy]

    def _left(self, own: dict[str, str], other: dict[str, str]) -> int:
        """When a chain had its first record that the other has not; before all others where it has none."""
        commit = next((commit for name, commit in own.items() if name not in other), "")
        return self._store.get_commit(commit).time if commit else -1

    def _records(self, runtime: str, tip: str) -> dict[str, str]:
        """The names of the records on a chain, each with the first commit that holds it, in order."""
        if tip not in self._read:
            found: dict[str, str] = {}
            for step in reversed(self._store.walk(tip)):
                for name in self._names(runtime, step):
                    found.setdefault(name, step.id)
            self._read[tip] = found
        return self._read[tip]

    def _names(self, runtime: str, step: WalkStep) -> frozenset[str]:
        if step.artifact not in self._named:
            try:
                data = self._store.get(step.artifact)
                self._named[step.artifact] = frozenset(self._runtimes[runtime].read.record_names(data))
            except Exception:  # noqa: BLE001  bytes that were evicted, or a plug-in: a link less, and the session is kept
                self._named[step.artifact] = frozenset()
        return self._named[step.artifact]


class _Family:
    """The sessions of one family and what they tell of each other, found by name: each of many agents asks for its own
    part of it."""

    def __init__(self, top: str, members: dict[str, Sources]) -> None:
        self._top = top
        self._started = {name: _first_start(sources) for name, sources in members.items()}
        self._named: dict[str, list[tuple[str, SourceMemory]]] = {}
        """Agent to those who name the call that started it, the top first."""
        self._asked: dict[str, list[str]] = {}
        """Call to those who made it, the top first."""
        self._told: dict[str, list[tuple[str, str]]] = {}
        """Name of a prompt to those who gave it and their calls that started nobody else, the earliest first."""
        tellers = [
            (name, each)
            for name in sorted(members, key=lambda name: (name != top, name))
            for each in members[name].values()
        ]
        given = {call for _, each in tellers for call in each.calls.values()}
        for name, each in tellers:
            for agent in each.calls:
                self._named.setdefault(agent, []).append((name, each))
            for call, prompt in each.asks.items():
                self._asked.setdefault(call, []).append(name)
                if call not in given:
                    self._told.setdefault(prompt, []).append((name, call))
        for found in self._told.values():
            found.sort(key=lambda teller: self._start_of(teller[0]))

    def teller(self, row: SessionRow, known: SourceMemory) -> tuple[str, str]:
        """The session that started a sub-agent, and the call: as a result says in which the agent is named, as its side
        file says, or as exactly one call says that gave the agent's first prompt and started nobody else."""
        for name, each in self._named.get(row.agent, ()):
            if self._may_start(name, row, known):
                maker = each.makers.get(row.agent)
                return f"{self._top}/{maker}" if maker else name, each.calls[row.agent]
        if known.call_id:
            askers = self._asked.get(known.call_id, ())
            return next((name for name in askers if self._may_start(name, row, known)), self._top), known.call_id
        asked: set[tuple[str, str]] = set()
        for name, call in self._told.get(known.told, ()) if known.told else ():
            if self._may_start(name, row, known):
                asked.add((name, call))
            elif name != row.session:
                break  # nor do the others, which began later
            if len(asked) > 1:
                break
        return asked.pop() if len(asked) == 1 else (self._top, "")

    def _may_start(self, name: str, row: SessionRow, known: SourceMemory) -> bool:
        """Whether a session began before an agent: only then can it have started it, so nobody is above himself."""
        if name == self._top:
            return True
        return name != row.session and known.tally.started is not None and self._start_of(name) < known.tally.started

    def _start_of(self, name: str) -> float:
        """When a session began: the top before all others, one that does not say so after them."""
        started = self._started[name]
        return -math.inf if name == self._top else math.inf if started is None else started


def _first_start(sources: Sources) -> int | None:
    return min((each.tally.started for each in sources.values() if each.tally.started is not None), default=None)
