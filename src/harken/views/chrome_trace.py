"""A session as a trace that Perfetto and chrome://tracing read: a thread per agent, a slice per call, thought and wait.

The JSON form of the Trace Event Format: an array of objects, instants in microseconds. A call is a slice from when it
was made to when its result came; an answer or a thought one from the record before it, which is when the model was
asked; prompts, failures and compactions are instants. An arrow leads from a call to the agent that it made.
"""

from __future__ import annotations

import zlib
from bisect import insort
from collections.abc import Callable, Iterator
from typing import Any

from harken.analytics.steps import is_compaction
from harken.events import AgentCreated, Error, Event, Metric, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.base import excerpt
from harken.events.tool_kinds import tool_kind
from harken.events.tools import doing, tool_and_deed

PROCESS = 1
WIDTH = 200
MOST_OF_NAME = 80
MOST_OPEN = 100_000
"""Calls without a result that are waited for; from then on the oldest is told as it is. As many are known as what made
an agent."""


class TraceThread:
    """A line of the timeline, and where it is taken."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._taken: list[tuple[int, int]] = []
        """The outermost slices, in the order of time."""

    def has_room(self, began: int, ended: int) -> bool:
        """Whether a slice would cross none that stands here."""
        for start, end in reversed(self._taken):
            if end <= began:
                break
            if start < began < end < ended or began < start < ended < end:
                return False
        return True

    def take(self, began: int, ended: int) -> None:
        """A slice stands here."""
        while self._taken and began <= self._taken[-1][0] and self._taken[-1][1] <= ended:
            self._taken.pop()
        insort(self._taken, (began, ended))

    def forget(self) -> None:
        """No slice will begin before the newest that stands here: nothing is open."""
        del self._taken[:-1]


class ChromeTrace:
    """Makes the objects of a trace from events, in their order. What has no time is not part of a trace."""

    def __init__(self, title: Callable[[], str]) -> None:
        """`title` is asked when the first event has come: before, a file does not say whose it is."""
        self._title = title
        self._threads: dict[str, list[TraceThread]] = {}
        """Of each agent its own, and those for what went on at the same time."""
        self._names: dict[str, str] = {}
        self._unnamed: set[str] = set()
        """Agents that nobody gave a name: what they were asked for stands in its place."""
        self._count = 0
        self._last: dict[str, int] = {}
        """When each agent last did or was told something."""
        self._open: dict[tuple[str, str], tuple[ToolCall, int]] = {}
        self._asked: dict[str, tuple[str, int, str]] = {}
        """Who made the calls of a record, when, and what for, where it is one call: an agent is made by a record, and
        perhaps behind its results."""
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
                yield from self._spoken(event, event.time)
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
            yield from self._slice(call, began, self._newest, unanswered=True)
        self._open.clear()

    # -- threads -----------------------------------------------------------------------------------------------

    def _thread(self, event: Event) -> Iterator[dict[str, Any]]:
        agent = event.agent_id
        if agent not in self._threads:
            if not self._threads:
                yield self._about("process_name", 0, name=self._title())
            self._names[agent] = self._called(event) or agent or "agent"
            self._threads[agent] = []
            yield from self._further(agent)
        elif isinstance(event, AgentCreated) and (name := self._called(event)):
            yield from self._renamed(agent, name)
        elif agent in self._unnamed and isinstance(event, Prompt) and event.content.strip():
            self._unnamed.remove(agent)
            yield from self._renamed(agent, excerpt(event.content, MOST_OF_NAME))
        if isinstance(event, AgentCreated) and event.time is not None:
            for cause in event.causes():
                yield from self._arrow(cause, event, event.time)

    def _called(self, event: Event) -> str:
        """What an agent is called that is made here: by its name, else as the one call that asked for it says."""
        if not isinstance(event, AgentCreated):
            return ""
        if event.name != event.agent_id or not event.parent:
            return event.name
        found = next((self._asked[cause][2] for cause in event.causes() if cause in self._asked), "")
        if not found:
            self._unnamed.add(event.agent_id)
        return found or event.name

    def _renamed(self, agent: str, name: str) -> Iterator[dict[str, Any]]:
        self._names[agent] = name
        for place in range(len(self._threads[agent])):
            yield self._named(agent, place)

    def _arrow(self, record: str, made: AgentCreated, time: int) -> Iterator[dict[str, Any]]:
        if (found := self._asked.get(record)) is None:
            return
        agent, asked, _ = found
        arrow = {"name": "made", "cat": "agent", "id": zlib.crc32(f"{record} {made.agent_id}".encode())}
        yield {**arrow, "ph": "s", **self._place(agent, min(asked, time))}
        yield {**arrow, "ph": "f", "bp": "e", **self._place(made.agent_id, time)}

    def _further(self, agent: str) -> Iterator[dict[str, Any]]:
        """One more thread of an agent, beside those that it has."""
        self._count += 1
        self._threads[agent].append(TraceThread(self._count))
        yield self._named(agent, len(self._threads[agent]) - 1)
        # All of an agent stand together.
        yield self._about("thread_sort_index", self._count, sort_index=self._threads[agent][0].number)

    def _named(self, agent: str, place: int) -> dict[str, Any]:
        name = self._names[agent] if not place else f"{self._names[agent]} ({place + 1})"
        return self._about("thread_name", self._threads[agent][place].number, name=name)

    def _about(self, what: str, thread: int, **told: Any) -> dict[str, Any]:
        return {"name": what, "ph": "M", "pid": PROCESS, "tid": thread, "args": told}

    def _place(self, agent: str, time: int) -> dict[str, Any]:
        return {"ts": time, "pid": PROCESS, "tid": self._threads[agent][0].number}

    # -- slices ------------------------------------------------------------------------------------------------

    def _call(self, call: ToolCall, time: int) -> Iterator[dict[str, Any]]:
        if len(self._open) >= MOST_OPEN:
            oldest, began = self._open.pop(next(iter(self._open)))
            yield from self._slice(oldest, began, began, unanswered=True)
        if len(self._asked) >= MOST_OPEN:
            del self._asked[next(iter(self._asked))]
        errand = "" if call.message_id in self._asked else excerpt(tool_and_deed(call)[1], MOST_OF_NAME)
        self._asked[call.message_id] = (call.agent_id, time, errand)
        self._open[call.agent_id, call.id] = (call, time)

    def _result(self, result: ToolResult, time: int) -> Iterator[dict[str, Any]]:
        found = self._open.pop((result.agent_id, result.id), None)
        if found is not None:
            yield from self._slice(*found, time, failed=result.is_error, result=excerpt(result.output, WIDTH))

    def _slice(self, call: ToolCall, began: int, ended: int, **told: Any) -> Iterator[dict[str, Any]]:
        args = {"what": excerpt(doing(call), WIDTH), "record": call.message_id, "call": call.id, **told}
        shape: dict[str, Any] = {"name": call.name, "cat": tool_kind(call.name), "ph": "X", "args": args}
        if told.get("failed"):
            shape["cname"] = "terrible"
        yield from self._placed(call.agent_id, shape, began, max(began, ended))

    def _spoken(self, event: Response | Thinking, time: int) -> Iterator[dict[str, Any]]:
        began = min(time, self._last.get(event.agent_id, time))
        name = "answer" if isinstance(event, Response) else "thinking"
        args = {"text": excerpt(event.content, WIDTH), "record": event.message_id}
        shape = {"name": name, "cat": name, "ph": "X", "args": args}
        yield from self._placed(event.agent_id, shape, began, time)

    def _placed(self, agent: str, shape: dict[str, Any], began: int, ended: int) -> Iterator[dict[str, Any]]:
        """A slice on the first thread of its agent that has room for it."""
        threads = self._threads[agent]
        thread = next((one for one in threads if one.has_room(began, ended)), None)
        if thread is None:
            yield from self._further(agent)
            thread = threads[-1]
        thread.take(began, ended)
        if not self._open:
            thread.forget()
        yield {**shape, "ts": began, "pid": PROCESS, "tid": thread.number, "dur": ended - began}

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
