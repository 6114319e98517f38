"""The rules every store follows, whatever it keeps things in: names, seals, shown names, policies.

Pure functions over the values of `base.py`; nothing here touches a disk.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harken import clock, ids
from harken.errors import BadRequest, Conflict, NotFound

from .values import CHECKPOINTS, COMMIT_TYPES, KINDS, POLICIES, Commit, Draft, Name

FULL = 64
"""Hex digits of a commit's name; a commit named like an older one is told apart by its seal's digits after these."""

NAME_LIMIT = 512
# A policy is weaker the further left it stands; bytes stored twice keep the stronger.
_STRENGTH = {"ephemeral": 0, "default": 1, "replicate": 2, "pin": 3}


def check_draft(draft: Draft) -> Draft:
    """The draft, if a commit can be made of it."""
    if draft.commit_type not in COMMIT_TYPES:
        raise BadRequest(f"no commit type {draft.commit_type!r}", hint=f"one of {', '.join(COMMIT_TYPES)}")
    if draft.checkpoint not in CHECKPOINTS:
        raise BadRequest(f"no checkpoint trigger {draft.checkpoint!r}", hint=f"one of {', '.join(CHECKPOINTS)}")
    if not draft.format:
        raise BadRequest("a commit needs the name of its format")
    if not clock.in_calendar(draft.time):
        raise BadRequest(f"no calendar has the instant {draft.time}")
    if draft.message_count < 0 or draft.token_count < 0:
        raise BadRequest("a commit cannot count fewer than no messages or tokens")
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


def links_text(draft: Draft) -> str:
    """`spawned_from` and `forked_from` in the one spelling that is kept and summed; empty where there is neither."""
    links: dict[str, object] = {}
    if draft.forked_from:
        links["forked_from"] = draft.forked_from
    if draft.spawned_from is not None:
        links["spawned_from"] = draft.spawned_from
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


def check_version(session: str, version: int, expect: int | None) -> None:
    """Whether a session's row may be replaced: `Conflict` where it is not the one the caller has seen."""
    if expect is not None and expect != version:
        now = f"has been saved {version} times, not {expect}" if version else "is not there"
        raise Conflict(f"session {session} {now}: somebody else was faster", hint="read it again, then decide")


def check_policy(policy: str, expires: int | None) -> None:
    """Whether a policy is one, and has the expiry it needs."""
    if policy not in POLICIES:
        raise BadRequest(f"no policy {policy!r}", hint=f"one of {', '.join(POLICIES)}")
    if (policy == "ephemeral") != (expires is not None):
        raise BadRequest("an ephemeral artifact has an expiry, and no other has one")


def stronger(a: tuple[str, int | None], b: tuple[str, int | None]) -> tuple[str, int | None]:
    """The policy that keeps the bytes longer."""
    if a[0] == b[0] == "ephemeral":
        return max(a, b, key=lambda policy: policy[1] or 0)
    return max(a, b, key=lambda policy: _STRENGTH[policy[0]])


def check_move(name: str, kind: str, current: Name | None, to: str, expect: str | None) -> None:
    """Whether a name may move like this: `Conflict` where it is not what the caller thinks."""
    if kind not in KINDS:
        raise BadRequest(f"a name is a branch or a tag, not {kind!r}")
    check_name(name)
    if current is not None and current.kind != kind:
        raise Conflict(f"{name!r} is a {current.kind}", hint="choose another name, or remove that one first")
    here = current.target if current else ""
    if expect is not None and expect != here:
        where = ids.commit_ref(here) if here else "nothing"
        raise Conflict(f"{kind} {name!r} points at {where} now", hint="look at it again, then decide")
    if not to and current is None and expect is None:
        raise NotFound(f"no {kind} {name!r}", hint=f"`harken {kind}` lists them")


def check_name(name: str) -> None:
    if not name or len(_encodable(name)) > NAME_LIMIT:
        raise BadRequest(f"a name has between 1 and {NAME_LIMIT} bytes")
    if any(ord(c) < 32 or ord(c) == 127 for c in name) or name != name.strip():
        raise BadRequest(f"{name!r} cannot be a name: control characters, or spaces at an end")


def _encodable(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadRequest(f"{text!r} is not text that can be written down") from None
