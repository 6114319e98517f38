"""Server-sent events: what changes in the store, to any number of clients at once.

One thread waits for the store, however many clients there are. Nothing is kept for a client: each has the number of the
last change it was told, and is told what came after it when it has taken the message before. One that takes nothing is
let go, and goes on later from the number it knows.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from harken.api.feed import ChangesAnswer, ChangesRequest, changes
from harken.errors import BadRequest, HarkenError, NotSignedIn, TooMany

from .answering import encode, tell_loop
from .guard import error_body

if TYPE_CHECKING:
    from harken.repo import Repo

    from .app import ServiceApp
    from .tokens import AccessToken

AT_ONCE = 1000
"""Changes in one message."""
_LOOK = 0.5
"""Seconds for which the thread waits before it looks whether anybody still listens."""
_RETRY = 1000
"""Milliseconds after which a browser asks again."""


class StoreFollower:
    """Wakes everybody who waits when the store has changed. Its thread sleeps while nobody listens."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners = 0
        self._waiting: set[asyncio.Event] = set()
        self._wanted = threading.Event()
        self._known, self._epoch = -1, ""
        """The newest change that the thread knows of."""
        self.stopping = asyncio.Event()
        """Set when the service ends: whoever streams comes to an end."""
        self._thread = threading.Thread(target=self._follow, name="harken-feed", daemon=True)

    def start(self) -> None:
        """Begin; called in the loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """End every stream; called in the loop."""
        self.stopping.set()
        self._wanted.set()
        self._wake()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While somebody listens, the store is followed."""
        self._listeners += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._listeners -= 1

    async def changed(self, known: int, epoch: str, seconds: float) -> None:
        """Wait until the store may have something newer, the service ends, or the time is over."""
        if self.stopping.is_set() or self._known > known or self._epoch not in ("", epoch):
            return
        news = asyncio.Event()
        self._waiting.add(news)
        try:
            async with asyncio.timeout(seconds):
                await news.wait()
        except TimeoutError:
            return
        finally:
            self._waiting.discard(news)

    def _wake(self) -> None:
        for news in self._waiting:
            news.set()

    def _follow(self) -> None:
        while not self.stopping.is_set():
            if not self._listeners:
                self._wanted.clear()
                if not self._listeners and not self.stopping.is_set():
                    self._wanted.wait()
                self._known = -1  # what came meanwhile, nobody has told us
            try:
                is_news = self._known < 0 or self._repo.wait(self._known, _LOOK) or self._repo.epoch != self._epoch
                if is_news:
                    self._known, self._epoch = self._repo.last_change(), self._repo.epoch
            except HarkenError:  # a repair, or the store is closed: those who wait ask for themselves
                is_news = True
                threading.Event().wait(_LOOK)
            if is_news:
                tell_loop(self._loop, self._wake)


class FeedPlace(msgspec.Struct, frozen=True, kw_only=True):
    """How far a client is."""

    after: int | None
    """The last change it knows; None: what comes from now on."""
    epoch: str = ""
    who: str = ""
    token: AccessToken | None = None
    """Whoever it is: when the token is taken back, the feed ends."""


def place_asked(request: Request) -> FeedPlace:
    """From where on to tell: `Last-Event-ID`, which a browser sends by itself, else `after`."""
    told = request.headers.get("last-event-id") or request.query_params.get("after", "")
    visitor = request.state.visitor
    if not told:
        return FeedPlace(after=None, who=visitor.name, token=visitor.token)
    epoch, _, number = told.rpartition(":")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise BadRequest(
            f"{told!r:.99} is no place in the feed", hint="NUMBER, or EPOCH:NUMBER as the ids of events are"
        )
    return FeedPlace(after=int(number), epoch=epoch, who=visitor.name, token=visitor.token)


