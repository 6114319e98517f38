"""Bringing sessions into the store: what changed is read, cut, and kept, a batch to a transaction.

A source goes through in parts that end at closed cuts, so that memory stays bounded and a kill loses at most a part
that nobody was told about. Parts of several sources share a transaction; a result is handed out only after the
transaction that holds it has landed.

Others may import at the same time. What a row says of a source is compared, in the transaction, with what it said when
the source was read; whoever comes too late reads again. Whatever goes wrong with a source is a failure of that source.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from harken import clock, ids
from harken.context import chains
from harken.context.chains import FileStamp, SourceMemory, SourceStamp
from harken.context.names import RESUMED_BRANCH
from harken.store import SessionRow, Store, Writer

from . import is_registered, memory, names
from .base import Identity, Runtime
from .databases import Same
from .files import Unfit, Unreadable, bytes_to_read, database_stamp, kept_versions, known_source, stamp_of, whole_stamp
from .keeping import PartKeeper, SourceImport, new_source
from .made_from import why_made
from .memory import ImportResult
from .sources import Claimed, NotClaimed, Part, Reading, Refused, Restarted, Resumption, SourceChanged, read_source

if TYPE_CHECKING:
    from .linking import Linker
    from .workers import WorkerPool

BATCH = 8 << 20
"""How many bytes go into one transaction."""
WORTH_WORKERS = 24 << 20
"""How many bytes there must be to read for other processes to be worth their start."""
TRIES = 3
"""How often a source that is being rewritten, or that others import at the same time, is read anew."""


class Importer:
    """Imports sources into one store. Not shared between threads; several processes may each have one."""

    def __init__(
        self,
        store: Store,
        runtimes: Iterable[Runtime],
        *,
        now: clock.Clock = clock.now,
        verify: bool = False,
        principal: str = "",
        machine: str = "",
        dry_run: bool = False,
        details: bool = True,
        settle_tails: Callable[[FileStamp], bool] = lambda stamp: True,
        read: Callable[[Path, Resumption | None], Reading] | None = None,
        jobs: int = 1,
    ) -> None:
        """`jobs` is how many processes read, scan and keep; results and names are the same for any number."""
        self.store = store
        self.runtimes = {runtime.name: runtime for runtime in runtimes}
        self.now = now
        self.verify = verify
        self.dry_run = dry_run
        self._details = details  # whether the result of an unchanged source tells how much there is of it
        self._not_claimed: dict[str, FileStamp] = {}
        self._failures = memory.FailureMemory(store, self.runtimes, dry_run=dry_run)
        self._keeper = PartKeeper(store, now=now, by=(principal, machine), settle_tails=settle_tails, verify=verify)
        self._read = read or (lambda path, since: read_source(path, tuple(self.runtimes.values()), since, self.now))
        self._jobs = jobs
        self._pool: WorkerPool | None = None
        self.rows = {row.session: row for row in chains.readable_sessions(store)}
        self._session_of: dict[str, str] = {}  # source to session
        self._stamps: dict[str, SourceStamp] = {}  # source to its stamp and the time it was read
        self._inside: dict[str, list[str]] = {}  # file to sources inside it: sessions of a database, agents of a file
        for row in self.rows.values():
            self._note(row)
        self._pending: list[tuple[SourceImport, Part]] = []
        self._done: list[ImportResult] = []
        self._held: list[ImportResult] = []  # told at the end of a run
        self._again: list[Path] = []
        self._pending_size, self._landed = 0, False  # `_landed`: whether anything was kept in this run

    @functools.cached_property
    def _beginnings(self) -> memory.Beginnings:
        """Made when the first unknown file turns up: an import with nothing new need not look into any row."""
        return memory.Beginnings(self.rows.values())

    def _note(self, row: SessionRow) -> None:
        for source, stamp in chains.recall_stamps(row).items():
            if source not in self._session_of and (file := ids.file_around(source)):
                self._inside.setdefault(file, []).append(source)
            self._session_of[source] = row.session
            self._stamps[source] = stamp

    def run(self, paths: Iterable[Path | Unreadable], *, named: bool = False) -> Iterator[ImportResult]:
        """Import the files and say what became of each. `named` files were asked for by name: not being a session is
        then a failure rather than nothing to speak of. Sessions of which there are several versions come last."""
        for result in self._take_all(paths, named):
            if result.tip and ((row := self._row(result.source)).older or row.live):
                self._held.append(result)
            else:
                yield result
        self._link_others()
        if self._held:
            from .versions import with_figures  # most sessions are as one file has them

            held, self._held = [(result, self._row(result.source)) for result in self._held], []
            yield from with_figures(self.store, held)

    def _take_all(self, paths: Iterable[Path | Unreadable], named: bool) -> Iterator[ImportResult]:
        with self._looking_ahead(paths) as coming:
            for path in coming:
                if isinstance(path, Unreadable):
                    self._done.append(memory.failed(path.path, path.why, "look at the path and the permissions"))
                else:
                    yield from self._take(path, named)
                if not self._pending:
                    yield from self._land()
        yield from self._land()
        for _ in range(TRIES):
            again, self._again = self._again, []
            for path in again:
                yield from self._take(path, named)
            yield from self._land()
        for path in self._again:
            yield memory.failed(str(path), f"{path}: others import it all the time", "import it again")
        self._again = []

    # -- reading -----------------------------------------------------------------------------------------------------

    def _take(self, path: Path, named: bool) -> Iterator[ImportResult]:
        problem: BaseException | None = None
        for _ in range(TRIES):
            taking = self._parts_of(path, named)
            problem = None
            while problem is None:
                try:
                    full = next(taking, None)
                except (Exception, SystemExit) as error:  # noqa: BLE001  whatever is wrong with one file, others go in
                    problem = error
                    self._drop(path)
                else:
                    if full is None:
                        return
                    if full:  # out here, since trouble with the store is not the file's
                        yield from self._land()
            if not isinstance(problem, SourceChanged):
                break
        assert problem is not None
        self._done.append(memory.failure_of(str(path), problem))
        if isinstance(problem, Unfit):
            self._failures.note(path, self._done[-1], self.now())

    @contextlib.contextmanager
    def _looking_ahead(self, paths: Iterable[Path | Unreadable]) -> Iterator[Iterable[Path | Unreadable]]:
        """The paths; where there is much to read, workers read those that come next."""
        if self._jobs <= 1 or not all(map(is_registered, self.runtimes.values())):
            yield paths
            return
        listed = list(paths)
        known = {} if self.verify else {source: known.stamp for source, known in self._stamps.items()}
        sizes = {path: bytes_to_read(path, known.get(str(path))) for path in listed if isinstance(path, Path)}
        todo = [path for path, size in sizes.items() if size]
        if sum(sizes.values()) < WORTH_WORKERS:
            yield listed
            return

        from . import workers  # not needed by an import with little to do

        with workers.WorkerPool(list(self.runtimes), self._jobs - 1) as pool:
            self._pool = pool
            try:
                yield pool.reading_ahead(listed, todo, lambda path: self._since(str(path)))
            finally:
                self._pool = None

    def _since(self, file: str) -> Resumption | None:
        inside = [] if self.verify else [self._row(source) for source in self._inside.get(file, ())]
        if versions := kept_versions(file, inside, self.runtimes):
            return Resumption(versions=versions)
        return None if self.verify else Resumption.after(self._known(file))

    def _reading(self, path: Path, since: Resumption | None) -> Reading:
        reading = self._pool.read(path, since) if self._pool is not None and not self._pool.take(path) else None
        return reading if reading is not None else self._read(path, since)

    def _parts_of(self, path: Path, named: bool) -> Iterator[bool]:
        """Read a file and queue its parts; every answer says whether what is queued should land now."""
        file = known_source(path, self._session_of)
        if not self.verify and self._is_settled(path, file):
            return
        if not self.verify and not named and (failed := self._failures.find(path)) is not None:
            self._done.append(failed)
            return
        known = self._known(file)
        runtime: Runtime | None = None
        item: SourceImport | None = None
        for said in self._reading(path, self._since(file)):
            if isinstance(said, NotClaimed):
                self._not_claimed[file] = said.stamp
                self._done.append(memory.not_claimed(file, said, named=named))
            elif isinstance(said, Refused):
                self._done.append(memory.failed(ids.source_within(file, said.key), said.why, said.hint))
                self._failures.note(path, self._done[-1], self.now(), inside=True)
            elif isinstance(said, Same):
                source = ids.source_within(file, said.key)
                self._done.append(memory.unchanged(self._row(source), source, self._details))
            elif isinstance(said, Claimed):
                runtime = self.runtimes[said.runtime]
                if not named and runtime.read.made_from and (why := why_made(runtime, path)):
                    return self._done.append(memory.skipped(file, why))
            elif isinstance(said, Restarted):
                assert runtime is not None and known is not None
                item = self._item(file, runtime, known)
                item.rewritten = True
                item.start_over()
            else:
                assert runtime is not None
                if item is None or said.key:
                    source = ids.source_within(file, said.key)
                    if (known := self._known(source)) is not None:
                        item = self._item(source, runtime, known)
                        if self.verify or runtime.source != "file" or not known.digest:
                            item.start_over()
                    else:
                        item = new_source(source, runtime, path, said.facts)
                if not said.offset and item.is_open:
                    item.identify(path, said.facts)
                    if self._waits_for(item, said):
                        yield True
                    self._find_alike(item, said)
                else:
                    item.hear(path, said.facts)
                self._pending.append((item, said))
                self._pending_size += said.length
                yield self._pending_size >= BATCH

    def _is_settled(self, path: Path, file: str) -> bool:
        """Whether nothing has to be read; what is there already is then told."""
        if file in self._not_claimed and self._not_claimed[file] == stamp_of(file):
            return True
        sources = [file] if file in self._session_of else self._inside.get(file, [])
        known = {self._row(source).runtime for source in sources}
        if not sources or known & set(names()) - self.runtimes.keys():  # one that was not asked for is told as such
            return False
        last = max((self._stamps[source] for source in sources), key=lambda known: known.read_at)
        stamp = whole_stamp(path, self.runtimes.values()) if sources == [file] else database_stamp(path)
        failed = sources != [file] and self._failures.find(path, inside=True)
        if last.stamp.is_recent(last.read_at) or last.stamp != stamp or failed:
            return False
        runtime = self.runtimes.get(self._row(sources[0]).runtime) if file in sources else None
        if runtime and memory.has_new_side_files(runtime, path, last.read_at):
            return False
        self._done += [memory.unchanged(self._row(source), source, self._details) for source in sources]
        return True

    def _row(self, source: str) -> SessionRow:
        return self.rows[self._session_of[source]]

    def _known(self, source: str) -> SourceMemory | None:
        return chains.recall(self.rows.get(self._session_of.get(source, ""))).get(source)

    def _item(self, source: str, runtime: Runtime, known: SourceMemory) -> SourceImport:
        row = self._row(source)
        session = known.session or memory.top_of(row)
        identity = Identity(session=session, agent=row.agent, parent=session if row.agent else row.parent)
        return SourceImport(source, runtime, identity, known, row.session)

    def _waits_for(self, item: SourceImport, part: Part) -> bool:
        """Whether what the source nearly repeats, or another source of the session, is still on its way."""
        first, original = part.facts.fingerprint[:1], part.facts.forked_from
        return any(
            (first and first == other.facts.fingerprint[:1]) or pending.name in (item.identity.name, original)
            for pending, other in self._pending
        )

    def _find_alike(self, item: SourceImport, part: Part) -> None:
        """Find what the source nearly repeats, where there is a session that it copies or that copies it."""
        names = self._beginnings.find(item.runtime.keeper, part.facts)
        relatives = [row for name in names if (row := self.rows.get(name)) is not None and row.tip]
        resumed = self.store.find_name(RESUMED_BRANCH + item.identity.session)
        if not item.identity.parent and (relatives or resumed):
            from .linking import take_alike  # most sessions are nobody's copy

            take_alike(self.store, item, relatives)

    def _drop(self, path: Path) -> None:
        """Forget the parts of a file that failed half-way; those that have landed stay, and the next import goes on."""
        self._pending = [pair for pair in self._pending if not f"{pair[0].path}#".startswith(f"{path}#")]

    # -- keeping -----------------------------------------------------------------------------------------------------

    def _land(self) -> list[ImportResult]:
        """Bring what is queued into the store, and say what became of it and of what was done before it."""
        # What follows a part that could not be kept has nothing to go on from.
        pending = [(item, part) for item, part in self._pending if not item.has_failed]
        self._pending, self._pending_size = [], 0
        done, self._done = self._done, []
        if self.dry_run:
            return done + [item.prospect(part) for item, part in pending if part.last]
        try:
            return done + self._keep_all(pending)
        except Exception as problem:
            if not pending or memory.is_the_stores(problem):
                self._done = done  # told by the next run of whoever tries again
                raise
        # Something in it cannot be kept: one by one, so that it costs nobody else.
        for item in dict.fromkeys(item for item, _ in pending):
            try:
                done += self._keep_all([pair for pair in pending if pair[0] is item])
            except Exception as problem:
                if memory.is_the_stores(problem):
                    self._done = done
                    raise
                item.has_failed = True
                done.append(memory.failure_of(item.path, problem))
        return done

    def _keep_all(self, pending: list[tuple[SourceImport, Part]]) -> list[ImportResult]:
        """One transaction."""
        if not pending:
            return []
        before = [(item, item.snapshot()) for item, _ in pending]
        rows: dict[str, SessionRow] = {}
        done: list[SourceImport] = []
        late: set[str] = set()
        try:
            with self.store.write() as writer:
                if self._pool is not None:
                    writer.compress_beside()
                for item, part in pending:
                    if item.path in late or not self._keeper.keep(writer, item, part, rows):
                        late.add(item.path)
                    elif part.last:
                        done.append(item)
                self._link(writer, {item.name for item, old in before if item.now.tells_beyond(old["saved"])}, rows)
        except BaseException:
            for item, values in reversed(before):
                item.restore(values)
            raise
        for row in rows.values():
            self._learn(row)
        self._landed = True
        for path in late:
            self._read_again(path)
        return [self._result(item) for item in done]

    def _result(self, item: SourceImport) -> ImportResult:
        row = self._row(item.path) if item.status != memory.FORGOTTEN or item.row is None else item.row
        if row is not item.row:  # it was linked since it was kept
            item.now = item.now.with_links(chains.recall(row)[item.path])
        return item.result(row)

    # -- where sessions come from ------------------------------------------------------------------------------------

    @functools.cached_property
    def _linker(self) -> Linker:
        from .linking import Linker  # most sessions come from nowhere

        return Linker(self.store, self.runtimes, self._beginnings)

    def _link(self, writer: Writer, told: set[str], rows: dict[str, SessionRow]) -> None:
        """Link what this transaction has kept, and whom it may concern. Those in `told` say more of others."""
        for row in rows.values():
            self._beginnings.add(row)
        told |= {row.session for row in rows.values() if row.parent or self._beginnings.relatives(row)}
        told |= {name for name in rows if self.store.find_name(RESUMED_BRANCH + name) is not None}
        if told:
            self._linker.relink(writer, rows, told)

    def _link_others(self) -> None:
        """Link copies and originals of which another process kept one while this one kept the other."""
        known, self._landed = chains.readable_sessions(self.store) if self._landed else [], False
        theirs = [row for row in known if row != self.rows.get(row.session)]
        for row in theirs:
            self._learn(row)
        if theirs:
            for row in self._linker.link_copies(theirs):
                self._learn(row)

    def _learn(self, row: SessionRow) -> None:
        self.rows[row.session] = row
        self._note(row)
        if "_beginnings" in self.__dict__:
            self._beginnings.add(row)

    def _read_again(self, source: str) -> None:
        """Somebody else has kept more of the source, or less, since it was read here."""
        for row in chains.readable_sessions(self.store, self._session_of.get(source, "")):
            self._learn(row)
        file = ids.file_around(source)
        path = Path(file if source in self._inside.get(file, ()) else source)
        if path not in self._again:
            self._again.append(path)
