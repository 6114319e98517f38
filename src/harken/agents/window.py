"""What the log holds since a tool call began: the memory of a tool that a crash has stopped in the middle.

Calls run one after the other, so everything behind the message with the call, and behind the last result for it,
belongs to the call that is still open. `task` and `discuss` look up each of their steps here before they take it;
for a call that has only just begun the window is empty and nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .entries import REMARK, SENT_BACK, Entry, is_utterance

if TYPE_CHECKING:
    from .agent import Agent


class Window:
    """The events since a call began, in the order of the log."""

    def __init__(self, events: Iterable[Entry] = ()) -> None:
        self.events = list(events)

    @classmethod
    def since(cls, events: Iterable[Entry], agent_id: str, message_id: str) -> Window:
        """The window of the open call of an agent's message."""
        kept: list[Entry] = []
        begun = False
        for event in events:
            mine = event.get("agent_id") == agent_id
            if mine and event.get("message_id") == message_id:
                begun = True
                kept = []
            elif mine and event.get("role") == "tool":
                kept = []
            elif begun:
                kept.append(event)
        return cls(kept)

    def piece(self, agent_id: str, content: str, cause: str) -> str | None:
        """The piece of text an agent made in this call, if it did."""
        for event in self._of("piece_of_text", agent_id):
            if event.get("content") == content and cause in _causes(event):
                return str(event["message_id"])
        return None

    def created(self, name: str, cause: str) -> str | None:
        """The agent of this name that the call made, if it did."""
        for event in self.events:
            if event.get("event_type") == "agent_created" and event.get("name") == name and cause in _causes(event):
                return str(event["agent_id"])
        return None

    def has_heard(self, agent_id: str, substance: str) -> bool:
        """Whether an agent has this content before it."""
        return any(event.get("substance") == substance for event in self._of("transcript_entry", agent_id))

    def began(self, message_id: str) -> bool:
        """Whether the call had any effect yet: if so it had been approved."""
        return any(message_id in _causes(event) for event in self.events if event.get("role") != "user")

    def utterance(self, agent: Agent, after: int) -> tuple[int, Entry] | None:
        """What an agent said behind a place in the window, and where; one that was sent back does not count.

        The last word of an agent may still be under review, which is for the agent to say.
        """
        own = [
            (place, event)
            for place, event in enumerate(self.events)
            if place >= after
            and event.get("event_type") == "transcript_entry"
            and event.get("agent_id") == agent.agent_id
        ]
        for number, (place, event) in enumerate(own):
            behind = (later.get("origin") for _, later in own[number + 1 :])
            if is_utterance(event) and next((origin for origin in behind if origin != REMARK), None) != SENT_BACK:
                return place, event
        return None

    def _of(self, event_type: str, agent_id: str) -> Iterator[Entry]:
        for event in self.events:
            if event.get("event_type") == event_type and event.get("agent_id") == agent_id:
                yield event


def _causes(event: Entry) -> list[str]:
    cause = event.get("cause")
    if isinstance(cause, str):
        return [cause]
    return [one for one in cause if isinstance(one, str)] if isinstance(cause, list) else []
