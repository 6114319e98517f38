"""The chains of a session with several agents: each keeps what that agent knew, linked to where it was created.

The root agent's chain goes by the session's id, every other by `SESSION/AGENT`. What nobody has in their transcript
(pieces of text on their way, agents coming and going) is in no chain; the log holds it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from harken.events import AgentCreated, AgentTerminated, Event, PieceOfText, Recovery, ToolCall
from harken.store.base import SessionRow

from . import refs, turns
from .tracker import Keeper, Tracker, Warn

RUNTIME = "harken"


class SessionTracker:
    """Feeds each agent's events to a tracker of its own."""

    def __init__(
        self,
        repo: Keeper,
        *,
        session_id: str,
        source: str = "",
        frequency: str = "turn",
        template: str = RUNTIME,
        principal: str = "",
        forked_from: Callable[[], str] = str,
        on_warning: Warn | None = None,
    ) -> None:
        """`forked_from` is asked, when the root agent's chain begins, for the commit that it goes on from, if any."""
        turns.frequency(frequency)
        self._repo = repo
        self.session = session_id
        self._source = source
        self._forked_from = forked_from
        self._principal = principal or f"{RUNTIME}:{session_id}"
        self._lock = threading.RLock()
        self._trackers: dict[str, Tracker] = {}
        self._created: dict[str, AgentCreated] = {}
        self._owner: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        self._root = ""
        self._backlog: deque[tuple[str, list[Event]]] = deque()
        self._warn: Warn = on_warning or (lambda _: None)
        self._make: Callable[..., Tracker] = lambda **facts: Tracker(
            repo, frequency=frequency, template=template, on_warning=on_warning, **facts
        )

    @property
    def root(self) -> str:
        """The agent whose chain goes by the session's id."""
        return self._root

    def agents(self) -> list[str]:
        """The agents that have a chain, in the order they came."""
        with self._lock:
            return list(self._trackers)

    def tracker(self, agent: str) -> Tracker:
        """The tracker of an agent, made if there is none yet."""
        with self._lock:
            if agent not in self._trackers:
                self._trackers[agent] = self._begin(agent)
            return self._trackers[agent]

    def observe(self, events: Iterable[Event]) -> None:
        """Take in what was logged. Where the store cannot even be asked, it waits for the next time."""
        with self._lock:
            for group in _by_agent(events):
                self._backlog.append(group)
                self._work()

    def _work(self) -> None:
        while self._backlog:
            try:
                self._feed(*self._backlog[0])
            except Exception as problem:  # noqa: BLE001  whatever is wrong with the store, the agent goes on
                self._warn(f"the store did not answer, and is asked again later: {problem}")
                return
            self._backlog.popleft()

    def checkpoint(self, reason: str = turns.EXPLICIT) -> None:
        """Keep what is pending, of every agent."""
        with self._lock:
            self._work()
            for tracker in self._trackers.values():
                tracker.checkpoint(reason)

    def close(self) -> None:
        """The session has ended."""
        self.checkpoint(turns.END)

    def _feed(self, agent: str, events: Sequence[Event]) -> None:
        heard: list[Event] = []
        for event in events:
            self._note(event)
            if isinstance(event, AgentTerminated):
                self.tracker(agent).feed(heard)
                self.tracker(agent).checkpoint(turns.END)
                heard = []
            elif agent and not isinstance(event, (AgentCreated, PieceOfText, Recovery)):
                heard.append(event)
        if heard:
            self.tracker(agent).feed(heard)

    def _note(self, event: Event) -> None:
        if isinstance(event, AgentCreated):
            self._created.setdefault(event.agent_id, event)
            if not self._root and event.role != "hook":
                self._root = event.agent_id
        if event.message_id:
            self._owner.setdefault(event.message_id, event.agent_id)
        if isinstance(event, ToolCall) and event.message_id:
            self._calls.setdefault(event.message_id, event.id)

    def _begin(self, agent: str) -> Tracker:
        if not self._root:
            self._root = agent
        created = self._created.get(agent)
        title = created.name if created else ""
        if agent == self._root:
            row = SessionRow(session=self.session, runtime=RUNTIME, agent=agent, title=title, source=self._source)
            return self._make(
                session_id=self.session, principal=self._principal, row=row, forked_from=self._forked_from()
            )
        name = f"{self.session}/{agent}"
        row = SessionRow(
            session=name, runtime=RUNTIME, parent=self.session, agent=agent, title=title, source=self._source
        )
        origin = self._origin(created)
        return self._make(session_id=name, principal=f"{self._principal}/{agent}", row=row, spawned_from=origin)

    def _origin(self, created: AgentCreated | None) -> dict[str, Any]:
        causes = created.causes() if created else ()
        maker = (created.parent if created else "") or next((self._owner[c] for c in causes if c in self._owner), "")
        session = self.session if maker in ("", self._root) else f"{self.session}/{maker}"
        origin: dict[str, Any] = {
            "session": session,
            "call_id": next((self._calls[c] for c in causes if c in self._calls), ""),
            "inherits": False,
        }
        if (above := self._trackers.get(maker)) is not None and (commit := self._place(above, causes)):
            origin["commit"] = commit
        return origin

    def _place(self, above: Tracker, causes: Sequence[str]) -> str:
        """Where in its maker's chain an agent was created: at the tip, unless the chain has gone on since."""
        if above.tip is None:
            return ""
        if not above.replaying:
            return above.tip.id
        found = (refs.message_commit(self._repo.store, above.tip.id, cause) for cause in causes)
        return next((link.id for link in found if link is not None), "")


def _by_agent(events: Iterable[Event]) -> Iterator[tuple[str, list[Event]]]:
    for agent, group in groupby(events, key=lambda event: event.agent_id):
        yield agent, list(group)
