"""What an import remembers of a session's sources, in the session's row: enough to go on where it stopped, to tell
whether a source has changed or copies another, and to answer without reading it again. All of it is derived from the
bytes.

A session may lie in several files (a conversation that went back to an earlier point and on from there, a copy in a
second folder). Each has a chain and a memory of its own; the row is a function of all of them, so it does not matter
in which order they came.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from harken import __version__
from harken.context import session_records
from harken.context.chains import ChainState
from harken.context.names import RESUMED_BRANCH
from harken.errors import HarkenError
from harken.events.tally import Figures, Tally, merge_requests
from harken.formats.facts import FileFacts
from harken.store import SessionRow, Store

from .base import Identity, Runtime
from .files import FileStamp, stamp_of

VERSION = 2
LONG = 2 << 10
LARGE = 64 << 20
"""A file that is smaller, and no archive, is quickly tried again."""
LARGEST = 1 << 30
UNREAD = FileStamp(-1, 0, 0)
"""The stamp of a source that was not read to its end: none has it, so the next look reads on."""


class SideFile(msgspec.Struct, frozen=True, array_like=True):
    """A file beside the session's own, kept as an artifact."""

    artifact: str
    size: int
    modified: int


class SourceMemory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The memory of one source."""

    stamp: FileStamp = UNREAD
    read_at: int = 0
    """When it was read, to tell a settled source from one that is still being written."""
    offset: int = 0
    """The last closed cut."""
    scan: str = ""
    """The scanner's state there (JSON text)."""
    size: int = 0
    """How many bytes of the content are kept."""
    digest: str = ""
    """The hash of those bytes."""
    session: str = ""
    """The id its records give, where the row is called otherwise, since another runtime has a session of that id."""
    unnamed: bool = False
    """Whether its first records named no session, so that its commits name none."""
    chain: ChainState = ChainState()
    old_tips: tuple[str, ...] = ()
    """Where the chain ended before the source was rewritten, the newest first."""
    title: str = ""
    messages: int = 0
    records: int = 0
    opaque: int = 0
    tally: Tally = msgspec.field(default_factory=Tally)
    """What the source amounts to, its requests by the ids under which each counts once."""
    agents: tuple[str, ...] = ()
    calls: dict[str, str] = {}
    """Sub-agent to the call that started it."""
    first: str = ""
    """The name of the first record, which a copy shares."""
    forked_from: str = ""
    """The commit this source goes on from, in another session."""
    spawned_from: dict[str, Any] | None = None
    """What its first commit says of the session it comes from, where the source itself names one."""
    side_files: dict[str, SideFile] = {}

    def with_facts(self, facts: FileFacts) -> SourceMemory:
        """The memory with the totals of a scan that goes to the present end of the source."""
        requests = dict(self.tally.requests)
        merge_requests(requests, facts.tally.requests)
        return msgspec.structs.replace(
            self,
            offset=facts.offset,
            scan=facts.state.decode(),
            title=facts.title,
            messages=facts.messages,
            records=facts.records,
            opaque=facts.opaque,
            tally=msgspec.structs.replace(facts.tally, requests=requests),
            agents=facts.agents,
            calls={**self.calls, **facts.calls},
            first=self.first or (facts.fingerprint[0] if facts.fingerprint else ""),
        )

    def is_settled(self, stamp: FileStamp) -> bool:
        """Whether the source is as it was, so that nothing has to be read."""
        return self.stamp == stamp and not stamp.is_recent(self.read_at)


Sources = dict[str, SourceMemory]
"""The memories of a session's sources, by their paths."""


class StampsLine(msgspec.Struct, frozen=True):
    """The first line of a row's memory: what has to be known of a source that has not changed."""

    version: int
    sources: dict[str, tuple[FileStamp, int]]
    """By path: its stamp, and when it was read."""


_pack = zstandard.ZstdCompressor(level=3).compress
"""Made once: making a compressor costs ten times as much as using it on so little."""
_decode_stamps = msgspec.json.Decoder(StampsLine).decode
_decode_sources = msgspec.json.Decoder(Sources).decode


def remember(sources: Sources) -> bytes:
    """The memory as a session's row holds it: a line of JSON with the stamps, and behind it the rest, compressed where
    it is long. An import with nothing to do reads the line alone."""
    stamps = StampsLine(VERSION, {path: (known.stamp, known.read_at) for path, known in sources.items()})
    rest = msgspec.json.encode(sources)
    return msgspec.json.encode(stamps) + b"\n" + (rest if len(rest) < LONG else _pack(rest))


