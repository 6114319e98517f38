"""What an agent did over its whole life, compacted parts too: a fold over its records, oldest first.

A transcript forgets what was folded away. How often the agent spoke, whom it seated at its last discussion and which
model it was given must not be forgotten with it.
"""

from __future__ import annotations

import contextlib

from harken.errors import BadRequest

from .actions import DISCUSS
from .entries import Entry, call_arguments, call_name, calls_of

MODEL = "model"
"""The subtype of the `system` event that gives an agent another model; its message is the name."""


class History:
    """One agent's past, one record at a time."""

    def __init__(self) -> None:
        self.spoken = 0
        """How many messages it has produced."""
        self.speakers: list[str] | None = None
        self.listeners: list[str] | None = None
        self.model = ""
        """The model it was given last; empty where it kept the one it was made with."""
        self._open: dict[str, str] = {}

    def take(self, data: Entry) -> None:
        """Take in one record of this agent."""
        role = data.get("role")
        if role == "assistant":
            if not data.get("index"):
                self.spoken += 1
            for call in calls_of(data):
                self._open.pop(call["id"], None)  # a provider may use a call id twice
                if call_name(call) == DISCUSS.name:
                    self._open[call["id"]] = call_arguments(call)
        elif role == "tool":
            self._answered(data)
        elif data.get("event_type") == "system" and data.get("subtype") == MODEL:
            self.model = str(data.get("message") or "")

    def _answered(self, data: Entry) -> None:
        call_id = data.get("tool_call_id")
        arguments = self._open.pop(call_id, None) if isinstance(call_id, str) else None
        if arguments is None or data.get("is_error"):
            return
        with contextlib.suppress(BadRequest):
            seats = DISCUSS.bind(arguments)
            self.speakers = seats["speakers"] or self.speakers
            self.listeners = self.listeners if seats["listeners"] is None else seats["listeners"]

    def forget(self, name: str) -> None:
        """A subagent has left the tree; another of its name is another."""
        for names in (self.speakers, self.listeners):
            if names is not None:
                names[:] = [one for one in names if one != name]
