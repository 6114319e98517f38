"""Questions answered in threads: the core is synchronous, and a slow answer must not stop the others.

One answer comes from a fixed number of workers. Many answers, one after the other, come from a thread of their own that
waits for the client: a client that takes nothing costs a thread and a little memory, until it is let go.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec

from harken.errors import BadRequest, HarkenError, TooMany

from .guard import error_body

T = TypeVar("T")
HELD = 1 << 20
"""Bytes of an answer that wait for the client before its thread waits too."""
PIECE = 256 << 10
"""Bytes that are sent at once."""


def encode(answer: Any) -> bytes:
    """An answer as JSON; bytes are base64."""
    try:
        return msgspec.json.encode(answer)
    except (UnicodeEncodeError, OverflowError):  # a lone surrogate, or a number beyond 64 bits
        import json

        return json.dumps(_plain(msgspec.to_builtins(answer))).encode()


def _plain(value: Any) -> Any:
    """The value without what JSON cannot say: a number that is none becomes null."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def decode(body: bytes, kind: type[T]) -> T:
    """A request out of a body; whatever is wrong with it is a `BadRequest`."""
    try:
        try:
            return msgspec.json.decode(body or b"{}", type=kind)
        except msgspec.DecodeError as problem:
            if isinstance(problem, msgspec.ValidationError) or b"\\ud" not in body.lower():
                raise
            return msgspec.convert(_read_odd(body), kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as problem:
        text = "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise BadRequest(
            f"the request cannot be read: {text}", hint="/openapi.json has the types of all fields"
        ) from None


def _read_odd(body: bytes) -> Any:
    """JSON with half a surrogate pair in it: transcripts have such text, and so do names that come from them."""
    import json

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(body, parse_constant=refuse)


class _SharedAnswer:
    """An answer that is not begun yet, and how many wait for it."""

    def __init__(self, answer: asyncio.Future[Any]) -> None:
        self.answer, self.waiting = answer, 0
        # Where nobody is left to hear what went wrong, nobody has to.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())


class Workers:
    """A fixed number of threads; who finds none free waits for their turn. `slots` are as many."""

    def __init__(self, count: int, slots: AnswerSlots) -> None:
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._slots = slots
        self._shared: dict[tuple[str, bytes], _SharedAnswer] = {}
        """Questions that wait for their turn, by who asks and what."""
        self._threads = [
            threading.Thread(target=self._work, name=f"harken-worker-{number}", daemon=True) for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def ask(self, who: str, function: Callable[..., T], *arguments: Any) -> T:
        """What the function says, from one of the threads, for the token of this name. Whoever stops waiting does not
        stop it."""
        await self._slots.take(who)
        return await self._answer(who, function, *arguments)

    async def ask_once(self, who: str, question: bytes, function: Callable[[], T]) -> T:
        """The same for a question that changes nothing. Whoever asks it again, under the same name, while it waits for
        its turn, gets the same answer: it is made after all of them have asked. Once it is begun, who asks begins
        another."""
        key = (who, question)
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = _SharedAnswer(asyncio.ensure_future(self._in_turn(key, function)))
        shared.waiting += 1
        try:
            found: T = await asyncio.shield(shared.answer)
            return found
        finally:
            shared.waiting -= 1
            if not shared.waiting and self._shared.get(key) is shared:  # nobody wants it any more, and it is not begun
                del self._shared[key]
                shared.answer.cancel()

    async def _in_turn(self, key: tuple[str, bytes], function: Callable[[], T]) -> T:
        try:
            await self._slots.take(key[0])
        finally:
            self._shared.pop(key, None)
        return await self._answer(key[0], function)

    async def _answer(self, who: str, function: Callable[..., T], *arguments: Any) -> T:
        """What the function says; a slot has been taken."""
        future: Future[T] = Future()
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: tell_loop(loop, lambda: self._slots.give_back(who)))
        self._queue.put((future, lambda: function(*arguments)))
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            future, function = work
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except BaseException as problem:  # noqa: BLE001  it is whoever asked who has to hear of it
                future.set_exception(problem)
            del work, future, function

    def close(self) -> None:
        """No more questions; what is being answered is not waited for."""
        for _ in self._threads:
            self._queue.put(None)


def tell_loop(loop: asyncio.AbstractEventLoop | None, what: Callable[[], None]) -> None:
    """Have something done in the loop, from another thread; nothing where there is none any more."""
    if loop is None:
        return
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:  # the loop is closed: nobody counts any more
        return


