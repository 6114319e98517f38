"""One file (or folder) per format; this is the table that finds them.

Ours are listed by name and loaded when asked for. Others come through the entry-point group `harken.formats`, each
naming a `Format`, and pass the same contract suite (`harken.testing.FormatContract`).
"""

from __future__ import annotations

import contextlib
import importlib
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from harken.errors import NotFound

from .base import Delta, Format, Loss, Written
from .kit.claims import HEAD, NO_CLAIM, Claim, best

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


@cache
def runtime_notices() -> frozenset[str]:
    """What any runtime tells its model about itself, for conversations in a format that is no runtime's own."""
    found: set[str] = set()
    for name in names():
        # A format of somebody else that cannot be loaded has nothing to add here; whoever asks for it is told why.
        with contextlib.suppress(Exception):
            found |= get(name).notices
    return frozenset(found)


def claims(head: bytes, path: str = "") -> list[tuple[str, Claim]]:
    """Every format that claims the bytes, the surest first, with its reason; `head` is the beginning of the file."""
    made = [(name, claim) for name in names() if (claim := _claim(name, head[:HEAD], path)).reason]
    return sorted(made, key=lambda one: -one[1].score)


def _claim(name: str, head: bytes, path: str) -> Claim:
    try:
        found = get(name)
        return NO_CLAIM if found.claim is None else found.claim(head, path)
    except Exception as problem:  # noqa: BLE001  a format of somebody else may break in any way, and the others must not
        return Claim(reason=f"it could not be asked: {type(problem).__name__}: {problem}")


def detect(head: bytes, path: str = "") -> Format | None:
    """The format whose claim is the best; None where no claim is good enough, or two are equally good."""
    found = best(claims(head, path))
    return None if found is None else get(found[0])


__all__ = ["Claim", "Delta", "Format", "Loss", "Written", "claims", "detect", "find", "get", "names", "runtime_notices"]
