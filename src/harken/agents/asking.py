"""Asking a model that is heard while it answers, or that fails: again and again, until it answers or is given up.

What is shown is in the log first: stretches of text are gathered for a moment, logged as notices (`system`, subtype
`partial`), and then handed to whoever listens. They are in no transcript. The message that follows takes their place;
where none follows, they are what is left of an answer that broke off.
"""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import msgspec
import orjson

from harken import clock
from harken.errors import HarkenError, LimitReached
from harken.events import Error, System
from harken.events.base import clean
from harken.log import Session

from . import limits
from .models import ModelError, Reply, Request, Streamed, checked
from .options import check_address
from .tools import describe

if TYPE_CHECKING:
    from .agent import Agent

PARTIAL = "partial"
"""The subtype of the notice that holds a stretch of what a model was saying."""
FALLBACK = "fallback"
"""The subtype of the notice that another model is asked in place of one that failed."""
MOMENT = 0.25
"""For how many seconds words are gathered before they are logged and shown."""
MAX_TOLD = 2000
"""How many characters of a provider's complaint are logged."""

Listener = Callable[["Agent", Streamed], object]
"""Told what the model of an agent says, as it is said."""


class Asking:
    """One question to the model of an agent."""

    def __init__(self, agent: Agent, request: Request) -> None:
        self.agent = agent
        self.pool = agent.pool
        self.options = agent.options
        self.request = msgspec.structs.replace(request, options=self.options)
        self.attempt = 1
        self.model = agent.language_model
        self._others = [name for name in self.options.fallbacks if isinstance(name, str)]
        self._held: list[str] = []  # words that are not logged yet
        self._since = 0.0  # since when
        self._kind = "text"
        self._shown = {"text": 0, "thinking": 0}  # how many characters of this attempt are logged

    async def answered(self, problem: Exception | None = None) -> Reply:
        """The reply; where the first attempt was made already, `problem` is how it failed."""
        check_address(self.options, self.pool.settings.trusted)
        if problem is None:
            limits.check(self.agent)
        pauses = self.pool.retries.pauses()
        while True:
            if problem is None:
                try:
                    return self._named(await self._in_time())
                except LimitReached:
                    raise
                except Exception as raised:  # noqa: BLE001  whatever a model raises is its failure
                    problem = raised
            failure = problem if isinstance(problem, ModelError) else ModelError(describe(problem))
            self._log_failure(failure)
            pause = self.pool.retries.pause_after(next(pauses, None), failure)
            self._tell(Streamed(kind="failed", text=str(failure)[:MAX_TOLD], attempt=self.attempt, pause=pause))
            if isinstance(problem, HarkenError) and pause is None:
                raise problem  # it has a hint
            if pause is None and (failure.too_long or not self._others):
                raise failure from problem
            if pause is None:
                self._fall_back(failure)
                pauses, pause = self.pool.retries.pauses(), 0.0
            problem = None
            await asyncio.sleep(pause)
            self.attempt += 1

    def _fall_back(self, failure: ModelError) -> None:
        """Ask the next model, for this message alone; the log says so."""
        failed, self.model = self.model, self._others.pop(0)
        about = {"from": failed, "why": str(failure)[:MAX_TOLD]}
        notice = System(
            agent_id=self.agent.agent_id,
            subtype=FALLBACK,
            message=self.model,
            metadata=orjson.dumps(about),
            cause=self.agent.last_message_id(),
        )
        self.pool.session.append([notice])
        self._tell(Streamed(kind="fallback", text=self.model, attempt=self.attempt))

    def _log_failure(self, failure: ModelError) -> None:
        asks = "" if failure.retry_after is None else f" (asks to wait {failure.retry_after:g} s)"
        message = f"{self.model}: {failure}"[:MAX_TOLD] + asks
        self.pool.session.append([Error(agent_id=self.agent.agent_id, message=message)])

    async def _in_time(self) -> Reply:
        """One attempt. One that takes longer than a request may has failed, and another may not; one that takes longer
        than the agent may work is the last."""
        left, started = limits.time_left(self.agent), clock.monotonic()
        at_most = [one for one in (self.options.timeout, left[0] if left is not None else None) if one is not None]
        try:
            async with asyncio.timeout(min(at_most, default=None)) as clocked:
                return await self._attempt()
        except TimeoutError as problem:
            if not clocked.expired():
                raise  # the model's own
            if left is not None and left[0] == min(at_most):
                (_, whose, most), left = left, None
                before = self.pool.beside.pop(self.agent.agent_id, {}).get("seconds", 0.0)
                limits.reached(self.agent, "seconds", whose, most, most, before + clock.monotonic() - started)
            raise ModelError(f"no answer within {self.options.timeout} seconds", retryable=True) from problem
        finally:
            if left is not None:
                beside = self.pool.beside.setdefault(self.agent.agent_id, {})
                beside["seconds"] = round(beside.get("seconds", 0.0) + clock.monotonic() - started, 3)

    def _named(self, reply: Reply) -> Reply:
        """The reply; where another model than the agent's own has given it, the line of the message names it."""
        if self.model == self.agent.language_model:
            return reply
        if reply.content is not None or not reply.tool_calls:  # a line without words does not name a speaker
            self.pool.beside.setdefault(self.agent.agent_id, {})["model"] = self.model
        return msgspec.structs.replace(reply, model=reply.model or self.model)

    async def _attempt(self) -> Reply:
        model = self.pool.model(self.model)
        if self.pool.stream is None or self.request.purpose:
            return checked(await model.complete(self.request))
        self._held, self._shown = [], {"text": 0, "thinking": 0}
        stream = getattr(model, "stream", None)
        if stream is None:
            reply = checked(await model.complete(self.request))
            self.pool.unshown[self.agent.agent_id] = (reply.content or "", self.attempt)
            return reply
        try:
            reply = await self._listen(stream(self.request))
        except BaseException:
            self._flush()  # what the model had said is part of what happened
            raise
        if self._kind == "thinking":
            self._flush()  # of the words the reply has the rest, and shows it when it is in the log
        words = reply.content or ""
        self.pool.unshown[self.agent.agent_id] = (words[self._shown["text"] :], self.attempt)
        return reply

    async def _listen(self, stream: AsyncIterator[Streamed | Reply]) -> Reply:
        """Take in what a model says until it has answered; what is held for a moment is let go when that is over."""
        reply: object = None
        following: asyncio.Future[object] | None = None
        try:
            while reply is None:
                following = asyncio.ensure_future(_following(stream))
                while not following.done():
                    await asyncio.wait({following}, timeout=self._remaining())
                    if self._held and not self._remaining():
                        self._flush()
                match found := following.result():
                    case Streamed():
                        self._take(found)
                    case _:
                        reply = found
                        break
        finally:
            if following is not None and not following.done():
                following.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await following
            if (close := getattr(stream, "aclose", None)) is not None:
                await close()
        return checked(reply)

    def _take(self, piece: Streamed) -> None:
        if piece.kind not in self._shown:
            self._flush()
            self._tell(msgspec.structs.replace(piece, attempt=self.attempt))  # a model does not know which it is
            return
        if piece.kind != self._kind:
            self._flush()
            self._kind = piece.kind
        if not self._held:
            self._since = clock.monotonic()
        self._held.append(piece.text)
        if not self._remaining():
            self._flush()

    def _remaining(self) -> float | None:
        """How many seconds what is held may still be held; None where nothing is."""
        if not self._held:
            return None
        return max(self._since + MOMENT - clock.monotonic(), 0)

    def _flush(self) -> None:
        """Log what is held, then show it."""
        text, self._held = clean("".join(self._held)), []
        if not text:
            return
        agent, kind = self.agent, self._kind
        about: dict[str, object] = {"attempt": self.attempt, "at": self._shown[kind], "text": text}
        if kind != "text":
            about["of"] = kind
        notice = System(
            agent_id=agent.agent_id,
            subtype=PARTIAL,
            metadata=orjson.dumps(about),  # no message: the words are searched for and shown where they are whole
            cause=agent.last_message_id(),
        )
        self.pool.session.append([notice])
        self._shown[kind] += len(text)
        self._tell(Streamed(kind=kind, text=text, attempt=self.attempt))  # type: ignore[arg-type]

    def _tell(self, piece: Streamed) -> None:
        tell(self.agent, piece)


