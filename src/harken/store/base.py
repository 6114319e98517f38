"""What a store promises: bytes by their hash, commits in chains, names that move, and nothing half done.

A store has never heard of an event: it keeps bytes and the facts about them. `memory.py` is the plainest
implementation and `sqlite.py` the one people use; both pass `harken.testing.store.StoreContract`.

Everything that changes the store happens inside `with store.write() as writer:`, which is one transaction: it is
there whole when the block ends, or not at all. Reading needs no transaction. Methods called `get` raise `NotFound`,
methods called `find` may return None.

Bytes and commits are two protocols each, for reading and for writing, so that one of them can live elsewhere one day;
a store has both, and its writer is one transaction over both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .reports import GcReport, Report
from .tombstones import Erasure, ErasureOrder, Tombstone
from .values import (
    CHECKPOINTS,
    COMMIT_TYPES,
    KINDS,
    POLICIES,
    Annotation,
    ArtifactInfo,
    Change,
    Commit,
    Draft,
    Move,
    Name,
    SessionRow,
    Sighting,
    WalkStep,
)

if TYPE_CHECKING:
    from .packed import PackedFrame

__all__ = [
    "CHECKPOINTS",
    "COMMIT_TYPES",
    "KINDS",
    "POLICIES",
    "Annotation",
    "ArtifactInfo",
    "BlobReader",
    "BlobWriter",
    "Change",
    "Commit",
    "CommitReader",
    "CommitWriter",
    "Content",
    "Draft",
    "Erasure",
    "ErasureOrder",
    "Feed",
    "Maintenance",
    "Move",
    "Name",
    "SessionRow",
    "Sighting",
    "Store",
    "Tombstone",
    "WalkStep",
    "Writer",
]


Content: TypeAlias = "bytes | Iterable[bytes] | PackedFrame"
"""What can be put: bytes, bytes in parts, or artifacts that are compressed already."""


class BlobReader(Protocol):
    """Artifacts: bytes by the hash of the bytes."""

    def get(self, artifact: str) -> bytes:
        """The bytes of that full name, checked against it. `NotFound`, `Evicted`, `Corrupt`."""
        ...

    def get_many(self, artifacts: Sequence[str], *, large: Callable[[str], bytes] | None = None) -> Iterator[bytes]:
        """The bytes of many, in the order asked; each frame is read and checked once. Those that are too large for a
        frame are asked of `large`, if that is given; so may be others."""
        ...

    def iter_parts(self, artifact: str) -> Iterator[bytes]:
        """The bytes of one artifact in parts of bounded size; `Corrupt` at the end if they were not its bytes."""
        ...

    def has(self, artifact: str) -> bool:
        """Whether its bytes are here."""
        ...

    def info(self, artifact: str) -> ArtifactInfo:
        """What is known of it without reading it."""
        ...

    def infos(self, artifacts: Sequence[str]) -> dict[str, ArtifactInfo]:
        """`info` of many, by their names; those that are not here are left out."""
        ...

    def artifacts(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Full names that begin with these hex digits."""
        ...

    def contents(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Every artifact that has bytes, with its parts, in the order that is quickest to read. `Corrupt` comes last,
        where there are some that damage hides."""
        ...

    def tombstones(self, artifacts: Sequence[str]) -> dict[str, Tombstone]:
        """What was forgotten of these artifacts, by their names; those that are whole are left out. `get` gives what is
        left, and says `Forgotten` where that is nothing."""
        ...


class BlobWriter(Protocol):
    """Artifacts, inside a transaction."""

    def compress_beside(self) -> None:
        """Use another core for what is put from now on: worth it for one who puts megabytes."""
        ...

    def put(self, data: bytes, *, like: str = "", policy: str = "default", expires: int | None = None) -> str:
        """Keep the bytes; the answer is their full name. Writing twice is writing once.

        `like` names an artifact that these bytes nearly repeat (the same record in a file that was copied): where
        that pays, they are kept as the difference to it. Bytes that were there already keep the stronger of the two
        policies: nobody's copy goes because somebody else stored it for a day."""
        ...

    def put_stream(self, parts: Iterable[bytes], *, policy: str = "default", expires: int | None = None) -> str:
        """`put` for content that need not fit into memory: it arrives, and is kept, in parts."""
        ...

    def put_many(self, contents: Iterable[Content], *, like: Sequence[str] = ()) -> list[str]:
        """`put` for many, or `put_stream` where one comes in parts; they are taken a few at a time. A `PackedFrame`
        stands for all that is in it. `like` is what the first of them nearly repeat, in order."""
        ...

    def set_policy(self, artifact: str, policy: str, *, expires: int | None = None) -> None:
        """How long the artifact must stay."""
        ...

    def evict(self, artifact: str) -> None:
        """Let the bytes go and keep the name: reading it says `Evicted` until the same bytes are put again.
        `Conflict` for a pinned artifact."""
        ...


class CommitReader(Protocol):
    """Commits in chains, what is said about them, and the sessions they belong to."""

    def get_commit(self, commit: str) -> Commit:
        """The commit of that full name."""
        ...

    def get_commits(self, commits: Sequence[str]) -> list[Commit]:
        """The commits of these full names, in the order asked, in few queries."""
        ...

    def commits(self, prefix: str = "", *, limit: int | None = None) -> list[Commit]:
        """Commits whose name begins with these hex digits, newest first. A commit that shares all 64 digits with an
        older one is found only by more than 64 digits, so a name once given keeps its meaning."""
        ...

    def chain(self, commit: str, *, limit: int | None = None, stop: Iterable[str] = ()) -> list[Commit]:
        """From the commit back towards its root, in few queries; ends after a commit whose type is in `stop`."""
        ...

    def walk(self, commit: str, *, limit: int | None = None, stop: Iterable[str] = ()) -> list[WalkStep]:
        """`chain` without the facts that only people need; this is what materialize reads."""
        ...

    def beginning(self, commit: str, count: int) -> list[WalkStep]:
        """The other end of the same walk: its root and what comes next, at most so many. What lies between them and the
        commit is not read, however much it is, and so not checked."""
        ...

    def children(self, commit: str) -> list[Commit]:
        """The commits that name it as their parent."""
        ...

    def latest(self, principal: str, time: int) -> Commit | None:
        """The principal's newest commit at or before the instant; sightings count."""
        ...

    def sightings(self, commit: str) -> list[Sighting]:
        """Who made this commit, the first to do so first."""
        ...

    def sightings_of(self, commits: Sequence[str]) -> dict[str, list[Sighting]]:
        """`sightings` of many commits, by the names that were asked for."""
        ...

    def annotations(self, commit: str) -> list[Annotation]:
        """Everything said about a commit, oldest first."""
        ...

    def annotations_of(self, commits: Sequence[str]) -> dict[str, list[Annotation]]:
        """`annotations` of many commits, by the names that were asked for."""
        ...

    def names(self, kind: str | None = None) -> list[Name]:
        """Branches and tags."""
        ...

    def names_at(self, commits: Sequence[str]) -> dict[str, list[Name]]:
        """The branches and tags that point at each of these commits, by the names that were asked for."""
        ...

    def find_name(self, name: str) -> Name | None:
        """What a branch or tag points at."""
        ...

    def moves(self, name: str | None = None, *, limit: int | None = None) -> list[Move]:
        """Deliberate moves, newest first."""
        ...

    def sessions(self, *, prefix: str = "", source: str | None = None, parent: str | None = None) -> list[SessionRow]:
        """The sessions it knows, by the start of their id, by their file, or by the session that spawned them."""
        ...

    def find_session(self, session: str) -> SessionRow | None:
        """The session of exactly this id."""
        ...


class CommitWriter(Protocol):
    """Commits, names and sessions, inside a transaction."""

    def commit(self, draft: Draft) -> Commit:
        """Record a commit; the parent and the artifact must be there. The same commit twice is one commit."""
        ...

    def commit_many(self, drafts: Sequence[Draft]) -> list[str]:
        """`commit` for the next commits of a chain: the first has the parent that its draft names, each other one the
        commit before it. The answer are their full names."""
        ...

    def link(self, commit: str, *, spawned_from: dict[str, Any] | None, forked_from: str) -> None:
        """Put these links in the place of the commit's: where a chain comes from may be known only once other sessions
        are there. They are outside its name and seal."""
        ...

    def annotate(self, commit: str, key: str, value: str, *, time: int, who: str = "") -> None:
        """Say something about a commit."""
        ...

    def move(
        self,
        name: str,
        *,
        kind: str,
        to: str,
        expect: str | None,
        time: int,
        who: str = "",
        why: str = "",
        record: bool = True,
    ) -> None:
        """Point a name at a commit (`to=""` removes it). `Conflict` unless it points at `expect` now: `""` means
        it must be new, None means wherever it is. `record=False` is for tips that advance by themselves."""
        ...

    def save_session(self, row: SessionRow, *, expect: int | None = None) -> SessionRow:
        """Insert the session or put this row in its place; the answer is the row with its new version.

        `Conflict` unless the version that is there is `expect`: 0 means the session must be new, None means
        whatever it is. `row.version` is not looked at."""
        ...

    def rename_session(self, session: str, to: str) -> SessionRow:
        """Call a session something else; nobody may be called so yet (`Conflict`)."""
        ...


class Writer(BlobWriter, CommitWriter, Protocol):
    """The changing half of a store, alive inside one transaction. Everything that changes goes through it."""


class Feed(Protocol):
    """Every change by its number."""

    @property
    def epoch(self) -> str:
        """Drawn when the store was made. A backup has another, a repair makes a new one: a follower that knows
        another epoch starts over."""
        ...

    def last_change(self) -> int:
        """The number of the newest change; 0 in a store that never changed."""
        ...

    def since(self, number: int, limit: int = 1000) -> list[Change]:
        """The changes after that number, oldest first, at most `limit` of them."""
        ...

    def wait(self, number: int, timeout: float) -> bool:
        """Wait until there is a change after that number, made by whatever thread or process, or until a repair has
        given the store another epoch; False where neither came within `timeout` seconds."""
        ...


class Maintenance(Protocol):
    """What keeps a store well."""

    def fsck(self, *, read_data: bool = False, repair: bool = False, now: int | None = None) -> Report:
        """Is everything what it says it is? `read_data` reads every byte, `repair` moves what is damaged aside.

        A repair always reads every byte: it may not call a store sound that it has only looked at."""
        ...

    def gc(
        self,
        *,
        dry_run: bool = False,
        now: int | None = None,
        keep_cache: bool = False,
        limit: int | None = None,
        backing: Callable[[str], bool] | None = None,
        needed: Iterable[str] = (),
    ) -> GcReport:
        """Remove what nothing needs. `backing` says whether another store holds an artifact: those are evicted until
        the rest is below `limit` bytes; `needed` names artifacts that something outside the store needs."""
        ...

    @property
    def has_forgotten(self) -> bool:
        """Whether anything was ever forgotten on purpose; quicker than asking what."""
        ...

    def erasures(self) -> list[Erasure]:
        """Everything that was forgotten on purpose, the oldest first."""
        ...

    def erase(self, order: ErasureOrder) -> Erasure:
        """Forget, in one transaction: names, sizes, commits and seals stay, and from its end on nobody is shown what
        was there. It is begun then; `scrub` takes the bytes out of the file, `finish_erasure` notes that it is done."""
        ...

    def scrub(self) -> None:
        """Take what nothing points at out of the file, its log and its cache. It may be called at any time."""
        ...

    def finish_erasure(self, number: int) -> None:
        """Note that nothing is left of what the erasure forgot."""
        ...

    def lift_erasure(self, number: int) -> None:
        """Let in again what the erasure forgot, where somebody puts it again."""
        ...

    def keep_out(self, value: str) -> str:
        """The text without the secrets that were forgotten, as far as they can be known again."""
        ...

    def backup(self, path: str | os.PathLike[str]) -> int:
        """Copy the store as it is now into a new file, a store of its own; the answer is its size in bytes."""
        ...

    def pack(self, commit: str = "") -> int:
        """Gather small frames into large ones: those of the commit's chain, or all. The answer is how many went.
        It happens by itself as chains grow and end; calling it changes nothing but the space they take."""
        ...


class Store(BlobReader, CommitReader, Feed, Maintenance, Protocol):
    """Everything that can be asked of a store, and the transaction in which it changes."""

    location: str
    """Where it lies, as a person would write it: a path, or a URL."""

    @property
    def closed(self) -> bool:
        """Whether it has been closed: then every call is `Closed`."""
        ...

    def write(self) -> AbstractContextManager[Writer]:
        """One transaction: whole when the block ends, or nothing of it if it raises."""
        ...

    def cached(self, key: str) -> bytes | None:
        """Derived bytes kept under this key, if they still are."""
        ...

    def cache(self, key: str, data: bytes) -> None:
        """Keep derived bytes for a while; bounded, and never the only copy of anything."""
        ...

    def close(self) -> None:
        """Wait for whoever is reading, then close; a store left without this is still whole."""
        ...
