"""What the user of a wrapped runtime sees: what the runtime would have shown by itself.

The wrapper makes the runtime write its stream of JSON lines; unless the user asked for that stream, it is turned back
into what the user did ask for. What a line means to the user is the runtime's affair (`Launcher.shown`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from .base import ShownLine

WriteBytes = Callable[[bytes], None]
"""Writes bytes where the user sees them."""
Meaning = Callable[[bytes, dict[str, Any], str], ShownLine]


def parse(line: bytes) -> dict[str, Any]:
    """The object on a line; an empty one where there is none, for nothing here may stop a run."""
    try:
        found = orjson.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class Display:
    """Shows a run's lines as `text`, `json`, `array` or `stream`."""

    def __init__(self, meaning: Meaning, show: str, *, out: WriteBytes, note: Callable[[str], None]) -> None:
        self._meaning = meaning
        self._mode = show
        self._out = out
        self._note = note
        self._kept: list[bytes] = []
        self._gone = False

    def line(self, line: bytes, found: dict[str, Any]) -> None:
        """Take the next line; `found` is the object on it."""
        if self._mode == "stream":
            self._show(line + b"\n")
        elif self._mode == "array":
            self._kept.append(line)
        else:
            said = self._meaning(line, found, self._mode)
            if said.note:
                self._note(said.note)
            if said.answer is not None and said.joins:
                self._kept = [*self._kept[:-1], (b"".join(self._kept[-1:]) + said.answer).lstrip(b"\n")]
            elif said.answer is not None:
                self._kept = [said.answer] if said.replaces else [*self._kept, said.answer]

    def end(self) -> None:
        """Show what was kept for the end."""
        if not self._kept:
            return
        if self._mode == "array":
            self._show(b"[" + b",".join(self._kept) + b"]\n")
        elif self._mode == "json":
            self._show(self._kept[-1] + b"\n")
        elif self._mode == "text":
            self._show(b"\n\n".join(self._kept) + b"\n")

    def _show(self, data: bytes) -> None:
        # Once nobody reads any more, the run still goes on and is still recorded.
        if self._gone:
            return
        try:
            self._out(data)
        except OSError:
            self._gone = True
