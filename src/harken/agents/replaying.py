"""Where a replay departs from its recording, or any session from another: agent by agent, the first difference of each.

Agents are told apart as a replay tells them apart: by their path of names, and by which of that name they are. What is
compared is what a model would be shown: roles, words, calls, and results in the order of the calls. Ids of agents
differ from log to log, and the order of events between agents is that of time; neither is a difference.
"""

from __future__ import annotations

import os

import msgspec

from harken.log import Session

from .entries import Entry, call_arguments, call_name, calls_of, for_model
from .models.replay import AGENT_ID, Path_, agent_path, names_of, parted

MAX_SHOWN = 120


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """Where the transcript of one agent is not what it was."""

    agent: str
    """Names from the root down, with a slash between."""
    place: int
    """Which message of its transcript, from 0."""
    recorded: str | None
    """What stands there in the recording; None: nothing, or there is no such agent."""
    replayed: str | None

    def __str__(self) -> str:
        there, here = (repr(one) if one is not None else "nothing" for one in (self.recorded, self.replayed))
        return f"{self.agent}, message {self.place + 1}: {here} where the recording has {there}"


def departures(
    recording: str | os.PathLike[str] | Session, replay: str | os.PathLike[str] | Session
) -> list[Departure]:
    """Where the second session departs from the first; empty: it is the same to every agent."""
    before, after = _shown(recording), _shown(replay)
    found: list[Departure] = []
    for path in dict.fromkeys((*before, *after)):
        was, now = before.get(path, []), after.get(path, [])
        for place in range(max(len(was), len(now))):
            one, other = (lines[place] if place < len(lines) else None for lines in (was, now))
            if one != other:
                names = "/".join(name for name, _ in path)
                texts = parted(one or "", other or "", MAX_SHOWN)
                recorded, replayed = (cut or text for cut, text in zip(texts, (one, other), strict=True))
                found.append(Departure(agent=names, place=place, recorded=recorded, replayed=replayed))
                break
    return found


def _shown(source: str | os.PathLike[str] | Session) -> dict[Path_, list[str | None]]:
    """What each agent has before it, a text for each message; None for the result of a call that is still open."""
    if not isinstance(source, Session):
        with Session.load(source, readonly=True) as session:
            return _shown(session)
    return {
        agent_path(names_of(source, agent_id), source.registry.before(agent_id)): [
            _line(message) for message in for_model(source.entries(agent_id), unanswered=None)
        ]
        for agent_id in source.agents
    }


def _line(message: Entry) -> str | None:
    if message.get("role") == "tool" and message.get("content") is None:
        return None
    calls = "; ".join(f"{call_name(call)}({call_arguments(call)})" for call in calls_of(message))
    text = " ".join(part for part in (str(message.get("content") or ""), calls) if part)
    return AGENT_ID.sub("agent", f"{message.get('role')}: {text}")
