"""What a language model is to us: something that is handed a request and gives back a reply.

A model remembers nothing. Whatever it needs to answer is in the request, so that an agent revived from the log in
another process gets the same answer from a script as it would have got before.

Beside it the simplest one: a model that plays from a script, without a key and a network. A script is a JSON or TOML
file. Under `agents` each agent has its part, named by its path from the root
(`root/Jill/Inner`), by its name, by its id, `root` for whoever that is, or `*` for everybody else. A part is a list
of lines, or a table:

    lines       said one after the other, one for each time the agent is asked
    rules       once the lines are used up: the first whose `when` occurs in what was last heard
    otherwise   what is said where no rule fits

A line is a text, or a table with `say`, `think`, `call` (one call or a list, each `{tool, arguments}`), `error` (the
model fails with this text), `failures` (fails so often before it answers), `breaks` (where it is streamed, each of
these failures comes behind so many words), `wait` (after each of them it wants so many seconds) and `delay` (seconds).
Which line is due follows from how many messages the agent has in the log, so nothing is kept here between calls.
"""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
import orjson

from harken.agents.options import PLAIN, ModelOptions
from harken.errors import BadRequest, NotFound
from harken.events import Tokens

Message = dict[str, Any]
SUMMARY = "summary"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What one reply cost, as the provider counts it."""

    tokens: Tokens = Tokens()
    cost_usd: float | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a model may know when it is asked for the next message."""

    messages: list[Message]
    """The transcript in the shape providers take."""
    tools: list[Message] = []
    """The tools on offer, as JSON schema."""
    agent_id: str = ""
    path: tuple[str, ...] = ()
    """Names from the root down to this agent; the root is `root` unless it has a name."""
    before: tuple[int, ...] = ()
    """For each name of the path: after how many agents of that name its bearer came below the same parent."""
    turn: int = 0
    """How many messages this agent has produced so far, compacted ones included."""

    options: ModelOptions = PLAIN
    """How it is asked: temperature, the form of the answer and the rest."""
    purpose: str = ""
    """`summary` where the agent has to sum up what is to be folded; else it is to go on."""

    @property
    def name(self) -> str:
        """The name of the agent that asks."""
        return self.path[-1] if self.path else ""

    def last_heard(self) -> str:
        """The last thing the agent was told, by a user message or by a tool."""
        for message in reversed(self.messages):
            if message.get("role") in ("user", "tool"):
                return str(message.get("content") or "")
        return ""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The next message: words, tool calls or both."""

    content: str | None = None
    tool_calls: tuple[Message, ...] = ()
    thinking: str = ""
    usage: Usage | None = None
    model: str = ""
    """Which model answered, where the provider says: a name may stand for several."""
    stop_reason: str = ""
    """Why it stopped, in the provider's words: `stop`, `tool_calls`, `length`, `content_filter`, …"""
    api_id: str = ""
    """The provider's id of the reply."""


