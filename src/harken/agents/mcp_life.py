"""One life of an MCP server, from its start to its end: a thread with an event loop of its own that talks with it.

The loops in which agents take their turns come and go, a server stays; so it cannot live in one of them. Nothing here
knows of sessions and agents. The `mcp` package (extra `mcp`) is imported when the first server is started.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import threading
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from harken.errors import BadRequest, HarkenError
from harken.secrets import mask

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    import httpx2
    from mcp import Client
    from mcp.shared.exceptions import MCPError

MAX_PAGES = 100
"""How many pages of tools are asked for."""
MAX_TAIL = 2000
"""How many characters of what a server writes to stderr are kept."""
PATIENCE = 15.0
"""How many seconds a server that is stopped has until nobody waits for it; the `mcp` package kills it after four."""
_CLOSED, _TIMED_OUT = -32000, -32001
"""Codes of the `mcp` package's own news. Servers use the same numbers, so its words are looked at as well."""
_NO_SESSION = re.compile(r"session|not initialized", re.IGNORECASE)
"""What a server says with status 400 where it does not know our session; the protocol has 404 for it."""
_STATUS, _LOST = "harken_status", "harken_lost"
_UNKNOWN = "; whether it had any effect is not known"


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of itself when it is started."""

    tools: tuple[Any, ...]
    name: str = ""
    version: str = ""
    protocol: str = ""


class ServerGone(HarkenError):
    """The server ended before it had answered; `asked` says whether it may have heard the question."""

    def __init__(self, message: str, *, asked: bool) -> None:
        super().__init__(message, hint="the server is started again when one of its tools is called")
        self.asked = asked


class ServerFailed(HarkenError):
    """The server could not be started, or refused."""


class Life:
    """A server that is being started, lives, or has ended. A second life is a second object."""

    def __init__(self, name: str, transport: Transport, *, start: float) -> None:
        self.name = name
        self.begun: Future[Started] = Future()
        self.begun.set_running_or_notify_cancel()  # whoever waits for it may go away; the start goes on
        self.is_over = False
        self._transport = transport
        self._start = start
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[Any] | None = None
        self._client: Client | None = None
        self._asking = 0
        self._crowded = False
        """Whether several calls were under way at once, of which some may have been heard."""
        self._unreached = False
        """Whether it ended because nobody was there to be asked."""
        self._ended: Future[None] = Future()
        self._ended.set_running_or_notify_cancel()
        self._stopped = False
        self._pid = os.getpid()
        # A thread that the end of the program does not wait for: whoever has started it stops it before.
        self._thread = threading.Thread(target=self._run, name=f"harken-mcp-{name}", daemon=True)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it is left."""
        return self._ended.done()

    # -- in the thread of whoever calls ---

    async def ask(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> Any:
        """What a tool answers. `ServerGone` where the server ended meanwhile."""
        coroutine = self._ask(tool, dict(arguments), seconds)
        try:
            assert self._loop is not None
            asked = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except (RuntimeError, AssertionError):  # its loop is over
            coroutine.close()
            raise ServerGone(f"the server {self.name} has ended", asked=False) from None
        try:
            return await asyncio.wrap_future(asked)
        except ServerGone as problem:
            # Why it ended is known when it has.
            await asyncio.wait([asyncio.wrap_future(self._ended)], timeout=PATIENCE)
            problem.asked = problem.asked and not self._unreached
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise ServerGone(f"the server {self.name} was stopped", asked=True) from None

    def stop(self, wait: float = PATIENCE) -> None:
        """End it, also while it is being started; returns when its process and its thread are gone."""
        if self._pid != os.getpid():
            return  # a child that was forked off has neither
        with self._guard:
            first, self._stopped = not self._stopped, True
            if first and self._loop is not None and self._main is not None:
                with contextlib.suppress(RuntimeError):  # it has ended by itself
                    self._loop.call_soon_threadsafe(self._main.cancel)
        if threading.current_thread() is not self._thread:
            self._thread.join(wait)

    # -- in its own thread ---

    def _run(self) -> None:
        problem: BaseException | None = None
        try:
            asyncio.run(self._live())
        except BaseException as raised:  # noqa: BLE001  whatever ended it, those who wait must hear of it
            problem = raised
        self._unreached = _is_unreached(problem) and not self._crowded
        self.is_over = True
        if not self.begun.done():
            self.begun.set_exception(self._failure(problem))
        self._ended.set_result(None)

    async def _live(self) -> None:
        with self._guard:
            if self._stopped:
                return
            self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        _quiet()
        over = asyncio.Event()
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(self._start):
                started = await self._begin(stack, over)
            self.begun.set_result(started)
            await over.wait()
            self.is_over = True

    async def _begin(self, stack: contextlib.AsyncExitStack, over: asyncio.Event) -> Started:
        client_type = _client()
        streams = await stack.enter_async_context(self._transport.opened())
        client = client_type(_watched(streams, over), cache=None)
        self._client = await stack.enter_async_context(client)
        tools: list[Any] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            tools += page.tools
            if (cursor := page.next_cursor) is None:
                break
        info = self._client.server_info
        return Started(
            tools=tuple(tools),
            name=info.name if info is not None else "",
            version=info.version if info is not None else "",
            protocol=self._client.protocol_version,
        )

    async def _ask(self, tool: str, arguments: dict[str, Any], seconds: float) -> Any:
        from mcp.shared.exceptions import MCPError

        if self.is_over or self._client is None:
            raise ServerGone(f"the server {self.name} has ended", asked=False)
        self._crowded = self._asking > 0
        self._asking += 1
        try:
            return await self._client.call_tool(tool, arguments, read_timeout_seconds=seconds)
        except MCPError as problem:
            raise self._problem(problem, seconds) from None
        finally:
            self._asking -= 1

    def _problem(self, problem: MCPError, seconds: float) -> HarkenError:
        """Why a call has no answer."""
        words = problem.message
        about = problem.data if isinstance(problem.data, dict) else {}
        if about.get(_LOST):
            self._give_up()
            return ServerGone(f"the server {self.name} has been started anew", asked=False)
        if problem.code == _CLOSED and words == "Connection closed":
            return ServerGone(f"the server {self.name} ended before it had answered", asked=True)
        if problem.code == _CLOSED and words.startswith("SSE stream "):
            self._give_up()
            return ServerGone(f"the server {self.name} ended before it had answered", asked=True)
        if problem.code == _TIMED_OUT and words.startswith("Request ") and words.endswith(" timed out"):
            self._give_up()  # who hangs once would let every later call wait as long
            return ServerFailed(
                f"the server {self.name} did not answer within {seconds:g} seconds{_UNKNOWN}",
                hint="the server is started again when one of its tools is called",
            )
        if (status := about.get(_STATUS, 0)) >= 500:  # it failed, or what is in front of it did not wait
            return ServerFailed(
                f"the server {self.name} failed (HTTP {status}): {words}{_UNKNOWN}", hint="look whether it is well"
            )
        how = f" (HTTP {status})" if status else ""
        return ServerFailed(f"the server {self.name} refused{how}: {words}", hint="look at the arguments")

    def _give_up(self) -> None:
        """End this life, once what else is being asked has its answer."""
        self.is_over = True

        async def end() -> None:
            while self._asking:
                await asyncio.sleep(0.05)
            self.stop(0)

        self._ending = asyncio.ensure_future(end())

    def _failure(self, problem: BaseException | None) -> HarkenError:
        if isinstance(problem, HarkenError):
            return problem
        if isinstance(problem, asyncio.CancelledError) or problem is None:
            return ServerFailed(f"the server {self.name} was stopped", hint="open the session again")
        if any(isinstance(one, TimeoutError) for one in _leaves(problem)):
            why = f"it did not answer within {self._start:g} seconds"
        else:
            why = "; ".join(dict.fromkeys(f"{type(one).__name__}: {one}" for one in _leaves(problem)))
        tail = self._transport.tail().strip()
        said = mask(f"{why}; it wrote: {tail}" if tail else why)[0]
        return ServerFailed(
            f"the server {self.name} could not be started: {said}", hint="look at its command, or at its address"
        )


class Transport:
    """How a server is reached."""

    def opened(self) -> AbstractAsyncContextManager[Any]:
        """The streams to it and from it."""
        raise NotImplementedError

    def tail(self) -> str:
        """The last it wrote to stderr, where that reaches us."""
        return ""


class Process(Transport):
    """A program of ours; what it writes to stderr is read, and the end of it kept."""

    def __init__(self, command: str, args: tuple[str, ...], env: Mapping[str, str], cwd: str | None) -> None:
        self._command, self._args, self._env, self._cwd = command, args, env, cwd
        self._tail = b""

    def tail(self) -> str:
        """The last it wrote to stderr."""
        return self._tail.decode("utf-8", "replace")

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Any]:
        """Start it; it is ended behind the block, by force where it must be."""
        from mcp import StdioServerParameters, stdio_client

        parameters = StdioServerParameters(
            command=self._command, args=list(self._args), env=dict(self._env), cwd=self._cwd
        )
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        loop = asyncio.get_running_loop()
        loop.add_reader(reading, self._overhear, reading, loop)
        try:
            with os.fdopen(writing, "w") as errlog:
                running = stdio_client(parameters, errlog)
                streams = await running.__aenter__()
            try:
                yield streams
            except BaseException as problem:
                if not await running.__aexit__(type(problem), problem, problem.__traceback__):
                    raise
            else:
                await running.__aexit__(None, None, None)
        finally:
            self._overhear(reading, loop)
            loop.remove_reader(reading)
            os.close(reading)

    def _overhear(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        try:
            said = os.read(fd, 65536)
        except OSError:
            return
        if not said:
            loop.remove_reader(fd)
        self._tail = (self._tail + said)[-MAX_TAIL:]


class Address(Transport):
    """A server that somebody else runs, by HTTP."""

    def __init__(self, url: str, headers: Mapping[str, str], seconds: float) -> None:
        self._url, self._headers, self._seconds = url, headers, seconds

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Any]:
        """Speak to it."""
        from mcp.client.streamable_http import streamable_http_client

        async with (
            _http_client(self._headers, self._seconds + 30) as client,
            streamable_http_client(self._url, http_client=client) as streams,
        ):
            yield streams


