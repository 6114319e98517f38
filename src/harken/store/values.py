"""What a store keeps and answers with, and the rules every store follows: names, seals, shown names, policies.

Frozen values and pure functions over them; nothing here touches a disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from harken import clock, ids
from harken.errors import BadRequest, Conflict, NotFound

COMMIT_TYPES = ("delta", "compaction", "snapshot")
POLICIES = ("default", "pin", "ephemeral", "replicate")
KINDS = ("branch", "tag")
CHANGES = ("artifact", "policy", "commit", "sighting", "name", "session", "annotation", "eviction", "link")
"""What can change; the feed writes a kind as its place in this list."""
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
    message_count: int | None = None
    """None where nobody counted, which is not zero."""
    token_count: int | None = None
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
    message_count: int | None
    token_count: int | None
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
    """`artifact`, `policy`, `commit`, `sighting`, `name`, `session`, `annotation`, `eviction` or `link`."""
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


# -- the rules --------------------------------------------------------------------------------------------------------

FULL = 64
"""Hex digits of a commit's name; a commit named like an older one is told apart by its seal's digits after these."""

NAME_LIMIT = 512
# A policy is weaker the further left it stands; bytes stored twice keep the stronger.
SESSION_NUMBERS = ("started", "ended", "messages", "cost_usd_micros")
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_STRENGTH = {"ephemeral": 0, "default": 1, "replicate": 2, "pin": 3}


def check_draft(draft: Draft) -> Draft:
    """The draft, if a commit can be made of it."""
    if draft.commit_type not in COMMIT_TYPES:
        raise BadRequest(f"no commit type {draft.commit_type!r}", hint=f"one of {', '.join(COMMIT_TYPES)}")
    if draft.checkpoint not in CHECKPOINTS:
        raise BadRequest(f"no checkpoint trigger {draft.checkpoint!r}", hint=f"one of {', '.join(CHECKPOINTS)}")
    if not draft.format:
        raise BadRequest("a commit needs the name of its format", hint="like events-v1")
    check_numbers(time=draft.time, message_count=draft.message_count, token_count=draft.token_count)
    if not clock.in_calendar(draft.time):
        raise BadRequest(f"no calendar has the instant {draft.time}", hint="microseconds since 1970")
    if (draft.message_count or 0) < 0 or (draft.token_count or 0) < 0:
        raise BadRequest("a commit cannot count fewer than no messages or tokens", hint="leave out what is not known")
    if not (draft.format.isascii() and draft.template.isascii()):
        _encodable(draft.format + draft.template)
    return draft


def commit_name(draft: Draft, created_at: str) -> str:
    """The 64 digits by Bureau's recipe."""
    parent = ids.commit_ref(draft.parent) if draft.parent else ""
    return ids.commit_id(parent, ids.artifact_ref(draft.artifact), created_at, draft.template)


def seal_of(draft: Draft, created_at: str, parent_seal: str) -> str:
    """What the commit is, whoever saw it: its content, its place in the chain, its kind and its session.

    Outside: who, where and the exact time (another principal may see the same commit), links to other sessions
    (found later, from other files), and counts (derived: a better reader may count otherwise)."""
    return ids.seal(
        (
            "1",
            draft.artifact,
            parent_seal,
            created_at,
            draft.template,
            draft.format,
            draft.commit_type,
            draft.checkpoint,
            draft.session_id,
            draft.ticket_id,
            draft.thread_id,
        )
    )


def links_text(spawned_from: dict[str, Any] | None, forked_from: str) -> str:
    """`spawned_from` and `forked_from` in the one spelling that is kept and summed; empty where there is neither."""
    links: dict[str, object] = {}
    if forked_from:
        links["forked_from"] = forked_from
    if spawned_from is not None:
        links["spawned_from"] = spawned_from
    return msgspec.json.encode(links, order="deterministic").decode() if links else ""


def shared_digits(a: str, b: str) -> int:
    """How many leading characters two names have in common."""
    for n, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return n
    return min(len(a), len(b))