class FeedResponse(Response):
    """The feed to one client, until it goes or the service ends."""

    media_type = "text/event-stream"

    def __init__(self, feed: FeedService, place: FeedPlace) -> None:
        super().__init__(headers={"x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._feed, self._place = feed, place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._feed.serve(self._place, self.raw_headers, receive, send)


class FeedService:
    """Tells clients what changes."""

    def __init__(self, service: ServiceApp) -> None:
        self._repo, self._follower, self._workers = service.repo, service.follower, service.workers
        self._settings, self._metrics, self._log = service.settings, service.metrics, service.log
        self._tokens = service.tokens
        self._each: Counter[str] = Counter()
        """How many clients of each token follow."""

    async def respond(self, request: Request) -> Response:
        """`GET /api/v1/feed`."""
        most, each = self._settings.feeds, self._settings.feeds_each
        if self._metrics.feeds >= most:
            raise TooMany(f"{most} clients follow the feed already", hint="close one", after=5)
        if self._each[request.state.visitor.name] >= each:
            raise TooMany(f"{each} clients with this token follow the feed already", hint="close one", after=5)
        return FeedResponse(self, place_asked(request))

    async def serve(self, place: FeedPlace, headers: list[tuple[bytes, bytes]], receive: Receive, send: Send) -> None:
        """Tell one client until it goes."""
        self._metrics.feeds += 1
        self._each[place.who] += 1
        with self._follower.listening():
            await self._serve(place, headers, receive, send)

    async def _serve(self, place: FeedPlace, headers: list[tuple[bytes, bytes]], receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(until_gone(receive))
        telling = asyncio.ensure_future(self._tell(place, headers, send))
        try:
            await asyncio.wait({gone, telling}, return_when=asyncio.FIRST_COMPLETED)
            if telling.done():
                telling.result()
        finally:
            self._metrics.feeds -= 1
            self._each -= Counter([place.who])
            for task in (gone, telling):
                task.cancel()

    async def _tell(self, place: FeedPlace, headers: list[tuple[bytes, bytes]], send: Send) -> None:
        # What is asked first may fail, and then the answer is an error and no stream.
        answer = await self._first(place)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._write(send, f"retry: {_RETRY}\n\n{message(answer)}")
        known, epoch, told = _last_told(answer), answer.epoch, self._clock()
        while not self._follower.stopping.is_set():
            await asyncio.sleep(self._settings.feed_pause)
            if place.token is not None and not self._tokens.is_good(place.token):
                await self._end(send, NotSignedIn("this token was taken back or is over", hint="sign in again"))
                return
            try:
                answer = await self._ask(place.who, known, epoch)
            except HarkenError as problem:
                await self._end(send, problem)
                return
            if answer.changes or answer.epoch != epoch:
                known, epoch = _last_told(answer), answer.epoch
                await self._write(send, message(answer))
                told = self._clock()
            elif (left := told + self._settings.heartbeat - self._clock()) > 0:
                await self._follower.changed(known, epoch, left)
            else:
                await self._write(send, ": still here\n\n")
                told = self._clock()
        await self._end(send, HarkenError("the server is stopping", hint="connect again"))

    @staticmethod
    def _clock() -> float:
        return asyncio.get_running_loop().time()

    async def _first(self, place: FeedPlace) -> ChangesAnswer:
        if place.after is None:
            last, epoch = await self._workers.ask(place.who, lambda: (self._repo.last_change(), self._repo.epoch))
            return await self._ask(place.who, last, epoch)
        return await self._ask(place.who, place.after, place.epoch)

    async def _ask(self, who: str, known: int, epoch: str) -> ChangesAnswer:
        asked = ChangesRequest(after=known, epoch=epoch, limit=AT_ONCE)
        return await self._workers.ask(who, changes, self._repo, asked)

    async def _write(self, send: Send, text: str) -> None:
        """Send something; a client that does not take it in time is let go."""
        try:
            async with asyncio.timeout(self._settings.feed_patience):
                await send({"type": "http.response.body", "body": text.encode("utf-8", "replace"), "more_body": True})
        except TimeoutError:
            self._metrics.dropped += 1
            self._log.add(event="feed-dropped", why="the client took nothing")
            raise HarkenError("the client takes nothing", hint="connect again") from None

    async def _end(self, send: Send, problem: HarkenError) -> None:
        await self._write(send, f"event: end\ndata: {error_body(problem).decode()}\n\n")
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def message(answer: ChangesAnswer) -> str:
    """Changes as one event; its id is where to go on."""
    return f"id: {answer.epoch}:{_last_told(answer)}\ndata: {encode(answer).decode()}\n\n"


def _last_told(answer: ChangesAnswer) -> int:
    return answer.changes[-1].number if answer.changes else answer.after


async def until_gone(receive: Receive) -> None:
    """Wait until the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        continue