def _http_client(headers: Mapping[str, str], seconds: float) -> httpx2.AsyncClient:
    """A client that has the package told the status of a call that was refused, which it keeps to itself."""
    import httpx2

    class RefusalClient(httpx2.AsyncClient):
        async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
            """The answer; that of a refused call as an error of the protocol, with what it means."""
            response = await super().send(request, **how)
            if response.status_code < 400 or b'"tools/call"' not in request.content:
                return response
            error = refusal(response.status_code, await response.aread(), known="mcp-session-id" in request.headers)
            content = orjson.dumps({"jsonrpc": "2.0", "id": None, "error": error})
            kind = {"content-type": "application/json"}
            return httpx2.Response(response.status_code, headers=kind, content=content, request=request)

    return RefusalClient(headers=dict(headers), timeout=httpx2.Timeout(30.0, read=seconds))


def refusal(status: int, body: bytes, *, known: bool) -> dict[str, Any]:
    """A call that was refused by HTTP, as an error of the protocol. `known` says whether the call was one of a session
    that the server had begun; where it does not know it any more, it has done nothing."""
    try:
        found = orjson.loads(body)
    except ValueError:
        found = None
    error = found.get("error") if isinstance(found, dict) else None
    own = error if isinstance(error, dict) else {"message": body[: 2 * MAX_TAIL].decode("utf-8", "replace")}
    text = mask(" ".join(str(own.get("message") or "").split()) or "it said nothing more")[0][:MAX_TAIL]
    code = own.get("code")
    lost = known and (status == 404 or (status == 400 and _NO_SESSION.search(text) is not None))
    return {"code": code if type(code) is int else -32603, "message": text, "data": {_STATUS: status, _LOST: lost}}


