"""A session log that begins with a conversation of the store: a native session that goes on from any commit.

What is carried over stands in the log under the ids it had, as the root agent's transcript. Usage is not carried: it
was counted where it was used. What was written is remembered beside the source commit, as for every runtime, so that
the new session's chain is linked to it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson

from harken import formats, ids
from harken.clock import format_instant
from harken.context.materialize import materialize
from harken.context.names import REMEMBERED, RESUMED_BRANCH, Remembered
from harken.context.translate import check_said
from harken.context.walk import renamed
from harken.errors import Conflict, HarkenError, NotFound
from harken.events import AgentCreated, Event, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.cbor import decode_events
from harken.files import write_hint, write_whole
from harken.formats import Loss
from harken.formats.facts import ORIGIN, Origin
from harken.formats.session_log import CARRIED_FROM
from harken.store import Commit, Store

ROOT = "agent_001"
LOG_FORMAT = "session-log-v2"
TRANSLATED = "2s"
"""The tier of what is carried over: a log is nobody's own records."""
CARRIED = (Prompt, Response, Thinking, ToolCall, ToolResult)


class LogBeginning(msgspec.Struct, frozen=True, kw_only=True):
    """How a log begins that goes on from a commit."""

    data: bytes
    """Its first lines; the session is named after the first of them."""
    messages: int
    """Messages that were carried over."""
    losses: tuple[Loss, ...] = ()


def beginning(store: Store, source: Commit, *, time: int, language_model: str = "") -> LogBeginning:
    """The first lines of a log that goes on from the commit, with the model that its agent speaks with."""
    carried, losses = carry(store, source)
    created = AgentCreated(
        message_id="msg_0", agent_id=ROOT, name="root", role="root", time=time, language_model=language_model
    )
    written = formats.get(LOG_FORMAT).write([created, *carried])
    records = {event.message_id or id(event) for event in carried}
    data = _signed(created, source, written.data.partition(b"\n")[2])
    return LogBeginning(data=data, messages=len(records), losses=(*losses, *written.losses))


def carry(store: Store, source: Commit) -> tuple[list[Event], tuple[Loss, ...]]:
    """What goes along of the conversation at a commit, and what could not be read."""
    made = materialize(store, source, format="events-v1")
    found = list(_carried(decode_events(made.bytes), source.short))
    check_said(source, found)
    return found, made.losses


def transcript(store: Store, source: Commit) -> list[dict[str, Any]]:
    """The conversation at a commit as entries to begin with, each with the session that it is from; their ids would
    mean something else in another log."""
    told = {CARRIED_FROM: source.session_id.partition("/")[0] or source.id}
    lines = formats.get(LOG_FORMAT).write(carry(store, source)[0]).data.splitlines()
    entries = (one for one in map(orjson.loads, lines) if one.get("event_type") == "transcript_entry")
    return [{key: value for key, value in one.items() if key != "message_id"} | told for one in entries]


def _signed(created: AgentCreated, source: Commit, rest: bytes) -> bytes:
    """The lines with what they go on from in the first, so that other stores need not be told."""
    origin = Origin(
        source=source.session_id,
        commit=source.id,
        time=format_instant(source.time),
        size=len(rest),
        digest=ids.short_digest(rest),
        tier=TRANSLATED,
    )
    attributes = msgspec.json.encode({ORIGIN: origin})
    return formats.get(LOG_FORMAT).write([created.replace(attributes=attributes)]).data + rest


def _carried(events: Iterable[Event], source: str) -> Iterator[Event]:
    """What a model is shown; links to records that stay behind are left behind too. A place in the source's chain
    would be another record's in the new log, so it says whose it is."""
    for event in renamed(events, lambda place: f"{source}@{place}"):
        if isinstance(event, CARRIED) or (isinstance(event, System) and event.subtype == "instructions"):
            yield event.replace(agent_id=ROOT, substance=None, cause=None)


def write_beginning(path: Path, begun: LogBeginning) -> None:
    """Put the lines into a new file, whole or not at all."""
    try:
        write_whole(path.absolute(), begun.data)
    except FileExistsError:
        raise Conflict(f"{path} exists already", hint="name a new file") from None
    except OSError as problem:
        raise HarkenError(f"{path} could not be written: {problem.strerror}", hint=write_hint(problem)) from problem


def remember(store: Store, source: Commit, session: str, begun: LogBeginning, *, runtime: str, time: int) -> None:
    """Write down, beside the source, which session goes on from it and how much of that session is not its own."""
    kept = Remembered(runtime=runtime, session=session, prefix=len(begun.data), tier=TRANSLATED, losses=begun.losses)
    with store.write() as writer:
        writer.annotate(source.id, REMEMBERED, msgspec.json.encode(kept).decode(), time=time)
        writer.move(RESUMED_BRANCH + session, kind="branch", to=source.id, expect="", time=time, record=False)


def source_of(store: Store, session: str, told: Origin | None) -> str:
    """The commit that a session goes on from, where Harken wrote its beginning, as this store remembers or as the log
    tells; empty otherwise."""
    if (name := store.find_name(RESUMED_BRANCH + session)) is not None:
        return name.target
    with contextlib.suppress(NotFound):
        return store.get_commit(told.commit).id if told is not None else ""
    return ""
