"""One file (or folder) per format; this is the table that finds them.

Ours are listed by name and loaded when asked for. Others come through the entry-point group `harken.formats`, each
naming a `Format`, and pass the same contract suite (`harken.testing.FormatContract`).
"""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import EntryPoint, entry_points

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
    return [*_OURS, *(name for name in _doors() if name not in _OURS)]


@cache
def _doors() -> dict[str, EntryPoint]:
    """What others have installed; looking takes milliseconds, and a raw checkpoint asks each time."""
    return {door.name: door for door in entry_points(group="harken.formats")}


def find(name: str) -> Format | None:
    """The format of that name, or None."""
    if module := _OURS.get(name):
        found: Format = importlib.import_module(f".{module}", __name__).FORMAT
        return found
    if door := _doors().get(name):
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
