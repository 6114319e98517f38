"""The calls of a session as a document has them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import msgspec

from harken.clock import format_instant, in_calendar
from harken.events import Metric, ToolCall, ToolResult
from harken.events.base import clean, excerpt
from harken.events.tally import Tally
from harken.formats.std.arguments import exact_params
from harken.formats.std.beside import call_beside
from harken.formats.std.categories import tool_category
from harken.formats.std.document import Json
from harken.formats.std.models import TASK
from harken.formats.std.parts import instant, over

from .moments import Moments
from .spawning import OTHER_TYPE, SessionTree, SpawnedAgent

NO_RESULT = "no result was recorded"
LONGEST_ERROR = 200
_MS = 1000


class ExportedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call in a document, and which of its fields the session does not tell."""

    data: Json
    derived: tuple[str, ...] = ()


class ExportedCalls:
    """All calls of a session: what each is called in a document, and its result."""

    def __init__(
        self,
        tree: SessionTree,
        moments: Moments,
        *,
        is_open: bool,
        goes_on: Callable[[ToolCall], bool] = lambda call: False,
        went_well: Callable[[ToolCall], bool] = lambda call: False,
    ) -> None:
        """`is_open`: the session goes on, so that a call may be without a result; `goes_on` says of a call
        whether the sub-session that it is in does, whatever became of the session. `went_well` says of a call without a
        result whether it is known by something else that it went well."""
        self._tree, self._moments, self._is_open, self._goes_on = tree, moments, is_open, goes_on
        self._went_well = went_well
        self._names: dict[int, str] = {}  # by the identity of the event
        self._results: dict[int, ToolResult] = {}
        self._answers: dict[int, str] = {}
        self._taken: dict[str, int] = {}  # and how many wanted the same
        self._made_up: dict[str, str] = {}
        self._match()

    def _match(self) -> None:
        """Names that are unique in the document. Of several calls with one id a result is of the one that it names as
        its cause; else the first waits for the first result."""
        waiting: dict[tuple[str, str], deque[ToolCall]] = {}
        named: dict[tuple[str, str, str], ToolCall] = {}
        for event in self._tree.events:
            if isinstance(event, ToolCall):
                self._names[id(event)] = self.free_name(event.id or "call")
                waiting.setdefault((event.agent_id, event.id), deque()).append(event)
                named.setdefault((event.agent_id, event.id, event.message_id), event)
            elif isinstance(event, ToolResult):
                causes = (named.get((event.agent_id, event.id, cause)) for cause in event.causes())
                call = next((one for one in causes if one and id(one) not in self._results), None)
                calls = waiting.get((event.agent_id, event.id), deque())
                while call is None and calls:
                    first = calls.popleft()
                    call = None if id(first) in self._results else first
                if call is None:
                    continue
                self._results[id(call)] = event
                self._answers[id(event)] = self._names[id(call)]

    def free_name(self, wanted: str) -> str:
        """A name that no call has, and now is taken."""
        name = wanted = clean(wanted)
        while name in self._taken:
            self._taken[wanted] += 1
            name = f"{wanted}~{self._taken[wanted]}"
        self._taken[name] = 1
        return name

    def made_up(self, agent: SpawnedAgent) -> str:
        """What a call is called that nobody made, for an agent that no call names."""
        if agent.agent_id not in self._made_up:
            self._made_up[agent.agent_id] = self.free_name(f"spawn-{agent.number:03}")
        return self._made_up[agent.agent_id]

    def name(self, call: ToolCall) -> str:
        """What the call is called in the document."""
        return self._names[id(call)]

    def answered(self, result: ToolResult) -> str:
        """The call in the document that this is the result of; empty where there is none."""
        return self._answers.get(id(result), "")

    def written(self, call: ToolCall) -> ExportedCall:
        """The call."""
        params, is_exact = exact_params(call.input)
        made = self._tree.made_by(call)
        derived = ["started_at"] if call.time is None else []
        data: Json = {
            "call_id": self.name(call),
            "tool_name": TASK if made else clean(call.name) or "?",
            "tool_category": tool_category(TASK if made else call.name, params),
            "started_at": self._moments.text(call),
        }
        derived += self._end(call, data)
        data["input"] = {"params": params}
        if isinstance(told := params.get("description"), str):
            data["input"]["description"] = told
        derived += self._output(call, data)
        if made and call.name != TASK:
            data["x_harken_name"] = clean(call.name)
        if data["call_id"] != call.id:
            data["x_harken_id"] = clean(call.id)
        if not is_exact:
            data["x_harken_input"] = call.input.decode("utf-8", "replace")
        return ExportedCall(data=data, derived=tuple(derived))

    def _end(self, call: ToolCall, data: Json) -> list[str]:
        """When the call ended: as its result says, or the document that the session is from. One that nobody answered
        ended with the sub-session that it began, else at once, as far as anybody knows."""
        result, started = self._results.get(id(call)), self._moments.of(call)
        said = call_beside(self._tree.beside, call.message_id)
        took = said.get("duration_ms")
        took = took if isinstance(took, int) else None
        told = _told_end(said, started, took) if result is None else result.time
        if result is None and told is None and self._may_lack_result(call):
            return []
        ended = told if told is not None else self._moments.of(result) if result else self._agent_ended(call) or started
        is_told = told is not None and ended >= started
        ended = max(started, ended)
        data["ended_at"] = format_instant(ended)
        data["duration_ms"] = took if took is not None else (ended - started) // _MS
        return [] if is_told else ["ended_at"]

    def _agent_ended(self, call: ToolCall) -> int | None:
        """When the sub-session ended that a call began, as the document says that the session is from."""
        return next((over(sub) for agent in self._tree.made_by(call)[:1] for sub in agent.told[-1:]), None)

    def _may_lack_result(self, call: ToolCall) -> bool:
        """Whether the call may still be answered. One that made an agent stands among the main calls as well, and is
        over when the session is."""
        return self._is_open or (self._goes_on(call) and not self._tree.made_by(call))

    def _output(self, call: ToolCall, data: Json) -> list[str]:
        result = self._results.get(id(call))
        if result is not None:
            text = clean(result.output)
            data["output"] = {"status": "failed" if result.is_error else "success", "result": {"display": text}}
            if result.is_error:
                data["output"]["error"] = excerpt(text, LONGEST_ERROR)
            return []
        if self._may_lack_result(call):
            return []
        # What the provider runs itself is answered in the model's words, not in a result.
        went_well = call.server_tool or self._went_well(call)
        data["output"] = {"status": "success"} if went_well else {"status": "failed", "error": NO_RESULT}
        return ["output"]


