"""A stranger's SQL, answered from the views of the index and from nothing else.

A connection of its own is opened for each question. It can read the views and do nothing else: an authorizer refuses
every other table, every statement that is no query, ATTACH, PRAGMA and loading extensions, whatever the text looks
like. Time and memory are looked at while it runs, and what is made on the way is held in memory, so that no disk is
filled. SQLite's own limit of its heap is not used: it holds for all of the process and can never be raised again.
"""

from __future__ import annotations

import re
import resource
import sqlite3
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from harken import clock
from harken.errors import BadRequest, HarkenError, TookTooLong

from .connecting import in_memory
from .file import StoreIndex
from .making_views import make_views
from .progress import IndexProgress
from .views import NAMES, VIEWS

if TYPE_CHECKING:
    from harken.analytics.prices import PriceList

STEPS = 1000
"""Instructions of SQLite's machine between two looks at time and memory: some tens of microseconds."""
LONGEST = 1 << 20
"""Bytes of the longest text or row, and of the query itself."""
MEGABYTE = 1 << 20
WIDEST = 100_000
"""Characters to which `printf` may fill up."""
_PLACE = re.compile(r"%[-+ #0,!]*(\*|[0-9]+)?(?:\.(\*|[0-9]+))?l{0,2}(.)", re.S)
"""A place in the text of `printf`: its width, its precision and its kind."""
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: LONGEST,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: LONGEST,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 250_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_TABLES = ("json_each", "json_tree")
"""Tables that are functions of their arguments alone."""
_FORBIDDEN = {"load_extension", "fts5", "fts3_tokenizer", "writefile", "readfile", "edit"}
_ACTIONS = {
    getattr(sqlite3, name): name.removeprefix("SQLITE_").replace("_", " ")
    for name in (
        "SQLITE_ALTER_TABLE", "SQLITE_ANALYZE", "SQLITE_ATTACH", "SQLITE_CREATE_INDEX", "SQLITE_CREATE_TABLE",
        "SQLITE_CREATE_TEMP_INDEX", "SQLITE_CREATE_TEMP_TABLE", "SQLITE_CREATE_TEMP_TRIGGER",
        "SQLITE_CREATE_TEMP_VIEW", "SQLITE_CREATE_TRIGGER", "SQLITE_CREATE_VIEW", "SQLITE_CREATE_VTABLE",
        "SQLITE_DELETE", "SQLITE_DETACH", "SQLITE_DROP_INDEX", "SQLITE_DROP_TABLE", "SQLITE_DROP_TEMP_INDEX",
        "SQLITE_DROP_TEMP_TABLE", "SQLITE_DROP_TEMP_TRIGGER", "SQLITE_DROP_TEMP_VIEW", "SQLITE_DROP_TRIGGER",
        "SQLITE_DROP_VIEW", "SQLITE_DROP_VTABLE", "SQLITE_INSERT", "SQLITE_PRAGMA", "SQLITE_REINDEX",
        "SQLITE_SAVEPOINT", "SQLITE_TRANSACTION", "SQLITE_UPDATE",
    )
}  # fmt: skip
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
HINT = "`harken sql --schema` lists the views and their columns"


class SqlResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a query gave."""

    columns: tuple[str, ...]
    """Names, no two the same."""
    rows: list[tuple[Any, ...]]
    more: bool
    """Whether there were more rows than were asked for."""
    reached: IndexProgress
    """How far the index had come."""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What a query may use."""

    seconds: float = 10.0
    rows: int = 1000
    megabytes: int = 256
    """How much more memory than before."""


def ask(
    index: StoreIndex, query: str, budget: Budget, reached: IndexProgress, prices: PriceList | None = None
) -> SqlResult:
    """The rows of one query; `prices` stand over those that come with Harken. What is wrong with the query is a
    `BadRequest` that says where; what takes too long or too much is a `HarkenError`."""
    if not query.strip():
        raise BadRequest("there is no query", hint="harken sql 'SELECT title FROM sessions LIMIT 5'")
    if budget.rows < 1 or budget.seconds <= 0 or budget.megabytes < 1:
        raise BadRequest("a query needs some time, memory and rows", hint="give numbers greater than zero")
    try:
        return _ask(index, query, budget, reached, prices)
    except sqlite3.DatabaseError:  # damage; nothing else comes out of there
        index.rebuild()
        return _ask(index, query, budget, reached, prices)


