"""What an import remembers of a session's sources, in the session's row: enough to go on where it stopped, to tell
whether a source has changed or copies another, and to answer without reading it again. All of it is derived from the
bytes.

A session may lie in several files (a conversation that went back to an earlier point and on from there, a copy in a
second folder). Each has a chain and a memory of its own; the row is a function of all of them, so it does not matter
in which order they came.
"""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from harken import __version__, ids
from harken.context.chains import FileStamp, SideFile, SourceMemory, Sources, recall, recall_stamps, remember
from harken.context.spawned import from_beginning
from harken.errors import Closed, HarkenError, Locked
from harken.events.figures import Figures
from harken.formats.facts import FileFacts
from harken.store import SessionRow, Store, Writer

from .base import Identity, Runtime
from .files import OpenFile, SourceUnreadable, stamp_of

if TYPE_CHECKING:
    from .sources import NotClaimed

LARGE = 64 << 20  # a file that is smaller, and no archive, is quickly tried again
FORGOTTEN = "forgotten"
"""The status of a source whose session was forgotten on purpose: it is not read."""
Rows = dict[str, SessionRow]
"""The rows that a transaction has changed, by their sessions."""


def find_row(store: Store, name: str, rows: Rows) -> SessionRow | None:
    """The row of a session as the transaction leaves it."""
    return rows.get(name) or store.find_session(name)


def version_of(known: SourceMemory | None) -> tuple[object, ...] | None:
    """What differs between any two states of a source's memory."""
    return (known.stamp, known.read_at, known.size, known.digest, known.chain) if known else None


def _rank(path: str, known: SourceMemory) -> tuple[int, int, int, str, str]:
    return known.tally.ended or 0, known.tally.started or 0, known.size, known.chain.tip, path


def row_of(store: Store, row: SessionRow, sources: Sources) -> SessionRow:
    """The session's row as its sources make it; what a run said of itself stays."""
    ranked = sorted(sources, key=lambda path: _rank(path, sources[path]), reverse=True)
    newest = sources[ranked[0]]
    title, messages = newest.title, newest.messages
    if (newest.spawned_from or {}).get("session") == (newest.session or row.session):
        title, messages = from_beginning(store, row.session, [sources[path] for path in ranked])
    tips = [sources[path].chain.tip for path in ranked[1:]]
    tips += [tip for path in ranked for tip in sources[path].old_tips]
    started = [known.tally.started for known in sources.values() if known.tally.started is not None]
    return msgspec.structs.replace(
        row,
        tip=newest.chain.tip,
        older=tuple(dict.fromkeys(tip for tip in tips if tip and tip != newest.chain.tip)),
        title=title or next((sources[path].title for path in ranked if sources[path].title), row.title),
        source=ranked[0],
        started=min(started, default=row.started),
        ended=newest.tally.ended,
        cost_usd_micros=row.cost_usd_micros if newest.tally.cost_usd_micros is None else newest.tally.cost_usd_micros,
        messages=messages,
        state=remember(sources),
    )


def moved(source: str, first: str, sources: Sources) -> str:
    """The source of the same session that is gone and began with the same record, if there is one. A document in whose
    place another one stood for a while is back."""
    for path, known in sources.items():
        is_gone = not _is_there(path) or (ids.file_around(path) == source and not Path(path).exists())
        if path != source and known.first and known.first == first and is_gone:
            return path
    return ""


def tips_elsewhere(source: str, sources: Sources) -> set[str]:
    """Where the chains of a session's other sources end, or ended."""
    others = [known for path, known in sources.items() if path != source]
    return {tip for known in others for tip in (known.chain.tip, *known.old_tips) if tip}


class Repeated(NamedTuple):
    """How much of a source other sources of its session had brought before."""

    records: int = 0
    bytes: int = 0


def repeated(store: Store, commits: Collection[str]) -> Repeated:
    """What these commits hold: the records of a file are its lines."""
    records = size = 0
    held = store.get_commits(sorted(commits)) if commits else []
    infos = store.infos([commit.artifact for commit in held])
    for commit in held:
        length = (infos.get(commit.artifact) or store.info(commit.artifact)).size
        # What is this long is one line: others are cut much earlier, and need not be read for their number.
        data = store.get(commit.artifact) if length <= LARGE else b""
        records += data.count(b"\n") + (not data.endswith(b"\n"))
        size += length
    return Repeated(records, size)


