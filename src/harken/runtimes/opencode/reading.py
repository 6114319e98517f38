"""What an import has to know of a session, from its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from harken.events.base import clean, named
from harken.events.records import by_record
from harken.formats import Delta
from harken.formats.facts import ORIGIN, FileFacts, Origin, prompt_name, read_origin
from harken.formats.kit.jsonl import Record, parse
from harken.formats.opencode.records import RowBlock, RowMessage, blocks, inside, shared_name, text
from harken.formats.opencode.rows import block_events, is_spawned, session_row
from harken.runtimes.base import Identity
from harken.runtimes.scans import FINGERPRINT, TITLE, SessionCounts

UNTITLED = re.compile(r"(New|Child) session - \d{4}-\d\d-\d\dT[\d:.]+Z")
"""What a session is called that nobody has given a title yet."""


def scan(data: bytes, state: bytes = b"", *, runtime: str) -> FileFacts:
    """The rows of a session, cut before every message; those of the last turn that was answered are the tail."""
    found = list(blocks(data))
    row = session_row(found)
    spawned = is_spawned(row)
    messages = [block.message for block in found if block.message is not None]
    first = next((message.session for message in messages if message.session), "")
    now = SessionCounts(session=named(text(row.get("id")) or first), project=clean(text(row.get("directory"))))
    deltas: list[Delta] = []
    for group in _cut(found):
        deltas.append(_delta(now, group, deltas, spawned=spawned))
    if deltas:
        deltas[-1] = msgspec.structs.replace(deltas[-1], closed=False)
    facts = now.facts(runtime, deltas, SessionCounts())
    title = " ".join(clean(text(row.get("title"))).split())
    calls, asks = started(messages)
    return msgspec.structs.replace(
        facts,
        title=facts.title if not title or UNTITLED.fullmatch(title) else title[:TITLE],
        parent=named(text(row.get("parent_id"))),
        calls=calls,
        asks=asks,
        fingerprint=tuple(filter(None, map(shared_name, messages[:FINGERPRINT]))),
        origin=origin_of(parse(text(row.get("metadata")).encode(errors="replace")), facts.session),
        state=b"",
    )


def origin_of(metadata: Any, session: str) -> Origin | None:
    """What the session goes on from, as other programs' words about it tell; a copy of it has these words too."""
    told = inside(metadata, ORIGIN)
    origin = read_origin(told, 0) if told is not None else None
    return origin if origin is not None and origin.session == session else None


def _cut(found: Sequence[RowBlock]) -> list[list[RowBlock]]:
    """The blocks, delta by delta; the last one is the tail. A message is closed when somebody has spoken after it and
    an answer to that has begun: a session's answers come one after the other, so nothing adds to it any more."""
    roles = [(at, block.message.role) for at, block in enumerate(found) if block.message and not block.removed]
    last = answered_turn(roles)
    groups: list[list[RowBlock]] = []
    for at, block in enumerate(found):
        if groups and (block.key is None or at > last):
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def answered_turn(roles: Sequence[tuple[int, str]]) -> int:
    """Where the last message of a user stands that has an answer behind it; at the beginning where there is none."""
    answered = next((at for at, role in reversed(roles) if role == "assistant"), -1)
    return next((at for at, role in reversed(roles) if role == "user" and at < answered), 0)


def _delta(now: SessionCounts, group: Sequence[RowBlock], before: Sequence[Delta], *, spawned: bool) -> Delta:
    said, records = now.messages, now.records
    times = []
    for block in group:
        for record in by_record(block_events(block, spawned=spawned)):
            times.append(now.add(record))
    return Delta(
        start=before[-1].end if before else 0,
        end=group[-1].end,
        time=max((time for time in times if time is not None), default=None),
        records=now.records - records,
        messages=now.messages - said,
    )


def started(messages: Sequence[RowMessage]) -> tuple[dict[str, str], dict[str, str]]:
    """The sessions of sub-agents with the calls that started them, and those calls with the prompts they gave."""
    calls: dict[str, str] = {}
    asks: dict[str, str] = {}
    for message in messages:
        for part in message.parts:
            if part.type == "tool" and part.data.get("tool") == "task":
                _note(part.data, calls, asks)
    return calls, asks


def _note(data: Record, calls: dict[str, str], asks: dict[str, str]) -> None:
    call, started = named(text(data.get("callID"))), named(text(inside(data, "state", "metadata", "sessionId")))
    if call and started:
        calls[started] = call
    if call and (prompt := text(inside(data, "state", "input", "prompt"))):
        asks[call] = prompt_name(prompt)


def identify(path: Path, facts: FileFacts) -> Identity:
    """A sub-agent has a session of its own, whose row names the one that started it."""
    parent = facts.parent if facts.parent != facts.session else ""
    return Identity(session=facts.session or path.stem, parent=parent)
