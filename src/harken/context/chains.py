"""From what a scan cut out of a source to a chain of commits: of a file that grows, a document that is rewritten, a
database, or a session log that is being written.

Closed deltas become commits at once and for good. What follows the last cut is the tail: one commit, which hangs from
the last closed one. When the source has grown, the new commits hang from the last closed commit again; the old tail
keeps its id and says what came in its place. So a source that was kept as it grew ends at the same tip as one that
was kept in one go. Equal bytes give equal commits: keeping a rewritten source from its beginning makes the old commits
again as far as the two agree, and leaves the old chain there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
import zstandard

from harken.errors import PartlyCorrupt
from harken.events.tally import Tally, merge_requests
from harken.formats.base import Delta
from harken.formats.facts import FileFacts, Origin
from harken.store.base import Annotation, Content, Draft, SessionRow, Store, Writer
from harken.store.blobs import compress

T = TypeVar("T")
SUPERSEDED_BY = "superseded_by"
"""The annotation of a tail that is on no chain any more. Its value is the full name of the new chain's tip, or empty
once the tail came back: a source was put back, or a cut fell where it ended after all. The newest one counts."""


def is_superseded(notes: Sequence[Annotation]) -> bool:
    """Whether a commit with these annotations, the oldest first, gave way to another."""
    return next((bool(note.value) for note in reversed(notes) if note.key == SUPERSEDED_BY), False)


def come_back(store: Store, writer: Writer, commits: Sequence[str], *, now: int) -> None:
    """Say of the commits of a chain that were superseded once that they are so no more."""
    for commit, notes in store.annotations_of(commits).items():
        if is_superseded(notes):
            writer.annotate(commit, SUPERSEDED_BY, "", time=now)


class ChainState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a chain goes: what the session's row remembers of it."""

    closed: str = ""
    """The commit that ends at the last closed cut."""
    closed_time: int = 0
    """Its time, which those after it cannot fall behind."""
    commits: int = 0
    """How many commits end there; the tail is one more."""
    tail: str = ""
    """The commit of what follows, which a grown source supersedes."""

    @property
    def tip(self) -> str:
        """The newest commit; empty before the first."""
        return self.tail or self.closed


class Extended(msgspec.Struct, frozen=True, kw_only=True):
    """A chain that went on: its state now, and the commits that were made for it, or were there and made again."""

    state: ChainState
    made: tuple[str, ...] = ()


def extend(
    writer: Writer,
    state: ChainState,
    deltas: Iterable[tuple[Delta, Content | None]],
    facts: Draft,
    *,
    now: int,
    keep_tail: bool = True,
    ends: Collection[str] = (),
    alike: Sequence[str] = (),
    seen_by: tuple[str, str] | None = None,
) -> Extended:
    """Commit the deltas behind the last closed commit, each with its bytes (in pieces, where they are many; None where
    they are in the frame that came with one before), in the writer's transaction.

    `facts` is what every commit says (format, template, principal, session); where it comes from (`spawned_from`,
    `forked_from`) stands on the first alone. Without `keep_tail` a tail waits, and the old one stays as long as nothing
    has closed. `ends` are commits at which other sources of the session end, which do not give way. `alike` are
    artifacts that the chain's deltas nearly repeat, in order; `seen_by` is a principal and a machine by whom every
    commit was seen as well, outside its name and seal.
    """
    before, kept = state, list[Delta]()

    def contents() -> Iterator[Content]:
        for delta, data in deltas:
            if delta.closed or keep_tail:
                kept.append(delta)
                if data is not None:
                    yield data

    artifacts = writer.put_many(contents(), like=alike[state.commits :])
    drafts, time = list[Draft](), state.closed_time
    for delta, artifact in zip(kept, artifacts, strict=True):
        time = max(time, delta.time or 0)
        first = not state.commits and not drafts
        parent = "" if drafts else state.closed
        drafts.append(_draft(facts, delta, artifact=artifact, parent=parent, time=time, first=first))
    made = writer.commit_many(drafts)
    closed = [pair for pair, delta in zip(zip(drafts, made, strict=True), kept, strict=True) if delta.closed]
    tail = made[-1] if made and not kept[-1].closed else ""
    if closed:
        draft, commit = closed[-1]
        state = ChainState(closed=commit, closed_time=draft.time, commits=state.commits + len(closed))
    if seen_by is not None:
        for draft, parent in zip(drafts, [before.closed, *made], strict=False):
            writer.commit(msgspec.structs.replace(draft, parent=parent, principal=seen_by[0], machine=seen_by[1]))
    if not made:
        return Extended(state=before)
    state = msgspec.structs.replace(state, tail=tail)
    # A tail that was closed just where it ended is a commit of the chain, and nothing took its place.
    if before.tail and before.tail not in made and before.tail not in ends:
        writer.annotate(before.tail, SUPERSEDED_BY, state.tip, time=now)
    return Extended(state=state, made=tuple(made))


