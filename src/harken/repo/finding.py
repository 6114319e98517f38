"""The sentences of `Repo` about what can be found in the store, by its index."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harken import clock as clocks
from harken.errors import BadRequest, HarkenError
from harken.store import Store

if TYPE_CHECKING:
    from harken.index import IndexProgress, OnProgress, StoreIndex
    from harken.index.asking import SqlResult
    from harken.index.search import SearchResult
    from harken.index.views import IndexView
    from harken.secrets import Rule

    from .chains import Chains
    from .raw_records import RawRecords
    from .tables import TableExport
    from .transcripts import Transcripts

MOST_HITS = 1000
SEARCH_SECONDS, COUNT_SECONDS, LIST_SECONDS = 2.0, 20.0, 1.0
"""How long the index may catch up with its store before it is asked for words or rows, for all numbers, or for the
costs in a list; then the answer comes from what there is."""


class Indexed:
    """A store that is searched."""

    store: Store
    clock: clocks.Clock

    @cached_property
    def index(self) -> StoreIndex:
        """Words, rows and numbers of the store, in a file beside it; opened when it is first asked for."""
        from harken.index import StoreIndex  # most commands do without it

        return StoreIndex.open(self.store)

    @cached_property
    def chains(self) -> Chains:
        """What can be asked of chains and sessions beside the commits themselves."""
        from .chains import Chains

        return Chains(self.store)

    @cached_property
    def transcripts(self) -> Transcripts:
        """What the sessions of the store say, row by row; it remembers where the rows are."""
        from .transcripts import Transcripts

        return Transcripts(self.store, lambda: self.index)

    @cached_property
    def raw_records(self) -> RawRecords:
        """What the sessions of the store are made of, byte by byte."""
        from .raw_records import RawRecords

        return RawRecords(self.store)

    def keep_index(self, moved: OnProgress | None = None, *, numbers: bool = True) -> str:
        """Bring the index up to date behind something that was stored. That is done whatever happens here: the answer
        is why the index could not follow, empty where it could. Without `numbers`, those of sessions that have changed
        are left to whoever asks for them: they are made from all of a session."""
        try:
            self.index.catch_up(moved=moved or (lambda at, last: None), numbers=numbers)
        except (HarkenError, OSError, sqlite3.Error) as problem:
            return str(problem)
        return ""

    def _follow(self, seconds: float, *, numbers: bool = True) -> IndexProgress:
        """Let the index catch up before it is asked, for so many seconds. One in memory is followed to its end: it is
        gone with this process, so nobody would go on with it. Without `numbers` nobody is told that some are stale."""
        reached = self._caught_up(seconds, numbers=numbers)
        if self.index.path is not None or not (reached.behind or reached.stale):
            return reached
        try:
            whole = self._caught_up(None, numbers=numbers)
        except (HarkenError, OSError, sqlite3.Error) as problem:
            return msgspec.structs.replace(reached, problem=reached.problem or str(problem))
        return msgspec.structs.replace(whole, rebuilt=reached.rebuilt or whole.rebuilt, problem=reached.problem)

    def _caught_up(self, seconds: float | None, *, numbers: bool) -> IndexProgress:
        reached = self.index.catch_up(seconds=seconds, numbers=numbers)
        return reached if numbers else msgspec.structs.replace(reached, stale=0)

    def search(self, query: str, *, limit: int = 10, snippets: bool = True) -> SearchResult:
        """The messages that a query finds, the best first. `harken search --help` says what a query may be; what is
        wrong with one is a `BadRequest` or `NotFound` with a hint."""
        from harken.index.query import parse
        from harken.index.search import search

        check_hits(limit)
        asked = parse(query)
        reached = self._follow(SEARCH_SECONDS, numbers=asked.needs_numbers)
        return search(self.index, self.store, asked, reached, limit=limit, present=self.clock(), snippets=snippets)

    def search_filters(self) -> dict[str, str]:
        """The filters that a query may have, and what the value of each is."""
        from harken.index.query import FILTERS

        return dict(FILTERS)

    def search_values(self, name: str) -> list[str]:
        """The values that a filter of a query may have: those that something in the store has."""
        from harken.index.filters import known_values

        return known_values(self.index, name)

    def has_search_value(self, name: str, value: str) -> bool:
        """Whether a filter of a query may have this value: something in the store has it, or a name that it fits."""
        from harken.index.filters import has_value

        self.index.catch_up(seconds=SEARCH_SECONDS, numbers=False)
        return has_value(self.index, name, value)

    def sql(
        self, query: str, *, seconds: float = 10.0, rows: int = 1000, megabytes: int = 256, prices: str = ""
    ) -> SqlResult:
        """The rows of a query in SQL over the views of the index, which it can only read. It is stopped when it takes
        longer or more memory than it may. `prices` is a file as in `stats`."""
        from harken.index.asking import Budget, ask

        from .numbers import read_price_file

        own = read_price_file(prices)
        reached = self._follow(SEARCH_SECONDS)
        return ask(self.index, query, Budget(seconds=seconds, rows=rows, megabytes=megabytes), reached, own)

    def export_parquet(
        self,
        folder: str | os.PathLike[str],
        *,
        reveal: bool = False,
        own_rules: Sequence[Rule] = (),
        replace: bool = False,
        prices: str = "",
    ) -> TableExport:
        """Every view that SQL is asked of as a Parquet file in a folder, written as its `files()` are taken. Secrets
        are masked by the rules of `harken.secrets` and these, unless they are to be revealed. `prices` is a file as in
        `stats`."""
        from .numbers import read_price_file
        from .tables import TableExport

        own = read_price_file(prices)
        return TableExport(self.index, Path(folder), own_rules, reveal=reveal, replace=replace, prices=own)


def check_hits(limit: int) -> None:
    """Refuse a number of hits that no search gives."""
    if not 0 < limit <= MOST_HITS:
        hint = "filters make them fewer: since:7d, role:human"
        raise BadRequest(f"a search gives 1 to {MOST_HITS} hits", hint=hint)


def sql_views(name: str = "") -> list[IndexView]:
    """The views that SQL can be asked of: that of a name, which has to be there, or all."""
    from harken.index.views import find_views

    return find_views(name)
