"""Where a file of lines is cut into deltas: what the rules of the runtimes have in common.

Cuts fall at newlines, and whether one falls before a line depends on that line and on those since the last cut, on
nothing else. So the place of the last cut is all that has to be remembered of a file that will grow.

A runtime's rule is a `LineCutter` that says when it cuts (`_cuts`), what a line does to the open delta (`add`) and
how far the delta had come (`_checkpoint`). The rules are frozen: what is written here is part of each of them.
"""

from __future__ import annotations

from harken.clock import parse_instant
from harken.formats.base import Delta

from .jsonl import Record

LEAST = 8 * 1024
"""A new request of the model begins a new delta only when the open one has this much."""
CAP = 256 * 1024
"""A delta that has this much is cut where nothing waits; a call that has waited so long is waited for no longer."""


class LineCutter:
    """A rule as a machine: ask `before`, then `add` the line, then ask `after` where it ends its delta."""

    __slots__ = ("_answered", "_heard", "_last", "_open", "_records", "_said", "_times", "end", "start")

    def __init__(self, start: int = 0) -> None:
        self._begin(start)

    def _begin(self, start: int) -> None:
        """An empty delta is open."""
        self.start = self.end = start
        self._open: dict[str, int] = {}
        """The calls that wait for a result, and where each was made; the oldest first."""
        self._heard = self._said = self._answered = False
        self._last = ""
        """The last act that told something."""
        self._records = 0
        self._times: list[str] = []

    def before(self, start: int, act: str) -> Delta | None:
        """The delta that a whole record at `start` closes, if it begins a new one."""
        if start == self.start or not self._cuts(start, act):
            return None
        delta = self._delta(start)
        self._begin(start)
        return delta

    def _cuts(self, start: int, act: str) -> bool:
        """Whether the open delta ends before a record that does this."""
        raise NotImplementedError

    def _checkpoint(self) -> str:
        """Why the open delta would end where it stands."""
        raise NotImplementedError

    def _waits(self, start: int) -> bool:
        """Whether a call is open; one that nobody answered for 256 KiB is not waited for any longer."""
        while self._open and start - (oldest := next(iter(self._open.items())))[1] >= CAP:
            del self._open[oldest[0]]
        return bool(self._open)

    def _call(self, name: str, start: int) -> None:
        """A call is made; one of the same name begins to wait anew."""
        self._open.pop(name, None)
        self._open[name] = start

    def _take(self, end: int, record: Record) -> None:
        """A record is in the open delta."""
        self.end = end
        self._records += 1
        if isinstance(stamp := record.get("timestamp"), str):
            self._times.append(stamp)

    def unread(self, end: int) -> None:
        """Take what is not a record into the open delta."""
        self.end = end
        self._records += 1

    def skip(self, end: int) -> None:
        """Take an empty line into the open delta."""
        self.end = end

    def after(self, start: int, end: int) -> tuple[Delta, Delta]:
        """The delta that ends with a compaction, and the compaction that repeats its line."""
        delta = self._delta(end)
        repeat = Delta(
            start=start, end=end, commit_type="compaction", checkpoint="compaction", time=delta.time, records=1
        )
        self._begin(end)
        return delta, repeat

    def tail(self) -> Delta | None:
        """What follows the last cut."""
        return self._delta(self.end, closed=False) if self.end > self.start else None

    def _delta(self, end: int, *, closed: bool = True) -> Delta:
        # Only the delta's own lines decide, so that a tail that is later closed as it stands is the same commit.
        time = next((at for stamp in reversed(self._times) if (at := parse_instant(stamp)) is not None), None)
        return Delta(
            start=self.start,
            end=end,
            checkpoint=self._checkpoint(),
            time=time,
            closed=closed,
            records=self._records,
        )
