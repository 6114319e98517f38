"""Making commits and conversations: checkpoint, compact, snapshot, materialize."""

from __future__ import annotations

from typing import Any

import msgspec

from harken import ids
from harken.context.materialize import Materialized
from harken.context.translate import TIERS
from harken.errors import BadRequest
from harken.events.cbor import decode_events
from harken.formats.base import weigh
from harken.repo import CommitFacts, Repo
from harken.store import CHECKPOINTS as CHECKPOINTS  # what a shell offers to choose from
from harken.store import COMMIT_TYPES as COMMIT_TYPES

from .base import ApiAnswer, ApiRequest
from .crossing import crosses
from .values import CommitAnswer, commit_answer, commit_fields


class CheckpointRequest(ApiRequest, frozen=True, kw_only=True):
    """A commit to make."""

    body: bytes | None = None
    """The new bytes; or else `artifact`."""
    artifact: str | None = None
    """Bytes that are in the store already, by their name."""
    format: str | None = None
    """The format of the bytes; None: what they look like."""
    parent: str | None = None
    """The commit to go on from; a branch moves along."""
    commit_type: str = "delta"
    """`delta`, `compaction` or `snapshot`."""
    checkpoint: str = "explicit"
    """Why it is made: `turn_boundary`, `tool_call`, `compaction`, `session_end` or `explicit`."""
    created_at: str | int | None = None
    """When it was; None: when its newest event was, but not before its parent; now where no event tells."""
    template: str | None = None
    """What kind of agent it is."""
    principal: str | None = None
    """Who executed it."""
    machine: str | None = None
    """Where it ran; None for this machine."""
    session_id: str | None = None
    """The session it belongs to, which moves along."""
    ticket_id: str | None = None
    """The ticket that was worked on."""
    thread_id: str | None = None
    """The thread it is part of."""
    summary: str | None = None
    """A line about it."""
    message_count: int | None = None
    """How many messages; None: counted."""
    token_count: int | None = None
    """How many tokens; None: what the model counted, or an estimate."""
    spawned_from: dict[str, Any] | None = None
    """For the first commit of a sub-agent: `session`, `call_id` and `inherits` of where it was spawned."""
    forked_from: str | None = None
    """The commit of another session that this chain goes on from."""


@crosses
def checkpoint(repo: Repo, request: CheckpointRequest) -> CommitAnswer:
    """Make a commit of new bytes, or of an artifact that is there already."""
    own = {name: getattr(request, name) for name in ("format", "parent", "artifact", "summary", "created_at")}
    facts: CommitFacts = {name: getattr(request, name) for name in CommitFacts.__annotations__}  # type: ignore[assignment]
    return commit_answer(repo.checkpoint(request.body, **own, **facts))


class CompactRequest(ApiRequest, frozen=True, kw_only=True):
    """What to compact, and how."""

    ref: str
    """The commit; a branch moves along."""
    summary: str | None = None
    """The summary; None: from the model, or from the conversation's own words."""
    model: str = ""
    """The model to ask for a summary."""
    created_at: str | int | None = None
    """When it was; None for now."""
    who: str = ""
    """Who does it."""


class CompactAnswer(CommitAnswer, frozen=True, kw_only=True):
    """The compaction commit."""

    summary: str
    """The summary that stands for everything before it."""
    branch: str
    """The branch that moved along; empty where none was named."""


@crosses
def compact(repo: Repo, request: CompactRequest) -> CompactAnswer:
    """Fold a chain into a summary; the chain stays as it is below it."""
    commit = repo.compact(
        request.ref, request.summary, model=request.model, created_at=request.created_at, who=request.who
    )
    shown, name = repo.show(commit), repo.find_name(request.ref)
    moved = name is not None and name.kind == "branch" and name.target == commit.id
    return CompactAnswer(**commit_fields(commit), summary=shown.summary, branch=request.ref if moved else "")


