"""A compaction: what stood in the context before it, what of that is gone, and what its summary still names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from harken.analytics.compactions import compaction_facts
from harken.analytics.deltas import request_sizes
from harken.analytics.dropped import KINDS, FoldedThing, NamedWords, files_in, is_summary, things
from harken.analytics.steps import is_compaction
from harken.errors import BadRequest, HarkenError, NotFound
from harken.events import Event, Prompt, System, TranscriptEdit
from harken.events.base import clean, excerpt
from harken.repo import Repo
from harken.store import Commit

from .base import ApiAnswer, ApiRequest, stamp
from .crossing import crosses
from .following import check_range
from .remembering import remembered

MOST_THINGS = 200
WORDS = 300
"""Characters of a thing that are shown."""
SUMMARY = 50_000
"""Characters of a summary that are shown."""
MISSED = 20
CHARACTERS_PER_TOKEN = 4
WHICH = ("dropped", "kept", "all")


class CompactionRequest(ApiRequest, frozen=True, kw_only=True):
    """Which compaction, and which part of what it folded."""

    session: str = ""
    """The session, or a unique beginning of its id."""
    record: str = ""
    """The record of the compaction in it."""
    commit: str = ""
    """The commit of the compaction, in place of session and record."""
    which: str = "dropped"
    """`dropped` for what does not stand in the context any more, `kept` for what does, `all` for both."""
    kinds: tuple[str, ...] = ()
    """Only these: `prompt`, `injected`, `answer`, `thinking`, `call`, `result`; empty for all."""
    start: int = 0
    """The first thing that is wanted."""
    count: int = 50
    """How many, up to 200."""


class FoldedThingAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Something that stood in the context before."""

    kind: str
    """`prompt`, `injected`, `answer`, `thinking`, `call` or `result`."""
    record: str
    """The record it stands in."""
    event: int
    """The number of the event in that record."""
    time: str | None
    """When it was said."""
    tool: str
    """The tool, of a call or a result; else empty."""
    text: str
    """Its first words."""
    kept: bool
    """Whether it stands in the context behind the compaction as it was."""
    named: bool
    """Whether the summary has most of its words."""


class FoldedKind(ApiAnswer, frozen=True, kw_only=True):
    """How much there was of one kind."""

    kind: str
    """As in the request, and `file` for files that calls named."""
    before: int
    """How many there were."""
    kept: int
    """How many of these stand in the context behind it as they were; of files 0."""
    named: int
    """How many the summary names."""


class CompactionAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What a compaction did."""

    session: str
    """The session; empty where its commit names none."""
    record: str
    """Its record; empty where it has none, as a compaction that Harken made."""
    commit: str
    """The short name of the commit that stands for it."""
    before_commit: str
    """The short name of the last commit before it, which still holds all of it; empty where there is none."""
    time: str | None
    """When it was."""
    trigger: str
    """`auto` or `manual`; empty where nobody said."""
    before: int | None
    """Tokens in the context before; null where nobody knows."""
    after: int | None
    """Tokens of the first request behind it, or as its record says; null where nobody knows."""
    messages: int | None
    """Prompts and responses that it folded."""
    summary: str
    """The summary; its first 50,000 characters. Empty where the runtime keeps it sealed."""
    summary_cut: int
    """Characters that were left out of it."""
    summary_tokens: int
    """About how many tokens it has."""
    kinds: list[FoldedKind]
    """What there was, by kind."""
    missed: list[FoldedThingAnswer]
    """Prompts of people that are neither kept nor named: what one may miss; at most 20, the newest first."""
    things: list[FoldedThingAnswer]
    """What was asked for, in its order."""
    total: int
    """How many of these there are."""


class _Compaction(NamedTuple):
    """A compaction, read."""

    commit: Commit
    before: Commit | None
    event: Event | None
    summary: str
    things: list[FoldedThing]
    files: list[str]
    sizes: tuple[int | None, int | None]
    trigger: str
    messages: int | None


@crosses
def compaction(repo: Repo, request: CompactionRequest) -> CompactionAnswer:
    """What a compaction dropped and what it kept, with its summary."""
    check_range(request.start, request.count, MOST_THINGS)
    if request.which not in WHICH or not set(request.kinds) <= set(KINDS):
        raise BadRequest("no such kind of things", hint=f"which: {', '.join(WHICH)}; kinds: {', '.join(KINDS)}")
    commit = _commit(repo, request)
    key = (commit.id, request.record)
    found = remembered(repo, "compactions", key, lambda: _read(repo, commit, request.record), most=8)
    chosen = [
        thing
        for thing in found.things
        if (request.which == "all" or thing.kept == (request.which == "kept"))
        and (not request.kinds or thing.kind in request.kinds)
    ]
    lost = [one for one in found.things if one.kind == "prompt" and not one.kept and not one.named]
    time = found.event.time if found.event is not None else found.commit.time
    return CompactionAnswer(
        session=found.commit.session_id,
        record=found.event.message_id if found.event is not None else "",
        commit=found.commit.short,
        before_commit=found.before.short if found.before is not None else "",
        time=stamp(time or None),
        trigger=found.trigger,
        before=found.sizes[0],
        after=found.sizes[1],
        messages=found.messages,
        summary=found.summary[:SUMMARY],
        summary_cut=max(0, len(found.summary) - SUMMARY),
        summary_tokens=len(found.summary) // CHARACTERS_PER_TOKEN,
        kinds=_kinds(found),
        missed=[_thing(one) for one in lost[::-1][:MISSED]],
        things=[_thing(one) for one in chosen[request.start : request.start + request.count]],
        total=len(chosen),
    )


def _commit(repo: Repo, asked: CompactionRequest) -> Commit:
    if asked.commit:
        if asked.session or asked.record:
            raise BadRequest("name a commit, or a session and a record", hint="give one of the two")
        return repo.commit(asked.commit)
    if not asked.session or not asked.record:
        raise BadRequest("which compaction?", hint="name its commit, or its session and its record")
    row, _ = repo.chains.family(asked.session)
    return repo.commit(f"{row.session}@{asked.record}")


def _read(repo: Repo, commit: Commit, record: str) -> _Compaction:
    """A runtime's record of a compaction stands in a delta, and the commit above that puts the summary in the place of
    the conversation; a compaction that Harken made is a commit alone."""
    standing = commit
    if commit.commit_type == "compaction" and commit.parent:
        delta = repo.commit(commit.parent)
        if not any(map(is_compaction, repo.delta(delta.id))):
            return _of_commit(repo, commit, delta)
        commit = delta
    else:
        above = [one for one in repo.children(commit) if one.commit_type == "compaction"]
        standing = above[0] if above else commit
    events = repo.delta(commit.id)
    place = next(
        (at for at, event in enumerate(events) if is_compaction(event) and record in ("", event.message_id)), None
    )
    if place is None:
        hint = "`commit_rows` and `transcript_outline` name the compactions of a session"
        raise NotFound(f"there is no compaction in {commit.short}", hint=hint)
    event = events[place]
    below = repo.commit(commit.parent) if commit.parent else None
    before = [*(repo.conversation(below) if below is not None else []), *events[:place]]
    after = repo.conversation(standing)
    summary = event.content if isinstance(event, TranscriptEdit) else _summary(events[place:]) or _summary(after)
    told, then, trigger = compaction_facts(event.metadata if isinstance(event, System) else b"")
    sizes = (told if told is not None else _held(before), then if then is not None else _asked(repo, standing))
    return _Compaction(
        commit=standing,
        before=below,
        event=event,
        summary=clean(summary),
        things=things(before, after, NamedWords(summary)),
        files=files_in(before),
        sizes=sizes,
        trigger=trigger,
        messages=repo.chains.folded_messages(commit.parent),
    )


def _of_commit(repo: Repo, commit: Commit, below: Commit) -> _Compaction:
    before, after = repo.conversation(below), repo.conversation(commit)
    summary = _summary(repo.delta(commit.id))
    return _Compaction(
        commit=commit,
        before=below,
        event=None,
        summary=clean(summary),
        things=things(before, after, NamedWords(summary)),
        files=files_in(before),
        sizes=(_held(before), _asked(repo, commit)),
        trigger="manual",
        messages=repo.chains.folded_messages(commit.parent),
    )


def _summary(events: Sequence[Event]) -> str:
    return "\n\n".join(event.content for event in events if isinstance(event, Prompt) and is_summary(event))


def _held(before: Sequence[Event]) -> int | None:
    sizes = request_sizes(before)
    return sum(sizes[-1]) if sizes else None


FAR = 20
"""Commits above a compaction in which a request is looked for."""


def _asked(repo: Repo, commit: Commit) -> int | None:
    """Tokens before the model at the first request behind a compaction."""
    for _ in range(FAR):
        children = [one for one in repo.children(commit) if one.commit_type == "delta"]
        if not children:
            return None
        commit = children[0]
        try:
            if sizes := request_sizes(repo.delta(commit.id)):
                return sizes[0][0]
        except HarkenError:
            return None
    return None


def _kinds(found: _Compaction) -> list[FoldedKind]:
    summary = NamedWords(found.summary)
    before = Counter(one.kind for one in found.things)
    kept = Counter(one.kind for one in found.things if one.kept)
    named = Counter(one.kind for one in found.things if one.named)
    told = [FoldedKind(kind=kind, before=before[kind], kept=kept[kind], named=named[kind]) for kind in KINDS]
    files = sum(map(summary.names_file, found.files))
    return [*told, FoldedKind(kind="file", before=len(found.files), kept=0, named=files)]


def _thing(one: FoldedThing) -> FoldedThingAnswer:
    return FoldedThingAnswer(
        kind=one.kind,
        record=one.record,
        event=one.event,
        time=stamp(one.time),
        tool=one.tool,
        text=excerpt(one.text, WORDS),
        kept=one.kept,
        named=one.named,
    )
