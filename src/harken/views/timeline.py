"""In order: everything that happened, and who said what to whom."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict

import msgspec

from harken.events import Error, Event, Output, Recovery, System
from harken.events.edits import is_entry

from .base import ACTION, CREATED, OTHER
from .flow import contents
from .hearing import compilations, hearings, is_changed, source_of
from .index import Index
from .perspective import actions, deeds


class Happening(TypedDict):
    """One event in one line."""

    message_id: str
    time: str | None
    agent_id: str | None
    kind: str
    """`said`, `heard`, `action`, `received`, `system`, `thought`, `text`, `created`, `terminated`, `edited`, or the
    event's own type."""
    content: str
    doing: str
    """Of an action: the same in a few words, as `Bash: pytest -q`; empty for others."""
    links: list[str]


class Arrow(TypedDict):
    """Somebody said something to somebody."""

    message_id: str
    time: str | None
    speaker: str | None
    source: str | None
    """Where it came from if no agent said it, as in the flow; None where one did."""
    hearers: list[str]
    returned: list[str]
    """Agents that got it in a tool result."""
    content: str
    changed: list[str]
    """Those among the hearers who heard it in another wording."""


def timeline(index: Index, agent_ids: Collection[str] | None = None) -> list[Happening]:
    """Every event, in file order; with agents, only theirs."""
    everything = range(len(index.records))
    if agent_ids is None:
        return [happening(index, at) for at in everything]
    chosen = set(agent_ids)
    return [happening(index, at) for at in everything if index.holders[at] in chosen]


def happening(index: Index, at: int) -> Happening:
    """One event as a line of the timeline."""
    kind, content, doing = index.kinds[at], index.texts[at], ""
    if kind == ACTION:
        content, doing = ("\n".join(told(index.records[at])) for told in (actions, deeds))
    elif kind == CREATED:
        content = index.name(index.holders[at])
    elif kind == OTHER and not is_entry(first := index.records[at][0]):
        kind = first.kind
        content = _notice(first) or content
    return {  # as a display: calling the type takes twice as long, and a session has many lines
        "message_id": index.ids[at],
        "time": index.time_text(at),
        "agent_id": index.holders[at],
        "kind": kind,
        "content": content,
        "doing": doing,
        "links": list(index.parent_ids(at)),
    }


def _notice(event: Event) -> str:
    """What an event tells that is no part of a conversation."""
    match event:
        case Output():
            return _record_type(event)
        case System():
            return ": ".join(filter(None, (event.subtype.replace("_", " "), event.message)))
        case Error():
            return event.message
        case Recovery():
            return event.reason
    return ""


class _Typed(msgspec.Struct):
    type: str = ""


class _Record(_Typed):
    attachment: _Typed | None = None
    payload: _Typed | None = None


def _record_type(event: Output) -> str:
    """What a record is that is no conversation: why it could not be read, or the type it gives itself."""
    if event.why:
        return event.why
    try:
        record = msgspec.json.decode(event.raw, type=_Record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    inner = record.attachment or record.payload
    return " ".join(filter(None, (record.type, inner.type if inner else "")))


def sequence(index: Index, agent_ids: Collection[str] | None = None) -> list[Arrow]:
    """Who said what to whom, in the order of saying; what nobody heard has no hearers."""
    return [_arrow(index, root) for root in contents(index, agent_ids)]


def _arrow(index: Index, root: int) -> Arrow:
    heard = sorted(hearings(index, root))
    wording = index.texts[root] if root >= 0 else ""
    return Arrow(
        message_id=index.id_of(root),
        time=index.time_text(root),
        speaker=index.authors[root] if root >= 0 else None,
        source=source_of(index, root),
        hearers=list(dict.fromkeys(agent for _, agent in heard)),
        returned=list(dict.fromkeys(index.holders[at] or "" for at in compilations(index, root))),
        content=wording or (index.texts[heard[0][0]] if heard else ""),
        changed=list(dict.fromkeys(agent for at, agent in heard if is_changed(index, at))),
    )
