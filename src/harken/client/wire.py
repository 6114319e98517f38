"""The wire to a service: HTTP over TCP or a Unix socket, with nothing but the standard library.

Connections are kept and used again. One that the service has closed meanwhile, as by a restart, is seen before anything
is sent on it; a question that changes nothing is asked once more where the connection breaks all the same. One that may
have changed something is not: whoever asked has to look. A process that is forked off makes connections of its own.
"""

from __future__ import annotations

import http.client
import json
import os
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Any, NoReturn
from urllib.parse import urlsplit

import msgspec

from harken.errors import BadRequest, HarkenError, NotSignedIn, PartlyCorrupt, TooMany, Unreachable

API = "/api/v1"
JSON = "application/json"
PATIENCE = 90.0
"""Seconds without a sign of life; the service itself lets go of a question after sixty."""
KEPT = 8
"""Connections that are kept for the next question."""
LONGEST_REFUSAL = 1 << 20
PIECE = 256 << 10
"""Bytes of a question that are sent before it is looked whether the service has refused it."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_LOST = (http.client.HTTPException, OSError)


class ServicePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a service listens."""

    host: str = ""
    port: int = 0
    is_secure: bool = False
    path: str = ""
    """The Unix socket, in place of all others."""

    @property
    def name(self) -> str:
        """What the service is called in sentences."""
        if self.path:
            return f"unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.is_secure else ''}://{host}:{self.port}"


def place_of(url: str) -> ServicePlace:
    """The place that a URL names: `http://HOST:PORT`, `https://…`, `unix:PATH` or `harken+unix://PATH`."""
    for scheme in ("harken+unix://", "unix://", "unix:"):
        if url.startswith(scheme):
            path = url.removeprefix(scheme)
            if not path or "\0" in path:
                raise BadRequest(f"{url!r:.99} names no socket", hint="write it as unix:/path/to/the/socket")
            return ServicePlace(path=path)
    try:
        found = urlsplit(url)
        port = found.port
    except ValueError:
        found, port = urlsplit(""), None
    if found.scheme not in ("http", "https") or not found.hostname or found.path.strip("/") or found.query:
        raise BadRequest(f"{url!r:.99} names no service", hint="write it as http://localhost:8037 or unix:/path")
    if found.username or found.password:
        raise BadRequest("an address holds no password", hint="give the token beside it: `token`, or HARKEN_TOKEN")
    is_secure = found.scheme == "https"
    return ServicePlace(host=found.hostname, port=port or (443 if is_secure else 80), is_secure=is_secure)


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        """Open the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class ServiceWire:
    """Questions to one service, from any number of threads."""

    def __init__(self, place: ServicePlace, token: str = "") -> None:
        if token and not place.path and not place.is_secure and place.host not in _LOOPBACK:
            raise BadRequest(
                f"a token is not sent in the clear to {place.host}",
                hint="use https://, or a tunnel to a port of this machine",
            )
        if token and not (token.isascii() and token.isprintable()):
            raise BadRequest("this is no token", hint="`harken token create` makes one")
        self.place = place
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._kept: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._is_closed = False

    def close(self) -> None:
        """Let go of every connection that is not in use."""
        with self._own():
            self._is_closed = True
            kept, self._kept = self._kept, []
        for connection in kept:
            connection.close()

    def send(self, method: str, path: str, body: bytes, kind: str, *, is_safe: bool) -> ServiceReply:
        """Ask, and give the answer as it begins; `is_safe`: whether it may be asked twice. A refusal is raised as the
        error that the service met."""
        told = {"content-type": kind, "content-length": str(len(body))} if method != "GET" else {}
        headers = self._headers | told
        for is_last in (not is_safe, True):
            connection = self._connection()
            try:
                sent = None if method == "GET" else _pieces(connection, body) if len(body) > PIECE else body
                connection.request(method, path, body=sent, headers=headers)
                response = connection.getresponse()
            except _LOST as problem:
                connection.close()
                if is_last or _is_nobody(problem):
                    self._give_up(problem, is_safe=is_safe)
                continue
            break
        reply = ServiceReply(self, connection, response)
        if response.status >= 400:
            raise _refusal(response, reply.read_some())
        return reply

    def _give_up(self, problem: Exception, *, is_safe: bool) -> NoReturn:
        where = self.place.name
        if _is_nobody(problem):
            raise Unreachable(f"nobody answers at {where}", hint="is `harken serve` running there?") from problem
        if isinstance(problem, ssl.SSLError):
            raise Unreachable(f"{where} cannot be trusted: {problem}", hint="is it the right address?") from problem
        hint = "ask again" if is_safe else "look whether it was done, then ask again"
        raise Unreachable(f"the connection to {where} broke: {_words(problem)}", hint=hint) from problem

    def _own(self) -> threading.Lock:
        """The lock of the connections that this process has made. Those of the process it was forked from are that
        one's: what both ask would meet on them. And what a thread held there, nobody here lets go."""
        if self._process != os.getpid():
            self._kept, self._lock, self._process = [], threading.Lock(), os.getpid()
        return self._lock

    def _connection(self) -> http.client.HTTPConnection:
        with self._own():
            while self._kept:
                connection = self._kept.pop()
                if not _is_over(connection):
                    return connection
                connection.close()
        place = self.place
        if place.path:
            return _SocketConnection(place.path)
        kind = http.client.HTTPSConnection if place.is_secure else http.client.HTTPConnection
        return kind(place.host, place.port, timeout=PATIENCE)

    def keep(self, connection: http.client.HTTPConnection) -> None:
        """Take back a connection whose answer was read to its end."""
        with self._own():
            if not self._is_closed and len(self._kept) < KEPT and connection.sock is not None:
                self._kept.append(connection)
                return
        connection.close()


