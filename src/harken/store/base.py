"""What a store promises: bytes by their hash, commits in chains, names that move, and nothing half done.

A store has never heard of an event: it keeps bytes and the facts about them. `memory.py` is the plainest
implementation and `sqlite.py` the one people use; both pass `harken.testing.store.StoreContract`.

Everything that changes the store happens inside `with store.write() as writer:`, which is one transaction: it is
there whole when the block ends, or not at all. Reading needs no transaction. Methods called `get` raise `NotFound`,
methods called `find` may return None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

COMMIT_TYPES = ("delta", "compaction", "snapshot")
POLICIES = ("default", "pin", "ephemeral", "replicate")
KINDS = ("branch", "tag")
CHECKPOINTS = ("turn_boundary", "tool_call", "compaction", "session_end", "explicit")


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller says of a commit; the store works out the names."""

    artifact: str
    """The full name of the delta (or summary, or snapshot), stored before or in the same transaction."""
    format: str
    parent: str = ""
    """The full name of the parent; empty for the first of a chain."""
    commit_type: str = "delta"
    checkpoint: str = "explicit"
    time: int
    """The exact instant; the name is made from its whole seconds."""
    template: str = ""
    principal: str = ""
    machine: str = ""
    session_id: str = ""
    ticket_id: str = ""
    thread_id: str = ""
    message_count: int = 0
    token_count: int = 0
    approximate: bool = False
    """Whether `token_count` is an estimate."""
    spawned_from: dict[str, Any] | None = None
    """`{session, call_id, inherits}`: where a sub-agent's chain branches off."""
    forked_from: str = ""
    """The commit this chain continues in another session; outside the name."""


class Commit(Draft, frozen=True, kw_only=True):
    """A commit as it is kept."""

    id: str
    """64 hex digits by Bureau's recipe. Where another commit (another seal) had that name before, the 64 digits of
    its own seal follow, so that this too is a name of hex digits and a unique prefix finds it."""
    seal: str
    """BLAKE3 over the fields that make the commit what it is, the parent's seal and the artifact's full name."""
    short: str
    """What people see: `ctx-` and enough digits to be alone."""
    created_at: str
    """Whole seconds, as they went into the name."""


class Link(msgspec.Struct, frozen=True, gc=False):
    """A commit as materialize needs it: one step of a walk, cheap enough for chains of a hundred thousand."""

    id: str
    artifact: str
    commit_type: str
    format: str
    message_count: int
    token_count: int
    approximate: bool


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """A principal made this commit; the first sighting is the commit's own principal, machine and time."""

    commit: str
    principal: str
    machine: str
    time: int


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """Something said about a commit afterwards; the list only grows, the newest of a key stands."""

    commit: str
    key: str
    """`summary`, `label`, `superseded_by`, …"""
    value: str
    time: int
    who: str = ""


class Name(msgspec.Struct, frozen=True, kw_only=True):
    """A branch or a tag: a name that points at a commit."""

    name: str
    kind: str
    """`branch` or `tag`."""
    target: str


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A name was moved on purpose; undoing it is one more move."""

    number: int
    name: str
    kind: str
    before: str
    """Empty where the name was new."""
    after: str
    """Empty where the name was removed."""
    time: int
    who: str
    why: str


class ArtifactInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an artifact without reading it."""

    id: str
    size: int
    policy: str = "default"
    """`default`, `pin`, `ephemeral` or `replicate`."""
    expires: int | None = None
    evicted: bool = False


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session the store knows: where it came from, how far it goes."""

    session: str
    runtime: str
    version: int = 0
    """How often the row was saved; the store counts, and `save_session` compares. 0 is a row that was never saved."""
    tip: str = ""
    """The full name of its newest commit."""
    live: str = ""
    """The full name of a commit above `tip` that holds what only a live recording has; the session stands there as
    long as this is set."""
    older: tuple[str, ...] = ()
    """The full names of older tips, the newest first: `SESSION~1`, `SESSION~2`, …"""
    parent: str = ""
    """The session that spawned it, for a sub-agent."""
    agent: str = ""
    title: str = ""
    source: str = ""
    """The file it was read from, where there is one."""
    template: str = ""
    """This and the next four are what a run said of itself."""
    principal: str = ""
    machine: str = ""
    ticket_id: str = ""
    thread_id: str = ""
    started: int | None = None
    ended: int | None = None
    messages: int = 0
    cost_usd_micros: int | None = None
    """What it cost; None where nobody knows."""
    state: bytes = b""
    """What the importer needs to go on where it stopped; opaque here (JSON text)."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the store, as its feed tells it."""

    number: int
    """The store's next: no gap, always higher, never used again."""
    kind: str
    """`artifact`, `policy`, `commit`, `sighting`, `name`, `session`, `annotation` or `eviction`."""
    subject: str
    """The full name of an artifact or commit, a branch or tag, or a session; empty where it is no longer there."""
    detail: str = ""
    """The policy, the principal of a sighting, `branch` or `tag`, or the key of an annotation."""


