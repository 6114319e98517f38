"""What principals have done: commits, messages, tokens and what their sessions cost, each once.

The commits are read once and then followed by the store's feed, so that whoever asks again waits for nothing. What
sessions cost is the index's to say.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import msgspec

from harken import ids
from harken.context.chains import SUPERSEDED_BY, is_superseded, readable_sessions
from harken.errors import HarkenError
from harken.store import Commit, Store

if TYPE_CHECKING:
    from harken.index import IndexProgress

    from .principals import TrackedSession
    from .repo import Repo

STEP = 1000
"""Changes that are read at a time."""


class PrincipalFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What was done in some sessions."""

    sessions: int = 0
    """How many; a sub-agent's counts with the session that spawned it."""
    commits: int = 0
    messages: int = 0
    tokens: int = 0
    """Tokens of what the commits added, as far as they were counted."""
    approximate: bool = False
    """Whether some of the tokens are an estimate."""
    price_usd_micros: int | None = None
    """What the sessions cost at list price; None where no price is known."""
    unpriced: tuple[str, ...] = ()
    """Models whose price nobody knows."""
    cost_usd_micros: int | None = None
    """What runtimes said that they cost; None where nobody did."""


class PrincipalMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """A principal's figures."""

    principal: str
    """Empty for everybody."""
    running: tuple[str, ...] = ()
    """The sessions that began and are not over, the newest first."""
    live: PrincipalFigures
    """In these."""
    total: PrincipalFigures
    """In all, with commits of no session."""
    reached: IndexProgress
    """How far the index had come, which tells the costs."""


class CommitSums:
    """The commits of a principal in a session."""

    def __init__(self) -> None:
        self.commits = self.messages = self.tokens = 0
        self.approximate = False

    def add(self, commit: Commit, times: int = 1) -> None:
        self.commits += times
        if commit.commit_type == "delta":  # the others say again what was said
            self.messages += times * (commit.message_count or 0)
            self.tokens += times * (commit.token_count or 0)
            self.approximate = self.approximate or commit.approximate


class PrincipalCounts:
    """The sums of all principals, as far as the feed was followed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._epoch, self._at = "", 0
        self._sums: dict[str, dict[str, CommitSums]] = {}
        self._gone: set[str] = set()
        """Tails that a grown file has superseded: what they say, the new ones say again."""

    def follow(self, store: Store) -> None:
        """Read what came since the last time; everything, the first time."""
        with self._lock:
            if store.epoch != self._epoch:
                self._epoch, self._at, self._sums, self._gone = store.epoch, 0, {}, set()
            while changes := store.since(self._at, STEP):
                for commit in _read(store, [one.subject for one in changes if one.kind == "commit" and one.subject]):
                    self._add(commit)
                told = {one.subject for one in changes if one.kind == "annotation" and one.detail == SUPERSEDED_BY}
                self._look_again(store, sorted(told))
                self._at = changes[-1].number

    def of(self, principal: str) -> dict[str, list[CommitSums]]:
        """The sums of a principal, or of everybody, by session."""
        found: dict[str, list[CommitSums]] = {}
        with self._lock:
            for name, sums in self._sums.items():
                if name and principal in ("", name):
                    for session, one in sums.items():
                        if one.commits:
                            found.setdefault(session, []).append(one)
        return found

    def _add(self, commit: Commit, times: int = 1) -> None:
        self._sums.setdefault(commit.principal, {}).setdefault(commit.session_id, CommitSums()).add(commit, times)

    def _look_again(self, store: Store, names: list[str]) -> None:
        """Count out what has given way to something newer, and in again what came back."""
        notes = store.annotations_of(names) if names else {}
        gone = {name for name in names if is_superseded(notes.get(name, ()))}
        for commit in _read(store, [name for name in names if (name in gone) != (name in self._gone)]):
            self._add(commit, -1 if commit.id in gone else 1)
        self._gone = (self._gone - set(names)) | gone


def _read(store: Store, names: list[str]) -> list[Commit]:
    try:
        return store.get_commits(names) if names else []
    except HarkenError:  # one of them is gone or damaged: the others count
        return [commit for name in names for commit in _read_one(store, name)]


def _read_one(store: Store, name: str) -> list[Commit]:
    try:
        return [store.get_commit(name)]
    except HarkenError:
        return []


def metrics_of(repo: Repo, principal: str, prices: str = "") -> PrincipalMetrics:
    """The figures of a principal, or of everybody, at these prices."""
    from harken.index.spending import price_together

    counts: PrincipalCounts = repo.__dict__.setdefault("principal_counts", PrincipalCounts())
    counts.follow(repo.store)
    running = repo.running_sessions(principal)
    sums = counts.of(principal)
    reached: list[IndexProgress] = []
    costs = repo.session_costs(prices=prices, reached=reached.append)
    tops = ids.tops(_bare(sums, running) | {row.session: row.parent for row in readable_sessions(repo.store)})

    def figures(sessions: Collection[str]) -> PrincipalFigures:
        told = [one for session in sessions for one in sums.get(session, ())]
        own = {tops[session] for session in sessions if session}
        spent = [costs[session] for session in sorted(own) if session in costs]
        said = [one.cost_usd_micros for one in spent if one.cost_usd_micros is not None]
        return PrincipalFigures(
            sessions=len(own),
            commits=sum(one.commits for one in told),
            messages=sum(one.messages for one in told),
            tokens=sum(one.tokens for one in told),
            approximate=any(one.approximate for one in told),
            price_usd_micros=price_together(spent),
            unpriced=tuple(sorted({model for one in spent for model in one.unpriced})),
            cost_usd_micros=sum(said) if said else None,
        )

    names = {one.session for one in running}
    live = {session for session in sums if session and tops[session] in names} | names
    return PrincipalMetrics(
        principal=principal,
        running=tuple(one.session for one in running),
        live=figures(live),
        total=figures({*sums, *names}),
        reached=reached[0],
    )


def _bare(sums: Iterable[str], running: Iterable[TrackedSession]) -> dict[str, str]:
    """Sessions that may have no row: each stands for itself."""
    return dict.fromkeys([*filter(None, sums), *(one.session for one in running)], "")