def recall_stamps(row: SessionRow) -> dict[str, tuple[FileStamp, int]]:
    """Path to stamp and time of reading, for every source of the session."""
    try:
        known = _decode_stamps(row.state[: row.state.index(b"\n")])
        return known.sources if known.version == VERSION else {}
    except (msgspec.MsgspecError, ValueError):
        return {}  # no import left it, or one of another version: reading the source again makes a new one


def recall(row: SessionRow | None) -> Sources:
    """The memories in a session's row, as far as imports left some."""
    if row is None or not recall_stamps(row):
        return {}
    rest = row.state[row.state.index(b"\n") + 1 :]
    try:
        if rest.startswith(zstandard.FRAME_HEADER):
            rest = zstandard.ZstdDecompressor().decompress(rest, max_output_size=LARGEST)
        return _decode_sources(rest)
    except (msgspec.MsgspecError, zstandard.ZstdError, MemoryError):
        return {}


def version_of(known: SourceMemory | None) -> tuple[object, ...] | None:
    """What differs between any two states of a source's memory."""
    return (known.stamp, known.read_at, known.size, known.digest, known.chain) if known else None


def current(sources: Sources) -> str:
    """The path of the source that the runtime itself would go on with: the one that was last active. Nothing but what
    the sources hold decides, so names do not depend on the order of imports."""
    return max(sources, key=lambda path: _rank(path, sources[path]))


def _rank(path: str, known: SourceMemory) -> tuple[int, int, int, str, str]:
    return known.tally.ended or 0, known.tally.started or 0, known.size, known.chain.tip, path


def row_of(row: SessionRow, sources: Sources) -> SessionRow:
    """The session's row as its sources make it; what a run said of itself stays."""
    ranked = sorted(sources, key=lambda path: _rank(path, sources[path]), reverse=True)
    newest = sources[ranked[0]]
    tips = [sources[path].chain.tip for path in ranked[1:]]
    tips += [tip for path in ranked for tip in sources[path].old_tips]
    started = [known.tally.started for known in sources.values() if known.tally.started is not None]
    return msgspec.structs.replace(
        row,
        tip=newest.chain.tip,
        older=tuple(dict.fromkeys(tip for tip in tips if tip and tip != newest.chain.tip)),
        title=next((sources[path].title for path in ranked if sources[path].title), row.title),
        source=ranked[0],
        started=min(started, default=row.started),
        ended=newest.tally.ended,
        cost_usd_micros=row.cost_usd_micros if newest.tally.cost_usd_micros is None else newest.tally.cost_usd_micros,
        messages=newest.messages,
        state=remember(sources),
    )


# -- where a session comes from: a fork copies another's records, a resumed one was written by Harken, a thread may say.
# The link is found when the file is first seen, and is outside names and seals: a chain never depends on it.


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The commit a session goes on from, and the artifacts its first records repeat, in order."""

    commit: str
    artifacts: list[str]


class Beginnings:
    """Which session begins with which record, so that a copy finds its original without a search."""

    def __init__(self, rows: Iterable[SessionRow]) -> None:
        self._known: dict[tuple[str, str], str] = {}
        for row in rows:
            self.add(row)

    def add(self, row: SessionRow) -> None:
        """Note a session; the first that begins like this is the original."""
        for known in recall(row).values() if row.tip and not row.parent else ():
            if known.first:
                self._known.setdefault((row.runtime, known.first), row.session)

    def find(self, runtime: str, facts: FileFacts) -> str:
        """The session that this file copies or builds on; empty where none is known."""
        if facts.forked_from:
            return facts.forked_from
        return self._known.get((runtime, facts.fingerprint[0]), "") if facts.fingerprint else ""


def find_origin(
    store: Store, original: SessionRow | None, identity: Identity, runtime: Runtime, beginning: bytes
) -> Origin | None:
    """What this file goes on from, if the store knows it; `original` is the session it seems to copy, `beginning` its
    first megabytes."""
    if identity.parent:
        return None
    if (name := store.find_name(RESUMED_BRANCH + identity.session)) is not None:
        return Origin(commit=name.target, artifacts=_deltas(store, name.target))
    if original is None or not original.tip or original.session == identity.name:
        return None
    commit = _last_shared(store, original.tip, runtime, beginning)
    return Origin(commit=commit or original.tip, artifacts=_deltas(store, original.tip))


def spawned_from(parent: SessionRow | None, identity: Identity, facts: FileFacts) -> dict[str, Any] | None:
    """The session a source itself says it comes from; `parent` is that of a sub-agent, as far as it is known."""
    if identity.parent:
        agent = identity.agent or identity.session
        told = (source.calls[agent] for source in recall(parent).values() if agent in source.calls)
        call = next(told, identity.call_id if identity.agent else "")
        return {"session": identity.parent, "call_id": call, "inherits": False}
    if facts.fork_base is None:
        return None
    # Which commit that is depends on what else has been imported; whoever reads the chain finds it.
    base = facts.forked_from or identity.session
    return {"session": base, "call_id": "", "inherits": True, "offset": facts.fork_base}


def _deltas(store: Store, tip: str) -> list[str]:
    return [link.artifact for link in reversed(store.walk(tip))]


def _last_shared(store: Store, tip: str, runtime: Runtime, beginning: bytes) -> str:
    """The original's newest commit that holds a record which the copy has too."""
    names = set(runtime.read.record_names(beginning))
    if not names:
        return ""
    for link in store.walk(tip):
        (data,) = store.get_many([link.artifact])
        if names.intersection(runtime.read.record_names(data)):
            return link.id
    return ""


