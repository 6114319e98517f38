"""What is asked of every request before anything else, on every route: where it comes from, who asks, and how much.

A page of another site cannot ask us anything: the browser tells with which name it found us (Host), on whose behalf it
asks (Origin, Sec-Fetch-Site), and both are compared. There are no CORS headers. Nothing is answered without the headers
that keep a browser from running or showing anything that is not ours.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harken import clock
from harken.errors import BadRequest, HarkenError, NotAllowed, NotSignedIn, TookTooLong, TooLarge, TooMany

from .operations import READ, may
from .rates import RateLimits
from .settings import OWNER, STRANGER, ServiceSettings, Visitor

if TYPE_CHECKING:
    from .metrics import AccessLog, ServiceMetrics
    from .routing import ServedRoute
    from .tokens import TokenFile

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""On every response, errors and files too."""
_NAMES = ("127.0.0.1", "localhost", "[::1]")
_SITES = ("same-origin", "none")
_SIGN_IN = "`harken serve` prints an address that signs the browser in; programs send `Authorization: Bearer TOKEN`"
_DROPPED, _DROP_SECONDS = 256 << 10, 2.0
"""How much of a body that nobody wants is read, and for how long, so that the connection can go on."""
_LEFT, _LEFT_SECONDS = 32 << 20, 5.0
"""How much of it is read behind the answer: a connection that is closed on bytes which are still coming is a broken one
to the client, and no answer."""
HEAD_LIMIT = 64 << 10
"""Bytes of all headers together."""


def cookie_name(port: int) -> str:
    """What the cookie is called: browsers send those of one port to all others of the host."""
    return f"harken_{port}"


def error_body(problem: HarkenError) -> bytes:
    """An error as the wire has it."""
    told = {"error": {"code": problem.code, "message": str(problem), "hint": problem.hint}}
    try:
        return orjson.dumps(told)
    except TypeError:  # a lone surrogate, from a request or a store
        import json

        return json.dumps(told).encode()


def with_status(problem: HarkenError, status: int) -> HarkenError:
    """The error, told with a status that says more than that of its class."""
    problem.http_status = status
    return problem


