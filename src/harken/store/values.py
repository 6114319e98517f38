"""What a store keeps and answers with, and the rules every store follows: names, seals, shown names, policies.

Frozen values and pure functions over them; nothing here touches a disk.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from operator import attrgetter, contains
from typing import Any, TypeVar

import msgspec

from harken import clock, ids
from harken.errors import BadRequest, Conflict, NotFound

T = TypeVar("T")
COMMIT_TYPES = ("delta", "compaction", "snapshot")
POLICIES = ("default", "pin", "ephemeral", "replicate")
KINDS = ("branch", "tag")
CHANGES = ("artifact", "policy", "commit", "sighting", "name", "session", "annotation", "eviction", "link", "erasure")
"""What can change; the feed writes a kind as its place in this list."""
CHECKPOINTS = ("turn_boundary", "tool_call", "compaction", "session_end", "explicit")


class Draft(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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


class Commit(Draft, frozen=True, kw_only=True, gc=False):
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


class WalkStep(msgspec.Struct, frozen=True, gc=False):
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
    """The full name of a commit above `tip` with what only a live recording has; while it is set, it stands there."""
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
    lost: bool = False
    """Whether a repair found only a part of it, and no import has brought back the rest."""
    forgotten: bool = False
    """Whether it was forgotten on purpose: no import brings it back by itself."""

    @property
    def stand(self) -> str:
        """The full name of the commit it stands at: `live` as long as that is set, else `tip`."""
        return self.live or self.tip


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the store, as its feed tells it."""

    number: int
    """The store's next: no gap, always higher, never used again."""
    kind: str
    """`artifact`, `policy`, `commit`, `sighting`, `name`, `session`, `annotation`, `eviction`, `link` or `erasure`."""
    subject: str
    """The full name of an artifact or commit, a branch or tag, or a session; empty where it is no longer there."""
    detail: str = ""
    """The policy, the principal of a sighting, `branch` or `tag`, or the key of an annotation."""
    problem: str = ""
    """Why the subject has no name though it is there: its row is damaged."""


# -- the rules --------------------------------------------------------------------------------------------------------

FULL = ids.COMMIT_FULL
"""Hex digits of a commit's name; a commit named like an older one is told apart by its seal's digits after these."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_STRENGTH = {"ephemeral": 0, "default": 1, "replicate": 2, "pin": 3}  # bytes that are stored twice keep the stronger
_draft_texts = attrgetter(*(name for name, kind in Draft.__annotations__.items() if kind == "str"))
_SESSION_KINDS = {"str": str, "int": int, "bool": bool, "bytes": bytes, "tuple[str, ...]": tuple}
_session_values = attrgetter(*(name for name, kind in SessionRow.__annotations__.items() if kind in _SESSION_KINDS))
_SESSION_TYPES = tuple(_SESSION_KINDS[kind] for kind in SessionRow.__annotations__.values() if kind in _SESSION_KINDS)


def check_draft(draft: Draft) -> Draft:
    """The draft, if a commit can be made of it."""
    if {*map(type, _draft_texts(draft))} != {str} or type(draft.approximate) is not bool:
        _check_fields(draft, Draft)
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
    if not (draft.format.isascii() and draft.template.isascii()) and not ids.is_text(draft.format + draft.template):
        raise BadRequest("a format or template holds a lone surrogate", hint="a commit's name is made from their UTF-8")
    check_origin(draft.spawned_from)
    return draft


def check_origin(origin: dict[str, Any] | None) -> None:
    """Refuse a `spawned_from` that JSON could not say and give back as it is."""
    try:
        plain = origin is None or msgspec.json.decode(msgspec.json.encode(origin)) == origin
    except (TypeError, ValueError, OverflowError, RecursionError):
        plain = False
    if not plain or not isinstance(origin, dict | None):
        hint = 'like {"session": "s", "call_id": "c", "inherits": False}'
        raise BadRequest("`spawned_from` is not made of JSON values", hint=hint)


def _check_fields(value: msgspec.Struct, cls: type) -> None:
    """Whether the fields of a struct are what it says they are: nobody looks when one is made."""
    try:
        msgspec.convert(msgspec.structs.asdict(value), cls, builtin_types=(bytes,))
    except msgspec.ValidationError as problem:
        raise BadRequest(f"this is no {cls.__name__}: {problem}", hint="leave out what is not known") from None


def check_session(row: SessionRow) -> None:
    """Whether every store can keep this row."""
    if tuple(map(type, _session_values(row))) != _SESSION_TYPES or not {*map(type, row.older)} <= {str}:
        _check_fields(row, SessionRow)
    check_numbers(started=row.started, ended=row.ended, messages=row.messages, cost_usd_micros=row.cost_usd_micros)


def commit_name(draft: Draft, created_at: str) -> str:
    """The 64 digits by Bureau's recipe."""
    parent, artifact = ids.commit_ref(draft.parent) if draft.parent else "", ids.artifact_ref(draft.artifact)
    return ids.commit_id(parent, artifact, created_at, draft.template)


