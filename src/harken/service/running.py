"""The service at work: uvicorn on a TCP port of this machine and on a Unix socket, and the watcher beside it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import socket
import stat
import struct
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from harken import clock
from harken.api.following import follow
from harken.api.runtimes import WatchRequest, watch
from harken.errors import BadRequest, Conflict, HarkenError
from harken.files import make_folder

from .app import ServiceApp
from .guard import SECURITY_HEADERS
from .settings import ServiceSettings
from .tokens import TokenFile, tokens_beside

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from harken.repo import Repo

HOST = "127.0.0.1"
"""The only address there is: whoever is to ask from elsewhere comes through a tunnel of their own."""
CONNECTIONS = 1000
HEAD_SECONDS = 10.0
"""How long a client may take to say what it wants."""
STOP_SECONDS = 1.0
"""How long answers may go on when the service is to end."""
_PEER = struct.Struct("3i")
_BETWEEN, _STILL = 0.05, 60.0
"""Seconds between two parts of an index that is brought up to date, and after which one that does not move is left."""
_AGAIN = 5.0
_LOOK = 0.002
"""Seconds between two looks whether all answers have ended, when the service is to end."""


class ServiceConnection(H11Protocol):
    """A connection that knows whose it is, and can be cut."""

    is_owner = False
    """Whether it came over the Unix socket, from a process of our own user."""
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody connected: over the socket only our own user may."""
        peer = transport.get_extra_info("socket")
        self.is_owner = peer.family == socket.AF_UNIX
        if (self.is_owner and peer_user(peer) != os.getuid()) or len(self.connections) >= CONNECTIONS:
            self.transport = transport
            transport.abort()
            return
        super().connection_made(transport)
        app = self.app

        async def known(scope: Scope, receive: Receive, send: Send) -> None:
            self._stop_waiting()
            scope["harken.connection"] = self
            await app(scope, receive, send)

        self.app = known
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Something came; a head that does not end is not waited for."""
        super().data_received(data)
        if self._is_answering():
            self._stop_waiting()
        else:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._stop_waiting()
        super().connection_lost(exc)

    def abort(self) -> None:
        """Cut it, and drop what was not sent."""
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is answered like everything else, with our headers."""
        lines = ["HTTP/1.1 400 Bad Request", "connection: close", "content-length: 0"]
        lines += [f"{name}: {value}" for name, value in SECURITY_HEADERS.items()]
        self.transport.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        self.transport.close()

    def _is_answering(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _wait_for_head(self) -> None:
        if self._waiting is None and not self.transport.is_closing():
            self._waiting = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self._is_answering():
            self.transport.abort()


class _Server(uvicorn.Server):
    """uvicorn's, that ends as soon as it is told to and nobody is answered any more. uvicorn's own looks ten times a
    second whether it is to end, and waits for a tenth of a second more before it looks who is still there."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._told = asyncio.Event()

    def end(self) -> None:
        """Tell it to end, in its own thread."""
        self.should_exit = True
        self._told.set()

    async def main_loop(self) -> None:
        """Wait until it is to end. Every tenth of uvicorn's ticks, one a second, sets the date that answers tell."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), 1.0)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let nobody in any more, and let answers go on for a moment."""
        for listening in (*self.servers, *(sockets or ())):
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        until = clock.monotonic() + STOP_SECONDS
        while (self.server_state.connections or self.server_state.tasks) and clock.monotonic() < until:
            await asyncio.sleep(_LOOK)
        for task in self.server_state.tasks:
            task.cancel()
        await self.lifespan.shutdown()


def peer_user(peer: socket.socket) -> int:
    """The user of the process at the other end of a Unix socket; -1 where the system does not tell."""
    option: int | None = vars(socket).get("SO_PEERCRED")
    if option is None:
        return -1
    _, user, _ = _PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, option, _PEER.size))
    return int(user)


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Where to listen, and what to do beside it."""

    port: int | None = None
    """The TCP port; 0 for any that is free, None for none."""
    socket: Path | None = None
    """The Unix socket; None for none."""
    watch: bool = False
    """Whether to go on importing as sessions grow."""


class RunningService:
    """A service in threads of its own. `with RunningService(…) as service:` runs it for a while."""

    def __init__(
        self,
        repo: Repo,
        where: Listening,
        *,
        settings: ServiceSettings | None = None,
        log: IO[str] | None = None,
    ) -> None:
        if where.port is None and where.socket is None:
            raise BadRequest("there is nowhere to listen", hint="name a port or a socket")
        self._stack = contextlib.ExitStack()
        sockets = []
        with contextlib.ExitStack() as undo:
            if where.port is not None:
                sockets.append(undo.enter_context(listen_on_port(where.port)))
            if where.socket is not None:
                sockets.append(undo.enter_context(listen_on_socket(where.socket)))
            self._stack = undo.pop_all()
        self._sockets = sockets
        self.socket = where.socket
        self.port = sockets[0].getsockname()[1] if where.port is not None else None
        """The TCP port; None where there is none."""
        told = msgspec.structs.replace(settings or ServiceSettings(), port=self.port or 0)
        self.app = ServiceApp(repo, TokenFile(tokens_beside(repo.store.location)), told, log=log)
        config = uvicorn.Config(
            self.app.asgi,
            http=ServiceConnection,
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            log_level="critical",  # what a client sends, or an answer that the end cuts off, is nothing to print
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=30,
        )
        self._server = _Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_watching = threading.Event()
        self._threads = [threading.Thread(target=self._serve, name="harken-service", daemon=True)]
        self._threads.append(threading.Thread(target=self._fill_index, name="harken-index", daemon=True))
        if where.watch:
            self._threads.append(threading.Thread(target=self._watch, name="harken-watch", daemon=True))
        self._repo, self._environ = repo, dict(told.usual.get("environ", {}))
        self._started = threading.Event()
        self.problem: BaseException | None = None
        """Why it ended by itself."""

    @property
    def url(self) -> str:
        """Where the page is; empty where there is no port."""
        return f"http://{HOST}:{self.port}/" if self.port is not None else ""

    def login_url(self) -> str:
        """An address that signs a browser in, once and for ten minutes."""
        return f"{self.url}#token={self.app.words.new()}" if self.url else ""

    def start(self) -> None:
        """Begin; returns when it answers."""
        for thread in self._threads:
            thread.start()
        self._started.wait()
        if self.problem is not None:
            raise HarkenError(f"the service did not start: {self.problem}", hint="is the extra `serve` whole?")

    def stop(self) -> None:
        """End: streams at once, answers after a moment. Called twice it is called once."""
        self._stop_watching.set()
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._end)
        until = clock.monotonic() + 1.5 * STOP_SECONDS
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, until - clock.monotonic()))
        self._stack.close()

    def __enter__(self) -> RunningService:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _end(self) -> None:
        self._server.end()
        self.app.follower.stop()

    def _serve(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as problem:  # noqa: BLE001  whoever started it has to hear of it
            self.problem = problem
        finally:
            self._started.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        serving = asyncio.ensure_future(self._server.serve(sockets=self._sockets))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0.005)
        self._started.set()
        await serving

    def _fill_index(self) -> None:
        """Bring the index up to date once, so that nobody who asks waits for all of it. From then on whoever asks has
        little to do. A part at a time: others are let in between."""
        left, moved = -1, clock.monotonic()
        while not self._stop_watching.wait(_BETWEEN) and clock.monotonic() < moved + _STILL:
            try:
                reached = follow(self._repo)
            except Exception as problem:  # noqa: BLE001  whoever asks for something is told
                self.app.log.add(event="index-failed", why=f"{type(problem).__name__}: {problem}"[:500])
                return
            if reached.problem or not reached.behind + reached.stale:
                return
            if reached.behind + reached.stale != left:
                left, moved = reached.behind + reached.stale, clock.monotonic()

    def _watch(self) -> None:
        """Import and go on; what goes wrong is logged, and it begins again."""
        while not self._stop_watching.is_set():
            try:
                for _ in watch(self._repo, WatchRequest(environ=self._environ), stop=self._stop_watching):
                    continue
            except Exception as problem:  # noqa: BLE001  the service goes on without it
                self.app.log.add(event="watch-failed", why=f"{type(problem).__name__}: {problem}"[:500])
                self._stop_watching.wait(_AGAIN)


# -- where to listen ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def listen_on_port(port: int) -> Any:
    """A socket on a port of this machine."""
    # asyncio turns Nagle's algorithm off only where the socket names its protocol. With it on, each answer on a
    # connection that is kept waits 40 ms for the other side to acknowledge the head of the answer.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with contextlib.closing(made):
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((HOST, port))
            made.listen(2048)
        except OSError as problem:
            if problem.errno == errno.EADDRINUSE:
                hint = "another program has it, perhaps another `harken serve`; --port 0 takes a free one"
                raise Conflict(f"port {port} is taken", hint=hint) from None
            raise HarkenError(f"cannot listen on port {port}: {problem.strerror}", hint="take another port") from None
        except OverflowError:
            raise BadRequest(f"{port} is no port", hint="from 1 to 65535, or 0 for a free one") from None
        made.setblocking(False)
        yield made


@contextlib.contextmanager
def listen_on_socket(path: Path) -> Any:
    """A Unix socket for our own user alone. One that a server has left behind is replaced, one in use is not."""
    if len(os.fsencode(path)) > 100:
        raise BadRequest(f"{path} is too long for a socket", hint="a path has at most 100 bytes")
    make_folder(path.parent)
    about = path.parent.stat()
    if about.st_uid != os.getuid() or about.st_mode & 0o022:
        raise HarkenError(
            f"others may write to {path.parent}",
            hint="name a folder of your own (`chmod 700`), or one that is not there yet",
        )
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _take_lock(lock, path)
        _remove_stale(path)
        before = os.umask(0o177)
        try:
            made.bind(str(path))
        finally:
            os.umask(before)
        made.listen(2048)
        made.setblocking(False)
        own = path.stat().st_ino
        try:
            yield made
        finally:
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == own:
                    path.unlink()
    finally:
        made.close()
        os.close(lock)


def _take_lock(lock: int, path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Conflict(f"another server listens on {path}", hint="stop it, or name another socket") from None


def _remove_stale(path: Path) -> None:
    """Remove a socket that nobody listens on; `Conflict` where somebody does, or where it is no socket."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise Conflict(f"{path} is there, and is no socket", hint="name another path")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(1.0)
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError as problem:
            raise Conflict(f"{path} cannot be asked: {problem.strerror}", hint="name another socket") from None
    raise Conflict(f"another server listens on {path}", hint="stop it, or name another socket")