def digits_needed(name: str, others: Iterable[str]) -> int:
    """How many digits tell a name from every one of `others`, never fewer than eight (after the 64th, for a twin).

    A name of 64 digits is not lengthened by its twins: it was first, and they are found by more digits than that."""
    least = ids.COMMIT_SHORT if len(name) <= FULL else FULL + ids.COMMIT_SHORT
    return max(
        [least, *(shared_digits(name, other) + 1 for other in others if other != name and len(other) == len(name))]
    )


def to_commit(draft: Draft, *, id: str, seal: str, short: str, created_at: str) -> Commit:
    """The draft with the names the store worked out."""
    return Commit(**msgspec.structs.asdict(draft), id=id, seal=seal, short=short, created_at=created_at)


def check_numbers(**numbers: int | None) -> None:
    """Whether every store can keep these: SQLite's integers have 64 bits, and it gives True back as 1."""
    for name, number in numbers.items():
        if number is not None and (type(number) is not int or not _LEAST <= number <= _MOST):
            raise BadRequest(f"`{name}` is no whole number of 64 bits", hint="leave out what is not known")


def check_version(session: str, version: int, expect: int | None) -> None:
    """Whether a session's row may be replaced: `Conflict` where it is not the one the caller has seen."""
    if expect is not None and expect != version:
        now = f"has been saved {version} times, not {expect}" if version else "is not there"
        raise Conflict(f"session {session} {now}: somebody else was faster", hint="read it again, then decide")


def check_rename(session: str, to: str, *, known: bool, taken: bool) -> None:
    """Whether a session may be called something else."""
    if not known:
        raise NotFound(f"there is no session {session!r}", hint="save it first")
    if taken:
        raise Conflict(f"there is a session {to!r} already", hint="choose another name")


def check_policy(policy: str, expires: int | None) -> None:
    """Whether a policy is one, and has the expiry it needs."""
    if policy not in POLICIES:
        raise BadRequest(f"no policy {policy!r}", hint=f"one of {', '.join(POLICIES)}")
    if (policy == "ephemeral") != (expires is not None):
        hint = "give an instant in microseconds with `ephemeral`, and none with the others"
        raise BadRequest("an ephemeral artifact has an expiry, and no other has one", hint=hint)
    check_numbers(expires=expires)


def stronger(a: tuple[str, int | None], b: tuple[str, int | None]) -> tuple[str, int | None]:
    """The policy that keeps the bytes longer."""
    if a[0] == b[0] == "ephemeral":
        return max(a, b, key=lambda policy: policy[1] or 0)
    return max(a, b, key=lambda policy: _STRENGTH[policy[0]])


def check_move(name: str, kind: str, current: Name | None, to: str, expect: str | None) -> None:
    """Whether a name may move like this: `Conflict` where it is not what the caller thinks."""
    if kind not in KINDS:
        raise BadRequest(f"a name is a branch or a tag, not {kind!r}", hint="`branch` or `tag`")
    check_name(name)
    if current is not None and current.kind != kind:
        raise Conflict(f"{name!r} is a {current.kind}", hint="choose another name, or remove that one first")
    here = current.target if current else ""
    if expect is not None and expect != here:
        where = ids.commit_ref(here, len(here)) if here else "nothing"
        raise Conflict(f"{kind} {name!r} points at {where} now", hint="look at it again, then decide")
    if not to and current is None and expect is None:
        raise NotFound(f"no {kind} {name!r}", hint=f"`harken {kind}` lists them")


def check_name(name: str) -> None:
    if not name or len(_encodable(name)) > NAME_LIMIT:
        raise BadRequest(f"a name has between 1 and {NAME_LIMIT} bytes", hint="choose a shorter one")
    if any(ord(c) < 32 or ord(c) == 127 for c in name) or name != name.strip():
        raise BadRequest(f"{name!r} cannot be a name: control characters, or spaces at an end", hint="leave those out")


def _encodable(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadRequest(f"{text!r} is not text that can be written down", hint="leave out lone surrogates") from None