class ServiceReply:
    """An answer that is being read."""

    def __init__(
        self, wire: ServiceWire, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._wire, self._connection, self._response = wire, connection, response
        self._process = os.getpid()

    def read(self) -> bytes:
        """All of it."""
        try:
            data = self._response.read()
        except _LOST as problem:
            self.close()
            self._broke(problem)
        self._end()
        return data

    def read_some(self) -> bytes:
        """What a refusal says; one that never ends is cut off."""
        try:
            data = self._response.read(LONGEST_REFUSAL)
        except _LOST:
            data = b""
        self._end()
        return data

    def lines(self) -> Iterator[bytes]:
        """Line by line."""
        try:
            while line := self._response.readline():
                yield line
            self._end()
        except _LOST as problem:
            self._broke(problem)
        finally:
            self.close()

    def close(self) -> None:
        """Nobody wants the rest."""
        if not self._response.isclosed():
            self._connection.close()

    def _end(self) -> None:
        is_own = self._process == os.getpid()
        if is_own and self._response.isclosed() and not self._response.will_close:
            self._wire.keep(self._connection)
        else:
            self._connection.close()

    def _broke(self, problem: Exception) -> NoReturn:
        where = self._wire.place.name
        raise Unreachable(f"the answer of {where} broke off: {_words(problem)}", hint="ask again") from problem


def _pieces(connection: http.client.HTTPConnection, body: bytes) -> Iterator[bytes]:
    """The body, up to where the service says that it does not want the rest: who sends on never hears why."""
    for start in range(0, len(body), PIECE):
        # Of TLS more may come than answers.
        if start and not isinstance(connection, http.client.HTTPSConnection) and _is_over(connection):
            return
        yield body[start : start + PIECE]


def _is_over(connection: http.client.HTTPConnection) -> bool:
    """Whether the other side has closed it, or has answered before all was asked: nothing else comes then."""
    if connection.sock is None:
        return True
    looking = select.poll()
    looking.register(connection.sock, select.POLLIN)
    return bool(looking.poll(0))


def _is_nobody(problem: Exception) -> bool:
    """Whether there was nobody who could have heard the question."""
    return isinstance(problem, ConnectionRefusedError | FileNotFoundError | socket.gaierror | PermissionError)


def _words(problem: Exception) -> str:
    return str(problem) or type(problem).__name__


# -- what goes over it -------------------------------------------------------------------------------------------------


def pack(request: Any) -> bytes:
    """A request as JSON; bytes are base64."""
    try:
        return msgspec.json.encode(request)
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(msgspec.to_builtins(request)).encode()


def unpack(data: bytes) -> Any:
    """JSON as plain values; `Unreachable` where it is none, since then no service of ours has answered."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        try:
            return json.loads(data)  # a lone surrogate, or a number beyond 64 bits
        except (ValueError, RecursionError):
            raise Unreachable(
                f"what answers is no service of Harken: {data[:60]!r}", hint="is it the right address?"
            ) from None


def error_in(told: Any) -> HarkenError | None:
    """The error that a value tells of, by its code; None where it tells of none."""
    said = told.get("error") if isinstance(told, dict) and len(told) == 1 else None
    if not isinstance(said, dict) or not {"code", "message"} <= said.keys():
        return None
    kind = _CLASSES.get(str(said["code"]), HarkenError)
    hint = said.get("hint")
    more: dict[str, Any] = {"rest": []} if kind is PartlyCorrupt else {}
    return kind(str(said["message"]), hint=hint if isinstance(hint, str) else None, **more)


def _refusal(response: http.client.HTTPResponse, data: bytes) -> HarkenError:
    """The error that an answer is."""
    found = error_in(unpack(data)) if JSON in (response.getheader("content-type") or "") else None
    if found is None:
        return Unreachable(f"the service answered {response.status}", hint="its log says why")
    if isinstance(found, NotSignedIn):
        found.hint = "give a `token` (HARKEN_TOKEN for the commands); `harken token create` makes one"
    after = response.getheader("retry-after") or ""
    if isinstance(found, TooMany) and after.isascii() and after.isdigit():
        found.after = int(after[:4])
    return found


def _below(kind: type[HarkenError]) -> Iterator[type[HarkenError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from _below(inner)


_CLASSES = {kind.code: kind for kind in _below(HarkenError)}
