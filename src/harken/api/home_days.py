"""What happened in the sessions of one day: how long each was at work, which files it changed, what is worth a look.

What is found in a session is kept as long as the session stands where it stood, so that looking again costs nothing.
It comes from the index, all but what hooks did: that only all of the session can tell (`home_hooks.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import NamedTuple

from harken import clock
from harken.analytics import lanes as drawing
from harken.analytics.worth import TriedCall, failed_runs
from harken.context import project_of
from harken.errors import HarkenError
from harken.events.tool_kinds import COMMAND, tool_kind
from harken.index import IndexProgress, StoreIndex
from harken.index.moments import Folding, days_of, foldings, lane_steps, moments, told_places, uncounted
from harken.index.spending import DAY
from harken.repo import Repo
from harken.store import SessionRow

from .following import families_of, member, stands
from .home_hooks import LookingForHooks, Noticed
from .remembering import remembered

LOOKED_INTO = 500
"""Sessions of a day that are looked into, the last active first."""
KEPT = 1000
"""Sessions of which it is kept what was found."""
LARGE = 50_000
"""Tokens that a compaction drops at least to be worth a look."""
_TOUCHED = """
SELECT coalesce(m.agent, ''), c.time, t.path
FROM calls c JOIN touched t ON t.message = c.message JOIN messages m ON m.n = c.message
WHERE c.session = ? AND c.time IS NOT NULL AND coalesce(c.failed, 0) = 0 AND t.op != 'read'
"""
_COMMIT = 'SELECT lower(hex(c."commit")) FROM messages m JOIN commits c ON c.n = m."commit" WHERE m.n = ?'


class DayWindow(NamedTuple):
    """A day of some zone."""

    day: int
    """Counted from 1970."""
    ahead: int
    """How far the zone is ahead of UTC, in microseconds."""

    @property
    def since(self) -> int:
        """Its first instant."""
        return self.day * DAY - self.ahead

    @property
    def until(self) -> int:
        """The first instant behind it."""
        return self.since + DAY

    @property
    def name(self) -> str:
        """As 2026-01-31."""
        return clock.format_instant(self.day * DAY)[:10] if clock.in_calendar(self.day * DAY) else ""

    def holds(self, time: int | None) -> bool:
        """Whether an instant is in it."""
        return time is not None and self.since <= time < self.until


class LookedDay(NamedTuple):
    """A session on the day."""

    row: SessionRow
    agents: int
    start: int
    end: int
    worked: int
    """Microseconds at work."""
    prompts: int
    files: set[str]
    folded: list[int | None]
    """How many messages each compaction folded."""
    changed: int
    worth: list[Noticed]


class _Looked(NamedTuple):
    """What was found in one session, on all days."""

    times: list[int]
    worked: list[tuple[int, int]]
    calls: list[TriedCall]
    prompts: list[int]
    files: list[tuple[int, str]]
    foldings: list[tuple[Folding, int | None]]
    """Each with how many messages it folded."""
    size: int
    """What was said, thought and called."""


def active_days(
    repo: Repo, rows: Sequence[SessionRow], first: DayWindow, last: DayWindow, reached: IndexProgress
) -> dict[int, set[str]]:
    """For each day from the first to the last, counted from 1970, the sessions in which something happened; a sub-agent
    counts with its session. What a day and what a week have had are both told by this."""
    key = (repo.chains.version, reached.at, reached.opened, first, last)
    return remembered(repo, "active days", key, lambda: _active_days(repo, rows, first, last), most=4)


def _active_days(repo: Repo, rows: Sequence[SessionRow], first: DayWindow, last: DayWindow) -> dict[int, set[str]]:
    families = families_of(rows)
    found: dict[int, set[str]] = {day: set() for day in range(first.day, last.day + 1)}
    names = {member(row).told_under for row in rows if _may_be_between(row, first, last)}
    for session, agent, day in days_of(repo.index, sorted(names), first.since, last.until):
        top = families.top(session, agent)
        if top:
            found[first.day + day].add(top)
    return found


def _families(rows: Sequence[SessionRow], active: Collection[str]) -> dict[str, list[SessionRow]]:
    """Of sessions at the top each with its sub-agents; itself first."""
    by_name = {row.session: row for row in rows}
    found = {session: [by_name[session]] for session in active}
    for session, top in families_of(rows).tops.items():
        if top in found and session != top:
            found[top].append(by_name[session])
    return found


def look_into(
    repo: Repo, rows: Sequence[SessionRow], active: Collection[str], window: DayWindow, reached: IndexProgress
) -> tuple[list[LookedDay], int]:
    """The sessions that were active on a day, and of how many of them not everything is known yet. `reached` is how far
    the index came after the rows were read."""
    found = sorted(
        _families(rows, active).values(),
        key=lambda family: max(row.ended or row.started or 0 for row in family),
        reverse=True,
    )
    stale = uncounted(repo.index)
    days: list[LookedDay] = []
    with LookingForHooks(repo) as hooks:
        for family in found[:LOOKED_INTO]:
            row = family[0]
            # Where the index lacks something of the rows, or of numbers, that is kept until it has it.
            place = reached.at if reached.behind else -1
            key = (row.session, stands(family), place, any(one.session in stale for one in family))
            looked = remembered(
                repo, "looked into", key, partial(_look, repo, family), most=KEPT, opened=reached.opened
            )
            day = _day(row, family, window, looked, hooks)
            days += [] if day is None else [day]
    return days, hooks.late


def _may_be_between(row: SessionRow, first: DayWindow, last: DayWindow) -> bool:
    start, end = row.started if row.started is not None else row.ended, row.ended
    return start is not None and start < last.until and (end is None or end >= first.since)


def _day(
    row: SessionRow, family: Sequence[SessionRow], window: DayWindow, looked: _Looked, hooks: LookingForHooks
) -> LookedDay | None:
    times = [time for time in looked.times if window.holds(time)]
    if not times:
        return None
    folded = [one for one in looked.foldings if window.holds(one[0].time)]
    changed = [one for one in hooks.did(row, family, looked.size) if window.holds(one.time)]
    tried = failed_runs(call for call in looked.calls if window.holds(call.time))
    worth = [*changed, *(_failed(row, run.times, run.last) for run in tried), *_dropped(row, folded)]
    spans = drawing.clipped(looked.worked, window.since, window.until)
    return LookedDay(
        row=row,
        agents=len(family) - 1,
        start=min(times),
        end=max(times),
        worked=sum(end - start for start, end in spans),
        prompts=sum(map(window.holds, looked.prompts)),
        files={path for time, path in looked.files if window.holds(time)},
        folded=[count for _, count in folded],
        changed=len(changed),
        worth=worth,
    )


def _look(repo: Repo, family: Sequence[SessionRow]) -> _Looked:
    index = repo.index
    places = told_places(index, list(map(member, family)))
    happened = moments(index, places, copied=False)
    folded = foldings(index, places)
    lanes = [drawing.lane(steps) for steps in lane_steps(happened, folded).values()]
    return _Looked(
        times=[moment.time for moment in happened if moment.time is not None],
        worked=drawing.busy(lanes),
        calls=[
            TriedCall(one.agent, one.tool, one.what, one.time, bool(one.failed), one.record, one.event)
            for one in happened
            if one.role == "call"
        ],
        prompts=[one.time for one in happened if one.role == "human" and one.time is not None],
        files=[
            (time, path)
            for place in places
            for agent, time, path in index.query(_TOUCHED, (place.number,))
            if place.holds(agent)
        ],
        foldings=[(one, _folded(repo, index, one)) for one in folded],
        size=len(happened),
    )


def _folded(repo: Repo, index: StoreIndex, folding: Folding) -> int | None:
    """How many messages a compaction folded, as the rows of commits tell it."""
    found = index.query(_COMMIT, (folding.n,))
    if not found:
        return None
    try:
        return repo.chains.folded_messages(repo.commit(found[0][0]).parent)
    except HarkenError:
        return None


# -- what is worth a look ----------------------------------------------------------------------------------------------


def _failed(row: SessionRow, times: int, last: TriedCall) -> Noticed:
    """A command says what it is; of other tools the tool does, and a path stands as from the folder worked in."""
    told = last.what.removeprefix(f"{project_of(row)}/") if project_of(row) else last.what
    text = told if tool_kind(last.tool) == COMMAND else f"{last.tool}: {told}"
    return Noticed("failed", f"{text} failed {times} times in a row", last.tool, row, last.record, last.time)


def _dropped(row: SessionRow, folded: Sequence[tuple[Folding, int | None]]) -> list[Noticed]:
    """The compaction that dropped most, if that was much."""
    large = [one for one in folded if (one[0].before or 0) - (one[0].after or 0) >= LARGE]
    if not large:
        return []
    folding, messages = max(large, key=lambda one: (one[0].before or 0) - (one[0].after or 0))
    count = f"{messages:,} messages" if messages else "a conversation"
    after = f" to {folding.after:,}" if folding.after is not None else ""
    detail = f"{folding.before:,}{after} tokens"
    return [Noticed("compaction", f"A compaction folded {count} away", detail, row, folding.record, folding.time)]
