"""One file (or folder) per format; this is the table that finds them.

Ours are listed by name and loaded when asked for. Others come through the entry-point group `harken.formats`, each
naming a `Format`, and pass the same contract suite (`harken.testing.FormatContract`).
"""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points

from harken.errors import NotFound

from .base import Delta, Format, Loss, Written

_OURS = {
    "events-v1": "events_v1",
    "session-log-v2": "session_log",
    "bureau-agent-v1": "bureau_agent",
    "claude-code-v1": "claude_code",
    "claude-stream-v1": "claude_stream",
    "codex-v1": "codex",
    "anthropic-messages-v1": "anthropic_messages",
    "openai-responses-v1": "openai_responses",
}
"""Name to module; a module's `FORMAT` is the format."""


def names() -> list[str]:
    """Every format there is, ours first."""
    return [*_OURS, *(door.name for door in entry_points(group="harken.formats") if door.name not in _OURS)]


def find(name: str) -> Format | None:
    """The format of that name, or None."""
    if module := _OURS.get(name):
        found: Format = importlib.import_module(f".{module}", __name__).FORMAT
        return found
    for door in entry_points(group="harken.formats"):
        if door.name == name:
            loaded: Format = door.load()
            return loaded
    return None


def get(name: str) -> Format:
    """The format of that name; `NotFound` lists what there is."""
    if (found := find(name)) is None:
        raise NotFound(f"no format is called {name!r}", hint="there are: " + ", ".join(names()))
    return found


def detect(head: bytes) -> Format | None:
    """The format whose bytes begin like this; what a file is called does not count."""
    for name in names():
        found = get(name)
        if found.detect is not None and found.detect(head):
            return found
    return None


__all__ = ["Delta", "Format", "Loss", "Written", "detect", "find", "get", "names"]
