"""Between a runtime's output and the trackers: which session and which agent a line belongs to.

The main agent and every sub-agent has a chain of its own, since a context holds what its agent knew and no more. A
sub-agent's lines name the call that started it. Nothing here ever raises: a run is worth more than its record.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from harken import clock
from harken.errors import Conflict
from harken.events import Event, Metric, Prompt, ToolCall, ToolResult
from harken.ids import is_safe_name

from .base import Launcher, LineOwner
from .callers import Caller

MAX_AGENTS = 1000
MAX_UNKEPT = 32 * 1024 * 1024
"""Bytes of output after which everything is committed, whether a turn has ended or a session is known."""
AFTER_CALL = 0.05
AFTER_WORDS = 1.0
"""Seconds of silence after which a message counts as said."""
MAIN = ""


class ChainTracker(Protocol):
    """Makes commits out of events as they come (`context`)."""

    def feed(self, events: Sequence[Event], *, more: bool = False) -> object:
        """Take in events; commits as its frequency says. `more` says that the message may go on."""
        ...

    def checkpoint(self, reason: str) -> object:
        """Commit what has not been committed yet."""
        ...

    @property
    def current(self) -> str:
        """The commit that holds everything so far; empty before the first."""
        ...

    @property
    def pending(self) -> int:
        """Events that are in no commit yet."""
        ...


class _PendingCall(NamedTuple):
    """A call whose result has not come."""

    agent: str
    command: str


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an agent when its chain begins."""

    session: str
    agent: str = MAIN
    call_id: str = ""
    """The call that started a sub-agent."""
    context_id: str = ""
    """Where the main agent stood then."""

    @property
    def name(self) -> str:
        """The name the chain goes by."""
        return f"{self.session}/{self.agent}" if self.agent else self.session


