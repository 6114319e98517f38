"""A model that plays from a script: no key, no network, and the same answer after a crash.

A script is a JSON or TOML file. Under `agents` each agent has its part, named by its path from the root
(`root/Jill/Inner`), by its name, by its id, `root` for whoever that is, or `*` for everybody else. A part is a list
of lines, or a table:

    lines       said one after the other, one for each time the agent is asked
    rules       once the lines are used up: the first whose `when` occurs in what was last heard
    otherwise   what is said where no rule fits

A line is a text, or a table with `say`, `think`, `call` (one call or a list, each `{tool, arguments}`), `error` (the
model fails with this text), `failures` (fails so often before it answers) and `delay` (seconds).
Which line is due follows from how many messages the agent has in the log, so nothing is kept here between calls.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson

from harken.errors import BadRequest, NotFound

from .base import ModelError, Reply, Request, tool_call


class ScriptedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool call of a line."""

    tool: str
    arguments: Any = {}
    """An object; a text is handed on just as it is, to try out broken JSON."""


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message of the script."""

    say: str | None = None
    think: str = ""
    call: ScriptedCall | list[ScriptedCall] = []
    when: str = ""
    error: str = ""
    failures: int = 0
    delay: float = 0.0

    def calls(self) -> list[ScriptedCall]:
        """The calls, however they were written."""
        return self.call if isinstance(self.call, list) else [self.call]


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one agent says."""

    lines: list[str | Line] = []
    rules: list[Line] = []
    otherwise: str | Line | None = None


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parts of all agents, and remarks for the reader."""

    agents: dict[str, list[str | Line] | Part] = {}
    about: str = ""

    def part(self, request: Request) -> Part | None:
        """The part of the agent that asks."""
        top = "root" if len(request.path) == 1 else ""
        for key in ("/".join(request.path), request.name, request.agent_id, top, "*"):
            if key and key in self.agents:
                found = self.agents[key]
                return Part(lines=found) if isinstance(found, list) else found
        return None


class ScriptedModel:
    """Answers from a script."""

    def __init__(self, script: Script | Mapping[str, Any], *, name: str = "scripted:") -> None:
        self.script = script if isinstance(script, Script) else _convert(dict(script), name)
        self._name = name
        # How often a line with `failures` has failed; only this may be lost in a crash.
        self._failed: dict[tuple[str, int], int] = {}

    @property
    def name(self) -> str:
        """The name that opens this script again."""
        return self._name

    async def complete(self, request: Request) -> Reply:
        """The line that is due."""
        line = due(self.script, request)
        if line.delay:
            await asyncio.sleep(line.delay)
        place = (request.agent_id, request.turn)
        if (failed := self._failed.get(place, 0)) < line.failures:
            self._failed[place] = failed + 1
            raise ModelError(f"scripted failure {failed + 1} of {line.failures}", retryable=True)
        if line.error:
            raise ModelError(line.error)
        calls = tuple(
            tool_call(f"call_{request.agent_id}_{request.turn}_{number}", call.tool, _arguments(call))
            for number, call in enumerate(line.calls())
        )
        return Reply(content=line.say, tool_calls=calls, thinking=line.think)


def due(script: Script, request: Request) -> Line:
    """The line that answers a request; `ModelError` where the script has come to its end."""
    part = script.part(request)
    if part is None:
        raise ModelError(f"the script has no part for {request.name or request.agent_id!r}")
    if request.turn < len(part.lines):
        return _line(part.lines[request.turn])
    heard = request.last_heard().casefold()
    for rule in part.rules:
        if rule.when.casefold() in heard:
            return rule
    if part.otherwise is None:
        raise ModelError(f"the script has no line {request.turn + 1} for {request.name or request.agent_id!r}")
    return _line(part.otherwise)


def load_script(path: Path, *, name: str) -> ScriptedModel:
    """The script in a file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"there is no script {str(path)!r}", hint="scripted: takes a JSON or TOML file") from None
    except OSError as problem:
        raise BadRequest(f"the script {str(path)!r} cannot be read: {problem.strerror}") from None
    try:
        raw = tomllib.loads(data.decode()) if path.suffix == ".toml" else orjson.loads(data)
    except (ValueError, RecursionError) as problem:
        raise BadRequest(f"the script {str(path)!r} is not valid: {problem}") from None
    return ScriptedModel(_convert(raw, str(path)), name=name)


def _convert(raw: Any, where: str) -> Script:
    try:
        return msgspec.convert(raw, Script)
    except (msgspec.ValidationError, RecursionError) as problem:
        raise BadRequest(f"the script {where!r} does not fit: {problem}") from None


def _line(line: str | Line) -> Line:
    return Line(say=line) if isinstance(line, str) else line


def _arguments(call: ScriptedCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else orjson.dumps(call.arguments).decode()