def _ask(index: StoreIndex, query: str, budget: Budget, reached: IndexProgress, prices: PriceList | None) -> SqlResult:
    with closing(index.connect()) as connection, closing(in_memory()) as apart:
        connection.execute("PRAGMA temp_store = MEMORY")  # first, since it drops what is there
        make_views(connection, prices)
        for table in _TABLES:
            connection.execute(f"SELECT 1 FROM {table}('[]')")  # SQLite makes them when they are first asked
        guard = _Guard(budget, apart)
        guard.watch(connection)
        try:
            with guard.timed(connection):
                cursor = connection.execute(query)
                if cursor.description is None:
                    raise BadRequest("that is no query", hint=f"it begins with SELECT, WITH or VALUES; {HINT}")
                rows = cursor.fetchmany(budget.rows + 1)
        except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError, ValueError, MemoryError) as problem:
            if getattr(problem, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
                raise
            raise guard.explain(connection, query, problem) from None
        columns = tuple(_distinct([column[0] for column in cursor.description]))
        kept, more = rows[: budget.rows], len(rows) > budget.rows
        return SqlResult(columns=columns, rows=kept, more=more, reached=reached)


class _Guard:
    """Says no, and remembers to what."""

    def __init__(self, budget: Budget, apart: sqlite3.Connection) -> None:
        """`apart` is another connection, for SQLite's own `printf`: what it writes is limited there, too."""
        self.budget = budget
        self._apart = apart
        apart.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        self.refused = ""
        self._end = clock.monotonic() + budget.seconds
        self._most = _memory() + budget.megabytes * MEGABYTE
        self._spent = ""

    def watch(self, connection: sqlite3.Connection) -> None:
        """From now on the connection does only what it may."""
        connection.execute("PRAGMA query_only = ON")
        for kind, most in _LIMITS.items():
            connection.setlimit(kind, most)
        for name in ("printf", "format"):
            connection.create_function(name, -1, self._printf, deterministic=True)
        connection.set_authorizer(self._may)
        connection.set_progress_handler(self._is_over, STEPS)

    @contextmanager
    def timed(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Between two looks there may be hundreds of slow calls of functions: an interruption ends the next row."""
        seconds = min(self.budget.seconds, threading.TIMEOUT_MAX)
        timer = threading.Timer(seconds, self._interrupt, [connection])
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def _interrupt(self, connection: sqlite3.Connection) -> None:
        self._spent = self._late
        connection.interrupt()

    @property
    def _late(self) -> str:
        return f"it took longer than {self.budget.seconds:g} seconds"

    def _printf(self, *given: Any) -> Any:
        """SQLite's own, which fills up to a billion characters one by one and cannot be interrupted meanwhile."""
        if any(abs(width) >= WIDEST for width in _widths(given)):
            self.refused = f"a width of {WIDEST:,} or more is not allowed"
            raise ValueError(self.refused)
        (printed,) = self._apart.execute(f"SELECT printf({', '.join('?' * len(given))})", given).fetchone()
        if printed is None and given and given[0] is not None:  # what is longer than it may be is nothing to SQLite
            self.refused = "string or blob too big"
            raise ValueError(self.refused)
        return printed

    def _may(self, action: int, first: str | None, second: str | None, schema: str | None, within: str | None) -> int:
        if action == sqlite3.SQLITE_SELECT or action == sqlite3.SQLITE_RECURSIVE:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            # A view's own text may read the tables, and so may nobody else. Without a column it is only counted that
            # there are rows, and SQLite does not say for whom.
            if within in NAMES or first in _TABLES or (first in NAMES and schema == "temp") or not (first and second):
                return sqlite3.SQLITE_OK
            self.refused = f"there is no view {first}"
        elif action == sqlite3.SQLITE_FUNCTION:
            if second not in _FORBIDDEN:
                return sqlite3.SQLITE_OK
            self.refused = f"the function {second} is not allowed"
        elif first in ("sqlite_master", "sqlite_temp_master"):
            self.refused = "a query reads the views, and nothing else"
        else:
            self.refused = f"a query only reads, and this is {_ACTIONS.get(action, 'something else')}"
        return sqlite3.SQLITE_DENY

    def _is_over(self) -> int:
        if clock.monotonic() > self._end:
            self._spent = self._late
        elif _memory() > self._most:
            self._spent = f"it took more than {self.budget.megabytes} MB of memory"
        return bool(self._spent)

    def explain(self, connection: sqlite3.Connection, query: str, problem: Exception) -> HarkenError:
        """What went wrong, and where."""
        if self._spent:
            kind = TookTooLong if self._spent == self._late else HarkenError
            return kind(
                f"the query was stopped: {self._spent}",
                hint="--seconds and --memory allow more; a WHERE clause makes it less",
            )
        if isinstance(problem, MemoryError):
            return HarkenError("the query was stopped: there is no more memory", hint="ask for less")
        if str(problem) == "interrupted":  # the exception of a signal's handler is lost inside SQLite
            raise KeyboardInterrupt
        told = self.refused or str(problem).rstrip(".")
        if "one statement at a time" in told:
            return BadRequest("there is more than one statement", hint="ask one query at a time")
        if "number of bindings" in told:
            return BadRequest("a query has no parameters", hint="write the values into it")
        connection.set_progress_handler(None, 0)
        where = place_of(connection, query, told)
        return BadRequest(f"{where}{told}", hint=_suggested(told))


def _widths(given: Sequence[Any]) -> Iterator[float]:
    """The widths and precisions that `printf` is given, in its text or as arguments."""
    arguments = iter(given[1:])
    for *told, kind in _PLACE.findall(str(given[0]) if given else ""):
        for width in told:
            with suppress(TypeError, ValueError):  # what is no number is zero to SQLite
                yield float(next(arguments, 0) if width == "*" else width or 0)
        if kind != "%":
            next(arguments, None)


def _memory() -> int:
    """The most bytes that the process has had at once."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _distinct(names: list[str]) -> Iterator[str]:
    """The names; one that comes again is numbered, since an object of JSON would lose it."""
    seen: set[str] = set()
    for name in names:
        number, unique = 1, name
        while unique in seen:
            number += 1
            unique = f"{name}_{number}"
        seen.add(unique)
        yield unique


# -- where it is wrong -------------------------------------------------------------------------------------------------

_NEAR = re.compile(r'near "(.+)": syntax error', re.S)
_NAMED = re.compile(r"(?:no such \w+:|ambiguous column name:|there is no view|the function) (\S+)")


def place_of(connection: sqlite3.Connection, query: str, told: str) -> str:
    """`line 2, column 7: ` where it can be told, else nothing."""
    if found := _NEAR.match(told):
        at = _last_whole(connection, query, found[1], told)
    elif found := _NAMED.match(told):
        word = re.escape(found[1].rpartition(".")[2])
        places = [match.start() for match in re.finditer(rf"(?<!\w){word}(?!\w)", query, re.I)]
        at = places[0] if places else -1
    else:
        at = len(query.rstrip()) if told == "incomplete input" else -1
    if at < 0:
        return ""
    before = query[:at]
    return f"line {before.count(chr(10)) + 1}, column {at - before.rfind(chr(10))}: "


def _last_whole(connection: sqlite3.Connection, query: str, word: str, told: str) -> int:
    """The last place of a word up to which the query can be read: SQLite says which word, but not which one of it."""
    last = -1
    for found in re.finditer(re.escape(word), query):
        try:
            connection.execute(f"EXPLAIN {query[: found.start()]}")
        except (sqlite3.Error, sqlite3.Warning) as problem:
            if str(problem) == told:
                break
        last = found.start()
    return last


def _suggested(told: str) -> str:
    import difflib

    if told.startswith(("no such column", "no such table", "there is no view")):
        word = told.split()[-1].rpartition(".")[2]
        columns = {column.name for view in VIEWS for column in view.columns}
        if word in NAMES:
            return f"write {word} alone: the view, not the table behind it"
        known = NAMES if "column" not in told else sorted(columns)
        if close := difflib.get_close_matches(word, known, n=1):
            return f"did you mean {close[0]}? {HINT}"
        if "column" not in told:
            return f"the views are {', '.join(NAMES)}"
    return HINT