class Recorder:
    """Feeds each agent's events to a tracker of its own, and knows which of them is waiting for a tool."""

    def __init__(
        self,
        launch: Launcher,
        open_tracker: Callable[[Opening], ChainTracker],
        warn: Callable[[str], None],
        *,
        now: clock.Clock = clock.now,
        unnamed: str = "",
    ) -> None:
        """`unnamed` is what a session is called that the runtime never names, or that its plan names."""
        self._launch = launch
        self._unnamed = unnamed or str(uuid.uuid4())
        self._reader = launch.reader(now())
        self._open = open_tracker
        self._warn = warn
        self._waiting: list[Event] = []
        self._trackers: dict[str, ChainTracker] = {}
        self._all: list[ChainTracker] = []
        """Those of every session of the run."""
        self._unopened: set[str] = set()
        """Agents of the session whose chains could not be opened: what they say is left to the spool, or it would be
        stored a second time, and what comes later before it."""
        self._told: dict[str, str] = {}
        self._calls: dict[str, _PendingCall] = {}
        self._unsettled: dict[str, bool] = {}
        self.problem: Exception | None = None
        """The first thing that went wrong; what it was about is not recorded."""
        self._unkept = 0
        self.session = ""
        self.sessions: list[str] = []
        """All whose chains were opened, in their order."""

    def line(self, line: bytes, found: dict[str, Any]) -> None:
        """Record an output line; `found` is the object on it."""
        with self.never_raising():
            owner = trusted(self._launch.owner(found))
            if owner.session and owner.session != self.session:
                self.checkpoint("session_end")
                self._begin(owner.session)
            elif self._launch.named_by_plan and not self.session:
                self._begin(self._unnamed)
            events = self._reader.feed(line)
            if owner.agent and self.session:
                self._sub_agent(owner.agent, owner.call, events)
            else:
                self.add(events)
            self._unkept += len(line)
            if self._unkept > MAX_UNKEPT:
                self._keep_all()

    def add(self, events: Sequence[Event], agent: str = MAIN) -> None:
        """Record events of an agent; until the session is known they wait."""
        for event in events:
            if isinstance(event, ToolCall):
                self._calls[event.id] = _PendingCall(agent, self._launch.command(event))
                if told := self._launch.told(event):
                    self._told[event.id] = told
            elif isinstance(event, ToolResult):
                self._calls.pop(event.id, None)
        if agent in self._unopened:
            return
        if agent not in self._trackers:
            self._waiting += events
        elif events:
            with self.never_raising():
                self._trackers[agent].feed(events, more=True)
                self._unsettled[agent] = isinstance(_last_said(events), ToolCall)

    def _keep_all(self) -> None:
        """So much was printed that it cannot wait: where no session is known it gets one of its own."""
        if not self.session:
            prompts = [event for event in self._waiting if isinstance(event, Prompt)]
            self._begin(self._unnamed)
            # They belong to the session that is still to be named.
            self._waiting += prompts
        for agent in self._trackers:
            self.checkpoint("explicit", agent)
        self._unkept = 0

    def checkpoint(self, reason: str, agent: str = MAIN) -> str:
        """Commit everything an agent has heard; the answer is the commit that holds it."""
        if (tracker := self._trackers.get(agent)) is None:
            return ""
        with self.never_raising():
            tracker.checkpoint(reason)
        return tracker.current

    def settles_after(self) -> float | None:
        """How long the output may be silent before the last message counts as said; None when nothing is pending.

        The stream has a line for each part of a message and none for its end. After a call the tool runs, so a short
        wait will do; after words more of the message may come."""
        return None if not self._unsettled else AFTER_CALL if any(self._unsettled.values()) else AFTER_WORDS

    def settle(self) -> None:
        """The output has been silent: what was being said has been said."""
        for agent in self._unsettled:
            with self.never_raising():
                self._trackers[agent].feed((), more=False)
        self._unsettled.clear()

    def has_call_of(self, caller: Caller) -> bool:
        """Whether a call is known that may run the caller: its command is the caller's, or one of the two unknown."""
        return any(
            not caller.commands or not call.command or caller.runs(call.command) for call in self._calls.values()
        )

    def asking(self, caller: Caller) -> str:
        """The agent whose tool asks; the main one where none is known to run one. `Conflict` where it may be several:
        those whose calls run the caller's command, or all where no call's command is known to be the caller's."""
        pending = list(self._calls.values())
        meant = [call for call in pending if caller.runs(call.command)]
        if meant:
            # A command that is part of another one is not the one that asks.
            longest = max(len(call.command) for call in meant)
            meant = [call for call in meant if len(call.command) == longest]
        agents = {call.agent for call in meant or pending}
        if len(agents) > 1:
            what = "the same command" if meant else "tools"
            raise Conflict(
                f"{len(agents)} agents are running {what}, and which of them asks cannot be told",
                hint="let each of them run a command of its own",
            )
        return agents.pop() if agents else MAIN

    def is_from_stream(self, session: str) -> bool:
        """Whether the agents of a session say what they do on the stream."""
        return not session or session == self.session

    def end(self) -> None:
        """The run is over: what waited for a session gets one of its own, and the rest is committed."""
        if not self.session and self._waiting:
            self._begin(self._unnamed)
        elif self.session == self._unnamed:
            self._waiting.clear()  # no session was named, so the prompts are where they were kept
        for agent in self._trackers:
            self.checkpoint("session_end", agent)

    @property
    def has_kept_all(self) -> bool:
        """Whether everything that was recorded so far is in the store."""
        return not (self.problem or self._waiting or any(tracker.pending for tracker in self._all))

    def _begin(self, session: str) -> None:
        self.session = session
        self._trackers, self._unopened = {}, {MAIN}
        self._unsettled.clear()
        self._calls.clear()
        waiting, self._waiting = self._waiting, []
        with self.never_raising():
            tracker = self._open(Opening(session=session))
            self._unopened.clear()
            self._all.append(tracker)
            self.sessions.append(session)
            self._trackers[MAIN] = tracker
            tracker.feed(waiting, more=True)

    def _sub_agent(self, agent: str, call: str, events: Sequence[Event]) -> None:
        # The call that is being worked on is not a tool that could ask anything.
        self._calls.pop(call, None)
        if not self._unopened.isdisjoint((MAIN, agent)):
            return
        if agent not in self._trackers and events:
            if len(self._trackers) >= MAX_AGENTS:
                return
            # The parent's words are committed first: the new chain names the commit it branches off from.
            place = self.checkpoint("tool_call")
            opening = Opening(session=self.session, agent=agent, call_id=call, context_id=place)
            self._unopened.add(agent)
            self._trackers[agent] = self._open(opening)
            self._unopened.remove(agent)
            self._all.append(self._trackers[agent])
            told = self._told.pop(call, "")
            if told and not any(isinstance(event, Prompt) for event in events):
                self._trackers[agent].feed([Prompt(content=told, source="initial", time=events[0].time)])
        self.add(events, agent)

    @contextlib.contextmanager
    def never_raising(self) -> Iterator[None]:
        """Whatever goes wrong inside is noted and told once, and the recording goes on."""
        try:
            yield
        except Exception as problem:  # noqa: BLE001 (a run is worth more than its record)
            if self.problem is None:
                self.problem = problem
                with contextlib.suppress(Exception):  # nobody may be there to be told
                    self._warn(f"this run is no longer recorded in full: {problem}")


def _last_said(events: Sequence[Event]) -> Event | None:
    """The last event that is part of the conversation; figures stand behind what they belong to."""
    return next((event for event in reversed(events) if not isinstance(event, Metric)), None)


def trusted(owner: LineOwner) -> LineOwner:
    """The owner as far as its names can be used as names; what a runtime prints may come from a transcript."""
    call = owner.call if is_safe_name(owner.call) else ""
    agent = owner.agent if is_safe_name(owner.agent) else call
    session = owner.session if is_safe_name(owner.session) else ""
    return LineOwner(session=session, agent=agent, call=call)
