"""A commit from what a caller says of it: bytes, events or an artifact, and any number of facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict

from harken import clock, context
from harken.context import Counts, Ref
from harken.context.checkpoint import advance_session, check_count, take_artifact, weigh_content
from harken.context.spawned import resolve_origin
from harken.errors import BadRequest, HarkenError
from harken.events import Event
from harken.events.cbor import encode_events
from harken.formats import HEAD, detect, names
from harken.formats import find as find_format
from harken.store import Commit, Draft, Store
from harken.store.values import check_origin

EVENTS = "events-v1"


class CommitFacts(TypedDict, total=False):
    """The keywords that `Repo.checkpoint` takes besides its own; a dict of them serves many commits."""

    commit_type: str
    """`delta` (the default), `compaction` or `snapshot`."""
    checkpoint: str
    """Why it is made: `explicit` (the default), `turn_boundary`, `tool_call`, `compaction`, `session_end`."""
    template: str | None
    """What kind of agent it is; for an import, the runtime."""
    principal: str | None
    """Who executed it."""
    machine: str | None
    """Where it ran; None for this machine."""
    session_id: str | None
    """The session it belongs to, which moves along."""
    ticket_id: str | None
    """The ticket that was worked on."""
    thread_id: str | None
    """The thread it is part of."""
    message_count: int | None
    """How many messages; None: counted."""
    token_count: int | None
    """How many tokens; None: what the model counted, or an estimate."""
    spawned_from: dict[str, Any] | None
    """For the first commit of a sub-agent: `session`, `call_id` and `inherits` of where it was spawned."""
    forked_from: Ref | None
    """The commit of another session that this chain goes on from."""


class NewCommit(NamedTuple):
    """What a caller hands over: `data` or `artifact`, and what is said of it."""

    data: bytes | Sequence[Event] | None
    artifact: str | None
    format: str | None
    summary: str
    time: int | None
    """When it was; None: as it tells itself."""
    facts: CommitFacts


def make_commit(store: Store, new: NewCommit, *, parent: Ref | None, now: clock.Clock, machine: str) -> Commit:
    """The commit, with its session and the branch it was put on moved along. `now` is asked where neither whoever makes
    it nor what it holds tells when it was."""
    check_facts(new.facts)
    data, format = _content(new)
    artifact = None if new.artifact is None else context.get_artifact(store, new.artifact)
    messages, tokens = new.facts.get("message_count"), new.facts.get("token_count")
    counts = _counts(store, data, artifact, format, counted=_counted(messages, tokens))
    above = context.find(store, parent) if parent else None
    told = _told_time(store, new, format, above.commit.time if above else 0)
    time = now() if told is None else told
    origin, fork = new.facts.get("spawned_from"), new.facts.get("forked_from")
    check_origin(origin)
    draft = Draft(
        artifact=artifact or "",
        format=format,
        time=time,
        parent=above.commit.id if above else "",
        **_said(new.facts, machine),
        message_count=counts.messages if messages is None else messages,
        token_count=counts.tokens if tokens is None else tokens,
        approximate=tokens is None and counts.approximate,
        spawned_from=origin if above else resolve_origin(store, origin, time),
        forked_from=context.get_commit(store, fork).id if fork else "",
    )
    return context.checkpoint(
        store,
        draft,
        data=data,
        summary=new.summary,
        branch=above.branch if above else None,
        advance=advance_session(draft.template) if draft.session_id else None,
    )


def _content(new: NewCommit) -> tuple[bytes | None, str]:
    """The bytes, if they are new, and their format."""
    data, format = new.data, new.format
    if (data is None) == (new.artifact is None):
        raise BadRequest("a checkpoint has either data or an artifact", hint="give exactly one of the two")
    if data is not None and not isinstance(data, bytes):
        data, format = encode_events(data), format or EVENTS
    if not format:
        format = told_format(data or b"")
    return data, format


def told_format(data: bytes) -> str:
    """The format that bytes tell themselves."""
    found = detect(data[:HEAD]) if data else None
    if found is None:
        raise BadRequest("the format of these bytes cannot be told", hint=f"name it: {', '.join(names())}")
    return found.name


def _told_time(store: Store, new: NewCommit, format: str, earliest: int) -> int | None:
    """What was said of its time, else when the newest of it was said and not before its parent, as an import has it;
    None where it does not tell."""
    if new.time is not None:
        return new.time
    if new.data is not None and not isinstance(new.data, bytes):
        events: Sequence[Event] = new.data
    else:
        known = find_format(format)
        if known is None or "read" not in known.can:
            return None
        try:
            data = new.data if new.data is not None else store.get(context.get_artifact(store, new.artifact or ""))
            events = known.read_delta(data)
        except HarkenError:  # evicted, or damaged: it can be committed, and tells nothing
            return None
    times = [one.time for one in events if one.time is not None and clock.in_calendar(one.time)]
    return max(*times, earliest) if times else None


def _counted(messages: int | None, tokens: int | None) -> bool:
    """Whether the caller has counted everything."""
    return None not in (check_count("messages", messages), check_count("tokens", tokens))


def _counts(store: Store, data: bytes | None, artifact: str | None, format: str, *, counted: bool) -> Counts:
    """What the content amounts to; refused where a chain could not be joined from it."""
    if artifact is not None:
        return take_artifact(store, artifact, format, counted=counted)
    return weigh_content(format, data or b"", counted=counted)


_SAID = frozenset(
    ("commit_type", "checkpoint", "machine", "template", "principal", "session_id", "ticket_id", "thread_id")
)


def _said(facts: CommitFacts, machine: str) -> dict[str, Any]:
    """The facts that go into the commit as they are; what is not said is what a draft takes it for."""
    said = {name: value for name, value in facts.items() if name in _SAID and value is not None}
    said.setdefault("machine", machine)
    return said


def check_facts(facts: CommitFacts) -> None:
    """Refuse a keyword that is none of these; a misspelt fact must not be lost."""
    if unknown := facts.keys() - CommitFacts.__annotations__.keys():
        raise BadRequest(
            f"a commit has no {', '.join(map(repr, sorted(unknown)))}",
            hint="it has: " + ", ".join(CommitFacts.__annotations__),
        )