class Streamed(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of what a model is saying, or what happened to it on the way."""

    kind: Literal["text", "thinking", "call", "failed", "fallback", "reply"] = "text"
    text: str = ""
    """The words; of a `call` the name of the tool, of `failed` why, of a `fallback` the model that is asked in place of
    the one that failed, of a `reply` the whole message."""
    attempt: int = 1
    """What an attempt said that failed later counts for nothing: the next one begins anew."""
    pause: float | None = None
    """Where it failed: after how many seconds it is asked again; None: it is not."""


def checked(reply: object) -> Reply:
    """What a model returned, where it is a reply that can be logged; else the model has failed."""
    if not isinstance(reply, Reply):
        raise ModelError(f"a model returned {type(reply).__name__}, not a Reply", hint=_MODEL_IS_WRONG)
    calls = reply.tool_calls
    is_listed = isinstance(calls, (tuple, list)) and all(isinstance(call, dict) for call in calls)
    if not is_listed or not isinstance(reply.content, str | None) or not isinstance(reply.thinking, str):
        raise ModelError(
            "a model returned a Reply whose content is no text, or whose tool_calls are no calls", hint=_MODEL_IS_WRONG
        )
    return reply


_MODEL_IS_WRONG = (
    "a model returns Reply(content=…, tool_calls=(tool_call(…),)); the session is kept, mend it and resume"
)


class Model(Protocol):
    """Anything that answers a request."""

    @property
    def name(self) -> str:
        """What the log calls it; `open_model` makes the same model from it again."""
        ...

    async def complete(self, request: Request) -> Reply:
        """The next message; `ModelError` where there is none."""
        ...


class StreamingModel(Model, Protocol):
    """A model that can be heard while it answers."""

    def stream(self, request: Request) -> AsyncIterator[Streamed | Reply]:
        """Pieces of the next message as they come, and then the message; `ModelError` where there is none."""
        ...


class ModelError(Exception):
    """A model did not answer; `retryable` says whether asking again may help, `too_long` that it was shown too much.

    `hint` is what to do about it, where that is not to wait and resume; `retry_after` says after how many seconds it
    wants to be asked again."""

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        too_long: bool = False,
        hint: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.retry_after = retry_after
        self.retryable = retryable
        self.too_long = too_long


def tool_call(call_id: str, name: str, arguments: str | dict[str, Any]) -> Message:
    """A tool call in the shape it has in a transcript; its arguments as JSON text, or as the object."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How often a model that fails is asked again, and after how many seconds: bounded, and longer each time."""

    attempts: int = 5
    first: float = 1.0
    factor: float = 2.0
    longest: float = 60.0
    patience: float = 300.0
    """How long is waited at most where the provider says how long to wait; beyond that it has failed for good."""

    def pause_after(self, planned: float | None, failure: ModelError) -> float | None:
        """How long to wait before asking again: as planned, or longer where the provider says so. None: not at all."""
        asked = failure.retry_after
        if planned is None or not failure.retryable or (asked is not None and asked > self.patience):
            return None
        return planned if asked is None else max(planned, asked)

    def pauses(self) -> Iterator[float]:
        """The pause after each failed attempt but the last."""
        pause = self.first
        for _ in range(self.attempts - 1):
            yield min(pause, self.longest)
            pause *= self.factor


RATIO = 4.0
"""Characters per token until a provider has counted."""
_LEARNING = 0.3


NEAR = 0.8
"""How full a model's window may get before the agent makes room."""


class Gauge:
    """How many tokens a transcript will cost: its characters, by a ratio learned from what the provider counted."""

    def __init__(self) -> None:
        self.ratio: float | None = None

    def learn(self, messages: list[Message], counted: int) -> None:
        """The provider counted this many tokens in these messages."""
        if counted > 0:
            seen = _characters(messages) / counted
            self.ratio = seen if self.ratio is None else (1 - _LEARNING) * self.ratio + _LEARNING * seen

    def is_full(self, messages: list[Message], window: int | None) -> bool:
        """Whether the messages nearly fill a model's window; one that nobody knows is never full."""
        return bool(window) and self.tokens(messages) >= NEAR * (window or 0)

    def is_over(self, messages: list[Message], window: int | None) -> bool:
        """Whether the messages are more than a model takes in."""
        return bool(window) and self.tokens(messages) > (window or 0)

    def tokens(self, messages: list[Message]) -> int:
        """What the messages will cost, nearly."""
        return int(_characters(messages) / max(self.ratio or RATIO, 0.1)) + 1


def _characters(messages: list[Message]) -> int:
    return sum(
        len(str(message.get("content") or "")) + len(str(message.get("tool_calls") or "")) for message in messages
    )


class ScriptedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool call of a line."""

    tool: str
    arguments: Any = {}
    """An object; a text is handed on just as it is, to try out broken JSON."""


class ScriptLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message of the script."""

    say: str | None = None
    think: str = ""
    call: ScriptedCall | list[ScriptedCall] = []
    when: str = ""
    error: str = ""
    failures: int = 0
    breaks: int = 0
    wait: float | None = None
    delay: float = 0.0

    def calls(self) -> list[ScriptedCall]:
        """The calls, however they were written."""
        return self.call if isinstance(self.call, list) else [self.call]


class ScriptPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one agent says."""

    lines: list[str | ScriptLine] = []
    rules: list[ScriptLine] = []
    otherwise: str | ScriptLine | None = None


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parts of all agents, and remarks for the reader."""

    agents: dict[str, list[str | ScriptLine] | ScriptPart] = {}
    about: str = ""

    def part(self, request: Request) -> ScriptPart | None:
        """The part of the agent that asks."""
        top = "root" if len(request.path) == 1 else ""
        for key in ("/".join(request.path), request.name, request.agent_id, top, "*"):
            if key and key in self.agents:
                found = self.agents[key]
                return ScriptPart(lines=found) if isinstance(found, list) else found
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
        self._fail(line, request)
        return _reply(line, request)

    async def stream(self, request: Request) -> AsyncIterator[Streamed | Reply]:
        """The line that is due, word by word; its delay is spread over the words."""
        line = due(self.script, request)
        words = re.findall(r"\S+\s*|\s+", line.say or "")
        if line.think:
            yield Streamed(kind="thinking", text=line.think)
        for number, word in enumerate(words or [""]):
            if number == line.breaks:
                self._fail(line, request)
            await asyncio.sleep(line.delay / max(len(words), 1))
            if word:
                yield Streamed(text=word)
        if len(words) <= line.breaks:
            self._fail(line, request)
        for call in line.calls():
            yield Streamed(kind="call", text=call.tool)
        yield _reply(line, request)

    def _fail(self, line: ScriptLine, request: Request) -> None:
        """Fail, where that is what the script says of this line."""
        place = (request.agent_id, request.turn)
        if (failed := self._failed.get(place, 0)) < line.failures:
            self._failed[place] = failed + 1
            said = f"scripted failure {failed + 1} of {line.failures}"
            raise ModelError(said, retryable=True, retry_after=line.wait)
        if line.error:
            raise ModelError(line.error)


def _reply(line: ScriptLine, request: Request) -> Reply:
    calls = tuple(
        tool_call(f"call_{request.agent_id}_{request.turn}_{number}", call.tool, _arguments(call))
        for number, call in enumerate(line.calls())
    )
    return Reply(content=line.say, tool_calls=calls, thinking=line.think)


def due(script: Script, request: Request) -> ScriptLine:
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
        raise BadRequest(
            f"the script {str(path)!r} cannot be read: {problem.strerror}", hint="look at the path and the permissions"
        ) from None
    try:
        raw = tomllib.loads(data.decode()) if path.suffix == ".toml" else orjson.loads(data)
    except (ValueError, RecursionError) as problem:
        raise BadRequest(
            f"the script {str(path)!r} is not valid: {problem}",
            hint="a script is a TOML file; the guide on agents has one",
        ) from None
    return ScriptedModel(_convert(raw, str(path)), name=name)


def _convert(raw: Any, where: str) -> Script:
    try:
        return msgspec.convert(raw, Script)
    except (msgspec.ValidationError, RecursionError) as problem:
        raise BadRequest(
            f"the script {where!r} does not fit: {problem}", hint="the guide on agents shows what a script may say"
        ) from None


def _line(line: str | ScriptLine) -> ScriptLine:
    return ScriptLine(say=line) if isinstance(line, str) else line


def _arguments(call: ScriptedCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else orjson.dumps(call.arguments).decode()