@contextlib.asynccontextmanager
async def _watched(streams: Any, over: asyncio.Event) -> AsyncIterator[Any]:
    """The same streams; the event is set when nothing more comes."""
    yield _Watched(streams[0], over), streams[1]


class _Watched:
    """A stream from a server that says when it has ended."""

    def __init__(self, stream: Any, over: asyncio.Event) -> None:
        self._stream = stream
        self._over = over

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._over.set()
            raise

    async def receive(self) -> Any:
        try:
            return await self._stream.receive()
        except BaseException:
            self._over.set()
            raise

    async def __aenter__(self) -> _Watched:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *problem: Any) -> Any:
        return await self._stream.__aexit__(*problem)


def _leaves(problem: BaseException) -> list[BaseException]:
    """What is in a group of exceptions, however deep."""
    if isinstance(problem, BaseExceptionGroup):
        return [leaf for one in problem.exceptions for leaf in _leaves(one)]
    return [problem]


def _is_unreached(problem: BaseException | None) -> bool:
    """Whether nobody was there to hear a request: then it had no effect."""
    if problem is None:
        return False
    return all(type(one).__name__ in ("ConnectError", "ConnectTimeout") for one in _leaves(problem))


def _client() -> type[Client]:
    try:
        from mcp import Client
    except ImportError:
        raise BadRequest(
            "tools of an MCP server need the package mcp, which is not installed, or is older than 2.3",
            hint="`pip install '.[mcp]'` in a clone of Harken",
        ) from None
    return Client


def _quiet() -> None:
    """What the package says of a server that speaks nonsense is no business of a conversation; a program that sets up
    logging of its own hears it all the same."""
    log = logging.getLogger("mcp")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
