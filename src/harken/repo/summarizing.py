"""A line about each commit that has none, so that `log` reads as a history.

Each line is kept as soon as it is there: whoever stops loses nothing, and the next time goes on with the rest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from harken import clock as clocks
from harken import context
from harken.context import Ref
from harken.context.chains import is_superseded
from harken.context.describe import read_deltas
from harken.context.sentences import one_line, sentence, sentence_request
from harken.context.summary import WRITTEN, written
from harken.errors import BadRequest, Corrupt, HarkenError, ModelFailed
from harken.events import Event
from harken.store import Annotation, Commit, Store

from .masking import Masks

if TYPE_CHECKING:
    from harken.secrets import Rule

EXTRACTED = "harken summarize"
"""Who says what was put together without a model."""
PORTION = 100
"""Commits that are read, and without a model written, at a time."""
FAILURES = 3
"""After so many in a row a model is not asked any more."""
LONGEST = 30.0
"""Seconds after which a watch goes on though there is no quiet."""
QUIET = 2.0
"""Seconds without a change after which a watch goes on: a session that is being written has a new end all the time."""


class Summarized(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that was looked at."""

    commit: Commit
    summary: str = ""
    """The line that it got; empty where it got none."""
    problem: str = ""
    """Why not."""


class Summarizing:
    """A store whose commits get a line each."""

    store: Store
    clock: clocks.Clock

    def summarize(
        self,
        refs: Iterable[Ref] = (),
        *,
        model: str = "",
        per_minute: int | None = None,
        limit: int | None = None,
        own_rules: Sequence[Rule] = (),
        watch: bool = False,
        stop: threading.Event | None = None,
        on_total: Callable[[int], None] | None = None,
    ) -> Iterator[Summarized]:
        """Write a line about each commit that lacks one, the newest first: behind the REFs, or of the whole store.

        Without a model it is put together from the commit's own words. A model is asked so often a minute at most, and
        never sees a secret; lines that were put together it writes anew. With `watch` this goes on as commits come,
        until `stop` is set. `on_total` is told how many there are."""
        if per_minute is not None and per_minute < 1:
            raise BadRequest("a model is asked at least once a minute", hint="leave `per_minute` out to ask at once")
        if limit is not None and limit < 0:
            raise BadRequest("a limit cannot be negative", hint="leave it out to do all")
        tips = [context.get_commit(self.store, ref) for ref in refs]
        work = _Work(self, model, per_minute, own_rules, threading.Event() if stop is None else stop)
        if watch:
            return islice(work.watch(tips, on_total), limit)
        damage: list[Corrupt] = []
        return _told_behind(work.run(_candidates(self.store, tips, damage), on_total, limit), damage)


def _told_behind(made: Iterator[Summarized], damage: Sequence[Corrupt]) -> Iterator[Summarized]:
    """What was made, and then what could not be looked at."""
    yield from made
    if damage:
        raise damage[0]


def _candidates(store: Store, tips: Sequence[Commit], damage: list[Corrupt]) -> list[Commit]:
    """The commits behind the tips, each once, or all that can be read; the newest first."""
    if not tips:
        from .candidates import readable_commits  # most commands do without the rules that it brings along

        return readable_commits(store, damage)[::-1]
    return list({commit.id: commit for tip in tips for commit in context.lineage(store, tip.id)}.values())


class Pace:
    """So many a minute at most: how long the next has to wait."""

    def __init__(self, per_minute: int | None) -> None:
        self._between = 60 / per_minute if per_minute else 0.0
        self._next = 0.0

    def delay(self, now: float) -> float:
        """Seconds until the next may begin; it is taken to begin then."""
        begin = max(now, self._next)
        self._next = begin + self._between
        return begin - now


