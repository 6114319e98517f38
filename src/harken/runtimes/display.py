"""What the user of a wrapped runtime sees: what the runtime would have shown by itself.

The wrapper makes the runtime write its stream of JSON lines; unless the user asked for that stream, it is turned back
into what the user did ask for. The spellings were read off the real programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson

Show = Callable[[bytes], None]
"""Writes bytes where the user sees them."""


def parse(line: bytes) -> dict[str, Any]:
    """The object on a line; an empty one where there is none, for nothing here may stop a run."""
    try:
        found = orjson.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class Display:
    """Shows a run's lines as `text`, `json`, `array` or `stream`."""

    def __init__(self, runtime: str, show: str, *, out: Show, note: Callable[[str], None]) -> None:
        self._claude = runtime == "claude-code"
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
        elif self._claude:
            if found.get("type") == "result":
                self._kept.append(line if self._mode == "json" else claude_text(found))
        else:
            self._codex(found)

    def _codex(self, found: dict[str, Any]) -> None:
        item = found.get("item")
        if found.get("type") == "item.completed" and isinstance(item, dict) and item.get("type") == "agent_message":
            self._kept = [_bytes(item.get("text"))]
        elif found.get("type") == "turn.failed" and isinstance(found.get("error"), dict):
            self._note(f"ERROR: {found['error'].get('message', '')}")

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


def claude_text(result: dict[str, Any]) -> bytes:
    """The text Claude Code prints for a `result` line."""
    if result.get("subtype") == "success":
        return _bytes(result.get("result"))
    errors = result.get("errors")
    why = str(errors[0]) if isinstance(errors, list) and errors else str(result.get("subtype"))
    turns = re.fullmatch(r"Reached maximum number of turns \((\d+)\)", why)
    return f"Error: Reached max turns ({turns[1]})".encode() if turns else b"Error: " + _bytes(why)


def _bytes(text: object) -> bytes:
    return text.encode("utf-8", "replace") if isinstance(text, str) else b""
