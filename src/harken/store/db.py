"""Connections to the SQLite file, transactions, rows that are what was written, and what errors mean.

Writers queue at the fair lock before they ask SQLite. A store is not carried across `fork`.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from harken import clock, ids
from harken.errors import BadRequest, Closed, Conflict, Corrupt, HarkenError, Locked

from . import sql
from .connections import POOLED, PooledConnection
from .explaining import ERRORS, another_file, explain, is_busy, is_no_text, lenient
from .opening import FairLock, FairTurns, Steps, delist, enlist, identity, upgrade
from .waiting import patiently

T = TypeVar("T")
Row = tuple[Any, ...]
FSCK = "`harken fsck` says what is lost"


def checked(table: str, row: Row) -> Row:
    """The row without its sum, which is its last column; `Corrupt` where it is not what was written."""
    facts = row[:-1]
    try:
        total = ids.row_sum(table, facts)
    except (TypeError, ValueError, OverflowError):  # no value that we write
        total = None
    if total != row[-1]:
        what = "was lost to damage" if row[-1] == sql.LOST else "is not what was written"
        raise Corrupt(f"row {row[0]!r} of the table {table} {what}", hint=FSCK)
    return facts


def all_checked(table: str, rows: Sequence[Row], *, beside: int = 0) -> list[Row]:
    """`checked` for many rows at once; so many columns after the sum are another table's, and left out."""
    last = -1 - beside
    facts = [row[:last] for row in rows]
    try:
        if ids.row_sums(table, facts) == [row[last] for row in rows]:
            return facts
    except (TypeError, ValueError, OverflowError):  # no value that we write
        pass
    return [checked(table, (*row[:last], row[last])) for row in rows]  # which of them is it?


_CONNECTIONS, _IDLE = 16, 4  # that a store has at most (who finds none free waits), and that stay open while unused


class _Held(threading.local):
    """What a thread holds while it is inside a transaction or a snapshot."""

    connection: Any = None
    stand: tuple[Any, ...] = ()  # the connection, and how many changes of others it has seen
    writer: Any = None


