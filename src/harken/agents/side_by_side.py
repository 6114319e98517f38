"""The calls of one message run side by side: which has to wait for which, and how many work at a time.

What a call is asked for, makes and lets others hear must not depend on how fast another one is, or no recording could
be played again. So calls that name the same agent stay in their order; and where a hook watches tools, it is asked in
the order of the calls, and not before an earlier call that may have made or ended an agent is over.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from harken.errors import BadRequest, ModelFailed, Waiting
from harken.events.base import likeness

from . import questions
from .actions import CONTINUED, DISCUSS, TOOLS
from .entries import Entry, call_arguments, call_name
from .tools import Tool
from .watching import is_guarded

if TYPE_CHECKING:
    from .turn import Turn

PARALLEL = 8
"""How many calls of one message work at a time, unless somebody says otherwise."""


class Slot(NamedTuple):
    """When a call among others is asked about, and when it works."""

    asked: AbstractAsyncContextManager[object] = contextlib.nullcontext()
    works: AbstractAsyncContextManager[object] = contextlib.nullcontext()


ALONE = Slot()


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What a call may touch."""

    names: frozenset[str] = frozenset()
    """The agents below that it names."""
    everybody: bool = False
    """Whether it may touch any of them."""
    changes: bool = False
    """Whether it may make or end agents."""
    alone: bool = False
    seats: bool = False
    """Whether it names listeners, who are then listeners the next time too."""

    def meets(self, other: Reach) -> bool:
        """Whether the two cannot run side by side."""
        touching = (self.everybody or self.names) and (other.everybody or other.names)
        common = self.everybody or other.everybody or not self.names.isdisjoint(other.names)
        return self.alone or other.alone or bool(touching and common)


def reaches(asked: Sequence[tuple[Tool | None, str]], *, seated: bool) -> list[Reach]:
    """What each call of a message, given by tool and arguments, may touch. A discussion that names no listeners has
    those of the last time, so that nobody else is touched where none are `seated` and no call of the message names any.
    """
    found = [reach_of(*one) for one in asked]
    if not seated and not any(one.seats for one in found):
        found = [reach_of(*one, seated=False) for one in asked]
    return found


def reach_of(tool: Tool | None, arguments: str, *, seated: bool = True) -> Reach:
    """What a call of a tool may touch; one that will be refused touches nothing."""
    if tool is None:
        return Reach()
    if tool not in TOOLS:
        return Reach(changes=tool.call_parameter is not None, alone=tool.alone)
    try:
        given = tool.bind(arguments)
    except BadRequest:
        return Reach()
    if tool is not DISCUSS:
        return Reach(names=frozenset({likeness(given["name"])}), changes=True)
    speakers, listeners, moderator = (given[name] for name in ("speakers", "listeners", "moderator"))
    if speakers is None or (listeners is None and seated):
        return Reach(everybody=True, changes=True, seats=bool(listeners))  # whoever was seated the last time
    named = (*speakers, *(listeners or ()), *([moderator] if moderator is not None else []))
    return Reach(names=frozenset(map(likeness, named)), changes=True, seats=bool(listeners))


def waits_for(found: Sequence[Reach], *, guarded: bool) -> list[list[int]]:
    """For each call, the earlier ones that have to be over before it begins."""
    return [
        [earlier for earlier in range(place) if reach.meets(found[earlier]) or (guarded and found[earlier].changes)]
        for place, reach in enumerate(found)
    ]


def runs_once(tool: Tool | None) -> bool:
    """Whether it has to be known of a call if it had begun: it is not simply run again, or gone on with."""
    return tool is not None and tool not in CONTINUED and not tool.redo


def hold_late(turn: Turn, calls: Sequence[Entry], message_id: str) -> None:
    """Log which calls of a message that is being written cannot begin at once, so that they are run when the turn goes
    on after a kill. In a write of its own, a kill before it would leave them as if they might have begun."""
    CallGroup(turn, calls, message_id, resumed=False).hold_late()


