"""Sessions to be written as documents: composed ones, and all that are at hand."""

from __future__ import annotations

import asyncio
import importlib
import re
from pathlib import Path
from typing import Any

from harken.events import AgentCreated, Event, Prompt, Response, ToolCall, ToolResult
from support.recordings import CORPUS, FOLDER

SECOND = 1_000_000
START = 1_772_618_400 * SECOND
"""2026-03-04T10:00:00Z"""


class Told:
    """A session that is told event by event, a second apart."""

    def __init__(self, main: str = "main") -> None:
        self.events: list[Event] = []
        self.main = main
        self.timed = True
        self.agent(main, role="root")

    def add(self, event: Event) -> Any:
        """One more event; it gets a time and a name."""
        number = len(self.events)
        time = START + number * SECOND if self.timed else None
        self.events.append(event.replace(time=time, message_id=event.message_id or f"m{number}"))
        return self.events[-1]

    def agent(self, name: str, call: ToolCall | None = None, **more: Any) -> None:
        fields = {"role": "child", "name": name.title(), "cause": call.message_id if call else None} | more
        self.add(AgentCreated(agent_id=name, **fields))

    def ask(self, words: str, agent: str = "", **more: Any) -> Any:
        return self.add(Prompt(agent_id=agent or self.main, content=words, **more))

    def say(self, words: str, agent: str = "", **more: Any) -> Any:
        return self.add(Response(agent_id=agent or self.main, content=words, **more))

    def call(self, name: str, input: str = "{}", agent: str = "", id: str | None = None, **more: Any) -> Any:
        found = f"c{len(self.events)}" if id is None else id
        return self.add(ToolCall(agent_id=agent or self.main, id=found, name=name, input=input.encode(), **more))

    def result(self, call: ToolCall, output: str = "done", **more: Any) -> Any:
        return self.add(ToolResult(agent_id=call.agent_id, id=call.id, output=output, **more))

    def spawn(self, name: str, kind: str = "developer", agent: str = "", tool: str = "Agent") -> Any:
        """A call that makes an agent, and the task it is given."""
        made = self.call(tool, f'{{"subagent_type": "{kind}", "prompt": "the work of {name}"}}', agent)
        self.agent(name, made)
        self.ask(f"the work of {name}", name, source="injected", origin="agent", cause=made.message_id)
        return made

    def answer(self, made: ToolCall, name: str, words: str = "") -> Any:
        """The agent's last words, and the result that brings them."""
        said = self.say(words or f"{name} is done", name)
        return self.result(made, said.content, substance=said.message_id)


def lone() -> Told:
    """One agent, one call."""
    told = Told()
    told.ask("Mend the clock.")
    told.result(told.call("Read", '{"file_path": "clock.py"}'))
    told.say("It is mended.", model="claude-opus-5")
    return told


def pair() -> Told:
    """Two agents, one after the other, the first of which has one of its own."""
    told = Told()
    told.ask("Have the clock mended.")
    first = told.spawn("one")
    inner = told.spawn("deep", "looker", agent="one")
    told.result(told.call("Read", agent="deep"))
    told.answer(inner, "deep")
    told.answer(first, "one")
    second = told.spawn("two")
    told.answer(second, "two")
    told.say("Both are back.")
    return told


# -- all sessions of several agents that are at hand -------------------------------------------------------------------

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DEMONSTRATIONS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in {"stage", "show", "page"})
_MARKS = (b'"isSidechain":true', b'"isSidechain": true', b'"agentId":', b"spawn_agent", b"thread_spawn")
"""What only files have in which agents start others."""


def families() -> list[Path]:
    """Folders with sessions of several agents: recorded ones, and those of the corpus where there is one."""
    recorded = sorted(path.parent for path in FOLDER.glob("*/*/recording.json"))
    found = [path for path in recorded if any(map(_has_agents, path.rglob("*.jsonl")))]
    for folder in ("claude_code", "codex_rollout"):
        below = sorted(CORPUS.joinpath(folder).iterdir()) if CORPUS else []
        found += [path for path in below if path.is_dir() and any(map(_has_agents, path.rglob("*.jsonl")))]
    return found


def _has_agents(path: Path) -> bool:
    data = path.read_bytes()
    return any(mark in data for mark in _MARKS)


def play(name: str, file: Path) -> None:
    """Play a demonstration into a log."""
    asyncio.run(importlib.import_module(name).play(file))


GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "session-documents.md"


def listed_warnings() -> set[str]:
    """The warnings that the guide says an exported document may have."""
    section = GUIDE.read_text("utf-8").partition("\n## Export\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", section.partition("| warning |")[2], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
