"""Tools of an MCP server: `McpServer.stdio(name, command, args)` or `McpServer.http(name, url)` among the tools.

Each session has its own connection to a server. It is opened when an agent that has the server takes a turn, again when
a tool is called and the server has ended, and closed with the session. A server that cannot be started, or offers
something odd, stops nothing else: its tools are not there, and the log says why.
"""

from __future__ import annotations

import asyncio
import re
import threading
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import msgspec
import orjson

from harken import clock
from harken.errors import BadRequest, Closed, HarkenError
from harken.events import Image, System
from harken.events.base import join_parts
from harken.secrets import mask

from .mcp_life import PATIENCE, Address, Life, Process, ServerGone, Started, Transport
from .schema_tools import object_schema, safely_checked
from .tools import Answer, Tool, Toolset, current_call

if TYPE_CHECKING:
    from harken.log import Session

    from .agent import Agent

NOTICE = "mcp_server"
"""The subtype of the `system` event that says that a server was started, or could not be."""
MAX_TOOLS = 500
MAX_NAME = 64
"""How many characters the name of a tool may have, with that of its server: what all providers take."""
MAX_DESCRIPTION = 10_000
MAX_IMAGE = 20_000_000
"""How many characters of base64 a picture may have."""
AGAIN = 30.0
"""After how many seconds a server that could not be started is tried again."""
_NAME = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")
_TOOL = re.compile(r"[A-Za-z0-9_./-]+")
_GONE = "; whether it had any effect is not known"