async def run(turn: Turn, calls: Sequence[Entry], message_id: str, *, resumed: bool = False) -> None:
    """Run calls of a message; each result is logged as it comes. What stops one stops those that have not begun, and
    the turn once the others are over."""
    group = CallGroup(turn, calls, message_id, resumed=resumed)
    await group.work()
    group.settle()


class CallGroup:
    """Calls of one message under way."""

    def __init__(self, turn: Turn, calls: Sequence[Entry], message_id: str, *, resumed: bool) -> None:
        agent = turn.agent
        self.turn, self.agent, self.calls, self.message_id, self.resumed = turn, agent, calls, message_id, resumed
        self.tools = [agent.tools.get(call_name(call)) for call in calls]
        self.guarded = is_guarded(agent)
        asked_for = list(zip(self.tools, map(call_arguments, calls), strict=True))
        self.order = waits_for(reaches(asked_for, seated=bool(agent.listeners)), guarded=self.guarded)
        self.over = [asyncio.Event() for _ in calls]
        self.asked = [asyncio.Event() for _ in calls]
        self.limit = asyncio.Semaphore(agent.pool.parallel)
        self.stopped: list[BaseException] = []
        self.waiting: dict[int, Waiting | None] = {}
        """Calls that wait for a person, and those that are held back: behind one, or since the turn has to stop."""

    def hold_late(self) -> None:
        """Log which calls cannot begin at once: they wait for another, for the limit, or for a hook."""
        free = [number for number, earlier in enumerate(self.order) if not (earlier or self.guarded)]
        at_once = free[: self.agent.pool.parallel]
        late = [number for number, tool in enumerate(self.tools) if number not in at_once and runs_once(tool)]
        questions.hold(self.agent, self.message_id, [self.calls[number]["id"] for number in late])

    async def work(self) -> None:
        """Run all of them, and return when they are over, held back, or wait for a person."""
        tasks = [asyncio.ensure_future(self._one(number, call)) for number, call in enumerate(self.calls)]
        try:
            await asyncio.wait(tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        await asyncio.gather(*tasks, return_exceptions=True)

    def settle(self) -> None:
        """Raise what stops the turn, once the log says which calls have not begun."""
        if all(isinstance(problem, ModelFailed) for problem in self.stopped):  # else nothing can be logged
            held = [self.calls[number]["id"] for number, problem in self.waiting.items() if problem is None]
            questions.hold(self.agent, self.message_id, held)
        if self.stopped:
            raise self.stopped[0]
        if self.waiting:
            raise questions.joined([problem for problem in self.waiting.values() if problem is not None])

    async def _one(self, number: int, call: Entry) -> None:
        try:
            for earlier in self.order[number]:
                await self.over[earlier].wait()
            if self._is_held_back(number):
                self.waiting[number] = None
            else:
                slot = Slot(self._in_turn(number), self._at_work(call))
                await self.turn.run_call(call, self.message_id, resumed=self.resumed, slot=slot)
        except Waiting as problem:
            self.waiting[number] = problem
        except BaseException as problem:
            self.stopped.append(problem)
            raise
        finally:
            self.asked[number].set()
            self.over[number].set()

    def _is_held_back(self, number: int) -> bool:
        """Whether the turn has to stop before this call. One of a tool that no program has is refused all the same:
        held back for it, it would be open for ever."""
        if not self.stopped and not any(earlier in self.waiting for earlier in self.order[number]):
            return False
        is_known = self.tools[number] is not None
        return is_known or questions.has_waited(self.agent, self.message_id, self.calls[number]["id"])

    @contextlib.asynccontextmanager
    async def _in_turn(self, number: int) -> AsyncIterator[None]:
        if number and self.guarded:
            await self.asked[number - 1].wait()
        try:
            yield
        finally:
            self.asked[number].set()

    @contextlib.asynccontextmanager
    async def _at_work(self, call: Entry) -> AsyncIterator[None]:
        async with self.limit:
            questions.begin(self.agent, self.message_id, call["id"])
            yield