def _is_there(source: str) -> bool:
    """Whether the file of a source is there; of what is inside a file, the file."""
    return Path(source).exists() or (bool(file := ids.file_around(source)) and Path(file).exists())


# -- whom a session may have to do with ------------------------------------------------------------------------------


def top_of(row: SessionRow) -> str:
    """The session that a family of agents is named after: the row's own, where it is no agent's."""
    return row.session.removesuffix(f"/{row.agent}") if row.agent else row.session


class Beginnings:
    """Which sessions begin with which record, and which say what they copy, so that copies and originals find each
    other without a search."""

    def __init__(self, rows: Iterable[SessionRow]) -> None:
        self._alike: dict[tuple[str, str], set[str]] = {}
        self._copies: dict[str, set[str]] = {}
        for row in rows:
            self.add(row)

    def add(self, row: SessionRow) -> None:
        """Note a session."""
        for known in recall_stamps(row).values() if row.tip and not row.parent else ():
            if known.first:
                self._alike.setdefault((row.runtime, known.first), set()).add(row.session)
            if known.copies:
                self._copies.setdefault(known.copies, set()).add(row.session)

    def find(self, runtime: str, facts: FileFacts) -> list[str]:
        """The sessions that a file may copy, or be the original of."""
        first = facts.fingerprint[0] if facts.fingerprint else ""
        told = {facts.forked_from} if facts.forked_from else set()
        return [*sorted(told), *sorted(self._alike.get((runtime, first), set()) - told)]

    def copies(self, session: str) -> set[str]:
        """The sessions that say they copy this one, or go on from it."""
        return self._copies.get(session, set())

    def relatives(self, row: SessionRow) -> set[str]:
        """The sessions that a session may copy, or be the original of."""
        found = set(self._copies.get(row.session, ()))
        for known in recall_stamps(row).values():
            found |= self._alike.get((row.runtime, known.first), set())
            found |= {known.copies} - {""} | self._copies.get(known.session, set())
        return found - {row.session}


def told_origin(identity: Identity, facts: FileFacts) -> dict[str, Any] | None:
    """What a source itself says of the session it comes from; which call it was, others may know better."""
    base = {"inherits": True, "offset": facts.fork_base} if facts.fork_base is not None else {"inherits": False}
    if identity.parent:
        inherits = facts.forked_from == identity.parent
        return {"session": identity.parent, "call_id": identity.call_id, **(base if inherits else {"inherits": False})}
    if facts.fork_base is None:
        return None
    # Which commit that is depends on what else has been imported; whoever reads the chain finds it.
    return {"session": facts.forked_from or identity.session, "call_id": "", **base}


def without_agent(
    store: Store, writer: Writer, agent: SessionRow, row: SessionRow, path: str, now: SourceMemory
) -> dict[str, SessionRow]:
    """The rows of what was taken for a sub-agent's file, and is a session's that begins with records of one. `row` is
    the session's: the agent's under another name, or one with other files, to which this one then comes."""
    sources, left = recall(row), recall(agent)
    is_other = path not in sources
    known = sources[path] = left.pop(path).with_links(now)
    if known.chain.tip:
        root = store.walk(known.chain.tip)[-1].id
        writer.link(root, spawned_from=known.spawned_from, forked_from=known.forked_from)
    found = {row.session: msgspec.structs.replace(row, parent="", agent="", state=remember(sources))}
    if is_other:
        # What stands inside the file is the agent's; its chain is made anew, of those lines alone.
        empty = SessionRow(session=agent.session, runtime=agent.runtime, parent=agent.parent, agent=agent.agent)
        found[agent.session] = writer.save_session(row_of(store, agent, left) if left else empty)
    return found