class _Work:
    """One run over commits, or one after the other."""

    def __init__(
        self, repo: Summarizing, model: str, per_minute: int | None, own_rules: Sequence[Rule], stop: threading.Event
    ) -> None:
        from harken.agents.models import open_model

        self._store, self._now, self._stop = repo.store, repo.clock, stop
        self._model = open_model(model) if model else None
        self._who = model or EXTRACTED
        self._pace = Pace(per_minute)
        self._own_rules = own_rules
        self._failures = 0
        self._asked = 0

    def watch(self, tips: Sequence[Commit], on_total: Callable[[int], None] | None) -> Iterator[Summarized]:
        """Every commit that lacks a line, and then those that come."""
        seen = self._store.last_change()
        yield from self.run(_candidates(self._store, tips, []), on_total)
        while not self._stop.is_set():
            if not self._store.wait(seen, 0.5):
                continue
            self._wait_for_quiet()
            last = self._store.last_change()
            made, seen = self._made_since(seen), last
            among = {commit.id for commit in _candidates(self._store, tips, [])} if tips else None
            yield from self.run([commit for commit in made if among is None or commit.id in among], on_total)

    def _wait_for_quiet(self) -> None:
        latest = clocks.monotonic() + LONGEST
        while not self._stop.is_set() and clocks.monotonic() < latest:
            if not self._store.wait(self._store.last_change(), QUIET):
                return

    def _made_since(self, number: int) -> list[Commit]:
        found: list[str] = []
        while changes := self._store.since(number):
            found += [change.subject for change in changes if change.kind == "commit" and change.subject]
            number = changes[-1].number
        return self._store.get_commits(list(dict.fromkeys(reversed(found))))

    def run(
        self, commits: Sequence[Commit], on_total: Callable[[int], None] | None, limit: int | None = None
    ) -> Iterator[Summarized]:
        """The commits that lack a line, one after the other."""
        lacking = [commit for portion in _portions(commits) for commit in self._lacking(portion)][:limit]
        if on_total is not None:
            on_total(len(lacking))
        # A model takes its time: whoever stops then has not read more than was asked.
        for portion in _portions(lacking, 1 if self._model else PORTION):
            if self._stop.is_set():
                return
            made = [self._made(commit, folder, events) for commit, folder, events in read_deltas(self._store, portion)]
            self._keep(made)
            yield from (one for one in made if one.summary or one.problem)
            if self._failures >= FAILURES:
                raise ModelFailed(
                    f"{self._who} failed {FAILURES} times in a row: {made[-1].problem}",
                    hint="what was written is kept; the same command goes on with the rest",
                )

    def _lacking(self, commits: Sequence[Commit]) -> list[Commit]:
        notes = self._store.annotations_of([commit.id for commit in commits])
        return [commit for commit in commits if self._lacks(notes[commit.id])]

    def _lacks(self, notes: Sequence[Annotation]) -> bool:
        """Whether a commit with these annotations is to get a line. One that gave way to another gets none."""
        if is_superseded(notes):
            return False
        newest = written(notes)
        return newest is None or (self._model is not None and newest.who == EXTRACTED)

    def _made(self, commit: Commit, folder: str, events: list[Event] | HarkenError) -> Summarized:
        if isinstance(events, HarkenError):
            return Summarized(commit=commit, problem=str(events))
        masks = Masks(self._own_rules, reveal=False, for_people=True)
        shown = [masks.event(event) for event in events]
        if self._model is None:
            return Summarized(commit=commit, summary=masks.text(sentence(shown, folder)))
        self._stop.wait(self._pace.delay(clocks.monotonic()))
        if self._stop.is_set():
            return Summarized(commit=commit)
        from harken.agents.models.ask import ask

        try:
            question = sentence_request(shown)
            answer = ask(self._model, question, purpose="summarize", turn=self._asked, wait=self._stop.wait)
        except ModelFailed as problem:
            self._failures += 1
            return Summarized(commit=commit, problem=str(problem))
        finally:
            self._asked += 1
        self._failures = 0
        return Summarized(commit=commit, summary=masks.text(one_line(answer.strip()).strip("\"“”' ")))

    def _keep(self, made: Sequence[Summarized]) -> None:
        """Write the lines down, unless somebody else was faster."""
        told = [one for one in made if one.summary]
        if not told:
            return
        with self._store.write() as writer:
            notes = self._store.annotations_of([one.commit.id for one in told])
            for one in told:
                if self._lacks(notes[one.commit.id]):
                    writer.annotate(one.commit.id, WRITTEN, one.summary, time=self._now(), who=self._who)


def _portions(commits: Sequence[Commit], size: int = PORTION) -> Iterator[Sequence[Commit]]:
    return (commits[start : start + size] for start in range(0, len(commits), size))
