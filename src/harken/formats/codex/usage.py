"""Tokens: Codex writes running totals, which must never be added up.

A total becomes a step: the difference to the total before it, under a key made of the thread's family and of the total
itself. Adding steps with different keys gives the last total again; a total that is repeated, or copied into a fork,
has the same key and counts once. A file that only points at another one copies nothing: its totals go on from that
file's, and its keys are its own, so that two which used as much stay two. A total that falls is the first of
another run (before 0.50 every resume counted from zero); the runs are added up, and each has keys of its own.

Newer versions tell of a request twice: at once in a `token_usage_record`, which has the thread that made the request,
the provider's id of the answer and the total behind it; later, and not at all where the program was killed, in a
`token_count` with that same total. The first is the request, and a total that a record told is no step any more.
"""

from __future__ import annotations

from harken.events import Tokens
from harken.events.base import figure
from harken.formats.kit.jsonl import Record
from harken.formats.kit.openai import text_of

Key = tuple[str, str]
"""The family (`codex:` and the thread everything in the file descends from), and the total."""
Totals = tuple[int | None, int | None, int | None, int | None]
"""Input, output, cached input, input written to the cache: the first includes the last two. None where nobody told."""
ZERO: Totals = (0, 0, 0, 0)
_THREADS = 64
"""How many threads one file may name before we stop taking notes."""
_TOLD = 16
"""How many totals of records may wait for their `token_count`."""
_FIELDS = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens")


def totals_of(payload: Record, name: str = "total_token_usage") -> Totals | None:
    """The running total of a `token_count` event; None where it only speaks of limits."""
    info = payload.get("info")
    return _figures(info.get(name) if isinstance(info, dict) else None)


def _figures(total: object) -> Totals | None:
    if not isinstance(total, dict):
        return None
    given, output, read, written = (figure(total.get(field)) for field in _FIELDS)
    return given, output, read, written


def tokens_of(totals: Totals) -> Tokens:
    """The figures as Harken counts them: input without what came from the cache or went into it."""
    given, output, read, written = totals
    fresh = None if given is None else max(given - (read or 0) - (written or 0), 0)
    return Tokens(input=fresh, output=output, cache_read=read, cache_write=written)


def reasoning_of(payload: Record, tokens: Tokens) -> int | None:
    """How much of a request's output was reasoning; None where nobody says it of just this request."""
    info = payload.get("info")
    last = info.get("last_token_usage") if isinstance(info, dict) else payload.get("usage")
    if not isinstance(last, dict) or figure(last.get("output_tokens")) != tokens.output:
        return None
    return figure(last.get("reasoning_output_tokens"))


class Meter:
    """Turns running totals into steps."""

    def __init__(
        self,
        last: Totals = ZERO,
        parents: dict[str, str] | None = None,
        thread: str = "",
        base: int | None = None,
        restarts: int = 0,
        told: list[Totals] | None = None,
        begun: str = "",
    ) -> None:
        self.last = last
        self.told = list(told or ())
        """The totals of records whose `token_count` may still come."""
        self.base = base
        """How many bytes of another file this one goes on from without repeating them."""
        self.begun = begun
        """When the file says that it began."""
        self.parents = dict(parents or {})
        """The threads the file has named so far, and which each was forked from."""
        self.thread = thread
        """The first one: the file's own."""
        self.restarts = restarts
        """How often a total fell."""
        self._family = ""

    def meet(self, meta: Record) -> None:
        """Take note of a `session_meta`; a fork repeats those of the threads it comes from."""
        thread = text_of(meta.get("id"))
        if not self.thread:
            self.thread, self.base, self.begun = thread, base_offset(meta), text_of(meta.get("timestamp"))
        if len(self.parents) < _THREADS:
            self.parents.setdefault(thread, text_of(meta.get("forked_from_id")))
        self._family = ""

    @property
    def family(self) -> str:
        """The thread that everything in the file descends from: forks of one thread share its totals."""
        if not self._family:
            self._family = self._oldest()
        return self._family

    def _oldest(self) -> str:
        if self.base is not None:
            # A thread may go back to one point twice, and do as much again.
            return f"codex:{self.thread}@{self.base}@{self.begun}"
        thread, seen = self.thread, set[str]()
        while thread not in seen and (parent := self.parents.get(thread)):
            seen.add(thread)
            thread = parent
        return f"codex:{thread}"

    def step(self, payload: Record) -> tuple[Key, Tokens] | None:
        """What was used since the last total; None where the event says nothing of it."""
        if payload.get("type") != "token_count" or (total := totals_of(payload)) is None or total == self.last:
            return None
        if total in self.told:
            return None
        before = self._base(payload, total) if self.last == ZERO and self._continues else self.last
        self.last = total
        if any((now or 0) < (then or 0) for now, then in zip(total, before, strict=True)):
            self.restarts += 1
            before = ZERO
        if not any(total):
            return None
        key = "-".join(str(number or 0) for number in (*total, *([self.restarts] if self.restarts else [])))
        return (self.family, key), tokens_of(_difference(total, before))

    def record(self, payload: Record) -> tuple[Key, Tokens] | None:
        """The request that a `token_usage_record` tells of; None where a total has told it already, or will."""
        used, total = _figures(payload.get("usage")), _figures(payload.get("thread_token_usage"))
        response = text_of(payload.get("response_id"))
        if used is None or total is None or not response or total == self.last:
            return None
        self.last = total
        self.told = [*self.told, total][-_TOLD:]
        thread = text_of(payload.get("thread_id"))
        return (f"codex:{thread}" if thread else self.family, response), tokens_of(used)

    @property
    def _continues(self) -> bool:
        """Whether the first total may include what was used before: by the file this one goes on from, by what a
        compaction left out of a copy, or by the deltas before one that is read alone and names no thread."""
        return not self.thread or self.base is not None or bool(self.parents.get(self.thread))

    def _base(self, payload: Record, total: Totals) -> Totals:
        """The total before the file's first request."""
        return _difference(total, totals_of(payload, "last_token_usage") or total)


def _difference(now: Totals, then: Totals) -> Totals:
    """How much was added; what is unknown now stays so."""
    given, output, read, written = (
        None if one is None else max(one - (other or 0), 0) for one, other in zip(now, then, strict=True)
    )
    return given, output, read, written


def base_offset(meta: Record) -> int | None:
    """How many bytes of another thread's file come before this one's, where the file says so."""
    base = meta.get("history_base")
    end = base.get("end_byte_offset") if isinstance(base, dict) else None
    return end if isinstance(end, int) and end >= 0 else None
