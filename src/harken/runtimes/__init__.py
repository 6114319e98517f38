"""One file per runtime: where its sessions lie and whose they are. What imports, watches, runs and resumes is beside.

Ours are listed here and loaded when asked for; others come through the entry-point group `harken.runtimes`, each
naming a `Runtime`.
"""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points

from harken.errors import BadRequest

from .base import Identity, Runtime

_OURS = {"claude-code": "claude_code", "codex": "codex"}


def names() -> list[str]:
    """Every runtime whose sessions can be imported, ours first."""
    return [*_OURS, *(door.name for door in entry_points(group="harken.runtimes") if door.name not in _OURS)]


def get(name: str) -> Runtime:
    """The runtime of that name."""
    if module := _OURS.get(name):
        found: Runtime = importlib.import_module(f".{module}", __name__).RUNTIME
        return found
    for door in entry_points(group="harken.runtimes"):
        if door.name == name:
            loaded: Runtime = door.load()
            return loaded
    raise BadRequest(f"no runtime is called {name!r}", hint="there are: " + ", ".join(names()))


__all__ = ["Identity", "Runtime", "get", "names"]
