"""The application: every operation of the table as a route, and beside them bytes, the feed, signing in, the page."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from harken import clock
from harken.api.base import ApiRequest, stamp
from harken.api.feed import ChangesRequest
from harken.errors import HarkenError, NotSignedIn

from . import openapi, operations
from .answering import AnswerSlots, AnswerStream, Workers, as_lines, decode, encode, last_line
from .artifacts import ArtifactRoutes
from .events import FeedService, StoreFollower, until_gone
from .first_answers import PageQuestion, PageService, first_questions, load_modules
from .guard import RequestGuard, cookie_name
from .metrics import AccessLog, ServiceMetrics
from .operations import READ, SERVED
from .page import docs_page
from .routing import API, PUBLIC, RouteTable, ServedRoute
from .settings import ServiceSettings, Visitor
from .tokens import LoginWords, TokenFile

if TYPE_CHECKING:
    from harken.repo import Repo

NDJSON = "application/x-ndjson"
LOADING = 0.5
"""Seconds that the end waits for what is made ready at the beginning."""


class ServiceApp:
    """Everything that answers, around one store."""

    def __init__(self, repo: Repo, tokens: TokenFile, settings: ServiceSettings, *, log: IO[str] | None = None) -> None:
        self.repo, self.tokens, self.settings = repo, tokens, settings
        self.words = LoginWords()
        self.metrics = ServiceMetrics()
        self.log = AccessLog(log)
        count, each = settings.workers, settings.workers_each
        self.workers = Workers(count, AnswerSlots(count, each, settings.waiting))
        self.streams = AnswerSlots(settings.streams, settings.streams_each, settings.waiting)
        self.follower = StoreFollower(repo)
        self.feed = FeedService(self)
        self._noting: set[asyncio.Future[None]] = set()
        """What is noted beside answers: the loop itself holds its tasks only weakly."""
        page = ServedRoute("/{path:path}", PageService(self._first_answers).respond, ["GET", "HEAD"], grant=PUBLIC)
        self.table = RouteTable(self._routes(), page)
        self.asgi: ASGIApp = RequestGuard(
            self._started,
            settings=settings,
            tokens=tokens,
            find_route=self.table.find,
            metrics=self.metrics,
            log=self.log,
        )

    async def _started(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await Starlette(lifespan=self._lifespan)(scope, receive, send)
        else:
            await self.table(scope, receive, send)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self.follower.start()
        loading = threading.Thread(target=self._get_ready, name="harken-loading", daemon=True)
        loading.start()
        try:
            yield
        finally:
            self.follower.stop()
            self.workers.close()
            self.log.close()
            loading.join(LOADING)

    def _get_ready(self) -> None:
        """Do what the first visitor would wait for: load modules, and look once at the session that went on last, which
        opens the store and its index, and is what many look at first."""
        load_modules()
        with contextlib.suppress(Exception):  # whoever asks for it is told
            last = max(self.repo.sessions(), key=lambda row: row.ended or 0)
            for name, request in first_questions(f"/s/{last.session}", {}):
                asked = msgspec.convert(request, operations.described(name).request)
                encode(operations.function_of(name)(self.repo, asked))

    def _routes(self) -> list[ServedRoute]:
        artifacts = ArtifactRoutes(self.repo, self.workers, self.streamed, self.streamed_bytes)
        routes = [
            ServedRoute(f"{API}/{name}", self._endpoint(name), ["POST"], grant=SERVED[name])
            for name in operations.served()
        ]
        return [
            *routes,
            *artifacts.routes(),
            ServedRoute(f"{API}/feed", self.feed.respond, ["GET"], grant=READ),
            ServedRoute(f"{API}/login", self._login, ["POST"], grant=PUBLIC, is_sign_in=True),
            ServedRoute(f"{API}/logout", self._logout, ["POST"], grant=READ),
            ServedRoute(f"{API}/visitor", self._visitor, ["GET"], grant=READ),
            ServedRoute("/healthz", _healthz, ["GET", "HEAD"], grant=PUBLIC),
            ServedRoute("/metrics", self._metrics, ["GET"], grant=READ),
            ServedRoute("/openapi.json", self._openapi, ["GET"], grant=READ),
            ServedRoute("/docs", self._docs, ["GET", "HEAD"], grant=READ),
        ]

    # -- operations --------------------------------------------------------------------------------------------

    def _endpoint(self, name: str) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            visitor: Visitor = request.state.visitor
            asked = self._asked(name, await request.body(), visitor)
            await self._note_use(visitor)
            if isinstance(asked, ChangesRequest) and asked.wait:
                asked = await self._waited(asked, visitor.name)
            function = operations.function_of(name)
            if operations.takes_many(name):
                return self.streamed(lambda: function(self.repo, asked), request)
            if SERVED[name] == READ:
                question = name.encode() + b" " + encode(asked)
                answer = await self.workers.ask_once(visitor.name, question, lambda: encode(function(self.repo, asked)))
            else:
                answer = await self.workers.ask(visitor.name, lambda: encode(function(self.repo, asked)))
            return Response(answer, media_type="application/json")

        return endpoint

    async def _first_answers(self, questions: list[PageQuestion], visitor: Visitor) -> list[bytes]:
        """The answers to several questions, one after the other: they need the same things."""
        asked = [
            (operations.function_of(name), self._asked(name, encode(request), visitor)) for name, request in questions
        ]
        question = b"page " + encode(
            [[name, request] for (name, _), (_, request) in zip(questions, asked, strict=True)]
        )
        answers = await self.workers.ask_once(
            visitor.name, question, lambda: [encode(function(self.repo, request)) for function, request in asked]
        )
        # Whoever looks does not wait for the disk: a page is what is asked for first, by a token that nobody has used.
        noting = asyncio.ensure_future(self._note_use(visitor))
        self._noting.add(noting)
        noting.add_done_callback(self._noting.discard)
        return answers

    def _asked(self, name: str, body: bytes, visitor: Visitor) -> ApiRequest:
        """The request, in the name of whoever asks, if they may ask for all of it."""
        asked: ApiRequest = decode(body, operations.described(name).request)  # type: ignore[assignment]
        operations.check(asked, visitor.grants)
        asked = operations.in_the_name_of(name, asked, visitor.fields(), visitor.grants)
        return operations.filled(asked, self.settings.usual)

    async def _waited(self, asked: ChangesRequest, who: str) -> ChangesRequest:
        """The same question when there is something to answer: waiting needs no thread."""
        if 0 < asked.wait <= 60 and asked.limit >= 1 and asked.after >= 0:
            # An answer without news comes before the request is given up.
            until = clock.monotonic() + min(asked.wait, 0.9 * self.settings.seconds)
            with self.follower.listening():
                epoch = asked.epoch or await self.workers.ask(who, lambda: self.repo.epoch)
                while (left := until - clock.monotonic()) > 0 and not self.follower.stopping.is_set():
                    last, present = await self.workers.ask(who, lambda: (self.repo.last_change(), self.repo.epoch))
                    if last > asked.after or present != epoch:
                        break
                    await self.follower.changed(asked.after, epoch, left)
            return msgspec.structs.replace(asked, wait=0.0)
        return asked

    def streamed(
        self, make: Callable[[], Iterator[Any]], request: Request, *, unmade: Callable[[], None] | None = None
    ) -> Response:
        """Many answers, one after the other. `unmade` is called where its turn never comes."""
        return StreamedResponse(self, lambda: as_lines(make()), request.state.visitor.name, unmade=unmade)

    def streamed_bytes(
        self, make: Callable[[], Iterator[bytes]], headers: dict[str, str], request: Request
    ) -> Response:
        """Bytes that are not held in memory; what goes wrong in the middle ends the connection."""
        return StreamedResponse(self, make, request.state.visitor.name, headers)

    async def _note_use(self, visitor: Visitor) -> None:
        if visitor.token is not None and self.tokens.is_to_note(visitor.token):
            await self.workers.ask(visitor.name, self.tokens.note_use, visitor.token)

    # -- signing in --------------------------------------------------------------------------------------------

    async def _login(self, request: Request) -> Response:
        asked = decode(await request.body(), openapi.SignInRequest)
        by = None
        if not self.words.take(asked.word):
            by = self.tokens.find(asked.word)
            if by is None or by.is_browser:
                hint = "start `harken serve` again, or make a token with `harken token create`"
                raise NotSignedIn("this word was used before, is too old, or never was one", hint=hint)
        made = await self.workers.ask("" if by is None else by.name, self.tokens.sign_in, by)
        told = openapi.SignInAnswer(
            name=made.token.name, grants=list(made.token.grants), expires=stamp(made.token.expires)
        )
        response = Response(encode(told), media_type="application/json")
        seconds = ((made.token.expires or 0) - clock.now()) // clock.SECOND
        self._set_cookie(response, made.secret, max(1, seconds))
        return response

    async def _logout(self, request: Request) -> Response:
        visitor: Visitor = request.state.visitor
        if visitor.token is not None and visitor.token.is_browser:
            await self.workers.ask(visitor.name, self.tokens.sign_out, visitor.token)
        response = Response(status_code=204)
        self._set_cookie(response, "", 0)
        return response

    async def _visitor(self, request: Request) -> Response:
        visitor: Visitor = request.state.visitor
        here = operations.GRANTS[:1] if self.settings.read_only else operations.GRANTS
        allowed = [grant for grant in here if operations.may(visitor.grants, grant)]
        return Response(encode(openapi.VisitorAnswer(name=visitor.name, grants=allowed)), media_type="application/json")

    def _set_cookie(self, response: Response, value: str, seconds: int) -> None:
        name = cookie_name(self.settings.port)
        response.set_cookie(name, value, max_age=seconds, path="/", httponly=True, samesite="strict")

    # -- about the service -------------------------------------------------------------------------------------

    async def _openapi(self, request: Request) -> Response:
        told = await self.workers.ask(request.state.visitor.name, openapi.document)
        return Response(told, media_type="application/json")

    async def _docs(self, request: Request) -> Response:
        return Response(await self.workers.ask(request.state.visitor.name, docs_page), media_type="text/html")

    async def _metrics(self, request: Request) -> Response:
        number = await self.workers.ask(request.state.visitor.name, self.repo.last_change)
        return Response(self.metrics.text({"store_last_change": number}), media_type="text/plain; version=0.0.4")


class StreamedResponse(Response):
    """An answer as it comes. Without `headers` it is one object a line, and an error in the middle is a last line; with
    them it is bytes of a length that they tell, and an error in the middle ends the connection."""

    media_type = NDJSON

    def __init__(
        self,
        service: ServiceApp,
        make: Callable[[], Iterator[bytes]],
        name: str,
        headers: dict[str, str] | None = None,
        *,
        unmade: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(headers=headers)
        if headers is None:
            del self.headers["content-length"]
        self._service, self._make, self._name, self._is_lines = service, make, name, headers is None
        self._unmade = unmade

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        slots = self._service.streams
        try:
            await slots.take(self._name)
        except BaseException:  # too many wait, or for too long
            if self._unmade is not None:
                self._unmade()
            raise
        stream = AnswerStream(self._make, lambda: slots.give_back(self._name))
        gone = asyncio.ensure_future(until_gone(receive))
        gone.add_done_callback(lambda _: stream.close())
        try:
            await self._send(stream, send)
        finally:
            stream.close()
            gone.cancel()

    async def _send(self, stream: AnswerStream, send: Send) -> None:
        piece = await stream.take()  # what goes wrong before the first line is an error like any other
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        while piece:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            piece = await self._next(stream)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _next(self, stream: AnswerStream) -> bytes:
        try:
            return await stream.take()
        except Exception as problem:
            if not self._is_lines:
                raise
            # The answer has begun, so it is told in it.
            if not isinstance(problem, HarkenError):
                self._service.log.add(event="fault", fault=f"{type(problem).__name__}: {problem}"[:500])
            return last_line(problem)


async def _healthz(_: Request) -> Response:
    return Response("ok\n", media_type="text/plain")
