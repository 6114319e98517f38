"""A session as a trace that Perfetto and chrome://tracing read: a thread per agent, a slice per call, thought and wait.

The JSON form of the Trace Event Format: an array of objects, instants in microseconds. A call is a slice from when it
was made to when its result came; an answer or a thought one from the record before it, which is when the model was
asked; prompts, failures and compactions are instants. An arrow leads from a call to the agent that it made.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

from harken.analytics.steps import is_compaction
from harken.events import AgentCreated, Error, Event, Metric, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.base import excerpt
from harken.events.tool_kinds import tool_kind
from harken.events.tools import doing

PROCESS = 1
WIDTH = 200
MOST_OPEN = 100_000
"""Calls without a result that are waited for; from then on the oldest is told as it is."""


class ChromeTrace:
    """Makes the objects of a trace from events, in their order. What has no time is not part of a trace."""

    def __init__(self, title: Callable[[], str]) -> None:
        """`title` is asked when the first event has come: before, a file does not say whose it is."""
        self._title = title
        self._threads: dict[str, int] = {}
        self._last: dict[str, int] = {}
        """When each agent last did or was told something."""
        self._open: dict[tuple[str, str], tuple[ToolCall, int]] = {}
        self._newest = 0

    def add(self, event: Event) -> Iterator[dict[str, Any]]:
        """What an event adds."""
        if event.time is None:
            return
        yield from self._thread(event)
        self._newest = max(self._newest, event.time)
        match event:
            case _ if is_compaction(event):
                yield self._instant("compaction", event, getattr(event, "message", ""))
            case ToolCall():
                yield from self._call(event, event.time)
            case ToolResult():
                yield from self._result(event, event.time)
            case Response() | Thinking():
                yield self._spoken(event, event.time)
            case Prompt():
                yield self._instant("prompt" if event.source != "injected" else "injected", event, event.content)
            case Error():
                yield self._instant("failure", event, event.message)
            case _:
                pass
        if not isinstance(event, Metric):
            self._last[event.agent_id] = event.time

    def end(self) -> Iterator[dict[str, Any]]:
        """Calls that have no result: they end with the trace."""
        for call, began in self._open.values():
            yield self._slice(call, began, self._newest, unanswered=True)
        self._open.clear()

    # -- threads -----------------------------------------------------------------------------------------------

    def _thread(self, event: Event) -> Iterator[dict[str, Any]]:
        agent = event.agent_id
        if agent not in self._threads:
            if not self._threads:
                yield self._about("process_name", 0, name=self._title())
            self._threads[agent] = len(self._threads) + 1
            name = event.name if isinstance(event, AgentCreated) and event.name else agent
            yield self._about("thread_name", self._threads[agent], name=name or "agent")
            yield self._about("thread_sort_index", self._threads[agent], sort_index=self._threads[agent])
        elif isinstance(event, AgentCreated) and event.name:
            yield self._about("thread_name", self._threads[agent], name=event.name)
        if isinstance(event, AgentCreated) and event.time is not None:
            for cause in event.causes():
                yield from self._arrow(cause, event, event.time)

    def _arrow(self, call: str, made: AgentCreated, time: int) -> Iterator[dict[str, Any]]:
        for (agent, name), (_, began) in self._open.items():
            if name == call and agent in self._threads:
                arrow = {"name": "made", "cat": "agent", "id": zlib.crc32(f"{call} {made.agent_id}".encode())}
                yield {**arrow, "ph": "s", **self._place(agent, min(began, time))}
                yield {**arrow, "ph": "f", "bp": "e", **self._place(made.agent_id, time)}
                return

    def _about(self, what: str, thread: int, **told: Any) -> dict[str, Any]:
        return {"name": what, "ph": "M", "pid": PROCESS, "tid": thread, "args": told}

    def _place(self, agent: str, time: int) -> dict[str, Any]:
        return {"ts": time, "pid": PROCESS, "tid": self._threads[agent]}

    # -- slices ------------------------------------------------------------------------------------------------

    def _call(self, call: ToolCall, time: int) -> Iterator[dict[str, Any]]:
        if len(self._open) >= MOST_OPEN:
            oldest, began = self._open.pop(next(iter(self._open)))
            yield self._slice(oldest, began, began, unanswered=True)
        self._open[call.agent_id, call.id] = (call, time)

    def _result(self, result: ToolResult, time: int) -> Iterator[dict[str, Any]]:
        found = self._open.pop((result.agent_id, result.id), None)
        if found is not None:
            yield self._slice(*found, time, failed=result.is_error, result=excerpt(result.output, WIDTH))

    def _slice(self, call: ToolCall, began: int, ended: int, **told: Any) -> dict[str, Any]:
        args = {"what": excerpt(doing(call), WIDTH), "record": call.message_id, "call": call.id, **told}
        shape: dict[str, Any] = {"name": call.name, "cat": tool_kind(call.name), "ph": "X", "args": args}
        if told.get("failed"):
            shape["cname"] = "terrible"
        return {**shape, **self._place(call.agent_id, began), "dur": max(0, ended - began)}

    def _spoken(self, event: Response | Thinking, time: int) -> dict[str, Any]:
        began = min(time, self._last.get(event.agent_id, time))
        name = "answer" if isinstance(event, Response) else "thinking"
        args = {"text": excerpt(event.content, WIDTH), "record": event.message_id}
        shape = {"name": name, "cat": name, "ph": "X", "args": args}
        return {**shape, **self._place(event.agent_id, began), "dur": time - began}

    def _instant(self, name: str, event: Event, text: str) -> dict[str, Any]:
        args = {"text": excerpt(text, WIDTH), "record": event.message_id}
        return {
            "name": name,
            "cat": name,
            "ph": "i",
            "s": "t",
            **self._place(event.agent_id, event.time or 0),
            "args": args,
        }