def as_lines(answers: Iterator[Any]) -> Iterator[bytes]:
    """One JSON object a line."""
    try:
        for answer in answers:
            yield encode(answer) + b"\n"
    finally:
        if (close := getattr(answers, "close", None)) is not None:
            close()


class AnswerStream:
    """Pieces of an answer from a thread; the thread waits while too much is held."""

    def __init__(self, make: Callable[[], Iterator[bytes]], ended: Callable[[], None]) -> None:
        self._make = make
        self._ended = ended
        """Called in the loop when the thread is done, whether or not all of it was taken."""
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._room = threading.Condition()
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._over = self._unwanted = False
        self._problem: BaseException | None = None
        threading.Thread(target=self._run, name="harken-stream", daemon=True).start()

    async def take(self) -> bytes:
        """Some of it; empty at the end. What went wrong is raised when all that came before it was taken."""
        while True:
            with self._room:
                if piece := self._piece():
                    return piece
                if self._over:
                    break
                self._news.clear()
            await self._news.wait()
        if self._problem is None:
            return b""
        problem, self._problem = self._problem, None
        raise problem

    def close(self) -> None:
        """Nobody wants the rest."""
        with self._room:
            self._unwanted = self._over = True
            self._pieces.clear()
            self._room.notify_all()
        self._news.set()

    def _piece(self) -> bytes:
        taken: list[bytes] = []
        size = 0
        while self._pieces and size < PIECE:
            taken.append(self._pieces.popleft())
            size += len(taken[-1])
        self._held -= size
        if taken:
            self._room.notify_all()
        return b"".join(taken)

    def _run(self) -> None:
        problem: BaseException | None = None
        pieces: Iterator[bytes] | None = None
        try:
            pieces = self._make()
            for piece in pieces:
                if not self._keep(piece):
                    break
        except BaseException as found:  # noqa: BLE001  it is the client who has to hear of it
            problem = found
        finally:
            if (close := getattr(pieces, "close", None)) is not None:
                close()
        with self._room:
            self._over = True
            self._problem = None if self._unwanted else problem
        tell_loop(self._loop, self._end)

    def _end(self) -> None:
        self._ended()
        self._news.set()

    def _keep(self, piece: bytes) -> bool:
        """Hold a piece until it is taken; whether more is wanted."""
        with self._room:
            self._room.wait_for(lambda: self._held < HELD or self._unwanted)
            if self._unwanted:
                return False
            is_first = not self._pieces
            self._pieces.append(piece)
            self._held += len(piece)
        if is_first:
            tell_loop(self._loop, self._news.set)
        return True


class AnswerSlots:
    """How many answers are made at once, in all and for each token. Who finds none free waits for their turn; a token
    that has all of its own in use keeps no other from theirs. `waiting` are those of one token that may wait."""

    def __init__(self, most: int, each: int, waiting: int) -> None:
        self._most, self._each, self._longest = most, each, waiting
        self._open: Counter[str] = Counter()
        self._queue: list[tuple[str, asyncio.Future[None]]] = []

    @property
    def used(self) -> int:
        """How many are being made."""
        return self._open.total()

    async def take(self, name: str) -> None:
        """Wait for a slot."""
        if not self._is_free(name):
            if sum(who == name for who, _ in self._queue) >= self._longest:
                raise TooMany("too many answers at once", hint="wait for one of them to end")
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append((name, turn))
            try:
                await turn
            except asyncio.CancelledError:
                self._queue = [one for one in self._queue if one[1] is not turn]
                if turn.done() and not turn.cancelled():
                    self.give_back(name)
                raise
        else:
            self._open[name] += 1

    def give_back(self, name: str) -> None:
        """The answer is made; the first who waits and may is next."""
        self._open[name] -= 1
        if not self._open[name]:
            del self._open[name]
        for place, (who, turn) in enumerate(self._queue):
            if self._is_free(who) and not turn.done():
                del self._queue[place]
                self._open[who] += 1
                turn.set_result(None)
                return

    def _is_free(self, name: str) -> bool:
        return self._open.total() < self._most and self._open[name] < self._each


def last_line(problem: BaseException) -> bytes:
    """How a stream ends in which something went wrong."""
    if not isinstance(problem, HarkenError):
        problem = HarkenError("a fault of Harken itself", hint="the log of the server says where")
    return error_body(problem) + b"\n"