class SnapshotRequest(ApiRequest, frozen=True, kw_only=True):
    """What to store in one piece."""

    ref: str
    """The commit; a branch moves along."""
    created_at: str | int | None = None
    """When it was; None for now."""
    who: str = ""
    """Who does it."""


@crosses
def snapshot(repo: Repo, request: SnapshotRequest) -> CommitAnswer:
    """Store a commit's whole conversation on top of its chain, so that later reads are short."""
    return commit_answer(repo.snapshot(request.ref, created_at=request.created_at, who=request.who))


class MaterializeRequest(ApiRequest, frozen=True, kw_only=True):
    """Which conversation, in which format, how far back."""

    ref: str = ""
    """The commit; empty for the empty conversation."""
    format: str | None = None
    """The format to write; None: that of the newest commit."""
    stop: str = "compaction"
    """How far back to go: `compaction` (as it stands), `root` (everything) or an ancestor."""
    budget: int | None = None
    """How many tokens a narrative may have, at four characters each: older turns are told shorter, or left out. None:
    told in full."""


class LossAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Something a translation could not say."""

    what: str
    """What was lost."""
    count: int
    """How often."""
    why: str
    """Why."""


class MaterializeAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A conversation, and how it was made."""

    body: bytes
    """The conversation."""
    artifact: str
    """The full name of these bytes."""
    format: str
    """Their format."""
    tier: str
    """`1` native, `2` field, `2s` structural, `3` rendering, `4` raw."""
    tier_name: str
    """The tier in a word."""
    losses: list[LossAnswer]
    """What the translation could not say."""
    message_count: int | None
    """Messages in it; null where nobody counted."""
    token_count: int | None
    """Tokens in it; null where nobody counted."""
    approximate: bool
    """Whether the tokens are an estimate."""
    commit_count: int
    """Commits it was made of."""
    description: str
    """A sentence about the format, for whoever has no reader for it."""
    size: int
    """Bytes in it."""


@crosses
def materialize(repo: Repo, request: MaterializeRequest) -> MaterializeAnswer:
    """The conversation that a commit stands for, in its own format or another."""
    if request.budget is None:
        made = repo.materialize(request.ref or None, format=request.format, stop=request.stop)
    else:
        made = _narrated(request, request.budget, repo)
    return MaterializeAnswer(
        body=made.bytes,
        artifact=made.artifact,
        format=made.format,
        tier=made.tier,
        tier_name=made.tier_name,
        losses=[LossAnswer(what=loss.what, count=loss.count, why=loss.why) for loss in made.losses],
        message_count=made.message_count,
        token_count=made.token_count,
        approximate=made.approximate,
        commit_count=made.commit_count,
        description=made.description,
        size=len(made.bytes),
    )


def _narrated(request: MaterializeRequest, budget: int, repo: Repo) -> Materialized:
    """The conversation told within a budget. It is made anew each time: only the events are kept."""
    from harken.formats import narrative  # few ask for one

    told = narrative.FORMAT
    if request.format != told.name:
        raise BadRequest(f"a budget is for {told.name} alone", hint=f"ask for --format {told.name}")
    read = repo.materialize(request.ref or None, format="events-v1", stop=request.stop)
    if read.tier == "4":
        return read  # nobody can read it, so nobody can tell it
    written = narrative.write_within(decode_events(read.bytes), budget)
    size = weigh(len(written.data.decode()))  # in characters, as the budget is
    whole = not any(loss.what in (narrative.TURN, narrative.STEP) for loss in written.losses)
    return msgspec.structs.replace(
        read,
        bytes=written.data,
        artifact=ids.artifact_id(written.data),
        format=told.name,
        tier="3",
        tier_name=TIERS["3"],
        losses=(*read.losses, *written.losses),
        message_count=read.message_count if whole else None,
        token_count=size.tokens,
        approximate=size.approximate,
        description=told.description,
    )
