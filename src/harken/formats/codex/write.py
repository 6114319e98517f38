"""Events as a rollout that Codex resumes.

Codex wants one `session_meta` and then items; it repairs little and refuses a foreign `model_provider`, so none is
written. Names and ids of tools go through as they are. What a rollout cannot say is listed as losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from harken import ids
from harken.clock import format_instant
from harken.events import Event, Image, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats.base import Loss, Written

from .pictures import url_of, why_not_sent
from .records import ITEM, SEALED, SESSION_META, Record, parse
from .request import ABORTED

ORIGINATOR = "harken"
CLI_VERSION = "0.166.0"
"""The Codex whose files these are like."""

_WHY = {
    "thinking": "only the provider that made it can read it",
    "picture": "Codex sends pictures that are in the message itself, not addresses",
    "tool result without its call": "Codex drops an output that answers nothing",
    "repeated tool result": "a call has one output",
    "error mark": "a failed call is told by its text alone",
    "unanswered call": f"answered with `{ABORTED}`, as Codex would",
    "provider's own tool call": "its answer is not in the conversation",
    "unreadable record": "nobody could read it",
}


def write(events: Sequence[Event]) -> Written:
    """The events as a rollout; the thread's id follows from what they say."""
    items, losses = to_items(events)
    body = b"".join(orjson.dumps(item) for _, item in items)
    start = next((time for time, _ in items if time is not None), 0)
    return Written(data=_rollout(items, thread_id(body, start), "/", start), losses=losses)


def write_session(events: Sequence[Event], *, session_id: str, cwd: str, time: int) -> Written:
    """The events as the rollout of a given thread."""
    items, losses = to_items(events)
    return Written(data=_rollout(items, session_id, cwd, time), losses=losses)


def thread_id(content: bytes, time: int) -> str:
    """An id of the shape Codex gives its threads (a UUID of version 7), made from the time and the content."""
    digits = f"{max(time, 0) // 1000 & (1 << 48) - 1:012x}7" + ids.artifact_id(content)[:19]
    digits = digits[:16] + "89ab"[int(digits[16], 16) % 4] + digits[17:]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


def _stamp(time: int) -> str:
    return format_instant(time)[:-4] + "Z"


def line_of(time: int, kind: str, payload: Record) -> bytes:
    return orjson.dumps({"timestamp": _stamp(time), "type": kind, "payload": payload}) + b"\n"


def new_meta(session_id: str, cwd: str, time: int) -> Record:
    return {
        "id": session_id,
        "session_id": session_id,
        "timestamp": _stamp(time),
        "cwd": cwd,
        "originator": ORIGINATOR,
        "cli_version": CLI_VERSION,
        "source": "cli",
    }


def _rollout(items: list[tuple[int | None, Record]], session_id: str, cwd: str, time: int) -> bytes:
    lines = [line_of(time, SESSION_META, new_meta(session_id, cwd, time))]
    for at, item in items:
        time = time if at is None else at
        lines.append(line_of(time, ITEM, item))
    return b"".join(lines)


def to_items(events: Sequence[Event]) -> tuple[list[tuple[int | None, Record]], tuple[Loss, ...]]:
    """The items of the conversation, each with its time, and what could not be said."""
    writer = _Writer(events)
    for event in events:
        writer.take(event)
    return writer.items, writer.losses()


class _Writer:
    def __init__(self, events: Sequence[Event]) -> None:
        self.items: list[tuple[int | None, Record]] = []
        self._lost: dict[str, int] = {}
        self._results = {event.id for event in events if isinstance(event, ToolResult)}
        self._calls: dict[str, str] = {}
        self._answered: set[str] = set()

    def losses(self) -> tuple[Loss, ...]:
        return tuple(Loss(what=what, count=count, why=_WHY[what]) for what, count in self._lost.items())

    def take(self, event: Event) -> None:
        match event:
            case Prompt():
                self._message(event, "user", event.content, event.images)
            case Response():
                self._message(event, "assistant", event.content)
            case Thinking():
                self._lose("thinking")
            case System():
                self._system(event)
            case ToolCall():
                self._call(event)
            case ToolResult():
                self._result(event)
            case Output() if event.why:
                self._lose("unreadable record")

    def _lose(self, what: str) -> None:
        self._lost[what] = self._lost.get(what, 0) + 1

    def _add(self, event: Event, item: Record) -> None:
        self.items.append((event.time, item))

    def _message(self, event: Event, role: str, text: str, images: tuple[Image, ...] = ()) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        parts: list[Record] = [{"type": kind, "text": text}] if text else []
        parts += self._pictures(images)
        if parts:
            self._add(event, {"type": "message", "role": role, "content": parts})

    def _pictures(self, images: tuple[Image, ...]) -> list[Record]:
        shown = [url for image in images if not why_not_sent(url := url_of(image))]
        for _ in range(len(images) - len(shown)):
            self._lose("picture")
        return [{"type": "input_image", "image_url": url} for url in shown]

    def _system(self, event: System) -> None:
        if event.subtype == "instructions":
            self._message(event, "developer", event.message)
        elif event.subtype == "compact_summary":
            item = parse(event.metadata)
            if item is not None and item.get("type") in SEALED:
                self._add(event, item)

    def _call(self, event: ToolCall) -> None:
        if event.server_tool and event.id not in self._results:
            self._served(event)
            return
        arguments = event.input.decode(errors="replace")
        if parse(event.input) is None and event.input:
            # Not arguments but free text, as the tools are given that Codex calls custom.
            kind, item = "custom_tool_call", {"status": "completed", "call_id": event.id, "input": arguments}
        else:
            kind, item = "function_call", {"arguments": arguments or "{}", "call_id": event.id}
        self._calls[event.id] = f"{kind}_output"
        self._add(event, {"type": kind, "name": event.name, **item})
        if event.id not in self._results:
            self._lose("unanswered call")
            self._add(event, {"type": f"{kind}_output", "call_id": event.id, "output": ABORTED})

    def _served(self, event: ToolCall) -> None:
        """A call the provider ran within its response; only a web search can be told."""
        if event.name != "web_search":
            self._lose("provider's own tool call")
            return
        action = parse(event.input) or {}
        self._add(event, {"type": "web_search_call", "status": "completed", "action": {"type": "search", **action}})

    def _result(self, event: ToolResult) -> None:
        if (kind := self._calls.get(event.id)) is None:
            self._lose("tool result without its call")
            return
        if event.id in self._answered:
            self._lose("repeated tool result")
            return
        self._answered.add(event.id)
        if event.is_error:
            self._lose("error mark")
        output: Any = event.output
        if event.images:
            text = [{"type": "input_text", "text": event.output}] if event.output else []
            output = [*text, *self._pictures(event.images)]
        self._add(event, {"type": kind, "call_id": event.id, "output": output})
