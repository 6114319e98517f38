"""Which call made which agent: one look at all events of a session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from harken.events import AgentCreated, Event, Metric, PieceOfText, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.formats.std.arguments import params_of

_TOOLS = frozenset({"Task", "Agent", "task", "spawn_agent"})
"""What runtimes call the tool that starts an agent."""
_LONGEST_LAUNCH = 2000
_GOES_ON = ("resume", "task_id", "agent_id")
"""Arguments of such a call that name an agent which is there already."""
_LAUNCHED = re.compile(r"(?:async )?agent launched", re.I)
_AGENT_ID = re.compile(r"\b(?:agentId: |agent_id: |\"agent_id\"\s*:\s*\")([^\s\"(),]{1,200})")


class SeenEvents:
    """One look at all events."""

    def __init__(self, events: list[Event]) -> None:
        self.own: dict[str, list[Event]] = {}
        self.created: dict[str, AgentCreated] = {}
        self.owners: dict[str, str] = {}
        self.calls: dict[str, list[ToolCall]] = {}
        """By the record in which they stand."""
        self.by_call_id: dict[str, ToolCall] = {}
        self.results: dict[tuple[str, str], ToolResult] = {}
        self.place: dict[int, int] = {}
        """Where a result stands among all events, by its identity."""
        self.pieces: dict[str, PieceOfText] = {}
        self.last: dict[str, int] = {}
        """Where each agent said, heard or did something for the last time."""
        self._records: dict[str, tuple[dict[str, ToolCall], dict[str, ToolCall]]] = {}
        self._taken: set[int] = set()
        self._named: dict[str, ToolCall] | None = None
        self._asking: dict[str, ToolCall] | None = None
        self._open: list[ToolCall] = []
        self._has_free: bool | None = None
        self._said: set[tuple[str, str]] = set()
        """Agents with the records in which they said something."""
        self._giving: set[str] = set()
        """The records that gave agents something to do."""
        self.guessed: set[str] = set()
        """Agents of which nothing says which call made them."""
        self._made: dict[str, ToolCall | None] = {}
        for place, event in enumerate(events):
            self._look(place, event)

    def _look(self, place: int, event: Event) -> None:
        self.own.setdefault(event.agent_id, []).append(event)
        if isinstance(event, Prompt | Response | Thinking | ToolCall | ToolResult):
            self.last[event.agent_id] = place
        if event.message_id:
            self.owners.setdefault(event.message_id, event.agent_id)
        match event:
            case Response():
                self._said.add((event.agent_id, event.message_id))
            case Prompt(source="injected", origin="agent"):
                self._giving.update(event.causes())
            case AgentCreated():
                self.created.setdefault(event.agent_id, event)
            case ToolCall():
                self.calls.setdefault(event.message_id, []).append(event)
                if event.id:
                    self.by_call_id.setdefault(event.id, event)
            case ToolResult() if event.id:
                self.results.setdefault((event.agent_id, event.id), event)
                self.place[id(event)] = place
            case PieceOfText():
                self.pieces.setdefault(event.message_id, event)

    def main(self) -> str:
        """The agent that none of the others made; where that is not told, whoever has no name, else the first."""
        hooks = [event for event in self.created.values() if event.role == "hook"]
        for event in (*(one for one in self.created.values() if one.role != "hook"), *hooks):
            if event.cause is None and event.parent not in self.created:
                return event.agent_id
        return "" if "" in self.own or not self.own else next(iter(self.own))

    def others(self, main: str) -> Iterator[str]:
        """Everybody else. Events without an agent are the main agent's, or of the session as a whole."""
        return (agent for agent in self.own if agent not in (main, ""))

    def is_helper(self, agent_id: str) -> bool:
        """Whether it is a name under which the program itself asks a model (Qwen Code: `managed-auto-memory-…`), and no
        agent: the session has nothing of it but what its requests used, and no call that can have made it."""
        if agent_id in self.created or not all(isinstance(event, Metric) for event in self.own[agent_id]):
            return False
        return self._told_making(agent_id) is None and not self._has_free_call()

    def _has_free_call(self) -> bool:
        """Whether a call asks for an agent, and nothing tells whom it made."""
        if self._has_free is None:
            for other in self.own:
                self._told_making(other)
            asking = (call for call in self.by_call_id.values() if _asks_for_agent(call))
            self._has_free = any(id(call) not in self._taken for call in asking)
        return self._has_free

    def making(self, agent_id: str) -> ToolCall | None:
        """The call that made an agent."""
        return self._told_making(agent_id) or (self._guessed(agent_id) if self._may_be_guessed(agent_id) else None)

    def _may_be_guessed(self, agent_id: str) -> bool:
        """Whether a call made it that nothing names. Who is only listed, without a time, was made by none."""
        created = self.created.get(agent_id)
        is_listed = created is not None and created.time is None and len(self.own[agent_id]) == 1
        return (created is None or created.role == "child") and not is_listed

    def _told_making(self, agent_id: str) -> ToolCall | None:
        """The call that something names as the one which made an agent."""
        if agent_id not in self._made:
            self._made[agent_id] = self._look_for_making(agent_id)
        return self._made[agent_id]

    def _look_for_making(self, agent_id: str) -> ToolCall | None:
        created = self.created.get(agent_id)
        found = [call for cause in created.causes() for call in self.calls.get(cause, ())] if created else []
        if len(found) > 1 and created:
            return self._one_of(found, created)
        # A stream names a sub-agent after its call; of one whose own file is gone, a result may tell who it was.
        named = found[0] if found else self.by_call_id.get(agent_id) or self._named_in_results().get(agent_id)
        self._taken.update([id(named)] if named else ())
        return named

    def _guessed(self, agent_id: str) -> ToolCall | None:
        """The call of an agent that nothing names: one with the words that it was given, else the only one that asks
        for an agent and was never answered. Each is taken once, and none that made another."""
        if self._asking is None:
            for other in self.own:
                self._told_making(other)
            asking = [call for call in self.by_call_id.values() if _asks_for_agent(call)]
            self._asking = {words: call for call in reversed(asking) for words in _texts(params_of(call.input))}
            self._open = [call for call in asking if (call.agent_id, call.id) not in self.results]
        given = (event.content for event in self.own[agent_id][:50] if isinstance(event, Prompt))
        found = next((self._asking[words] for words in given if words.strip() and words in self._asking), None)
        found = found or (self._open[0] if len(self._open) == 1 else None)
        if found is None or id(found) in self._taken or found.agent_id == agent_id:
            return None
        self._taken.add(id(found))
        self.guessed.add(agent_id)
        return found

    def _one_of(self, calls: list[ToolCall], created: AgentCreated) -> ToolCall:
        """Of several calls in one record the one that is named, else that which has the words that the agent was given,
        else the first that made nobody yet."""
        by_name, by_words = self._in_record(calls)
        given = (event.content for event in self.own[created.agent_id][:50] if isinstance(event, Prompt))
        named = params_of(created.attributes).get("call_id")
        found = by_name.get(named) if isinstance(named, str) else None
        found = found or next((by_words[words] for words in given if words in by_words), None)
        if found is None:
            left = (call for call in calls if id(call) not in self._taken)
            found = next(left, calls[0])
        self._taken.add(id(found))
        return found

    def _in_record(self, calls: list[ToolCall]) -> tuple[dict[str, ToolCall], dict[str, ToolCall]]:
        """The calls of a record by their ids, and by the texts in their arguments; read once."""
        record = calls[0].message_id
        if record not in self._records:
            by_words = {text: call for call in reversed(calls) for text in _texts(params_of(call.input))}
            self._records[record] = ({call.id: call for call in reversed(calls) if call.id}, by_words)
        return self._records[record]

    def _named_in_results(self) -> dict[str, ToolCall]:
        """Agents by the calls whose results name them, as `agentId: …` or as an `agent_id`."""
        if self._named is None:
            self._named = {}
            for (agent_id, call_id), result in self.results.items():
                call = self.by_call_id.get(call_id)
                if call is not None and call.agent_id == agent_id and "agent" in result.output:
                    for found in _AGENT_ID.finditer(result.output):
                        self._named.setdefault(found[1], call)
        return self._named

    def unrecorded(self, making: Mapping[int, object]) -> Iterator[tuple[str, ToolCall]]:
        """Calls that started an agent of which nothing else is kept, with what it is called: those of a tool for that
        which made nobody and brought an answer. One that failed may have started none."""
        taken = set(self.own)
        for call in self.by_call_id.values():
            result = self.results.get((call.agent_id, call.id))
            if call.name not in _TOOLS or id(call) in making or result is None or result.is_error:
                continue
            named = _AGENT_ID.findall(result.output)
            if is_launch(call, result) or self._is_of_known_agent(call, result, named):
                continue
            name = named[-1] if named and named[-1] not in taken else call.id
            if name not in taken:
                taken.add(name)
                yield name, call

    def _is_of_known_agent(self, call: ToolCall, result: ToolResult, named: list[str]) -> bool:
        """Whether a call goes on with an agent that is there, or brings the words of one."""
        params = params_of(call.input)
        names = [*named, *(params[key] for key in _GOES_ON if isinstance(params.get(key), str))]
        links = (result.substance,) if result.substance else result.causes()
        is_of_another = any(self.owners.get(link, call.agent_id) != call.agent_id for link in links)
        return is_of_another or self._is_heeded(call, links) or not self.own.keys().isdisjoint(names)

    def _is_heeded(self, call: ToolCall, links: tuple[str, ...]) -> bool:
        """Whether an agent that is there was given something by the call, or the result brings the caller's own words:
        the orchestrator of a document may do what its own call asks for."""
        if call.message_id in self._giving and len(self.calls[call.message_id]) == 1:
            return True
        return any((call.agent_id, link) in self._said for link in links if link != call.message_id)

    def maker(self, agent_id: str, call: ToolCall | None, main: str) -> str:
        """The agent that made another: who is named together with the call, or made the call, or is named alone; a
        name that is no agent's made none."""
        created = self.created.get(agent_id)
        named = [call.agent_id] if call else []
        if created is not None:
            is_of_call = call is not None and call.message_id in created.causes()
            named.insert(0 if is_of_call else len(named), created.parent)
            named += [self.owners.get(cause, "") for cause in created.causes()]
        known = (one for one in named if one and one in self.own and one != agent_id)
        return next((one for one in known if not self.is_helper(one)), main)


def is_launch(call: ToolCall | None, result: ToolResult | None) -> bool:
    """Whether a result only says that an agent has been started: an answer is words, and names nobody's id."""
    if call is None or result is None or params_of(call.input).get("run_in_background") is True:
        return True
    told = params_of(result.output[:_LONGEST_LAUNCH].encode("utf-8", "replace"))
    return "agent_id" in told or _LAUNCHED.match(result.output) is not None


def _texts(params: dict[str, Any]) -> list[str]:
    return [value for value in params.values() if isinstance(value, str)]


def _asks_for_agent(call: ToolCall) -> bool:
    """Whether a call is one for an agent: by the name of the tool, or since it names a type of agent."""
    if call.name in _TOOLS:
        return True
    return b"agent_type" in call.input and not {"subagent_type", "agent_type"}.isdisjoint(params_of(call.input))