class RequestGuard:
    """ASGI middleware around everything."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: ServiceSettings,
        tokens: TokenFile,
        find_route: Callable[[Scope], ServedRoute],
        metrics: ServiceMetrics,
        log: AccessLog,
    ) -> None:
        self.app, self.settings, self.tokens = app, settings, tokens
        self.find_route, self.metrics, self.log = find_route, metrics, log
        self._rates = RateLimits()
        self._held: Counter[str] = Counter()
        """Bytes of requests that are held, by the names of tokens."""
        port = settings.port
        hosts = {f"{name}:{port}" for name in _NAMES} | (set(_NAMES) if port == 80 else set())
        self._hosts, self._origins = hosts, {f"http://{host}" for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await _Passage(self, scope, receive, send).run()

    # -- what is asked -----------------------------------------------------------------------------------------

    def check_origin(self, scope: Scope, headers: Headers) -> None:
        """Whether the request comes from where it may."""
        by_socket = _is_socket(scope)
        hosts = headers.getlist("host")
        if by_socket:  # no browser gets here, so the name says nothing
            if len(hosts) > 1:
                raise BadRequest("there are several Host headers", hint="send one")
        elif len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            hint = f"ask for http://127.0.0.1:{self.settings.port}"
            raise BadRequest(f"this is not {', '.join(hosts)!r:.99}", hint=hint)
        for origin in headers.getlist("origin"):
            if origin not in self._origins:
                raise NotAllowed(f"a page of {origin!r:.99} may not ask", hint="only the page that is served here may")
        for site in headers.getlist("sec-fetch-site"):
            if site not in _SITES:
                raise NotAllowed("a page of another site may not ask", hint="type the address, or open it from here")

    def visitor(self, scope: Scope, headers: Headers) -> Visitor:
        """Who asks; a token that is wrong is an error even where none is needed."""
        given = headers.getlist("authorization")
        if given:
            scheme, _, secret = given[0].partition(" ")
            if len(given) > 1 or scheme.lower() != "bearer" or not secret.strip():
                raise NotSignedIn("that is no token", hint="send `Authorization: Bearer TOKEN`, once")
            token = self.tokens.find(secret.strip())
            if token is None:
                raise NotSignedIn("this token is unknown, revoked or expired", hint="`harken token create` makes one")
        elif _is_socket(scope):
            return OWNER
        else:
            secret = _cookie(headers, cookie_name(self.settings.port))
            token = self.tokens.find(secret) if secret else None
            if token is None:
                return STRANGER
        return Visitor(
            name=token.name,
            grants=frozenset(token.grants),
            principal=token.principal,
            machine=token.machine,
            by_cookie=not given,
            token=token,
        )

    def check_grant(self, needed: str, visitor: Visitor) -> None:
        """Whether the visitor may do what needs this grant; nothing needs the empty one."""
        if not needed:
            return
        if visitor is STRANGER:
            raise NotSignedIn("nobody knows who asks", hint=_SIGN_IN)
        if not may(visitor.grants, needed):
            raise NotAllowed(f"this needs the grant {needed}", hint="use a token that has it")
        if self.settings.read_only and needed != READ:
            raise NotAllowed("this server only shows", hint="it was started with --read-only")

    def hold(self, visitor: Visitor, size: int) -> None:
        """Count bytes of a request that are kept until it is answered; fewer than none are given back."""
        if size > 0 and self._held[visitor.name] + size > self.settings.held_limit:
            raise TooMany("too much is being sent at once", hint="wait for the answers to what was sent before")
        self._held[visitor.name] += size
        if not self._held[visitor.name]:
            del self._held[visitor.name]

    def limit_of(self, route: ServedRoute) -> int:
        """How many bytes a request may have."""
        if route.is_upload:
            return self.settings.upload_limit
        return self.settings.body_limit if route.grant else self.settings.public_limit

    def check_rate(self, visitor: Visitor, *, is_file: bool = False) -> None:
        """Whether the visitor has not asked too often; who has no token shares with all others who have none. Of
        signing in only what fails is counted there."""
        if visitor is STRANGER and is_file:
            return  # of the page: a browser asks for some at once
        rate, burst = self.settings.rate, self.settings.burst
        if visitor is STRANGER:
            rate, burst = self.settings.stranger_rate, 5 * self.settings.stranger_rate
        self._rates.take(visitor.name, rate, burst)


class _Passage:
    """One request on its way: what came of it is counted and logged at the end, whatever happened."""

    def __init__(self, guard: RequestGuard, scope: Scope, receive: Receive, send: Send) -> None:
        self.guard, self.scope, self._receive, self._send = guard, scope, receive, send
        self.route, self.visitor = "none", STRANGER
        self.status, self.sent, self.taken, self.limit = 0, 0, 0, 0
        self.took_all = False
        self.is_upload = False
        self.held = 0
        self.began = clock.monotonic()
        self.patience: asyncio.Timeout | None = None

    async def run(self) -> None:
        """Ask, pass on, and tell what went wrong."""
        metrics = self.guard.metrics
        metrics.running += 1
        try:
            await self._ask()
        except HarkenError as problem:
            await self._fail(problem)
        except asyncio.CancelledError:  # the server is stopped: an end of the connection, and no answer of another kind
            self._cut()
            raise
        except ClientDisconnect:  # in the middle of its body
            await self._fail(BadRequest("the body ended early", hint="send it again"))
        except OSError as problem:
            told = f"{type(problem).__name__}: {problem}"[:500]
            self.guard.log.add(event="fault", route=self.route, fault=told)
            await self._fail(HarkenError(f"the system refused: {problem.strerror}", hint="is there room on the disk?"))
        except Exception as problem:  # noqa: BLE001  whatever it is, others go on
            self.guard.log.add(event="fault", route=self.route, fault=f"{type(problem).__name__}: {problem}"[:500])
            await self._fail(HarkenError("a fault of Harken itself", hint="the log of the server says where"))
        finally:
            metrics.running -= 1
            self.guard.hold(self.visitor, -self.held)
            took = clock.monotonic() - self.began
            metrics.count(self.route, self.status, took)
            self._note(took)

    async def _ask(self) -> None:
        guard, scope = self.guard, self.scope
        headers = Headers(scope=scope)
        if sum(len(name) + len(value) for name, value in headers.raw) > HEAD_LIMIT:
            raise with_status(BadRequest("the head of the request is too long", hint="send fewer headers"), 431)
        guard.check_origin(scope, headers)
        try:
            self.visitor = guard.visitor(scope, headers)
        except NotSignedIn:
            guard.check_rate(STRANGER)  # who tries one token after the other is slowed down
            raise
        route = guard.find_route(scope)
        self.route = route.label
        if self.visitor is STRANGER and route.is_sign_in:
            try:
                await self._pass_on(route, headers)
            except HarkenError:
                guard.check_rate(STRANGER)  # only what fails counts: nobody's wrong words keep a right one out
                raise
        else:
            guard.check_rate(self.visitor, is_file=not route.grant and scope["method"] in ("GET", "HEAD"))
            await self._pass_on(route, headers)

    async def _pass_on(self, route: ServedRoute, headers: Headers) -> None:
        """Ask the rest, and have it answered."""
        guard, scope = self.guard, self.scope
        guard.check_grant(route.grant, self.visitor)
        if scope["method"] not in (route.methods or ()):
            problem = BadRequest(f"{scope['method']:.20} is not taken here", hint=f"send {min(route.methods or ())}")
            raise with_status(problem, 405)
        self.limit, self.is_upload = guard.limit_of(route), route.is_upload
        self._check_body(headers, is_json=scope["method"] == "POST" and not route.is_upload)
        scope["state"] = {**scope.get("state", {}), "visitor": self.visitor}
        try:
            async with asyncio.timeout(guard.settings.seconds) as self.patience:
                await guard.app(scope, self.receive, self.send)
        except TimeoutError as problem:
            seconds = guard.settings.seconds
            raise TookTooLong(f"nothing came of it in {seconds:g} seconds", hint="ask for less at once") from problem

    def _check_body(self, headers: Headers, *, is_json: bool) -> None:
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            raise BadRequest("the length of the body is no number", hint="leave Content-Length to your HTTP library")
        if int(length[:20]) > self.limit:
            raise TooLarge(f"at most {self.limit:,} bytes are taken here", hint="send less, or an artifact")
        has_body = length != "0" or "transfer-encoding" in headers
        if "content-length" in headers and "transfer-encoding" in headers:
            raise BadRequest("the body has two lengths", hint="send Content-Length or Transfer-Encoding")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        # A form of another site can send a POST, but never one of this type.
        if is_json and (has_body or self.visitor.by_cookie) and kind != "application/json":
            raise with_status(BadRequest("the body has to be JSON", hint="send `Content-Type: application/json`"), 415)

    # -- what passes -------------------------------------------------------------------------------------------

    async def receive(self) -> Message:
        """The next part of the body; more than may be is `TooLarge`."""
        message = await self._receive()
        self._go_on()
        size = len(message.get("body", b""))
        self.taken += size
        self.took_all = not message.get("more_body")
        if self.taken > self.limit:
            raise TooLarge(f"at most {self.limit:,} bytes are taken here", hint="send less, or an artifact")
        if not self.is_upload:
            self.guard.hold(self.visitor, size)
            self.held += size
        return message

    async def send(self, message: Message) -> None:
        """A part of the answer, with the headers that every answer has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await self._send(message)
        self.sent += len(message.get("body", b""))
        self._go_on()

    def _go_on(self) -> None:
        """Something was sent or received, so there is time again."""
        if self.patience is not None and not self.patience.expired():
            self.patience.reschedule(asyncio.get_running_loop().time() + self.guard.settings.seconds)

    # -- what went wrong ---------------------------------------------------------------------------------------

    async def _fail(self, problem: HarkenError) -> None:
        if self.status:  # half an answer is on its way; only the end of the connection says that no more will come
            self._abort()
            return
        body = error_body(problem)
        headers = {"content-type": "application/json", "content-length": str(len(body))}
        headers |= _headers_of(problem)
        self.patience = None
        is_whole = await self._took_all()
        if not is_whole:
            headers["connection"] = "close"
        start = {"type": "http.response.start", "status": problem.http_status, "headers": _raw(headers)}
        try:
            await self.send(start)
            await self.send({"type": "http.response.body", "body": body, "more_body": not is_whole})
            if not is_whole:
                await self._drop_rest()
                await self.send({"type": "http.response.body", "body": b""})
        except OSError:
            self._abort()

    async def _drop_rest(self) -> None:
        """Read on until the client has seen the answer, or for a while."""
        left = _LEFT
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEFT_SECONDS):
                while left > 0 and (message := await self._receive()).get("more_body"):
                    left -= len(message["body"])

    async def _took_all(self) -> bool:
        """Whether nothing of the body is left: a little is read and dropped, so that the connection can go on."""
        headers = Headers(scope=self.scope)
        length = headers.get("content-length", "0")
        if self.took_all or (length == "0" and "transfer-encoding" not in headers):
            return True
        if "transfer-encoding" in headers or not length.isdigit() or int(length[:20]) > _DROPPED:
            return False
        try:
            async with asyncio.timeout(_DROP_SECONDS):
                while (message := await self._receive()).get("more_body"):
                    continue
                return bool(message["type"] == "http.request")
        except TimeoutError:
            return False

    def _abort(self) -> None:
        if self.status:
            self._cut()

    def _cut(self) -> None:
        connection = self.scope.get("harken.connection")
        if connection is not None:
            connection.abort()

    def _note(self, took: float) -> None:
        self.guard.log.add(
            method=self.scope["method"] if self.scope["method"].isalpha() else "?",
            route=self.route,
            status=self.status,
            ms=round(took * 1000, 1),
            received=self.taken,
            sent=self.sent,
            token=self.visitor.name,
        )


def _headers_of(problem: HarkenError) -> dict[str, str]:
    match problem:
        case NotSignedIn():
            return {"www-authenticate": 'Bearer realm="harken"'}
        case TooMany():
            return {"retry-after": str(problem.after)}
        case _ if problem.http_status == 405:
            return {"allow": (problem.hint or "").removeprefix("send ")}
    return {}


def _raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def _is_socket(scope: Scope) -> bool:
    """Whether it came over the Unix socket, where the peer's user was asked before anything was read."""
    connection: Any = scope.get("harken.connection")
    return connection is not None and connection.is_owner


def _cookie(headers: Headers, name: str) -> str:
    for line in headers.getlist("cookie"):
        for part in line.split(";"):
            key, _, value = part.strip().partition("=")
            if key == name:
                return value.strip('"')
    return ""
