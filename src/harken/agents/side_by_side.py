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
from .watching import watchers_of

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


async def run(turn: Turn, calls: Sequence[Entry], message_id: str, *, resumed: bool = False) -> None:
    """Run calls of a message; each result is logged as it comes. What stops one stops those that have not begun, and
    the turn once the others are over. Those that cannot begin at once are logged as held back until they do, so that
    they are run when the turn goes on after a kill."""
    agent = turn.agent
    asked_for = [(agent.tools.get(call_name(call)), call_arguments(call)) for call in calls]
    guarded = next(watchers_of(agent, "tool"), None) is not None
    order = waits_for(reaches(asked_for, seated=bool(agent.listeners)), guarded=guarded)
    if not resumed:  # one that is resumed has not begun either, or may be run again
        at_once = [number for number, earlier in enumerate(order) if not (earlier or guarded)][: agent.pool.parallel]
        late = [number for number in range(len(calls)) if number not in at_once and runs_once(asked_for[number][0])]
        questions.hold(agent, message_id, [calls[number]["id"] for number in late])
    unknown = {  # refused at once: held back for a tool that no program has, they would be open for ever
        number
        for number, call in enumerate(calls)
        if asked_for[number][0] is None and not questions.has_waited(agent, message_id, call["id"])
    }
    over = [asyncio.Event() for _ in calls]
    asked = [asyncio.Event() for _ in calls]
    limit = asyncio.Semaphore(agent.pool.parallel)
    stopped: list[BaseException] = []
    waiting: dict[int, Waiting | None] = {}
    """Calls that wait for a person, and those that are held back: behind one, or since the turn has to stop."""

    @contextlib.asynccontextmanager
    async def in_turn(number: int) -> AsyncIterator[None]:
        if number and guarded:
            await asked[number - 1].wait()
        try:
            yield
        finally:
            asked[number].set()

    @contextlib.asynccontextmanager
    async def at_work(call: Entry) -> AsyncIterator[None]:
        async with limit:
            questions.begin(agent, message_id, call["id"])
            yield

    async def one(number: int, call: Entry) -> None:
        try:
            for earlier in order[number]:
                await over[earlier].wait()
            if number not in unknown and (stopped or any(earlier in waiting for earlier in order[number])):
                waiting[number] = None
            else:
                await turn.run_call(call, message_id, resumed=resumed, slot=Slot(in_turn(number), at_work(call)))
        except Waiting as problem:
            waiting[number] = problem
        except BaseException as problem:
            stopped.append(problem)
            raise
        finally:
            asked[number].set()
            over[number].set()

    tasks = [asyncio.ensure_future(one(number, call)) for number, call in enumerate(calls)]
    try:
        await asyncio.wait(tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    await asyncio.gather(*tasks, return_exceptions=True)
    if all(isinstance(problem, ModelFailed) for problem in stopped):  # else nothing can be logged
        questions.hold(agent, message_id, [calls[one]["id"] for one, problem in waiting.items() if problem is None])
    if stopped:
        raise stopped[0]
    if waiting:
        raise questions.joined([problem for problem in waiting.values() if problem is not None])