def _draft(facts: Draft, delta: Delta, *, artifact: str, parent: str, time: int, first: bool) -> Draft:
    return msgspec.structs.replace(
        facts,
        artifact=artifact,
        parent=parent,
        time=time,
        commit_type=delta.commit_type,
        checkpoint=delta.checkpoint,
        message_count=delta.messages,
        spawned_from=facts.spawned_from if first else None,
        forked_from=facts.forked_from if first else "",
    )


# -- what a session's row remembers of its sources -------------------------------------------------------------------

VERSION = 3
LONG = 2 << 10
"""A memory of as many bytes is compressed."""
LARGEST = 1 << 30
RECENT = 2_000_000


class FileStamp(msgspec.Struct, frozen=True, array_like=True):
    """What one `stat` says of a file; if it is the same, so is the file."""

    size: int
    modified: int
    """Nanoseconds."""
    inode: int

    def is_recent(self, now: int) -> bool:
        """Whether a change at `now` could leave the same stamp. A time in the future is nobody's present."""
        return abs(now - self.modified // 1000) <= RECENT


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
    live: bool = False
    """Whether whoever wrote it kept it, and named it. Where that was last, nothing is hashed (`digest` is empty) nor
    counted, and an import reads it from its beginning."""
    chain: ChainState = ChainState()
    old_tips: tuple[str, ...] = ()
    """Where the chain ended before the source was rewritten, the newest first."""
    title: str = ""
    named: bool = False
    """Whether somebody chose the title."""
    project: str = ""
    """The folder that was worked in, as the first record says that names one."""
    messages: int = 0
    """Of its own agent: those of agents inside it are counted in their own rows."""
    records: int = 0
    opaque: int = 0
    tally: Tally = msgspec.field(default_factory=Tally)
    """What the source amounts to, its requests by the ids under which each counts once."""
    agents: tuple[str, ...] = ()
    calls: dict[str, str] = {}
    """Sub-agent to the call that started it."""
    makers: dict[str, str] = {}
    """Sub-agent to the other one in this source that started it."""
    asks: dict[str, str] = {}
    """Calls that start sub-agents, each to the name of its prompt."""
    told: str = ""
    """The name of a sub-agent's first prompt."""
    call_id: str = ""
    """The call that started it, as a side file tells."""
    copies: str = ""
    """The session that it says it copies or builds on."""
    origin: Origin | None = None
    """What it says that it goes on from, where Harken wrote its beginning."""
    first: str = ""
    """The name of the first record, which a copy shares."""
    forked_from: str = ""
    """The commit this source goes on from, in another session."""
    spawned_from: dict[str, Any] | None = None
    """What its first commit says of the session it comes from."""
    side_files: dict[str, SideFile] = {}

    def with_facts(self, facts: FileFacts, *, whole: bool) -> SourceMemory:
        """The memory with the totals of a scan that goes to the present end of the source. Where it is not kept whole,
        the records of the tail count when that is."""
        waiting = 0 if whole else sum(delta.records for delta in facts.deltas if not delta.closed)
        requests = dict(self.tally.requests)
        merge_requests(requests, facts.tally.requests)
        origin = facts.origin or self.origin
        return msgspec.structs.replace(
            self,
            offset=facts.offset,
            scan=facts.state.decode(),
            title=facts.title,
            named=facts.named,
            project=facts.project,
            messages=facts.messages - facts.inside,
            records=facts.records - waiting,
            opaque=facts.opaque,
            tally=msgspec.structs.replace(facts.tally, requests=requests),
            agents=facts.agents,
            calls={**self.calls, **facts.calls},
            makers={**self.makers, **facts.makers},
            asks={**self.asks, **facts.asks},
            told=facts.told,
            copies=facts.forked_from or (origin.source if origin else ""),
            origin=origin,
            first=facts.fingerprint[0] if facts.fingerprint else self.first,
        )

    def tells_beyond(self, known: SourceMemory | None) -> bool:
        """Whether it says more of others than it did, by which they may find where they come from."""
        before = known or SourceMemory()
        return (self.calls, self.makers, self.asks) != (before.calls, before.makers, before.asks)

    def with_links(self, other: SourceMemory) -> SourceMemory:
        """The memory with the links of another one."""
        return msgspec.structs.replace(self, forked_from=other.forked_from, spawned_from=other.spawned_from)


Sources = dict[str, SourceMemory]
"""The memories of a session's sources, by their paths."""


class SourceStamp(msgspec.Struct, frozen=True, array_like=True):
    """What has to be known of a source that has not changed: its stamp, when it was read, by what others are found
    that copy it, or that it copies, and what a list of sessions says of it."""

    stamp: FileStamp
    read_at: int
    first: str = ""
    copies: str = ""
    session: str = ""
    project: str = ""


class StampsLine(msgspec.Struct, frozen=True):
    """The first line of a row's memory."""

    version: int
    sources: dict[str, SourceStamp]
    """By path."""


_decode_stamps = msgspec.json.Decoder(StampsLine).decode
_decode_sources = msgspec.json.Decoder(Sources).decode


class ListsSessions(Protocol):
    """A store, or whoever speaks for one."""

    def sessions(self, *, prefix: str = ...) -> list[SessionRow]: ...


def readable_sessions(place: ListsSessions, prefix: str = "") -> list[SessionRow]:
    """The sessions that can be read, for whoever only looks among them; who asks for one of the others is told."""
    try:
        return place.sessions(prefix=prefix)
    except PartlyCorrupt as problem:
        return problem.rest


def is_forgotten(store: Store, row: SessionRow) -> bool:
    """Whether the session, or the one whose agent it is, was forgotten on purpose."""
    above = store.find_session(row.parent) if row.parent else None
    return row.forgotten or (above is not None and above.forgotten)


def kept_out(store: Store, known: SourceMemory) -> SourceMemory:
    """The memory without secrets that were forgotten: the title comes from what somebody said."""
    title, scan = store.keep_out(known.title), known.scan
    if title != known.title:  # inside what the scanner remembers nobody could tell that it was cut off
        scan = scan.replace(_encode(known.title).decode(), _encode(title).decode())
    scan = store.keep_out(scan)
    return (
        known if (title, scan) == (known.title, known.scan) else msgspec.structs.replace(known, title=title, scan=scan)
    )


def remember(sources: Sources) -> bytes:
    """The memory as a session's row holds it: a line of JSON with the stamps, and behind it the rest, compressed where
    it is long. An import with nothing to do reads the line alone."""
    known = {
        path: SourceStamp(k.stamp, k.read_at, k.first, k.copies, k.session, k.project) for path, k in sources.items()
    }
    rest = _encode(sources)
    return _encode(StampsLine(VERSION, known)) + b"\n" + (rest if len(rest) < LONG else compress(rest))


def _encode(value: object) -> bytes:
    """JSON. The path of a file may hold any byte: what is no UTF-8 in it stands as half a surrogate pair, which only an
    escape can say."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


def _decode(data: bytes, kind: type[T], decode: Callable[[bytes], T]) -> T:
    try:
        return decode(data)
    except msgspec.DecodeError:
        if b"\\ud" not in data:
            raise
        return msgspec.convert(json.loads(data), kind)


def recall_stamps(row: SessionRow) -> dict[str, SourceStamp]:
    """What the first line says of every source of the session, by path."""
    try:
        known = _decode(row.state[: row.state.index(b"\n")], StampsLine, _decode_stamps)
        return known.sources if known.version == VERSION else {}
    except (msgspec.MsgspecError, ValueError):
        return {}  # no import left it, or one of another version: reading the source again makes a new one


def project_of(row: SessionRow) -> str:
    """The folder that a session worked in: that of its present source, else of the first by its path that names one.
    Empty where no record does, or where an earlier Harken read them, until `import --verify` looks again."""
    known = recall_stamps(row)
    ranked = sorted(known, key=lambda path: (path != row.source, path))
    return next((known[path].project for path in ranked if known[path].project), "")


def in_project(project: str, wanted: str) -> bool:
    """Whether a folder is the project that somebody named: by its name, in any case of letters, or by the path of it
    or of a folder around it."""
    if "/" in wanted:
        around = wanted.rstrip("/")
        return project == around or project.startswith(f"{around}/")
    return bool(project) and project.rstrip("/").rpartition("/")[2].casefold() == wanted.casefold()


def is_unused(row: SessionRow, prefix: int) -> bool:
    """Whether a session that Harken wrote, so many bytes, has no more than that in any of its sources."""
    known = recall_stamps(row)
    return bool(prefix and known) and all(each.stamp.size <= prefix for each in known.values())


def recall(row: SessionRow | None) -> Sources:
    """The memories in a session's row, as far as imports left some."""
    if row is None or not recall_stamps(row):
        return {}
    rest = row.state[row.state.index(b"\n") + 1 :]
    try:
        if rest.startswith(zstandard.FRAME_HEADER):
            rest = zstandard.ZstdDecompressor().decompress(rest, max_output_size=LARGEST)
        return _decode(rest, Sources, _decode_sources)
    except (msgspec.MsgspecError, zstandard.ZstdError, MemoryError, ValueError):
        return {}