class Database:
    """One SQLite file with its lock, and a pool of connections.

    A connection is taken for a statement and given back; a transaction or a snapshot holds one for its thread. So a
    thread that ends leaves nothing behind, and `close` knows whom to wait for."""

    writable, is_old = True, False  # old: of an older version, and can only be read
    how_to_read = "mode=ro"
    """What the URI says of a connection that only reads."""
    problem: Corrupt | None = None
    """Why SQLite refuses the file; then this is what was salvaged of it, and `lost` is what was not."""
    lost: Sequence[str] = ()

    def __init__(self, path: Path, *, steps: Steps = sql.STEPS, timeout: float = 60.0) -> None:
        self.path, self.timeout = str(path), timeout
        self.forked, self.local = False, _Held()  # `forked` is set where this process is forked off
        self.closed, self._users, self._file = False, 0, (0, 0)
        self._counting = threading.Lock()
        self._out = threading.Condition(self._counting)
        self.turns, self._free, self._refused = FairTurns(_CONNECTIONS), list[PooledConnection](), list[object]()
        self._left: tuple[Any, int, Any] | None = None  # a connection, its count of changes, and what was left
        try:
            self._file = enlist(path, self, make=self.writable, newest=steps[-1][0])
            if self.writable:
                self.lock = FairLock(f"{self.path}-lock", timeout=timeout)
        except OSError as error:
            self._let_go()
            hint = "look at the path, the disk and the permissions"
            raise HarkenError(f"{path} cannot be opened: {error.strerror}", hint=hint) from error
        try:
            upgrade(self, steps)
        except BaseException:
            self.close()
            raise

    # -- the pool ----------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Refuse one who comes too late, or from another process; whoever is inside a transaction is waited for."""
        if self.forked:
            raise BadRequest("a store does not survive a fork of its process", hint="start the child with `spawn`")
        if self.closed and not self.holding:
            raise Closed(f"{self.path} has been closed", hint="open it again")

    def _enter(self) -> None:
        """Be one of those whom `close` waits for."""
        with self._counting:
            self.check_open()
            self._users += 1

    def _leave(self) -> None:
        with self._counting:
            self._users -= 1
            if self.closed:  # somebody waits for us to go
                self._out.notify_all()

    @property
    def used_by_others(self) -> bool:
        """Whether threads other than this one are inside."""
        return self._users > self.holding

    def _take(self) -> PooledConnection:
        """A connection for one who has entered; who came first goes first, so that readers cannot starve a writer."""
        if not self.turns.acquire(self.timeout):
            raise Locked(f"no connection to {self.path} came free", hint="try again when others are done")
        try:
            if identity(self.path) != self._file:
                raise another_file(self.path)
            try:
                return self._free.pop()
            except IndexError:
                return self._connect()
        except BaseException:
            self.turns.release()
            raise

    def _give(self, connection: PooledConnection) -> None:
        if len(self._free) < _IDLE:
            self._free.append(connection)
        else:
            self._shut(connection)
        self.turns.release()

    def _shut(self, connection: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.Error):
            connection.close()

    def acquire(self) -> PooledConnection:
        """The connection this thread holds, or one from the pool; `release` gives it back."""
        held: PooledConnection | None = self.local.connection
        if held is not None and not self.forked:
            return held
        self._enter()
        try:
            return self._take()
        except BaseException:
            self._leave()
            raise

    def release(self, connection: PooledConnection) -> None:
        """Give back what `acquire` gave."""
        if connection is not self.local.connection:
            self._give(connection)
            self._leave()

    @property
    def holding(self) -> bool:
        """Whether this thread is inside a transaction or a snapshot."""
        return self.local.connection is not None

    def _connect(self) -> PooledConnection:
        connection: PooledConnection | None = None
        try:
            connection = sqlite3.connect(self.path, **POOLED)
            for pragma in (*(() if Path(self.path).stat().st_size else sql.NEW_FILE), *sql.EACH_CONNECTION):
                self._patiently(connection, pragma)
        except BaseException as error:
            problem = explain(error, self.path) if isinstance(error, ERRORS) else None
            if isinstance(problem, Corrupt) and Path(f"{self.path}-wal").exists():
                self._refused.append(connection)  # closed, it would write the log into the file, and delete it
            elif connection is not None:
                self._shut(connection)
            if problem is not None:
                raise problem from error
            raise
        return connection

    def _patiently(self, connection: sqlite3.Connection, statement: str) -> None:
        """Run a statement; where another program holds the file, once it is done."""
        try:
            connection.execute(statement).fetchall()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            patiently(lambda: connection.execute(statement).fetchall(), self.timeout)

    def close(self) -> None:
        """Wait for whoever is inside, then close every connection and the lock. `Conflict` if they do not come out
        in time: then the store stays open. In a child of the process that opened it, nothing is touched."""
        if self.forked:
            return
        if self.holding:
            raise BadRequest("this thread is inside a transaction of this store", hint="close it after the block")
        deadline = clock.monotonic() + self.timeout
        with self._out:
            if self.closed:
                return
            self.closed = True  # nobody enters any more
            while self._users:
                if not self._out.wait(max(0.0, deadline - clock.monotonic())):
                    self.closed = False
                    raise Conflict(f"{self.path} is still being used", hint="let the others finish, then close it")
            self._users = 1  # a process that is forked off meanwhile can tell
        self._let_go()
        self._users = 0

    def _let_go(self) -> None:
        while self._free:
            self._shut(self._free.pop())
        if "lock" in self.__dict__:
            self.lock.close()
            del self.lock
        file, self._file = self._file, (0, 0)
        delist(file)

    def __del__(self) -> None:
        """One that nobody closed keeps no descriptor; at the end of the program, and in a fork, it is left as it is."""
        if not sys.is_finalizing() and not self.forked and not self.closed:
            with contextlib.suppress(Exception):
                self._let_go()

    # -- statements --------------------------------------------------------------------------------------------

    def run(self, answer: Callable[[PooledConnection], T]) -> T:
        """What is answered with a connection: the one this thread holds, or one of the pool."""
        connection, held = self.acquire(), self.local.connection
        try:
            try:
                return answer(connection)
            except sqlite3.OperationalError as error:
                if connection is not held and is_busy(error):
                    return patiently(lambda: answer(connection), self.timeout)
                if not is_no_text(error):
                    raise
                connection.text_factory = lenient
                return answer(connection)
        except ERRORS as error:
            raise explain(error, self.path) from error
        finally:
            if connection is not held:
                self.release(connection)

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Every row of the answer."""
        return self.run(lambda connection: connection.execute(statement, values).fetchall())

    def one(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        """The first row, or None."""
        return next(iter(self.all(statement, values)), None)

    def do(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Change something."""
        if self.local.connection is None:
            self._left = None  # outside a transaction, a writer's notes do not know of it
        self.run(lambda connection: connection.execute(statement, values).close())

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """The same change for many rows, inside a transaction: rows can be read once only."""
        self.run(lambda connection: connection.executemany(statement, rows).close())

    def inside(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """A statement of the transaction that this thread is inside of, with the least ado."""
        if self.forked:
            self.check_open()
        try:
            return self.local.connection.execute(statement, values)  # type: ignore[no-any-return]
        except ERRORS as error:
            raise explain(error, self.path) from error

    def rows(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """The rows of the answer a few at a time, inside a snapshot or a transaction."""
        try:
            self.local.connection.text_factory = lenient
            cursor = self.local.connection.execute(statement)
            while rows := cursor.fetchmany(256):
                yield from rows
        except ERRORS as error:
            raise explain(error, self.path) from error

    # -- transactions ------------------------------------------------------------------------------------------

    def begin(self) -> Any:
        """Queue for the right to write, then take it. The answer is what was left by the `commit` before, if nobody has
        changed the file since: not through this connection, nor through another, here or in another process."""
        if self.holding and not self.forked:
            raise BadRequest("this thread is already inside a transaction of this store", hint="use its writer")
        self._enter()
        try:
            self.lock.acquire()
            try:
                self._hold("BEGIN IMMEDIATE")
            except BaseException:
                self.lock.release()
                raise
        except BaseException:
            self._leave()
            raise
        before, self._left = self._left, None
        return before[2] if before is not None and before[:2] == self.local.stand else None

    def _hold(self, statement: str) -> None:
        connection = self._take()
        try:
            self._patiently(connection, statement)
            # SQLite counts here what others have committed; what this connection commits does not change it.
            (version,) = connection.execute("PRAGMA data_version").fetchone()
        except BaseException as error:
            self._shut(connection)
            self.turns.release()
            if isinstance(error, sqlite3.Error):
                raise explain(error, self.path) from error
            raise
        self.local.connection, self.local.stand = connection, (connection, version)

    def _unhold(self) -> None:
        """Let this thread's connection go back to the pool, or away if it is still inside a transaction."""
        connection: PooledConnection = self.local.connection
        self.local.connection = None
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._give(connection)
        except sqlite3.Error:
            self._shut(connection)
            self.turns.release()
        finally:
            self._leave()

    def commit(self, leave: Any = None) -> None:
        """Make it all durable, and leave something for the next `begin`. If that fails nothing of it is there, and
        `rollback` is still to be called."""
        try:
            self.local.connection.execute("COMMIT")
        except ERRORS as error:
            raise explain(error, self.path) from error
        self._left = (*self.local.stand, leave)
        self.lock.release()
        self._unhold()

    def rollback(self) -> None:
        """Take it all back. The connection is thrown away too if it cannot even do that."""
        try:
            self._unhold()
        finally:
            self.lock.release()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block that is there whole when it ends, or not at all."""
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            self.rollback()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A block in which this thread reads the store as it is now, whatever others write meanwhile."""
        if self.holding:
            raise BadRequest("this thread is inside a transaction of this store", hint="read after the block")
        self._enter()
        try:
            self._hold("BEGIN")
        except BaseException:
            self._leave()
            raise
        try:
            yield
        finally:
            self._unhold()

    def alone(self, statement: str) -> None:
        """Run a statement that is a transaction by itself and takes many steps, with nobody else writing."""

        def run(connection: sqlite3.Connection) -> None:
            self.lock.acquire()
            try:
                connection.executescript(statement).close()
            finally:
                self.lock.release()

        self.run(run)
