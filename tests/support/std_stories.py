"""Sessions of several agents as events, told in a line each, for documents to be made of."""

from __future__ import annotations

import json
from typing import Any

from harken.events import AgentCreated, Event, PieceOfText, Prompt, Response, ToolCall, ToolResult

SECOND = 1_000_000


class Story:
    """Events as a runtime's importer gives them; each act returns the id of its record."""

    def __init__(self, main: str = "main") -> None:
        self.main = main
        self.events: list[Event] = []
        self._made = 0
        self.add(AgentCreated, main, name=main, role="root")

    def add(self, kind: type[Event], agent: str, **fields: Any) -> str:
        name = fields.pop("message_id", f"e{len(self.events)}")
        time = fields.pop("time", len(self.events) * SECOND)
        self.events.append(kind(message_id=name, agent_id=agent, time=time, **fields))
        return str(name)

    def call(self, agent: str, call_id: str, tool: str = "Agent", **params: Any) -> str:
        return self.add(ToolCall, agent, id=call_id, name=tool, input=json.dumps(params).encode())

    def result(self, agent: str, call_id: str, output: str = "", **more: Any) -> str:
        return self.add(ToolResult, agent, id=call_id, output=output, **more)

    def say(self, agent: str, words: str, **more: Any) -> str:
        return self.add(Response, agent, content=words, **more)

    def hear(self, agent: str, words: str, **more: Any) -> str:
        return self.add(Prompt, agent, content=words, **{"source": "injected", **more})

    def piece(self, agent: str, words: str, cause: str) -> str:
        return self.add(PieceOfText, agent, content=words, cause=cause)

    def spawn(self, agent: str, task: str, *, by: str = "", kind: str = "worker", name: str = "") -> str:
        """A call that makes an agent, and the task that the agent hears; gives the call's id."""
        self._made += 1
        call_id = f"c{self._made}"
        record = self.call(by or self.main, call_id, subagent_type=kind, prompt=task)
        self.add(AgentCreated, agent, name=name or agent, role="child", cause=record)
        self.hear(agent, task, origin="agent", cause=record)
        return call_id

    def answer(self, agent: str, words: str, call_id: str, *, to: str = "") -> None:
        """The agent's last words, and the result that repeats them."""
        said = self.say(agent, words)
        self.result(to or self.main, call_id, words, substance=said)

    def work(self, agent: str, tool: str = "Read", output: str = "", *, failed: bool = False, **params: Any) -> None:
        """A call of the agent's own, and its result."""
        self._made += 1
        call_id = f"w{self._made}"
        record = self.call(agent, call_id, tool, **params)
        self.result(agent, call_id, output, is_error=failed, cause=record)
