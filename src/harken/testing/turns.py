"""Turns of a conversation, and chains of them, for the suites that need something to keep."""

from __future__ import annotations

from typing import Any

from harken.events import Event, Prompt, Response, ToolCall, ToolResult
from harken.events.cbor import decode_events, encode_events
from harken.repo import Repo
from harken.store import Commit


def talk(number: int) -> list[Event]:
    """A turn: a prompt, a call with its result, an answer."""
    return [
        Prompt(content=f"question {number}", message_id=f"m{number}a"),
        ToolCall(id=f"c{number}", name="Read", input=b'{"path":"x"}', message_id=f"m{number}b"),
        ToolResult(id=f"c{number}", output=f"result {number}", message_id=f"m{number}c"),
        Response(content=f"answer {number}", message_id=f"m{number}d"),
    ]


def keep(repo: Repo, number: int, parent: str | None = None, **facts: Any) -> Commit:
    """A commit of one turn."""
    facts.setdefault("created_at", f"2026-02-22T10:{20 + number:02}:00Z")
    return repo.checkpoint(encode_events(talk(number)), format="events-v1", parent=parent, **facts)


def grow(repo: Repo, count: int, **facts: Any) -> list[Commit]:
    """A chain of turns, oldest first."""
    made: list[Commit] = []
    for number in range(count):
        made.append(keep(repo, number, made[-1].id if made else None, **facts))
    return made


def events_of(repo: Repo, ref: str, stop: str = "compaction") -> list[Event]:
    """The conversation at a commit."""
    return list(decode_events(repo.materialize(ref, format="events-v1", stop=stop).bytes))