def seal_of(draft: Draft, created_at: str, parent_seal: str) -> str:
    """What the commit is, whoever saw it: its content, its place in the chain, its kind and its session.

    Outside: who, where and the exact time (another principal may see the same commit), links to other sessions
    (found later, from other files), and counts (derived: a better reader may count otherwise)."""
    what = (draft.template, draft.format, draft.commit_type, draft.checkpoint)
    whose = (draft.session_id, draft.ticket_id, draft.thread_id)
    return ids.seal(("1", draft.artifact, parent_seal, created_at), (*what, *whose))


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
    if expect is not None and expect != (here := current.target if current else ""):
        moved = f"{kind} {name!r} points at {ids.commit_ref(here) if here else 'nothing'} now"
        other = f"another name, or `harken {kind} --move {name} REF`"
        raise Conflict(moved, hint=f"somebody moved it; `harken moves {name}` tells when" if expect else other)
    if not to and current is None and expect is None:
        raise NotFound(f"no {kind} {name!r}", hint=f"`harken {kind}` lists them")


def check_name(name: str) -> None:
    """Whether a branch or a tag may be called like this."""
    if problem := ids.name_problem(name):
        raise BadRequest(f"{name!r} cannot be a name: {problem}", hint="choose words such as review or team/retry-2")


# -- arguments --------------------------------------------------------------------------------------------------------

_WHOLE = {str, bytes, type(None)}  # what nobody looks into, though it may be many


class ArgumentKind(msgspec.Struct, frozen=True):
    """What may be given for a parameter; `arguments.py` says which annotation means which kind."""

    hint: str
    types: tuple[Any, ...]
    paths: tuple[Any, ...] = ()  # values of these types name a file
    each: ArgumentKind | None = None
    """What each of them is, where it takes many; `lazy`: looked at as they are taken."""
    lazy: bool = False

    def take(self, call: str, name: str, value: Any) -> Any:
        """The value, if it is of this kind; `BadRequest` where it is not."""
        # True is an int, and text a sequence, to Python; not to us.
        if not isinstance(value, self.types) or (type(value) in (bool, str, bytes) and type(value) not in self.types):
            raise BadRequest(f"`{name}` of `{call}` cannot be of the type {type(value).__name__}", hint=self.hint)
        if isinstance(value, self.paths) and not ids.is_path(value):
            raise BadRequest(f"`{name}` of `{call}` is no path: {value!r:.99}", hint=ids.PATH_HINT)
        if (each := self.each) is None or value is None or isinstance(value, str | bytes | os.PathLike):
            return value
        taken = value if self.lazy else list(value)
        if self.lazy or each.paths or not {*map(type, taken)} <= {*each.types}:  # nearly always they are
            taken = (each.take(call, name, one) for one in taken)
        return taken if self.lazy else list(taken)


def guarded(
    method: Callable[..., T], kinds: dict[str, ArgumentKind], enter: Callable[[Any], None] | None = None
) -> Callable[..., T]:
    """The method behind a check of its arguments; `kinds` has them by name, those that need no keyword first. `enter`
    is called before anything else."""
    call, ordered = method.__name__, list(kinds.items())
    plain = {  # the types whose values need no second look
        name: frozenset(() if kind.paths else {*kind.types} & _WHOLE if kind.each else kind.types)
        for name, kind in kinds.items()
    }
    places = list(plain.values())

    @functools.wraps(method)
    def checked(self: Any, /, *args: Any, **options: Any) -> T:
        if enter is not None:
            enter(self)
        if not all(map(contains, places, map(type, args))):
            known = [kind.take(call, name, value) for (name, kind), value in zip(ordered, args, strict=False)]
            args = (*known, *args[len(known) :])
        for name, value in options.items():
            if name in plain and type(value) not in plain[name]:
                options[name] = kinds[name].take(call, name, value)
        return method(self, *args, **options)

    return checked


def text(value: str) -> str | bytes:
    """Text as SQLite can keep it: a transcript may hold half a surrogate pair, which is no UTF-8."""
    return value if value.isascii() or ids.is_text(value) else value.encode("utf-8", "surrogatepass")


def untext(value: str | bytes) -> str:
    """The text that `text` kept."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")