# -- what became of a source -----------------------------------------------------------------------------------------


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one source."""

    session: str
    runtime: str
    source: str
    status: str
    """`new`, `grown`, `rewritten`, `unchanged`, `forgotten`, `skipped` or `failed`."""
    tip: str = ""
    parent: str = ""
    agents: tuple[str, ...] = ()
    commits: int = 0
    records: int = 0
    opaque: int = 0
    bytes: int = 0
    total_commits: int = 0
    total_records: int = 0
    total_opaque: int = 0
    total_bytes: int = 0
    figures: Figures = Figures()
    """What the session amounts to, all versions of it together that are in the store when this is told. `stats` says
    the same, but of agents inside the source in rows of their own, and of a cost that sub-agents share for all of them
    together."""
    forked_from: str = ""
    error: str = ""
    """Why it failed, or why it was passed over."""
    hint: str = ""


def failed(source: str, why: str, hint: str | None = None) -> ImportResult:
    """The source could not be taken in."""
    return ImportResult(session="", runtime="", source=source, status="failed", error=why, hint=hint or "")


def failure_of(source: str, problem: BaseException) -> ImportResult:
    """The source failed, and how. A store that was closed is no failure of the source's."""
    if isinstance(problem, Closed):
        raise problem
    if isinstance(problem, HarkenError):
        return failed(source, str(problem), problem.hint)
    if isinstance(problem, MemoryError):
        return failed(source, f"{source}: not enough memory to take it in")
    return failed(source, f"{source}: could not be taken in ({type(problem).__name__}: {problem})")


def is_the_stores(problem: Exception) -> bool:
    """Whether the store itself is in trouble, and the next source would fare no better. Where room is lacking it may:
    a smaller one may fit. A row that is not what was written, or cannot be beside another, concerns only what has to do
    with it."""
    causes = (problem, problem.__cause__ or problem.__context__)
    if isinstance(problem, SourceUnreadable):
        return False
    if any(_is_lack_of_room(cause) or isinstance(cause, sqlite3.IntegrityError) for cause in causes):
        return False
    return isinstance(problem, (Closed, Locked, OSError)) or isinstance(causes[1], (sqlite3.Error, OSError))


def _is_lack_of_room(problem: BaseException | None) -> bool:
    if isinstance(problem, sqlite3.Error):
        return getattr(problem, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
    return isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT)


class FailureMemory:
    """What could not be taken in and would cost much to try again (an archive, a large file), in the store's cache: as
    long as the file is the same, the failure is told again without a look into it. `--verify`, a file that is asked
    for by name and another version of Harken look again. A database of which some sessions failed (`inside`) is read
    again each time, so that they are told."""

    def __init__(self, store: Store, runtimes: Iterable[str], *, dry_run: bool) -> None:
        self._store, self._dry_run = store, dry_run
        self._of = f"import-failure/{__version__}/{','.join(sorted(runtimes))}"

    def find(self, path: Path, *, inside: bool = False) -> ImportResult | None:
        """How the file failed, where it did and has not changed since."""
        stamp = stamp_of(path)
        if not inside and path.suffix != ".zst" and stamp.size < LARGE:
            return None
        found = self._store.cached(self._key(path, stamp, inside))
        return None if found is None else msgspec.json.decode(found, type=ImportResult)

    def note(self, path: Path, result: ImportResult, now: int, *, inside: bool = False) -> None:
        """Remember a failure, unless the file may be changing within a tick of its clock, or is gone. Nor is one that
        has a name which is no text: it is looked at again."""
        with contextlib.suppress(SourceUnreadable, UnicodeEncodeError):
            if not self._dry_run and not (stamp := stamp_of(path)).is_recent(now):
                self._store.cache(self._key(path, stamp, inside), msgspec.json.encode(result))

    def _key(self, path: Path, stamp: FileStamp, inside: bool) -> str:
        return f"{self._of}/{'inside/' * inside}{stamp.size}-{stamp.modified}-{stamp.inode}{path}"


def skipped(source: str, why: str, program: str = "") -> ImportResult:
    """The file is no session, or one of a program that cannot be read yet."""
    return ImportResult(session="", runtime=program, source=source, status="skipped", error=why)


