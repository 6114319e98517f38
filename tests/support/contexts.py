"""Chains of commits for tests: a repo with a clock that only moves when it is asked, and deltas of events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import harken
from harken.events import Event, Prompt, Response, ToolCall, ToolResult
from harken.events.cbor import decode_events, encode_events
from harken.repo import Repo
from harken.store import Commit

START = 1_794_738_000_000_000
SECOND = 1_000_000


class Ticking:
    """A clock that goes on by a second each time it is read."""

    def __init__(self, start: int = START) -> None:
        self.now = start

    def __call__(self) -> int:
        self.now += SECOND
        return self.now


def memory_repo() -> Repo:
    return harken.open("memory:", clock=Ticking())


def turn(number: int, *, time: int | None = None) -> list[Event]:
    """A prompt, a call with its result, and an answer, each a record of its own."""
    events: list[Event] = [
        Prompt(content=f"question {number}", message_id=f"m{number}a"),
        ToolCall(id=f"c{number}", name="Read", input=b'{"path":"x"}', message_id=f"m{number}b"),
        ToolResult(id=f"c{number}", output=f"result {number}", message_id=f"m{number}c"),
        Response(content=f"answer {number}", message_id=f"m{number}d"),
    ]
    if time is None:
        return events
    return [event.replace(time=time + place * SECOND) for place, event in enumerate(events)]


def keep(repo: Repo, events: Sequence[Event], parent: Commit | str | None = None, **facts: object) -> Commit:
    """One delta of events."""
    return repo.checkpoint(encode_events(events), format="events-v1", parent=parent, **facts)  # type: ignore[arg-type]


def chain(repo: Repo, turns: Iterable[int], parent: Commit | str | None = None) -> Commit:
    """A commit per turn, one on top of the other; the newest."""
    for number in turns:
        parent = keep(repo, turn(number), parent)
    assert isinstance(parent, Commit)
    return parent


def heard(repo: Repo, ref: object, **how: object) -> list[Event]:
    """The conversation at a commit, as events."""
    return decode_events(repo.materialize(ref, format="events-v1", **how).bytes)  # type: ignore[arg-type]


def flat(turns: Iterable[int]) -> list[Event]:
    return [event for number in turns for event in turn(number)]
