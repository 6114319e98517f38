"""Answers that several operations share: a commit, a name, an event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from harken import clock, ids
from harken.context import Shown
from harken.events import Event
from harken.events.wire import to_readable
from harken.repo import Repo
from harken.store import Commit, Name
from harken.views.event_lines import line

from .base import ApiAnswer, stamp


class CommitAnswer(ApiAnswer, frozen=True, kw_only=True, gc=False):
    """A commit."""

    id: str
    """Its full name: 64 hex digits (128 where another commit has the same 64)."""
    short: str
    """What people type: `ctx-` and enough digits to be unique."""
    parent: str
    """The full name of the parent; empty for the first commit of a chain."""
    commit_type: str
    """`delta`, `compaction` or `snapshot`."""
    checkpoint: str
    """Why it was made: `turn_boundary`, `tool_call`, `compaction`, `session_end` or `explicit`."""
    created_at: str
    """When it was made, in whole seconds: the form that the name is made from."""
    time: str | None
    """When it was made, exactly; None where nothing in it says so (`created_at` is then the beginning of 1970)."""
    format: str
    """The format of its bytes."""
    artifact: str
    """The full name of its bytes."""
    artifact_ref: str
    """The short name of its bytes: `art-` and 12 digits."""
    seal: str
    """A hash over everything about it that never changes, and over the parent's seal."""
    template: str
    """What kind of agent it is; for an import, the runtime."""
    principal: str
    """Who executed it."""
    machine: str
    """Where it ran."""
    session_id: str
    """The session it belongs to; empty where none was named."""
    ticket_id: str
    """The ticket that was worked on."""
    thread_id: str
    """The thread it is part of."""
    message_count: int | None
    """Messages in its delta; null where nobody counted."""
    token_count: int | None
    """Tokens in its delta; null where nobody counted."""
    approximate: bool
    """Whether the tokens are an estimate."""
    spawned_from: dict[str, Any] | None
    """For the first commit of a sub-agent: `session`, `call_id` and `inherits` of where it was spawned."""
    forked_from: str
    """The commit of another session that this chain goes on from."""


class NoteAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Something that was said about a commit afterwards."""

    key: str
    """What kind of remark it is: `summary`, `label`, `superseded_by` …"""
    value: str
    """The remark itself."""
    time: str | None
    """When it was made."""
    who: str
    """Who made it."""


class ShownCommit(CommitAnswer, frozen=True, kw_only=True, gc=False):
    """A commit with what was said about it."""

    summary: str
    """The newest summary, else a line made of its events."""
    derived: bool
    """Whether nobody wrote the summary."""
    names: list[str]
    """The branches and tags that point at it, but for those that Harken keeps for itself."""
    continued_by: list[str]
    """The sessions that Harken wrote to go on from here."""
    superseded: bool
    """Whether a grown file has put another commit in its place."""
    annotations: list[NoteAnswer]
    """Everything said about it, oldest first."""


class NameAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A branch or tag."""

    name: str
    """What it is called."""
    kind: str
    """`branch` or `tag`."""
    target: str
    """The full name of the commit it points at; empty where it was removed."""
    short: str
    """The short name of that commit."""


class EventLine(ApiAnswer, frozen=True, kw_only=True):
    """An event of a conversation."""

    event: dict[str, Any]
    """The event as `events-v1` has it (docs/FORMAT.md); bytes stand as text, what is no UTF-8 replaced."""
    line: str
    """The same on one line, for people."""


def event_fields(event: Event, folder: str = "") -> dict[str, Any]:
    """The fields of an event, as answers have them; on its line, paths stand as from the folder."""
    return {"event": to_readable(event), "line": line(event, folder=folder)}


def event_line(event: Event, folder: str = "") -> EventLine:
    """An event, as an answer."""
    return EventLine(**event_fields(event, folder))


def commit_fields(commit: Commit) -> dict[str, Any]:
    """The fields of a commit, as answers have them."""
    fields = {name: getattr(commit, name) for name in Commit.__struct_fields__}
    return fields | {"time": stamp(commit.time or None), "artifact_ref": ids.artifact_ref(commit.artifact)}


def commit_answer(commit: Commit) -> CommitAnswer:
    """A commit, as an answer."""
    return CommitAnswer(**commit_fields(commit))


def shown_fields(shown: Shown) -> dict[str, Any]:
    """The fields of a commit with what was said about it."""
    fields = msgspec.structs.asdict(shown)  # all at once, since lists are long
    fields["time"] = clock.add_micros(shown.created_at, shown.time) if shown.time else None
    fields["artifact_ref"] = ids.artifact_ref(shown.artifact)
    fields["names"] = list(shown.names)
    fields["continued_by"] = list(shown.continued_by)
    notes = shown.annotations
    fields["superseded"] = bool(notes) and shown.superseded
    fields["annotations"] = [
        NoteAnswer(key=note.key, value=note.value, time=stamp(note.time), who=note.who) for note in notes
    ]
    return fields


def shown_commit(shown: Shown) -> ShownCommit:
    """A commit with what was said about it, as an answer."""
    return ShownCommit(**shown_fields(shown))


def name_answers(repo: Repo, names: Iterable[Name]) -> list[NameAnswer]:
    """Branches and tags, as answers."""
    found = list(names)
    shorts = repo.shorts({name.target for name in found if name.target})
    return [
        NameAnswer(name=name.name, kind=name.kind, target=name.target, short=shorts.get(name.target, ""))
        for name in found
    ]