class Writer(Protocol):
    """The changing half of a store, alive inside one transaction."""

    def put(self, data: bytes, *, like: str = "", policy: str = "default", expires: int | None = None) -> str:
        """Keep the bytes; the answer is their full name. Writing twice is writing once.

        `like` names an artifact that these bytes nearly repeat (the same record in a file that was copied): where
        that pays, they are kept as the difference to it. Bytes that were there already keep the stronger of the two
        policies: nobody's copy goes because somebody else stored it for a day."""
        ...

    def put_stream(self, parts: Iterable[bytes], *, policy: str = "default", expires: int | None = None) -> str:
        """`put` for content that need not fit into memory: it arrives, and is kept, in parts."""
        ...

    def commit(self, draft: Draft) -> Commit:
        """Record a commit; the parent and the artifact must be there. The same commit twice is one commit."""
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

    def set_policy(self, artifact: str, policy: str, *, expires: int | None = None) -> None:
        """How long the artifact must stay."""
        ...

    def evict(self, artifact: str) -> None:
        """Let the bytes go and keep the name: reading it says `Evicted` until the same bytes are put again.
        `Conflict` for a pinned artifact."""
        ...


class Store(Protocol):
    """The reading half, and the doors to the rest."""

    location: str
    """Where it lies, as a person would write it: a path, or a URL."""

    def write(self) -> AbstractContextManager[Writer]:
        """One transaction: whole when the block ends, or nothing of it if it raises."""
        ...

    # -- artifacts ---------------------------------------------------------------------------------------------

    def get(self, artifact: str) -> bytes:
        """The bytes of that full name, checked against it. `NotFound`, `Evicted`, `Corrupt`."""
        ...

    def get_many(self, artifacts: Sequence[str]) -> Iterator[bytes]:
        """The bytes of many, in the order asked; each frame is read and checked once."""
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

    def artifacts(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Full names that begin with these hex digits."""
        ...

    # -- commits -----------------------------------------------------------------------------------------------

    def get_commit(self, commit: str) -> Commit:
        """The commit of that full name."""
        ...

    def commits(self, prefix: str = "", *, limit: int | None = None) -> list[Commit]:
        """Commits whose name begins with these hex digits, newest first. A commit that shares all 64 digits with an
        older one is found only by more than 64 digits, so a name once given keeps its meaning."""
        ...

    def chain(self, commit: str, *, limit: int | None = None, stop: Iterable[str] = ()) -> list[Commit]:
        """From the commit back towards its root, in few queries; ends after a commit whose type is in `stop`."""
        ...

    def walk(self, commit: str, *, limit: int | None = None, stop: Iterable[str] = ()) -> list[Link]:
        """`chain` without the facts that only people need; this is what materialize reads."""
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

    def get_commits(self, commits: Sequence[str]) -> list[Commit]:
        """The commits of these full names, in the order asked, in few queries."""
        ...

    def sightings_of(self, commits: Sequence[str]) -> dict[str, list[Sighting]]:
        """`sightings` of many commits, by the names that were asked for."""
        ...

    # -- what is said about them -------------------------------------------------------------------------------

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

    def sessions(self, *, prefix: str = "", source: str | None = None) -> list[SessionRow]:
        """The sessions it knows, by the start of their id or by the file they came from."""
        ...

    def find_session(self, session: str) -> SessionRow | None:
        """The session of exactly this id."""
        ...

    # -- the feed ----------------------------------------------------------------------------------------------

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
        """Wait until there is a change after that number, made by whatever thread or process; False where none
        came within `timeout` seconds."""
        ...

    # -- the cache of derived bytes ----------------------------------------------------------------------------

    def cached(self, key: str) -> bytes | None:
        """Derived bytes kept under this key, if they still are."""
        ...

    def cache(self, key: str, data: bytes) -> None:
        """Keep derived bytes for a while; bounded, and never the only copy of anything."""
        ...

    # -- housekeeping ------------------------------------------------------------------------------------------

    def pack(self, commit: str = "") -> int:
        """Gather small frames into large ones: those of the commit's chain, or all. The answer is how many went.
        It happens by itself as chains grow and end; calling it changes nothing but the room they take."""
        ...

    def close(self) -> None:
        """Let go of everything; a store left without this is still whole."""
        ...