# -- what became of a source -----------------------------------------------------------------------------------------


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one source."""

    session: str
    runtime: str
    source: str
    status: str
    """`new`, `grown`, `rewritten`, `unchanged`, `skipped` or `failed`."""
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
    """What the session amounts to, all versions of it together; `stats` says the same."""
    forked_from: str = ""
    error: str = ""
    """Why it failed, or why it was passed over."""
    hint: str = ""


def failed(source: str, why: str, hint: str | None = None) -> ImportResult:
    """The source could not be taken in."""
    return ImportResult(session="", runtime="", source=source, status="failed", error=why, hint=hint or "")


def failure_of(source: str, problem: Exception) -> ImportResult:
    """The source failed, and how."""
    if isinstance(problem, HarkenError):
        return failed(source, str(problem), problem.hint)
    if isinstance(problem, MemoryError):
        return failed(source, f"{source}: not enough memory to take it in")
    return failed(source, f"{source}: could not be taken in ({type(problem).__name__}: {problem})")


class FailureMemory:
    """What could not be taken in and would cost much to try again (an archive, a large file), in the store's cache: as
    long as the file is the same, the failure is told again without a look into it. `--verify`, a file that is asked
    for by name and another version of Harken look again."""

    def __init__(self, store: Store, runtimes: Iterable[str]) -> None:
        self._store = store
        self._of = f"import-failure/{__version__}/{','.join(sorted(runtimes))}"

    def find(self, path: Path) -> ImportResult | None:
        """How the file failed, where it did and has not changed since."""
        stamp = stamp_of(path)
        if path.suffix != ".zst" and stamp.size < LARGE:
            return None
        found = self._store.cached(self._key(path, stamp))
        return None if found is None else msgspec.json.decode(found, type=ImportResult)

    def note(self, path: Path, result: ImportResult, now: int) -> None:
        """Remember a failure, unless the file may be changing within a tick of its clock."""
        if not (stamp := stamp_of(path)).is_recent(now):
            self._store.cache(self._key(path, stamp), msgspec.json.encode(result))

    def _key(self, path: Path, stamp: FileStamp) -> str:
        return f"{self._of}/{stamp.size}-{stamp.modified}-{stamp.inode}{path}"


def skipped(source: str, why: str) -> ImportResult:
    """The file is no session."""
    return ImportResult(session="", runtime="", source=source, status="skipped", error=why)


def figures_of(store: Store, row: SessionRow, known: SourceMemory) -> Figures:
    """What a session amounts to: what its only source does, or all versions of it together."""
    if row.older or row.live:
        # The session is in the store by now: versions that nobody here can read must not make a failure of it.
        with contextlib.suppress(HarkenError):
            return Tally.of(event for record in session_records(store, row) for event in record.events).figures()
    return known.tally.figures()


def result_of(
    store: Store,
    row: SessionRow,
    source: str,
    known: SourceMemory,
    *,
    status: str,
    before: SourceMemory | None = None,
    commits: int = 0,
) -> ImportResult:
    """The source is in the store; what this run added is the difference to what it had `before`; one that shrank
    added nothing."""
    old = known if status == "unchanged" else before or SourceMemory()
    return ImportResult(
        session=row.session,
        runtime=row.runtime,
        source=source,
        status=status,
        tip=known.chain.tip,
        parent=row.parent,
        agents=known.agents,
        commits=commits,
        records=max(0, known.records - old.records),
        opaque=max(0, known.opaque - old.opaque),
        bytes=max(0, known.size - old.size),
        total_commits=known.chain.commits + bool(known.chain.tail),
        total_records=known.records,
        total_opaque=known.opaque,
        total_bytes=known.size,
        figures=figures_of(store, row, known),
        forked_from=known.forked_from,
    )
