"""Bringing session files into the store: what changed is read, cut, and kept, a batch to a transaction.

A file goes through in steps of a few megabytes, each ending at a closed cut, so that memory stays bounded and a kill
loses at most a step that nobody was told about. Steps of several files share a transaction; an outcome is handed out
only after the transaction that holds it has landed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from harken import clock
from harken.context import chains
from harken.errors import HarkenError
from harken.formats.facts import FileFacts
from harken.formats.kit.claims import best
from harken.store import Draft, SessionRow, Store, Writer

from . import lineage, outcomes
from .base import Identity, Runtime, no_side_files
from .files import Stamp, Trouble, read_range, stamp
from .kept import FOOT, HEAD, Guard, Kept, SideFile, facts_into, recall, remember
from .outcomes import Outcome
from .sources import Excerpt, Source, open_source

STEP = 8 << 20
"""How much of a file is read at once; more only where a single line is longer."""
BATCH = 16 << 20
"""How many bytes go into one transaction."""
SNIFF = 64 << 10
ATTACHMENT_LIMIT = 64 << 20
"""A side file larger than this is named in the row but not kept."""


UNSETTLED = Stamp(-1, 0, 0)
"""The stamp of a file that was not read to its end: no file has it, so the next look reads on."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a file that has been read and cut, and not yet been kept."""

    data: bytes
    offset: int
    facts: FileFacts
    last: bool


class Job:
    """One file on its way into the store."""

    def __init__(self, source: Source, runtime: Runtime, identity: Identity, row: SessionRow | None, kept: Kept | None):
        self.source = source
        self.runtime = runtime
        self.identity = identity
        self.row = row
        self.before = kept
        self.name = row.session if row else identity.name
        self.now = kept or Kept(stamp=source.stamp, read_at=0)
        self.added: list[str] = []
        """Commits that the session did not have before."""
        self.made: set[str] = set()
        self.old_chain: set[str] = set()
        self.tip = row.tip if row else ""
        self.likes: list[str] = []
        """Artifacts of the file this one copies, in order; the copy's deltas are kept as differences to them."""
        self.spawned: dict[str, Any] | None = None
        """What the first commit says of the session it comes from, where the file itself names one."""
        self.status = "new" if kept is None else "grown"

    def outcome(self, row: SessionRow) -> Outcome:
        """What became of the file, now that its row is in the store."""
        moved = self.row is None or row.tip != self.row.tip
        changed = self.added or (self.status == "rewritten" and moved)
        status = self.status if changed else "unchanged"
        return outcomes.kept_as(row, self.now, status=status, before=self.before, commits=len(self.added))

    def prospect(self, step: Step) -> Outcome:
        """What would become of it."""
        row = SessionRow(
            session=self.name,
            runtime=self.runtime.name,
            parent=self.identity.parent,
            source=str(self.source.path),
        )
        return outcomes.would_be(row, step.facts, status=self.status, size=self.source.size, before=self.before)


