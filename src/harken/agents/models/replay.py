"""A model that answers as a log recorded it: the same words and the same calls, agent by agent.

Agents are told apart by their path of names from the root. The number of messages an agent has produced says which
recorded one is next, so a replay can be interrupted and resumed like any other session.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harken.errors import NotFound
from harken.log import Session

from .base import Message, ModelError, Reply, Request

Path_ = tuple[str, ...]


class ReplayModel:
    """Answers from recorded messages."""

    def __init__(self, parts: dict[Path_, list[Message]], *, name: str = "replay:") -> None:
        self.parts = parts
        self._name = name

    @property
    def name(self) -> str:
        """The name that opens this recording again."""
        return self._name

    async def complete(self, request: Request) -> Reply:
        """The recorded message that is due."""
        part = self.parts.get(request.path, [])
        if request.turn >= len(part):
            raise ModelError(f"the recording has no message {request.turn + 1} of {'/'.join(request.path)!r}")
        message = part[request.turn]
        content, calls, thinking = message.get("content"), message.get("tool_calls"), message.get("thinking")
        return Reply(
            content=content if isinstance(content, str) else None,
            tool_calls=tuple(call for call in calls if isinstance(call, dict)) if isinstance(calls, list) else (),
            thinking=thinking if isinstance(thinking, str) else "",
        )


def load_recording(path: Path, *, name: str) -> ReplayModel:
    """The recording in a session log; of agents that share a path the later one goes on where the earlier stopped."""
    if not path.exists():
        raise NotFound(f"there is no recording {str(path)!r}", hint="replay: takes a session log, and says it again")
    with Session.load(path, readonly=True) as session:
        paths = {agent_id: _path(session, agent_id) for agent_id in session.agents}
        parts: dict[Path_, list[Message]] = {}
        for data in session.records():
            if data.get("event_type") == "transcript_entry" and data.get("role") == "assistant":
                parts.setdefault(paths.get(_text(data.get("agent_id")), ()), []).append(data)
    return ReplayModel(parts, name=name)


def _path(session: Session, agent_id: str) -> Path_:
    names: list[str] = []
    at: str | None = agent_id
    while at is not None and len(names) < 100:
        info = session.agents[at]
        names.append(info.name or ("root" if info.parent is None and info.role != "hook" else at))
        at = info.parent
    return tuple(reversed(names))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