class McpServer(Toolset, frozen=True, kw_only=True):
    """A server whose tools an agent may use, each under the name `NAME__TOOL`."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    start_seconds: float = 30.0
    """How long it may take to start."""
    call_seconds: float = 300.0
    """How long a call may take."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or len(self.name) > MAX_NAME // 2 or not _NAME.fullmatch(self.name):
            raise BadRequest(
                f"{self.name!r:.80} cannot be the name of a server",
                hint=f"at most {MAX_NAME // 2} letters, digits, `-`, and `_` between them, one at a time",
            )
        if bool(self.command) == bool(self.url):
            raise BadRequest(
                f"the server {self.name} needs a command or an address",
                hint="McpServer.stdio(name, command, args) or McpServer.http(name, url)",
            )
        for seconds in (self.start_seconds, self.call_seconds):
            if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < 1e9:
                raise BadRequest(f"{seconds!r:.80} is no number of seconds", hint="such as call_seconds=300")

    @classmethod
    def stdio(
        cls,
        name: str,
        command: str,
        args: Iterable[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        start_seconds: float = 30.0,
        call_seconds: float = 300.0,
    ) -> Self:
        """A program that is started for the session and spoken to through its pipes. Of our environment it has what the
        `mcp` package hands on (`PATH`, `HOME`, …), and `env`."""
        given = (args,) if isinstance(args, str) else tuple(args)
        if isinstance(args, str) or not all(isinstance(one, str) for one in given):
            raise BadRequest(f"args are texts, and {args!r:.80} are none", hint='such as ["-m", "my_server"]')
        return cls(
            name=name,
            command=command,
            args=given,
            env=dict(env or {}),
            cwd=cwd,
            start_seconds=start_seconds,
            call_seconds=call_seconds,
        )

    @classmethod
    def http(
        cls,
        name: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        start_seconds: float = 30.0,
        call_seconds: float = 300.0,
    ) -> Self:
        """A server that somebody else runs, by streamable HTTP."""
        if not isinstance(url, str) or urlsplit(url).scheme not in ("http", "https"):
            raise BadRequest(f"{url!r:.80} is no address of a server", hint="such as https://example.org/mcp")
        return cls(
            name=name, url=url, headers=dict(headers or {}), start_seconds=start_seconds, call_seconds=call_seconds
        )

    def transport(self) -> Transport:
        """How it is reached."""
        if self.url:
            return Address(self.url, self.headers, self.call_seconds)
        return Process(self.command, self.args, self.env, self.cwd)

    def told(self) -> dict[str, Any]:
        """How it is reached, for the log: without its environment, its headers, and what looks like a key."""
        if self.command:
            return {"command": mask(self.command)[0], "args": [mask(one)[0] for one in self.args]}
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return {"url": mask(f"{parts.scheme}://{host}{parts.path}")[0]}


class Connection:
    """A server as one session has it, over as many lives as it takes."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.tools: dict[str, Tool] = {}
        """Its tools, by the name a model knows them by; those of its last life until the next has begun."""
        self._guard = threading.Lock()
        self._life: Life | None = None
        self._former: list[Life] = []
        """Lives that are over, and whose process may not have ended yet."""
        self._told: Life | None = None
        self._failed = 0.0
        self._closed = False

    def close(self, *, wait: bool = True) -> None:
        """End the server; it is not started again. Without `wait` it is only told."""
        with self._guard:
            self._closed = True
            lives = [one for one in (*self._former, self._life) if one is not None]
        for life in lives:
            life.stop(PATIENCE if wait else 0)

    def _living(self) -> Life:
        with self._guard:
            if self._closed:
                raise Closed(f"the session of the server {self.server.name} is closed", hint="open it again")
            if self._life is None or self._life.is_over:
                former = (*self._former, self._life) if self._life is not None else self._former
                self._former = [one for one in former if not one.has_ended]
                self._life = Life(self.server.name, self.server.transport(), start=self.server.start_seconds)
            return self._life

    async def prepare(self, agent: Agent) -> None:
        """Have it started and its tools known, where that is possible; an agent is about to take a turn."""
        life = self._life
        if life is not None and life.begun.done() and (life.begun.exception() is None or not self._may_try()):
            return
        try:
            await self._begun(agent)
        except HarkenError:
            return  # the log says so, and the turn goes on without its tools

    def _may_try(self) -> bool:
        return clock.monotonic() - self._failed >= AGAIN

    async def _begun(self, agent: Agent) -> Life:
        """A life that has begun. Whoever sees first what became of it logs it."""
        life = self._living()
        try:
            started = await asyncio.wrap_future(life.begun)
        except HarkenError as problem:
            if self._is_news(life):
                self._failed = clock.monotonic()
                self._log(agent, {"failed": str(problem)[:2000]})
            raise
        if self._is_news(life):
            self.tools, left_out = tools_of(self, started)
            told: dict[str, Any] = {"says": {"name": started.name[:200], "version": started.version[:200]}}
            told |= {"protocol": started.protocol, "tools": list(self.tools)}
            self._log(agent, told | ({"left_out": left_out} if left_out else {}))
        return life

    def _is_news(self, life: Life) -> bool:
        with self._guard:
            news, self._told = self._told is not life, life
            return news

    def _log(self, agent: Agent, said: dict[str, Any]) -> None:
        metadata = orjson.dumps(self.server.told() | said)
        event = System(agent_id=agent.agent_id, subtype=NOTICE, message=self.server.name, metadata=metadata)
        agent.session.append([event])

    async def use(self, tool: str, arguments: Mapping[str, Any], *, redo: bool) -> Answer:
        """Call a tool. Where the server has ended it is started again, and asked again if it has not heard the call, or
        if doing it twice is doing it once."""
        call = current_call()
        assert call is not None
        for last in (False, True):
            life = await self._begun(call.agent)
            try:
                return as_answer(await life.ask(tool, arguments, self.server.call_seconds))
            except ServerGone as problem:
                if last or (problem.asked and not redo):
                    if problem.asked:
                        raise ServerGone(f"{problem}{_GONE}", asked=True) from None
                    raise
        raise AssertionError


class Connections:
    """The servers of one session, by name. It must not hold the session, whose end closes it."""

    def __init__(self) -> None:
        self._found: dict[str, Connection] = {}

    def take(self, session: Session, tools: Iterable[Tool | Toolset]) -> None:
        """Know the servers among these tools, in place of others of their names; none is started yet."""
        for server in tools:
            if not isinstance(server, McpServer):
                continue
            known = self._found.get(server.key)
            if known is not None and known.server == server:
                continue
            if not self._found:
                session.before_close(self.close)
                weakref.finalize(session, self.close)  # where nobody closes it, and nobody holds it any more
            if known is not None:
                known.close()
            self._found[server.key] = Connection(server)

    def tools(self, given: Mapping[str, Tool | Toolset]) -> dict[str, Tool]:
        """The tools as given, with those of servers as far as they are known; what was given outright comes first."""
        plain = {name: tool for name, tool in given.items() if isinstance(tool, Tool)}
        found: dict[str, Tool] = {}
        for key in given:
            if key in self._found:
                found |= self._found[key].tools
        return found | plain

    async def prepare(self, agent: Agent, given: Iterable[str]) -> None:
        """Have the servers of an agent started, all at once."""
        if wanted := [self._found[key] for key in given if key in self._found]:
            await asyncio.gather(*(one.prepare(agent) for one in wanted))

    def close(self) -> None:
        """End them all."""
        for one in self._found.values():
            one.close(wait=False)
        for one in self._found.values():
            one.close()


def tools_of(connection: Connection, started: Started) -> tuple[dict[str, Tool], dict[str, str]]:
    """The tools a server offers, by the names that models know; and those that are left out, with the reason."""
    found: dict[str, Tool] = {}
    left_out: dict[str, str] = {}
    for one in started.tools:
        offered = one.name if isinstance(one.name, str) else ""
        name = f"{connection.server.name}__{re.sub('[./]', '_', offered)}"
        try:
            if not _TOOL.fullmatch(offered) or len(name) > MAX_NAME:
                raise BadRequest("no provider would take its name", hint="give it another")
            if name in found or len(found) >= MAX_TOOLS:
                raise BadRequest("another has its name, or there are too many", hint="give it another")
            found[name] = _tool(connection, one, name)
        except BadRequest as problem:
            if len(left_out) < MAX_TOOLS:
                left_out[f"{offered!r:.80}"] = str(problem)
    return found, left_out


def _tool(connection: Connection, one: Any, name: str) -> Tool:
    hints = one.annotations
    redo = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
    offered = str(one.name)

    async def call(**arguments: Any) -> Answer:
        return await connection.use(offered, arguments, redo=redo)

    description = one.description or one.title or ""
    given = object_schema(one.input_schema)
    return Tool(
        name=name,
        description=description[:MAX_DESCRIPTION],
        function=call,
        given=given,
        checked=safely_checked(given),
        redo=redo,
    )


def as_answer(result: Any) -> Answer:
    """What a server answered, as the text and the pictures a model is shown."""
    content, images = join_parts([_part(block) for block in result.content])
    if not result.content and result.structured_content is not None:
        content = msgspec.json.encode(result.structured_content).decode()
    if result.is_error:
        return Answer(content=f"Error: {content or 'the tool failed'}", is_error=True)
    return Answer(content=content or ("" if images else "Done."), images=images)


def _part(block: Any) -> str | Image:
    """One block of an answer; what no model can be shown is named."""
    kind = str(getattr(block, "type", ""))
    if kind == "text":
        return str(block.text)
    if kind == "image":
        return _picture(block.mime_type, block.data)
    if kind == "resource_link":
        return f"[{block.name}: {block.uri}]"
    if kind == "resource":
        return _resource(block.resource)
    return f"[{kind} of {len(getattr(block, 'data', ''))} characters, which cannot be shown]"


def _resource(resource: Any) -> str | Image:
    if isinstance(text := getattr(resource, "text", None), str):
        return f"[{resource.uri}]\n{text}"
    blob, media_type = getattr(resource, "blob", ""), str(resource.mime_type or "")
    if media_type.startswith("image/"):
        return _picture(media_type, blob)
    return f"[{resource.uri}: {media_type or 'bytes'} of {len(blob)} characters, which cannot be shown]"


def _picture(media_type: str, data: str) -> str | Image:
    if len(data) > MAX_IMAGE or not media_type.startswith("image/"):
        return f"[{media_type:.80} of {len(data)} characters, which cannot be shown]"
    return Image(media_type=media_type, data=data)