def not_claimed(source: str, said: NotClaimed, *, named: bool) -> ImportResult:
    """The file is no session; a failure where it was asked for by name."""
    return failed(source, f"{source}: {said.why}", said.hint) if named else skipped(source, said.why, said.program)


def unchanged(row: SessionRow, source: str, details: bool) -> ImportResult:
    """The source is as it was, or its session is forgotten; `details` are how much there is of it."""
    if not details or row.forgotten:
        status = FORGOTTEN if row.forgotten else "unchanged"
        return ImportResult(session=row.session, runtime=row.runtime, source=source, status=status, parent=row.parent)
    return result_of(row, source, recall(row).get(source, SourceMemory()), status="unchanged")


def result_of(
    row: SessionRow,
    source: str,
    known: SourceMemory,
    *,
    status: str,
    before: SourceMemory | None = None,
    commits: int = 0,
    again: Repeated | None = None,
) -> ImportResult:
    """The source is in the store; what this run added is the difference to what it had `before`, without what
    other sources of the session had brought (`again`); one that shrank added nothing. The figures are the source's."""
    old = known if status == "unchanged" else before or SourceMemory()
    again = again or Repeated()
    return ImportResult(
        session=row.session,
        runtime=row.runtime,
        source=source,
        status=status,
        tip=known.chain.tip,
        parent=row.parent,
        agents=known.agents,
        commits=commits,
        records=max(0, known.records - old.records - again.records),
        opaque=max(0, known.opaque - old.opaque),
        bytes=max(0, known.size - old.size - again.bytes),
        total_commits=known.chain.commits + bool(known.chain.tail),
        total_records=known.records,
        total_opaque=known.opaque,
        total_bytes=known.size,
        figures=known.tally.figures(),
        forked_from=known.forked_from,
    )


# -- the files beside a session's own, which are often written after the record that speaks of them -------------------

SIDE_FILE_LIMIT = 64 << 20
"""A larger side file is not kept."""
SIDE_FILE_TRIES = 3
"""How often a side file that is being written is read anew."""


def has_new_side_files(runtime: Runtime | None, path: Path, read_at: int) -> bool:
    """Whether a side file was written, or came here, since the session was read. The time of a file's last change of
    any kind says so, which no program can set, so that the row need not be unpacked for their stamps."""
    for side in runtime.read.side_files(path) if runtime is not None else ():
        try:
            found = side.stat()
        except OSError:
            continue  # it has just gone; what is kept of it stays
        changed = FileStamp(found.st_size, found.st_ctime_ns, found.st_ino)
        if changed.modified // 1000 > read_at or changed.is_recent(read_at):
            return True
    return False


def keep_side_files(writer: Writer, runtime: Runtime, source: str, before: SourceMemory | None) -> dict[str, SideFile]:
    """The side files as they are now, by their paths from the source's folder."""
    known = before.side_files if before else {}
    read_at = before.read_at if before else 0
    found: dict[str, SideFile] = {}
    path = Path(source)
    for side in runtime.read.side_files(path):
        try:
            name = side.relative_to(path.parent).as_posix()
            if (kept := _keep(writer, side, known.get(name), read_at)) is not None:
                found[name] = kept
        except (HarkenError, ValueError):
            continue  # a side file that has just gone, or cannot be read, does not cost the session
    return found


def _keep(writer: Writer, path: Path, old: SideFile | None, read_at: int) -> SideFile | None:
    data = b""
    for _ in range(SIDE_FILE_TRIES):
        with OpenFile(path, unpack=False) as file:
            stamp = file.stamp
            is_same = old is not None and (old.size, old.modified) == (stamp.size, stamp.modified)
            if is_same and not stamp.is_recent(read_at):
                return old
            if stamp.size > SIDE_FILE_LIMIT:
                return None
            data = file.read(0, stamp.size)
            if file.stamp_now() == stamp:
                return SideFile(writer.put(data), stamp.size, stamp.modified)
    # It is being written all the time. What there is of it is kept, under a time that no file has: the next look,
    # which its change brings about, reads it again.
    return SideFile(writer.put(data), len(data), -1)
