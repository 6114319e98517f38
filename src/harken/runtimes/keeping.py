"""Keeping what was read of a source: its commits, its side files, the agents inside it, and the session's row.

Everything happens in the writer's transaction. The row is read there too: what it says of this source must be what it
said when the source was read, and what it says of other sources of the same session stays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from harken import clock, ids
from harken.context import chains
from harken.context.chains import FileStamp, SourceMemory, Sources
from harken.context.live import with_live_rest
from harken.context.names import LIVE_BRANCH
from harken.formats.facts import FileFacts
from harken.store import Draft, SessionRow, Store, Writer

from . import memory, repaired
from .base import Identity, Runtime, path_name
from .memory import ImportResult
from .sources import Part

SIDE_CHAINS_LIMIT = 128 << 20  # agents inside a larger file get no chains: all of it would have to be in memory
CHAINS = 2048  # of a session's other files that are remembered


class SourceImport:
    """One source on its way into the store."""

    def __init__(
        self, path: str, runtime: Runtime, identity: Identity, known: SourceMemory | None, name: str = ""
    ) -> None:
        self.path, self.runtime, self.identity = path, runtime, identity
        self.name = name or identity.name  # the session's, in the store
        self.before = known  # what was known of it before this import
        self.saved = known  # what the row says of it, unless somebody else has written there since
        self.row: SessionRow | None = None  # the session's, as it was saved with what it says now
        self.now = known or SourceMemory()
        self.made: set[str] = set()
        self.ends: set[str] = set()  # of the session's other sources
        self.continues = known is not None  # its chain goes on from where it was, rather than being made anew
        self.is_inside = False  # a part of another source: the lines of an agent inside a file
        self.rewritten = False
        self.has_failed = False  # a part of it could not be kept
        self.status = "new"
        self.commits = 0
        self.repeated = memory.Repeated()
        # Tips of sessions of another name that begin alike: where no record names one, a copy has the same commits.
        self.twins: set[str] = set()
        self.alike: list[str] = []
        """Artifacts of the source this one copies, in order; the copy's deltas are kept as differences to them."""

    @property
    def is_open(self) -> bool:
        """Whether nothing of it had closed before this import: what its beginning says is then decided anew, as it may
        have been cut off in the middle of its first line."""
        return self.before is None or not self.before.chain.closed

    def identify(self, path: Path, facts: FileFacts) -> None:
        """Decide anew which session it is. Where no record names it, it is called after the file and where that lies:
        other folders may have a file of the same name. What somebody keeps live has the name it was given, and a
        document that cannot be read any more the one it had."""
        was_named = self.before is not None and not self.before.unnamed
        if self.now.live or (was_named and not facts.session and self.runtime.source == "document"):
            return
        identity = self.runtime.read.identify(path, facts)
        stem = identity.session
        name = "" if facts.session or not path.name.startswith(stem) else path_name(path.with_name(stem))
        unnamed = name not in ("", stem)
        if unnamed:
            parent = name if identity.parent == stem else identity.parent
            identity = msgspec.structs.replace(identity, session=name, parent=parent)
        self.identity = identity
        origin = memory.told_origin(identity, facts)
        self.now = msgspec.structs.replace(
            self.now, unnamed=unnamed, call_id=identity.call_id, spawned_from=origin, forked_from=""
        )

    def hear(self, path: Path, facts: FileFacts) -> None:
        """What later records say of which session it is: its id, or that only its first ones were a sub-agent's."""
        if self.identity.agent and facts.side_chains and not facts.sidechain:
            self.identify(path, facts)
        elif self.now.unnamed and facts.session:
            self.identity = self.runtime.read.identify(path, facts)

    def look_beside(self, facts: FileFacts) -> None:
        """Look again at what side files say, which may come late: the call that started an agent, a session's name."""
        if not self.is_inside:
            told = self.runtime.read.identify(Path(self.path), facts)
            now = msgspec.structs.replace(self.now, call_id=told.call_id or self.now.call_id)
            self.now = msgspec.structs.replace(now, title=told.title, named=True) if told.title else now

    def start_over(self) -> None:
        """All of the source is read again. Equal bytes give equal commits, so the chain leaves the old one where they
        differ; the old tip is remembered from the first part on, since the last may never come."""
        self.continues = False
        old = self.before or SourceMemory()
        tips = tuple(dict.fromkeys(filter(None, (old.chain.tip, *old.old_tips))))
        self.now = SourceMemory(
            old_tips=tips,
            forked_from=old.forked_from,
            spawned_from=old.spawned_from,
            call_id=old.call_id,
            side_files=old.side_files,
            session=old.session,
            unnamed=old.unnamed,
            live=old.live,
        )

    def snapshot(self) -> dict[str, Any]:
        """Everything about it, to go back to where a transaction fails."""
        return {**vars(self), "made": set(self.made)}

    def restore(self, values: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        vars(self).update(values)

    def result(self, row: SessionRow) -> ImportResult:
        """What became of it, now that its row is in the store."""
        if self.status == memory.FORGOTTEN:
            return memory.unchanged(row, self.path, details=False)
        return memory.result_of(
            row, self.path, self.now, status=self.status, before=self.before, commits=self.commits, again=self.repeated
        )

    def prospect(self, part: Part) -> ImportResult:
        """What would become of it."""
        old = self.before or SourceMemory()
        return ImportResult(
            session=self.name,
            runtime=self.runtime.keeper,
            source=self.path,
            status="rewritten" if self.rewritten else "grown" if self.before else "new",
            parent=self.identity.parent,
            agents=part.facts.agents,
            commits=len(part.facts.deltas),
            records=part.facts.records - old.records,
            opaque=part.facts.opaque - old.opaque,
            bytes=part.size - old.size,
            figures=part.facts.tally.figures(),
        )


def new_source(source: str, runtime: Runtime, path: Path, facts: FileFacts) -> SourceImport:
    """A source that is seen for the first time."""
    item = SourceImport(source, runtime, runtime.read.identify(path, facts), None)
    item.identify(path, facts)
    item.name = item.identity.name
    return item


class PartKeeper:
    """Keeps parts of sources in one store."""

    def __init__(
        self,
        store: Store,
        *,
        now: clock.Clock,
        by: tuple[str, str],
        settle_tails: Callable[[FileStamp], bool],
        verify: bool,
    ) -> None:
        self._store, self._now, self._verify = store, now, verify
        self._principal, self._machine = by
        self._settle_tails = settle_tails
        """Whether what follows the last cut is kept already; `watch` waits until a file has been quiet."""
        # With every file of a session the chains of its others are asked for; what is behind a commit never changes.
        self._commits_to = functools.lru_cache(CHAINS)(lambda tip: frozenset(step.id for step in store.walk(tip)))

    def keep(self, writer: Writer, item: SourceImport, part: Part, rows: dict[str, SessionRow]) -> bool:
        """Keep a part of a source; False where somebody else was faster. `rows` are those of this transaction."""
        row = self._row(writer, item, rows)
        if chains.is_forgotten(self._store, row):
            item.row, item.status = row, memory.FORGOTTEN
            return True
        sources = chains.recall(row)
        if memory.version_of(sources.get(item.path)) != memory.version_of(item.saved):
            return False
        if item.path in sources and (part.offset or not item.is_open):
            item.now = item.now.with_links(sources[item.path])
        item.ends = {known.chain.tip for path, known in sources.items() if path != item.path}
        whole = self._keep_deltas(writer, item, part, row)
        item.now = item.now.with_facts(part.facts, whole=whole or not part.last)
        if part.last:
            self._compare(writer, item, sources)
            item.look_beside(part.facts)
            beside = {} if item.is_inside else memory.keep_side_files(writer, item.runtime, item.path, item.before)
            item.now = msgspec.structs.replace(
                item.now,
                stamp=part.stamp if whole else chains.UNREAD,
                read_at=self._now(),
                size=part.size if whole else item.now.offset,
                digest=part.digest if whole else part.closed_digest,
                side_files=beside,
            )
            if not whole and (old := item.before) is not None and old.chain == item.now.chain:
                # The old tail is still what the session stands at, and is compared with the file next time.
                item.now = msgspec.structs.replace(item.now, size=old.size, digest=old.digest, records=old.records)
            if part.facts.side_chains:
                self._keep_side_chains(writer, item, part, rows)
        else:
            # The file is not done; were it left here, the next import would go on from this cut.
            item.now = msgspec.structs.replace(
                item.now, stamp=chains.UNREAD, size=item.now.offset, digest=part.closed_digest
            )
        repair = row.lost or (row.source and not row.state)  # only a repair forgets what was known of a source
        sources[item.path] = item.now = chains.kept_out(self._store, item.now)
        changed = memory.row_of(self._store, row, sources)
        if repair:
            changed, item.now = repaired.rejoin(self._store, row, changed, sources, item.path, last=part.last)
        item.saved = item.now
        if part.last and not changed.lost:
            changed = msgspec.structs.replace(changed, live="")
            if changed.tip and self._store.find_name(LIVE_BRANCH + row.session) is not None:
                changed = with_live_rest(self._store, writer, row, changed)
        item.row = rows[item.name] = writer.save_session(changed, expect=row.version)  # nobody else can write now
        return True

    # -- which row it is ---------------------------------------------------------------------------------------------

    def _row(self, writer: Writer, item: SourceImport, rows: dict[str, SessionRow]) -> SessionRow:
        """The session's row as it is now, under the name it has to have: the id that its records give. Where several
        runtimes have a session of one id, the one whose name comes first has the id and the others have their own
        behind it, whichever came first."""
        identity, runtime, parent, name = item.identity, item.runtime.keeper, item.identity.parent, item.identity.name
        if parent and self._is_foreign(memory.find_row(self._store, parent, rows), runtime, item.path):
            parent = f"{parent}-{runtime}"
            name = f"{parent}/{identity.agent}" if identity.agent else name
        other = memory.find_row(self._store, name, rows)
        if other is not None and self._is_foreign(other, runtime, item.path):
            if runtime < other.runtime:
                self._make_way(writer, other, rows)
            else:
                name = f"{name}-{runtime}"
        own = memory.find_row(self._store, item.name, rows) if item.saved is not None else None
        if own is not None and item.runtime.source == "document" and not item.is_inside:
            from .documents import leave_replaced  # most sources are files that grow

            own = leave_replaced(writer, item, own, rows)
        if own is not None and item.path in chains.recall_stamps(own) and own.session != name:
            taken, was_agents = memory.find_row(self._store, name, rows), bool(own.agent and not identity.agent)
            if was_agents and len(chains.recall_stamps(own)) > 1:  # the agent has other files, and stays
                taken = taken or SessionRow(session=name, runtime=runtime)
            if taken is None:
                self._rename(writer, own, name, rows)
            elif not was_agents:
                name = own.session  # it has come to a name that is taken, and stays what it was
            if was_agents:
                rows |= memory.without_agent(self._store, writer, own, taken or rows[name], item.path, item.now)
        item.name = name
        if name != identity.name:
            item.now = msgspec.structs.replace(item.now, session=identity.session)
        found = memory.find_row(self._store, name, rows) or SessionRow(session=name, runtime=runtime)
        if item.runtime.source == "document":
            found = msgspec.structs.replace(found, runtime=runtime)
        if found.version and (found.parent or not parent):
            return found
        # New, or seen before its first line was whole: that line may say whose sub-agent it is.
        return msgspec.structs.replace(found, parent=parent, agent=identity.agent)

    @staticmethod
    def _is_foreign(row: SessionRow | None, runtime: str, path: str) -> bool:
        """Whether the row is that of another runtime's file. What a program keeps by itself is called as it likes."""
        own = {path, ids.file_around(path)}  # what was a document of the other standard is still the same file
        return row is not None and row.runtime != runtime and bool(chains.recall_stamps(row).keys() - own)

    def _make_way(self, writer: Writer, row: SessionRow, rows: dict[str, SessionRow]) -> None:
        name = f"{row.session}-{row.runtime}"
        sources = {
            path: msgspec.structs.replace(known, session=row.session) for path, known in chains.recall(row).items()
        }
        for below in self._store.sessions():
            if below.runtime == row.runtime and f"{below.parent}/".startswith(f"{row.session}/"):
                parent = name + below.parent.removeprefix(row.session)
                rows[below.session] = writer.save_session(msgspec.structs.replace(below, parent=parent))
                if below.session.startswith(f"{row.session}/"):
                    self._rename(writer, below, name + below.session.removeprefix(row.session), rows)
        self._rename(writer, row, name, rows)
        rows[name] = writer.save_session(msgspec.structs.replace(rows[name], state=chains.remember(sources)))

    @staticmethod
    def _rename(writer: Writer, row: SessionRow, name: str, rows: dict[str, SessionRow]) -> None:
        rows.pop(row.session, None)
        rows[name] = writer.rename_session(row.session, name)

    # -- commits -----------------------------------------------------------------------------------------------------

    def _keep_deltas(self, writer: Writer, item: SourceImport, part: Part, row: SessionRow) -> bool:
        """Commit what the part cut; the answer is whether the source is kept to its end."""
        before = item.before
        if item.runtime.source != "file" and before and before.digest == part.digest and not self._verify:
            item.now = before
            return True
        keep_tail = part.last and (item.runtime.source != "file" or self._settle_tails(part.stamp))
        extended = chains.extend(
            writer,
            item.now.chain,
            part.contents(Path(item.path)),
            self._facts(item),
            now=self._now(),
            keep_tail=keep_tail,
            ends=item.ends,
            alike=item.alike,
            # Whoever ran the session saw what its source holds; what it holds does not depend on that.
            seen_by=(row.principal, row.machine) if row.principal else None,
        )
        if row.version:  # in a new session nothing has given way
            chains.come_back(self._store, writer, extended.made, now=self._now())
        item.made.update(extended.made)
        item.now = msgspec.structs.replace(item.now, chain=extended.state)
        return keep_tail or part.facts.offset == part.size

    def _facts(self, item: SourceImport) -> Draft:
        """What every commit of the source says."""
        identity, runtime = item.identity, item.runtime
        # An agent's records name its parent's session; a thread has an id of its own, whoever started it.
        owner = identity.parent if identity.agent else identity.session
        agent = f"/{identity.agent}" if identity.agent else ""
        # What a file is called is no part of what it holds: a copy elsewhere has the same commits.
        named = "" if item.now.unnamed else owner
        return Draft(
            artifact="",
            format=runtime.format,
            time=0,
            template=runtime.keeper,
            principal=self._principal or f"{runtime.keeper}:{owner}{agent}",
            machine=self._machine,
            session_id=named,
            spawned_from=item.now.spawned_from,
            forked_from=item.now.forked_from,
        )

    def _compare(self, writer: Writer, item: SourceImport, sources: Sources) -> None:
        """How the chain went on from the one the source had: that decides its status, and what becomes of the old
        tip."""
        if item.before is None and (moved := memory.moved(item.path, item.now.first, sources)):
            item.before = sources.pop(moved)
            item.continues = False
        before, now = item.before, item.now
        tips = memory.tips_elsewhere(item.path, sources) | item.twins
        had = {commit for commit in item.made if any(commit in self._commits_to(tip) for tip in tips)}
        if before is None:
            item.commits = len(item.made - had)
            item.repeated = memory.repeated(self._store, had)
            # Another file of a session, and no more in it than the store has.
            copy = len(sources.keys() - {item.path}) and item.made and not item.commits
            item.status = "unchanged" if copy else "new"
            return
        old, tip, continued, old_tips = before.chain, now.chain.tip, item.continues, before.old_tips
        had |= {old.tail} if continued or not old.tip else {step.id for step in self._store.walk(old.tip)}
        item.commits = len(item.made - had)
        if tip == old.tip or old.tip in item.made or not old.tip:
            item.status = "grown" if item.commits else "unchanged"
        elif item.rewritten or not (continued or not old.closed or old.closed in item.made):
            item.status, old_tips = "rewritten", (old.tip, *old_tips)
        else:
            item.status = "grown"
            if old.tail and not continued and old.tail not in item.ends:
                writer.annotate(old.tail, chains.SUPERSEDED_BY, tip, time=self._now())
        item.now = msgspec.structs.replace(now, old_tips=tuple(dict.fromkeys(t for t in old_tips if t != tip)))

    # -- what belongs to it ------------------------------------------------------------------------------------------

    def _keep_side_chains(self, writer: Writer, item: SourceImport, part: Part, rows: dict[str, SessionRow]) -> None:
        """The agents inside the file: each gets a chain of its own, made of the same lines."""
        if part.size > SIDE_CHAINS_LIMIT:
            return
        from .documents import follow_renamed, whole_part  # few files have agents inside

        reader = item.runtime.read
        follow_renamed(self._store, writer, item, part.facts.calls, rows)
        for agent, lines in reader.side_chains(self._content(item, part)).items():
            above = item.identity.name
            identity = Identity(session=above, agent=agent, parent=above)
            path, name = ids.source_within(item.path, agent), f"{item.name}/{agent}"
            known = chains.recall(memory.find_row(self._store, name, rows)).get(path)
            side = SourceImport(path, item.runtime, identity, known, name)
            side.is_inside = True
            side.start_over()
            spawned = known.spawned_from if known else {"session": above, "call_id": "", "inherits": False}
            side.now = msgspec.structs.replace(side.now, unnamed=item.now.unnamed, spawned_from=spawned)
            alone = whole_part(lines, reader.scan, part.stamp)
            facts = msgspec.structs.replace(alone.facts, side_chains=False)
            self.keep(writer, side, msgspec.structs.replace(alone, facts=facts), rows)
            item.commits += side.commits

    def _content(self, item: SourceImport, part: Part) -> bytes:
        """All of the file: the part, where it is the only one, or what its commits hold."""
        if not part.offset and not part.gaps and not part.frames:
            return part.segments[0][1]
        steps = [step for step in self._store.walk(item.now.chain.tip) if step.commit_type == "delta"]
        return b"".join(self._store.get_many([step.artifact for step in reversed(steps)]))
