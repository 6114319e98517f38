"""What hooks changed and blocked in the sessions of a day.

Who said what to whom is known when all of a session has been read, so it is read where the index says that a hook may
have done something, and once for where it stands. A session that has grown is read again by one who asks at a time, for
a while; to the others, and of what is left, it is told as it was known, and that it is.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, Self

from harken import clock
from harken.errors import HarkenError
from harken.events.base import clean, excerpt
from harken.index.moments import may_be_hooked
from harken.repo import Repo
from harken.store import SessionRow

from .following import stands
from .remembering import remembered

KEPT = 1000
"""Sessions of which it is kept what was found."""
VIEWED = 20_000
"""Messages of a session log whose deliveries are looked through."""
SECONDS = 0.25
"""How long one who asks reads grown sessions again."""
LONG, PAUSE = 0.05, 3
"""Where that took so many seconds, nobody reads any for so many times as long."""


class Noticed(NamedTuple):
    """Something that is worth a look."""

    kind: str
    text: str
    detail: str
    row: SessionRow
    record: str
    time: int | None


class HookedSessions:
    """What is known of the sessions of a repository."""

    def __init__(self) -> None:
        self.known: OrderedDict[str, tuple[tuple[str, ...], list[Noticed]]] = OrderedDict()
        """Where each stood when it was read, and what was found."""
        self.lock = threading.Lock()
        """Of what is known."""
        self.turn = threading.Lock()
        """Held by who reads grown sessions again."""
        self.pause = 0.0
        """Until when nobody does."""

    def keep(self, session: str, at: tuple[str, ...], found: list[Noticed]) -> list[Noticed]:
        """Remember what was found."""
        with self.lock:
            self.known[session] = at, found
            self.known.move_to_end(session)
            while len(self.known) > KEPT:
                self.known.popitem(last=False)
        return found


class LookingForHooks:
    """What is asked of it for one answer."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._sessions = remembered(repo, "hooked sessions", "", HookedSessions)
        self._began: float | None = None
        self.late = 0
        """Of how many sessions what was told is what was known before."""

    def did(self, row: SessionRow, family: Sequence[SessionRow], size: int) -> list[Noticed]:
        """What hooks changed and blocked in a session; `size` is how many messages it has."""
        at = stands(family)
        with self._sessions.lock:
            before = self._sessions.known.get(row.session)
        if before is not None and before[0] == at:
            return before[1]
        if size > VIEWED or (len(family) == 1 and not self._may_be_hooked(row)):
            return self._sessions.keep(row.session, at, [])
        if before is None:
            made = remembered(self._repo, "hooked", (row.session, at), lambda: _read(self._repo, row), most=1)
            return self._sessions.keep(row.session, at, made)
        if not self._may_read():
            self.late += 1
            return before[1]
        return self._sessions.keep(row.session, at, _read(self._repo, row))

    def _may_be_hooked(self, row: SessionRow) -> bool:
        try:
            return self._repo.chains.tells_agents(row) and may_be_hooked(self._repo.index, row.stand)
        except HarkenError:  # it cannot be read; the other numbers are there all the same
            return False

    def _may_read(self) -> bool:
        """Whether there is time to read a grown session again."""
        now = clock.monotonic()
        if self._began is None and now >= self._sessions.pause and self._sessions.turn.acquire(blocking=False):
            self._began = now
        return self._began is not None and now < self._began + SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._began is not None:
            now = clock.monotonic()
            took = now - self._began
            self._sessions.pause = now + PAUSE * took if took > LONG else 0.0
            self._sessions.turn.release()


def _read(repo: Repo, row: SessionRow) -> list[Noticed]:
    """The deliveries that a hook changed or blocked, in a session whose records tell of its agents."""
    try:
        if not repo.chains.tells_agents(row):
            return []
        view = repo.view(row.session)
        told = view.interventions()
    except HarkenError:  # it cannot be read; the other numbers are there all the same
        return []
    found = []
    for one in told:
        name, speaker = view.index.name(one["agent_id"]), view.index.name(one["speaker"]) or "somebody outside"
        if one["kind"] == "changed":
            kind, text = "changed", f"{name} did not hear what {speaker} said"
        elif one["kind"] == "withheld":
            kind, text = "blocked", f"What {speaker} said was kept from others"
        else:
            kind, text = "blocked", f"A hook {'sent back' if one['kind'] == 'sent back' else 'blocked'} what {name} did"
        hook = f"hook {one['hook']}: " if one["hook"] else ""
        time = clock.parse_instant(one["time"]) if one["time"] else None
        found.append(Noticed(kind, text, hook + excerpt(clean(one["said"]), 100), row, one["message_id"], time))
    return found