async def _following(stream: AsyncIterator[Streamed | Reply]) -> object:
    """The next item; None where a model ended without a reply."""
    async for item in stream:
        return item
    return None


def tell(agent: Agent, piece: Streamed) -> None:
    """Show a piece to whoever listens; one who fails at that is told no more: a display must not stop a session."""
    if (listener := agent.pool.stream) is None:
        return
    try:
        listener(agent, piece)
    except Exception as problem:  # noqa: BLE001  somebody else's code
        agent.pool.stream = None
        warnings.warn(f"what listens to the models failed and is told no more: {describe(problem)}", stacklevel=2)


def told_whole(agent: Agent, content: str) -> None:
    """Show the rest of a message that is in the log now, and that it is whole."""
    rest, attempt = agent.pool.unshown.pop(agent.agent_id, ("", 1))
    if rest:
        tell(agent, Streamed(text=rest, attempt=attempt))
    tell(agent, Streamed(kind="reply", text=content, attempt=attempt))


def partial(session: Session, agent_id: str) -> str:
    """What the model of an agent was saying when it broke off; empty where its last message is whole."""
    found = ""
    for line in session.records_of([agent_id]):
        if line.get("event_type") == "transcript_entry" and line.get("role") == "assistant":
            found = ""
        elif line.get("event_type") == "system" and line.get("subtype") == PARTIAL:
            about = line.get("metadata")
            text = about.get("text") if isinstance(about, dict) and "of" not in about else None
            if isinstance(about, dict) and isinstance(text, str):
                found = found + text if about.get("at") else text
    return found
