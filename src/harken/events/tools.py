"""What was done: a tool is asked for, and answers."""

from __future__ import annotations

from typing import ClassVar

from .base import Event, Image


class ToolCall(Event, frozen=True, kw_only=True, gc=False):
    """The model asked for a tool; the call may still be refused or lost."""

    kind: ClassVar[str] = "tool_call"

    id: str = ""
    """Joins this to its `ToolResult`."""
    name: str = ""
    input: bytes = b""
    """The arguments as JSON text, just as the model wrote them; not always valid."""
    server_tool: bool = False
    """Run by the provider (a web search), so that we never see it execute."""


class ToolResult(Event, frozen=True, kw_only=True, gc=False):
    """A tool answered, or something answered in its place."""

    kind: ClassVar[str] = "tool_result"

    id: str = ""
    output: str = ""
    is_error: bool = False
    name: str = ""
    """The tool's name, where the record repeats it."""
    images: tuple[Image, ...] = ()
