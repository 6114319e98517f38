"""The plainest store there is: dictionaries. It is the yardstick the SQLite store is compared with.

A transaction keeps a list of how to undo each of its changes, and undoes them if the block raises.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

from harken import clock, ids
from harken.errors import BadRequest, Closed, NotFound

from . import values
from .arguments import STORE, checks_arguments
from .base import Store
from .checking import evicted
from .memory_forgetting import MemoryForgetting
from .memory_writer import MemoryArtifact, MemoryWriter
from .reports import Finding, GcReport, Report
from .values import (
    Annotation,
    ArtifactInfo,
    Change,
    Commit,
    Move,
    Name,
    SessionRow,
    Sighting,
    WalkStep,
)

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")

CACHE_LIMIT = 64 << 20


def _reading(ask: Callable[Concatenate[MemoryStore, P], V], /) -> Callable[Concatenate[MemoryStore, P], V]:
    """A question that waits until nobody is inside a transaction, so that nobody sees half of one."""

    @functools.wraps(ask)
    def asked(store: MemoryStore, /, *args: P.args, **options: P.kwargs) -> V:
        with store._lock:
            store._check_open()
            return ask(store, *args, **options)

    return asked


@checks_arguments(STORE, Store)
class MemoryStore(MemoryForgetting):
    """A store that is gone when the program ends."""

    location = "memory:"

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()
        self._writing = False
        self._artifacts: dict[str, MemoryArtifact] = {}
        self._commits: dict[str, Commit] = {}
        self._alike: dict[str, list[str]] = {}  # first eight digits -> names
        self._children: dict[str, list[str]] = {}
        self._places: dict[str, tuple[int, int]] = {}  # chain and place in it, which order commits of one instant
        self._sightings: dict[str, list[Sighting]] = {}
        self._annotations: dict[str, list[Annotation]] = {}
        self._names: dict[str, Name] = {}
        self._moves: list[Move] = []
        self._sessions: dict[str, SessionRow] = {}
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._changes: list[Change] = []
        self._changed = threading.Condition(self._lock)
        self.closed = False
        self._epoch = os.urandom(16).hex()

    @contextmanager
    def write(self) -> Iterator[MemoryWriter]:
        """One transaction: whole when the block ends, or nothing of it if it raises."""
        with self._lock:
            self._check_open()
            if self._writing:
                raise BadRequest("this thread is already inside a transaction of this store", hint="use its writer")
            self._writing = True
            writer = MemoryWriter(self)
            try:
                yield writer
            except BaseException:
                writer.undo_all()
                raise
            finally:
                self._writing = False
            self._changed.notify_all()

    # -- artifacts ---------------------------------------------------------------------------------------------

    @_reading
    def get(self, artifact: str) -> bytes:
        """The bytes of that full name."""
        data = self._artifact(artifact).data
        if data is None:
            raise self._gone(artifact)
        return data

    @_reading
    def get_many(self, artifacts: Sequence[str], *, large: Callable[[str], bytes] | None = None) -> Iterator[bytes]:
        """The bytes of many, in the order asked. None is too large: all of them are in memory."""
        return iter([self.get(artifact) for artifact in artifacts])

    @_reading
    def iter_parts(self, artifact: str) -> Iterator[bytes]:
        """The bytes of one artifact, here in one part."""
        return iter([self.get(artifact)])

    @_reading
    def has(self, artifact: str) -> bool:
        """Whether its bytes are here."""
        found = self._artifacts.get(artifact)
        return found is not None and found.data is not None

    @_reading
    def info(self, artifact: str) -> ArtifactInfo:
        """What is known of it without reading it."""
        found = self._artifact(artifact)
        policy, expires = found.policy
        return ArtifactInfo(id=artifact, size=found.size, policy=policy, expires=expires, evicted=found.data is None)

    def infos(self, artifacts: Sequence[str]) -> dict[str, ArtifactInfo]:
        """`info` of many, by their names; those that are not here are left out."""
        return {name: self.info(name) for name in artifacts if name in self._artifacts}

    @_reading
    def artifacts(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Full names that begin with these hex digits."""
        return sorted(name for name in self._artifacts if name.startswith(prefix))[:limit]

    def _artifact(self, artifact: str) -> MemoryArtifact:
        try:
            return self._artifacts[artifact]
        except KeyError:
            raise NotFound(
                f"no artifact {ids.artifact_ref(artifact)}", hint="`harken fsck` says what is lost"
            ) from None

    # -- commits -----------------------------------------------------------------------------------------------

    @_reading
    def get_commit(self, commit: str) -> Commit:
        """The commit of that full name."""
        found = self._commits.get(commit) or self._by_seal(commit)
        if found is None:
            raise NotFound(
                f"no commit {ids.commit_ref(commit, values.FULL)}", hint="`harken log --all` lists every commit"
            )
        return found

    @_reading
    def get_commits(self, commits: Sequence[str]) -> list[Commit]:
        """The commits of these full names, in the order asked."""
        return [self.get_commit(commit) for commit in commits]

    def _by_seal(self, commit: str) -> Commit | None:
        first = self._commits.get(commit[: values.FULL])
        return first if first is not None and commit == first.id + first.seal else None

    @_reading
    def commits(self, prefix: str = "", *, limit: int | None = None) -> list[Commit]:
        """Commits whose name begins with these hex digits, newest first."""
        if len(prefix) > values.FULL:
            found = [c for c in self._commits.values() if (c.id[: values.FULL] + c.seal).startswith(prefix)]
        else:
            found = [c for c in self._commits.values() if c.id.startswith(prefix) and (not prefix or _first(c))]
        found.sort(key=lambda c: (c.time, self._places[c.id]), reverse=True)
        return found[:limit]

    @_reading
    def commits_as_made(self) -> list[Commit]:
        """Every commit in the order in which they were made."""
        return list(self._commits.values())

    @_reading
    def chain(self, commit: str, *, limit: int | None = None, stop: Iterable[str] = ()) -> list[Commit]:
        """From the commit back towards its root."""
        ends, walked = frozenset(stop), [self.get_commit(commit)]
        while walked[-1].parent and walked[-1].commit_type not in ends and (limit is None or len(walked) < limit):
            walked.append(self.get_commit(walked[-1].parent))
        return walked if limit is None else walked[: max(limit, 0)]

    @_reading
    def walk(self, commit: str, *, limit: int | None = None, stop: Iterable[str] = ()) -> list[WalkStep]:
        """`chain` without the facts that only people need."""
        return [
            WalkStep(c.id, c.artifact, c.commit_type, c.format, c.message_count, c.token_count, c.approximate)
            for c in self.chain(commit, limit=limit, stop=stop)
        ]

    @_reading
    def beginning(self, commit: str, count: int) -> list[WalkStep]:
        """The root of a walk and what comes next."""
        return self.walk(commit)[::-1][: max(count, 0)]

    @_reading
    def children(self, commit: str) -> list[Commit]:
        """The commits that name it as their parent."""
        found = self._children.get(self.get_commit(commit).id, ())
        return [self.get_commit(child) for child in sorted(found, key=self._places.__getitem__)]

    @_reading
    def latest(self, principal: str, time: int) -> Commit | None:
        """The principal's newest commit at or before the instant; sightings count."""
        seen = [s for found in self._sightings.values() for s in found if s.principal == principal and s.time <= time]
        best = max(seen, key=lambda s: (s.time, self._places[s.commit]), default=None)
        return self.get_commit(best.commit) if best else None

    @_reading
    def sightings(self, commit: str) -> list[Sighting]:
        """Who made this commit, the first to do so first."""
        return list(self._sightings[self.get_commit(commit).id])

    @_reading
    def sightings_of(self, commits: Sequence[str]) -> dict[str, list[Sighting]]:
        """`sightings` of many commits, by the names that were asked for."""
        return {commit: self.sightings(commit) for commit in commits}

    # -- what is said about them -------------------------------------------------------------------------------

    @_reading
    def annotations(self, commit: str) -> list[Annotation]:
        """Everything said about a commit, oldest first."""
        return list(self._annotations.get(self.get_commit(commit).id, ()))

    @_reading
    def annotations_of(self, commits: Sequence[str]) -> dict[str, list[Annotation]]:
        """`annotations` of many commits, by the names that were asked for."""
        return {commit: self.annotations(commit) for commit in commits}

    @_reading
    def names(self, kind: str | None = None) -> list[Name]:
        """Branches and tags."""
        return sorted((n for n in self._names.values() if kind in (None, n.kind)), key=lambda n: n.name.encode())

    @_reading
    def find_name(self, name: str) -> Name | None:
        """What a branch or tag points at."""
        return self._names.get(name)

    @_reading
    def names_at(self, commits: Sequence[str]) -> dict[str, list[Name]]:
        """The branches and tags that point at each of these commits, by the names that were asked for."""
        own = {commit: self.get_commit(commit).id for commit in commits}
        return {commit: [name for name in self.names() if name.target == own[commit]] for commit in commits}

    @_reading
    def moves(self, name: str | None = None, *, limit: int | None = None) -> list[Move]:
        """Deliberate moves, newest first."""
        return [m for m in reversed(self._moves) if name in (None, m.name)][:limit]

    @_reading
    def sessions(self, *, prefix: str = "", source: str | None = None, parent: str | None = None) -> list[SessionRow]:
        """The sessions it knows, by the start of their id, by their file, or by the session that spawned them."""
        return [
            row
            for row in self._sessions.values()
            if row.session.startswith(prefix) and source in (None, row.source) and parent in (None, row.parent)
        ]

    @_reading
    def find_session(self, session: str) -> SessionRow | None:
        """The session of exactly this id."""
        return self._sessions.get(session)

    # -- the feed ----------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> str:
        """Drawn when the store was made."""
        self._check_open()
        return self._epoch

    @_reading
    def last_change(self) -> int:
        """The number of the newest change; 0 in a store that never changed."""
        return len(self._changes)

    @_reading
    def since(self, number: int, limit: int = 1000) -> list[Change]:
        """The changes after that number, oldest first, at most `limit` of them."""
        return self._changes[max(number, 0) :][: max(limit, 0)]

    def wait(self, number: int, timeout: float) -> bool:
        """Wait until there is a change after that number."""
        with self._changed:
            self._check_open()
            self._changed.wait_for(lambda: self.closed or len(self._changes) > number, timeout)
            self._check_open()
            return len(self._changes) > number

    # -- the cache of derived bytes ----------------------------------------------------------------------------

    @_reading
    def cached(self, key: str) -> bytes | None:
        """Derived bytes kept under this key, if they still are."""
        if key in self._cache:
            self._cache.move_to_end(key)
        return self._cache.get(key)

    @_reading
    def cache(self, key: str, data: bytes) -> None:
        """Keep derived bytes for a while."""
        self._cache[key] = data
        self._cache.move_to_end(key)
        while sum(map(len, self._cache.values())) > CACHE_LIMIT:
            self._cache.popitem(last=False)

    # -- maintenance -------------------------------------------------------------------------------------------

    def pack(self, commit: str = "") -> int:
        """Nothing to gather: there are no frames here."""
        return 0

    @_reading
    def fsck(self, *, read_data: bool = False, repair: bool = False, now: int | None = None) -> Report:
        """Is everything what it says it is? There is no disk here that could have changed it."""
        report = Report(commits=len(self._commits), artifacts=len(self._artifacts))
        for name, artifact in self._artifacts.items():
            stone = self.tombstones([name]).get(name)
            if artifact.data is None or (stone is not None and ids.artifact_id(artifact.data) == stone.hash):
                report.findings.append(evicted(name, stone))
            elif ids.artifact_id(artifact.data) != name:
                report.findings.append(Finding(severity="corrupt", what="artifact", which=name, why="its hash differs"))
            report.bytes_read += len(artifact.data or b"")
        return report

    def gc(
        self,
        *,
        dry_run: bool = False,
        now: int | None = None,
        keep_cache: bool = False,
        limit: int | None = None,
        backing: Callable[[str], bool] | None = None,
        needed: Iterable[str] = (),
    ) -> GcReport:
        """Remove what nothing needs."""
        report = GcReport(dry_run=dry_run, cache=0 if keep_cache else sum(map(len, self._cache.values())))
        with self.write() as writer:
            writer.collect(report, clock.now() if now is None else now, limit, backing, set(needed))
            report.kept = len(self._artifacts)
            if dry_run:
                writer.undo_all()
            elif not keep_cache:
                self._cache.clear()
        return report

    def backup(self, path: str | os.PathLike[str]) -> int:
        """Copy everything into a new store in a file; the answer is its size in bytes."""
        from .copying import copy_memory

        with self._lock:
            return copy_memory(self, path)

    def close(self) -> None:
        """Forget everything; a thread that is writing is waited for."""
        with self._lock:
            if self._writing:
                raise BadRequest("this thread is inside a transaction of this store", hint="close it after the block")
            self.closed = True
            self._changed.notify_all()

    def _check_open(self) -> None:
        if self.closed:
            raise Closed("this store has been closed", hint="open another")


def _first(commit: Commit) -> bool:
    return len(commit.id) == values.FULL