class Importer:
    """Imports files into one store. Not shared between threads; several processes may each have one."""

    def __init__(
        self,
        store: Store,
        runtimes: Iterable[Runtime],
        *,
        now: clock.Clock = clock.now,
        verify: bool = False,
        principal: str = "",
        dry_run: bool = False,
        settle_tails: Callable[[Stamp], bool] = lambda stamp: True,
    ) -> None:
        self.store = store
        self.runtimes = tuple(runtimes)
        self.now = now
        self.verify = verify
        self.principal = principal
        self.dry_run = dry_run
        self.settle_tails = settle_tails
        """Whether what follows the last cut is kept already; `watch` waits until a file has been quiet."""
        self.rows = {row.session: row for row in store.sessions()}
        self.by_source = {row.source: row.session for row in self.rows.values() if row.source}
        self._pending: list[tuple[Job, Step]] = []
        self._pending_size = 0
        self._done: list[Outcome] = []

    @functools.cached_property
    def _beginnings(self) -> lineage.Beginnings:
        """Made when the first unknown file turns up: an import with nothing new need not look into any row."""
        return lineage.Beginnings(self.rows.values())

    def run(self, paths: Iterable[Path | Trouble], *, named: bool = False) -> Iterator[Outcome]:
        """Import the files and say what became of each. `named` files were asked for by name: not being a session is
        then a failure rather than nothing to speak of."""
        for path in paths:
            if isinstance(path, Trouble):
                self._done.append(outcomes.failed(path.path, path.why))
            else:
                try:
                    self._take(path, named)
                except HarkenError as problem:
                    self._drop(path)
                    self._done.append(outcomes.failed(str(path), str(problem)))
            if self._pending_size >= BATCH or not self._pending:
                yield from self._flush()
        yield from self._flush()

    # -- reading -----------------------------------------------------------------------------------------------------

    def _take(self, path: Path, named: bool) -> None:
        mark = stamp(path)
        row = self.rows.get(self.by_source.get(str(path), ""))
        kept = recall(row)
        if row is not None and kept is not None and kept.settled(mark) and not self.verify:
            self._done.append(outcomes.kept_as(row, kept, status="unchanged"))
            return
        source = open_source(path, mark)
        runtime = self._runtime_of(source)
        if runtime is None:
            if named:
                raise HarkenError(f"{path}: not a session of any runtime that can be imported")
            self._done.append(outcomes.skipped(str(path)))
            return
        self._read(source, runtime, row, kept)

    def _runtime_of(self, source: Source) -> Runtime | None:
        head = source.read(0, SNIFF)
        found = best((runtime, runtime.claim(head, source.path)) for runtime in self.runtimes)
        return found[0] if found else None

    def _read(self, source: Source, runtime: Runtime, row: SessionRow | None, kept: Kept | None) -> None:
        job: Job | None = None
        if row is not None and kept is not None and (self.verify or not _only_grew(source, kept)):
            # From the beginning: equal bytes give equal commits, so the chain leaves the old one where they differ.
            job = Job(source, runtime, _identity(row), row, None)
            job.before, job.status = kept, "rewritten"
            job.old_chain = {link.id for link in self.store.walk(row.tip)} if row.tip else set()
        elif row is not None:
            job = Job(source, runtime, _identity(row), row, kept)
        offset, state = (job.now.offset, job.now.scan) if job else (0, "")
        size = STEP
        while True:
            data = source.read(offset, size)
            last = offset + len(data) >= source.size or len(data) < size
            facts = runtime.read.scan(data, state.encode())
            if job is None:
                job = self._introduce(source, runtime, facts)
                if job.before is not None:  # a session we know, whose file has moved: only what was added is read
                    offset, state = job.now.offset, job.now.scan
                    continue
            if not last and facts.offset == offset:
                # A line, or a call with its answer, is longer than a step: read on to where its line ends.
                size = _line_end(source, offset + size) - offset + STEP
                continue
            self._pending.append((job, Step(data=data, offset=offset, facts=facts, last=last)))
            self._pending_size += len(data)
            if last:
                return
            if self._pending_size >= BATCH:
                self._land()
            offset, state, size = facts.offset, facts.state.decode(), STEP

    def _introduce(self, source: Source, runtime: Runtime, facts: FileFacts) -> Job:
        """The job for a file that no row knows by its path."""
        identity = runtime.read.identify(source.path, facts)
        if any(self._related(job, step, identity, facts) for job, step in self._pending):
            self._land()  # what it belongs to, or copies, has to be there first
        known = self.rows.get(identity.name)
        # A row without a source is the live chain of a wrapped run; the file's chain takes its place.
        if known is not None and known.source and known.source != str(source.path):
            moved = recall(known)
            if moved is not None and not Path(known.source).exists() and _only_grew(source, moved):
                return Job(source, runtime, identity, known, moved)
            identity = self._another(identity)
        job = Job(source, runtime, identity, None, None)
        original = self.rows.get(self._beginnings.find(runtime.name, facts))
        origin = lineage.find_origin(self.store, original, identity, runtime, source)
        if origin is not None:
            job.likes = origin.artifacts
            job.now = msgspec.structs.replace(job.now, forked_from=origin.commit)
        self._link_thread(job, facts, original)
        return job

    def _link_thread(self, job: Job, facts: FileFacts, original: SessionRow | None) -> None:
        """A thread that another one started, or that goes on from a place in another one's file."""
        identity = job.identity
        if identity.parent and not identity.agent:
            call = self._call_of(identity.parent, identity.session)
            job.spawned = {"session": identity.parent, "call_id": call, "inherits": False}
        elif facts.fork_base is not None and original is not None and original.tip:
            commit = lineage.commit_at(self.store, original.tip, facts.fork_base)
            job.spawned = {"session": original.session, "call_id": "", "inherits": True, "commit": commit}
            job.now = msgspec.structs.replace(job.now, forked_from=commit)

    @staticmethod
    def _related(job: Job, step: Step, identity: Identity, facts: FileFacts) -> bool:
        same_start = bool(facts.fingerprint) and facts.fingerprint[:1] == step.facts.fingerprint[:1]
        return same_start or job.name in (identity.name, identity.parent, facts.forked_from)

    def _another(self, identity: Identity) -> Identity:
        """A name for a file that claims the id of another file's session."""
        taken = self.rows.keys() | {job.name for job, _ in self._pending}
        for number in range(2, 1 << 20):
            candidate = msgspec.structs.replace(
                identity,
                session=f"{identity.session}~{number}",
                agent=f"{identity.agent}~{number}" if identity.agent else "",
            )
            if candidate.name not in taken:
                return candidate
        raise HarkenError(f"too many files claim to be session {identity.session}")

    def _drop(self, path: Path) -> None:
        """Forget the steps of a file that failed half-way; those that have landed stay, and the next import goes on."""
        self._pending = [(job, step) for job, step in self._pending if job.source.path != path]

    # -- keeping -----------------------------------------------------------------------------------------------------

    def _land(self) -> None:
        """Bring what is pending into the store before going on with a file."""
        landed = self._flush()
        self._done = landed + self._done

    def _flush(self) -> list[Outcome]:
        pending, self._pending, self._pending_size = self._pending, [], 0
        landed: list[Outcome] = []
        if pending and self.dry_run:
            landed = [job.prospect(step) for job, step in pending if step.last]
        elif pending:
            rows: list[SessionRow] = []
            with self.store.write() as writer:
                for job, step in pending:
                    rows += self._keep(writer, job, step)
                    if step.last:
                        landed.append(job.outcome(rows[-1]))
            for row in rows:
                self.rows[row.session] = row
                if "_beginnings" in self.__dict__:
                    self._beginnings.add(row)
                self.by_source[row.source] = row.session
        done, self._done = self._done, []
        return done + landed

    def _keep(self, writer: Writer, job: Job, step: Step) -> list[SessionRow]:
        whole = self._keep_deltas(writer, job, step)
        now = facts_into(job.now, step.facts)
        extra: list[SessionRow] = []
        if step.last:
            now = msgspec.structs.replace(
                now,
                stamp=job.source.stamp if whole else UNSETTLED,
                read_at=self.now(),
                size=job.source.size if whole else now.offset,
                beside=self._keep_beside(writer, job),
            )
            now = msgspec.structs.replace(
                now, guard=_guard(job.source, now.size), rewrites=self._keep_old_tip(writer, job)
            )
            extra = self._keep_side_chains(writer, job) if step.facts.side_chains else []
        else:
            # The file is not done; were it left here, the next import would go on from this cut.
            guard = _guard(job.source, now.offset)
            now = msgspec.structs.replace(now, stamp=UNSETTLED, size=now.offset, guard=guard)
        job.now = now
        facts = step.facts
        row = SessionRow(
            session=job.name,
            runtime=job.runtime.name,
            tip=job.tip,
            parent=job.identity.parent,
            agent=job.identity.agent,
            title=facts.title,
            source=str(job.source.path),
            started=facts.started,
            ended=facts.ended,
            messages=facts.messages,
            state=remember(now),
        )
        writer.save_session(row)
        return [*extra, row]

    def _keep_deltas(self, writer: Writer, job: Job, step: Step) -> bool:
        """Commit what the step cut; the answer is whether the file is kept to its end."""
        keep_tail = step.last and self.settle_tails(job.source.stamp)
        deltas = (
            (delta, step.data[delta.start - step.offset : delta.end - step.offset]) for delta in step.facts.deltas
        )
        extended = chains.extend(
            writer,
            job.now.chain,
            deltas,
            self._facts(job),
            now=self.now(),
            keep_tail=keep_tail,
            alike=job.likes,
        )
        job.made.update(extended.made)
        old_tail = job.before.chain.tail if job.before else ""
        job.added += [id for id in extended.made if id != old_tail and id not in job.old_chain]
        job.tip = extended.state.tip or job.tip
        job.now = msgspec.structs.replace(
            job.now, chain=extended.state, offset=step.facts.offset, scan=step.facts.state.decode()
        )
        return keep_tail or job.now.offset == job.source.size

    def _keep_side_chains(self, writer: Writer, job: Job) -> list[SessionRow]:
        """The agents inside the file: each gets a chain of its own, made of the same lines."""
        rows: list[SessionRow] = []
        reader = msgspec.structs.replace(job.runtime.read, side_files=no_side_files)
        runtime = msgspec.structs.replace(job.runtime, read=reader)
        for agent, lines in reader.side_chains(job.source.read(0, job.source.size)).items():
            identity = Identity(session=job.name, agent=agent, parent=job.name)
            source = Excerpt(job.source.path.with_name(f"{job.source.path.name}#{agent}"), job.source.stamp, lines)
            side = Job(source, runtime, identity, self.rows.get(identity.name), None)
            facts = msgspec.structs.replace(reader.scan(lines, b""), side_chains=False)
            rows += self._keep(writer, side, Step(data=lines, offset=0, facts=facts, last=True))
        return rows

    def _facts(self, job: Job) -> Draft:
        """What every commit of the file says."""
        agent = job.identity.agent
        # An agent's records name its parent's session; a thread has an id of its own, whoever started it.
        owner = job.identity.parent if agent else job.identity.session
        spawned = job.spawned
        if agent:
            call = self._call_of(owner, agent) or job.identity.call_id
            spawned = {"session": owner, "call_id": call, "inherits": False}
        return Draft(
            artifact="",
            format=job.runtime.format,
            time=0,
            template=job.runtime.name,
            principal=self.principal or f"{job.runtime.name}:{owner}" + (f"/{agent}" if agent else ""),
            session_id=owner,
            spawned_from=spawned,
            forked_from=job.now.forked_from,
        )

    def _call_of(self, session: str, agent: str) -> str:
        """The call that started a sub-agent, as the parent's file tells it."""
        kept = recall(self.rows.get(session))
        return kept.calls.get(agent, "") if kept else ""

    def _keep_old_tip(self, writer: Writer, job: Job) -> int:
        """A rewritten file's old tip gets a tag. The answer is how often the file has been rewritten."""
        before = job.before
        if before is None or job.row is None:
            return 0
        rewrites = before.rewrites
        if job.status == "rewritten" and job.row.tip and job.row.tip != job.tip and job.row.tip not in job.made:
            rewrites += 1
            writer.move(
                f"{job.name}@{rewrites}",
                kind="tag",
                to=job.row.tip,
                expect=None,
                time=self.now(),
                why="the file was rewritten",
            )
        return rewrites

    def _keep_beside(self, writer: Writer, job: Job) -> dict[str, SideFile]:
        known = job.before.beside if job.before else {}
        found: dict[str, SideFile] = {}
        for path in job.runtime.read.side_files(job.source.path):
            try:
                mark = stamp(path)
                name = path.relative_to(job.source.path.parent).as_posix()
                old = known.get(name)
                if old is not None and (old.size, old.modified) == (mark.size, mark.modified):
                    found[name] = old
                elif mark.size <= ATTACHMENT_LIMIT:
                    artifact = writer.put(read_range(path, 0, mark.size))
                    found[name] = SideFile(artifact, mark.size, mark.modified)
            except (HarkenError, ValueError):
                continue  # a side file that has just gone, or cannot be read, does not cost the session
        return found


def _identity(row: SessionRow) -> Identity:
    return Identity(session=row.parent if row.agent else row.session, agent=row.agent, parent=row.parent)


def _line_end(source: Source, start: int) -> int:
    """Where the line that goes through `start` ends, or the file does."""
    while part := source.read(start, STEP):
        if (at := part.find(b"\n")) >= 0:
            return start + at + 1
        start += len(part)
    return start


def _only_grew(source: Source, kept: Kept) -> bool:
    return source.size >= kept.size and kept.guard == _guard(source, kept.size)


def _guard(source: Source, size: int) -> Guard:
    """The guard of the first `size` bytes."""
    start = max(0, size - FOOT)
    return Guard.of(source.read(0, min(HEAD, size)), source.read(start, size - start))
