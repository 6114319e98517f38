"""What a store keeps and answers with: frozen values that do nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from harken import ids

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

    @property
    def stand(self) -> str:
        """The full name of the commit it stands at: `live` as long as that is set, else `tip`."""
        return self.live or self.tip


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


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing fsck has to say."""

    severity: str
    """`corrupt`: not what it says it is. `evicted`: let go on purpose. `note`: harmless, and worth knowing."""
    what: str
    """`commit`, `artifact`, `frame`, `name`, …"""
    which: str
    """Its name, or the number of its row."""
    why: str
    repaired: bool = False


class Report(msgspec.Struct, kw_only=True):
    """What fsck found."""

    commits: int = 0
    artifacts: int = 0
    frames: int = 0
    bytes_read: int = 0
    findings: list[Finding] = msgspec.field(default_factory=list)
    saved: str = ""
    """Where the file was copied before a repair."""

    @property
    def ok(self) -> bool:
        """Whether nothing is left that is corrupt."""
        return not any(found.severity == "corrupt" and not found.repaired for found in self.findings)


class GcReport(msgspec.Struct, kw_only=True):
    """What gc removed, or would."""

    dry_run: bool
    expired: int = 0
    """Ephemeral artifacts past their time."""
    evicted: int = 0
    """Artifacts that only the backing store holds now."""
    frames: int = 0
    """Frames dropped or written anew without what nobody needs."""
    freed: int = 0
    """Bytes of content removed."""
    cache: int = 0
    """Bytes of the cache."""
    pages: int = 0
    """Empty pages given back to the disk."""
    kept: int = 0
    """Artifacts that stay."""
    names: list[str] = msgspec.field(default_factory=list)
    """The artifacts that went, by their short names."""

    def note(self, artifact: str, size: int) -> None:
        """An artifact went."""
        self.freed += size
        self.names.append(ids.artifact_ref(artifact))