def _told_end(said: Json, started: int, took: int | None) -> int | None:
    """When a call without a result ended, by what a document says of it."""
    ended = instant(said, "ended_at")
    return started + took * _MS if ended is None and took and in_calendar(started + took * _MS) else ended


def subagent_info(agent: SpawnedAgent) -> Json:
    """What the call that made an agent says of it."""
    tools = Counter(clean(event.name) or "?" for event in agent.events if isinstance(event, ToolCall))
    info: Json = {
        "subagent_type": clean(agent.agent_type) or OTHER_TYPE,
        "sub_session_id": agent.sub_session_id,
        "tool_uses": tools.total(),
    }
    if (used := tokens_used(agent)) is not None:
        info["tokens_used"] = used
    if tools:
        info["tools_breakdown"] = [{"tool_name": name, "count": count} for name, count in tools.most_common()]
    return info


def tokens_used(agent: SpawnedAgent) -> int | None:
    """All tokens of an agent's requests, each counted once; None where nobody told."""
    if not any(isinstance(event, Metric) for event in agent.events):
        return None
    tokens = Tally.of(agent.events).tokens
    known = [count for count in msgspec.structs.astuple(tokens) if count is not None]
    return sum(known) if known else None


def made_by_nobody(agent: SpawnedAgent, name: str, times: tuple[int, int | None], words: str) -> Json:
    """A call that nobody made, for an agent that the program made: a sub-session must name one."""
    params: dict[str, Any] = {"subagent_type": clean(agent.agent_type) or OTHER_TYPE, "prompt": words}
    started, ended = times
    data: Json = {
        "call_id": name,
        "tool_name": TASK,
        "tool_category": tool_category(TASK, params),
        "started_at": format_instant(started),
    }
    if ended is not None:
        data |= {"ended_at": format_instant(ended), "duration_ms": (ended - started) // _MS}
    data["input"] = {"params": params}
    if ended is not None:
        data["output"] = {"status": "failed" if agent.failed else "success"}
    return data | {"subagent_info": subagent_info(agent), "x_harken_derived": True}
