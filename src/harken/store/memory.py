"""The plainest store there is: dictionaries. It is the yardstick the SQLite store is compared with.

A transaction keeps a list of how to undo each of its changes, and undoes them if the block raises.
"""

from __future__ import annotations

import functools
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

import msgspec

from harken import clock, ids
from harken.errors import BadRequest, Closed, Conflict, Evicted, NotFound

from . import naming
from .base import Annotation, ArtifactInfo, Change, Commit, Draft, Link, Move, Name, SessionRow, Sighting

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")

CACHE_LIMIT = 64 << 20


class _Artifact:
    """Bytes (None once evicted) and how long they must stay."""

    __slots__ = ("data", "policy", "size")

    def __init__(self, data: bytes | None, policy: tuple[str, int | None], size: int) -> None:
        self.data, self.policy, self.size = data, policy, size


def _reading(ask: Callable[Concatenate[MemoryStore, P], V], /) -> Callable[Concatenate[MemoryStore, P], V]:
    """A question that waits until nobody is inside a transaction, so that nobody sees half of one."""

    @functools.wraps(ask)
    def asked(store: MemoryStore, /, *args: P.args, **options: P.kwargs) -> V:
        with store._lock:
            store._check_open()
            return ask(store, *args, **options)

    return asked


class MemoryStore:
    """A store that is gone when the program ends."""

    location = "memory:"

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._writing = False
        self._artifacts: dict[str, _Artifact] = {}
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
        self._closed = False
        self.epoch = secrets.token_hex(16)

    @contextmanager
    def write(self) -> Iterator[MemoryWriter]:
        """One transaction: whole when the block ends, or nothing of it if it raises."""
        with self._lock:
            self._check_open()
            if self._writing:
                raise BadRequest("this thread is already inside a transaction of this store")
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
            raise Evicted(f"the bytes of {ids.artifact_ref(artifact)} were evicted", hint="put them again")
        return data

    @_reading
    def get_many(self, artifacts: Sequence[str]) -> Iterator[bytes]:
        """The bytes of many, in the order asked."""
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

    @_reading
    def artifacts(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Full names that begin with these hex digits."""
        return sorted(name for name in self._artifacts if name.startswith(prefix))[:limit]

    def _artifact(self, artifact: str) -> _Artifact:
        try:
            return self._artifacts[artifact]
        except KeyError:
            raise NotFound(f"no artifact {ids.artifact_ref(artifact)}") from None

    # -- commits -----------------------------------------------------------------------------------------------

    @_reading
    def get_commit(self, commit: str) -> Commit:
        """The commit of that full name."""
        found = self._commits.get(commit) or self._by_seal(commit)
        if found is None:
            raise NotFound(f"no commit {ids.commit_ref(commit)}", hint="`harken log --all` lists every commit")
        return found

    @_reading
    def get_commits(self, commits: Sequence[str]) -> list[Commit]:
        """The commits of these full names, in the order asked."""
        return [self.get_commit(commit) for commit in commits]

    def _by_seal(self, commit: str) -> Commit | None:
        first = self._commits.get(commit[: naming.FULL])
        return first if first is not None and commit == first.id + first.seal else None

    @_reading
    def commits(self, prefix: str = "", *, limit: int | None = None) -> list[Commit]:
        """Commits whose name begins with these hex digits, newest first."""
        if len(prefix) > naming.FULL:
            found = [c for c in self._commits.values() if (c.id[: naming.FULL] + c.seal).startswith(prefix)]
        else:
            found = [c for c in self._commits.values() if c.id.startswith(prefix) and (not prefix or _first(c))]
        found.sort(key=lambda c: (c.time, self._places[c.id]), reverse=True)
        return found[:limit]

    @_reading
    def chain(self, commit: str, *, limit: int | None = None, stop: Iterable[str] = ()) -> list[Commit]:
        """From the commit back towards its root."""
        ends, walked = frozenset(stop), [self.get_commit(commit)]
        while walked[-1].parent and walked[-1].commit_type not in ends and (limit is None or len(walked) < limit):
            walked.append(self.get_commit(walked[-1].parent))
        return walked if limit is None else walked[: max(limit, 0)]

    @_reading
    def walk(self, commit: str, *, limit: int | None = None, stop: Iterable[str] = ()) -> list[Link]:
        """`chain` without the facts that only people need."""
        return [
            Link(c.id, c.artifact, c.commit_type, c.format, c.message_count, c.token_count, c.approximate)
            for c in self.chain(commit, limit=limit, stop=stop)
        ]

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
    def sessions(self, *, prefix: str = "", source: str | None = None) -> list[SessionRow]:
        """The sessions it knows, by the start of their id or by the file they came from."""
        return [
            row for row in self._sessions.values() if row.session.startswith(prefix) and source in (None, row.source)
        ]

    @_reading
    def find_session(self, session: str) -> SessionRow | None:
        """The session of exactly this id."""
        return self._sessions.get(session)

    # -- the feed ----------------------------------------------------------------------------------------------

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
            self._changed.wait_for(lambda: self._closed or len(self._changes) > number, timeout)
            self._check_open()
            return len(self._changes) > number

    # -- the cache of derived bytes ----------------------------------------------------------------------------

    @_reading
    def cached(self, key: str) -> bytes | None:
        """Derived bytes kept under this key, if they still are."""
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
            return self._cache.get(key)

    @_reading
    def cache(self, key: str, data: bytes) -> None:
        """Keep derived bytes for a while."""
        with self._lock:
            self._cache[key] = data
            self._cache.move_to_end(key)
            while sum(map(len, self._cache.values())) > CACHE_LIMIT:
                self._cache.popitem(last=False)

    # -- housekeeping ------------------------------------------------------------------------------------------

    def pack(self, commit: str = "") -> int:
        """Nothing to gather: there are no frames here."""
        return 0

    def close(self) -> None:
        """Forget everything; a thread that is writing is waited for."""
        with self._lock:
            if self._writing:
                raise BadRequest("this thread is inside a transaction of this store", hint="close it after the block")
            self._closed = True
            self._changed.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("this store has been closed", hint="open another")


def _first(commit: Commit) -> bool:
    return len(commit.id) == naming.FULL


class MemoryWriter:
    """The changing half; every change leaves a note on how to take it back."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._undo: list[Callable[[], object]] = []

    def undo_all(self) -> None:
        """Take back everything, newest first."""
        while self._undo:
            self._undo.pop()()

    def put(self, data: bytes, *, like: str = "", policy: str = "default", expires: int | None = None) -> str:
        """Keep the bytes; the answer is their full name."""
        naming.check_policy(policy, expires)
        data, name = bytes(data), ids.artifact_id(data)
        before = self._store._artifacts.get(name)
        kept = (policy, expires) if before is None else naming.stronger(before.policy, (policy, expires))
        self._set(self._store._artifacts, name, _Artifact(data, kept, len(data)))
        if before is None or before.data is None:
            self._tell("artifact", name)
        if kept != (before.policy if before is not None else ("default", None)):
            self._tell("policy", name, kept[0])
        return name

    def put_stream(self, parts: Iterable[bytes], *, policy: str = "default", expires: int | None = None) -> str:
        """`put` for content that arrives in parts."""
        return self.put(b"".join(parts), policy=policy, expires=expires)

    def commit(self, draft: Draft) -> Commit:
        """Record a commit; the same commit twice is one commit."""
        store, draft = self._store, naming.check_draft(draft)
        parent = store.get_commit(draft.parent) if draft.parent else None
        if parent is not None:
            draft = msgspec.structs.replace(draft, parent=parent.id)
        store.info(draft.artifact)
        created_at = clock.format_seconds(draft.time)
        name = naming.commit_name(draft, created_at)
        seal = naming.seal_of(draft, created_at, parent.seal if parent else "")
        for known in (name, name + seal):
            if known in store._commits and store._commits[known].seal == seal:
                self._sight(known, draft)
                return store.get_commit(known)
        name = name if name not in store._commits else name + seal
        digits = naming.digits_needed(name, store._alike.get(name[:8], ()))
        short = ids.commit_ref(name, digits)
        commit = naming.to_commit(draft, id=name, seal=seal, short=short, created_at=created_at)
        self._set(store._commits, name, commit)
        self._tell("commit", name)
        self._append(store._alike.setdefault(name[:8], []), name)
        self._set(store._places, name, self._place(parent))
        if parent is not None:
            self._append(store._children.setdefault(parent.id, []), name)
        self._set(store._sightings, name, [])
        self._sight(name, draft, first=True)
        return store.get_commit(name)

    def _place(self, parent: Commit | None) -> tuple[int, int]:
        """After its parent, if nothing is there yet; else a new chain."""
        taken = self._store._places.values()
        if parent is not None:
            chain, place = self._store._places[parent.id]
            if all(
                self._store._places[child] != (chain, place + 1) for child in self._store._children.get(parent.id, ())
            ):
                return chain, place + 1
        return max((chain for chain, _ in taken), default=0) + 1, 0

    def _sight(self, name: str, draft: Draft, *, first: bool = False) -> None:
        seen = self._store._sightings[name]
        if all(s.principal != draft.principal for s in seen):
            sighting = Sighting(commit=name, principal=draft.principal, machine=draft.machine, time=draft.time)
            self._append(seen, sighting)
            if not first:
                self._tell("sighting", name, draft.principal)

    def annotate(self, commit: str, key: str, value: str, *, time: int, who: str = "") -> None:
        """Say something about a commit."""
        name = self._store.get_commit(commit).id
        said = self._store._annotations.setdefault(name, [])
        self._append(said, Annotation(commit=name, key=key, value=value, time=time, who=who))
        self._tell("annotation", name, key)

    def move(
        self,
        name: str,
        *,
        kind: str,
        to: str,
        expect: str | None,
        time: int,
        who: str = "",
        why: str = "",
        record: bool = True,
    ) -> None:
        """Point a name at a commit, by compare-and-set."""
        store = self._store
        current = store.find_name(name)
        naming.check_move(name, kind, current, to, expect)
        target = store.get_commit(to).id if to else ""
        before = current.target if current else ""
        if target == before:
            return
        if target:
            self._set(store._names, name, Name(name=name, kind=kind, target=target))
        else:
            self._drop(store._names, name)
        self._tell("name", name, kind)
        if record:
            number = store._moves[-1].number + 1 if store._moves else 1
            move = Move(number=number, name=name, kind=kind, before=before, after=target, time=time, who=who, why=why)
            self._append(store._moves, move)

    def save_session(self, row: SessionRow, *, expect: int | None = None) -> SessionRow:
        """Insert the session or put this row in its place, by compare-and-set on its version."""
        store, known = self._store, self._store._sessions.get(row.session)
        version = known.version if known else 0
        naming.check_version(row.session, version, expect)
        saved = msgspec.structs.replace(
            row,
            version=version + 1,
            tip=store.get_commit(row.tip).id if row.tip else "",
            live=store.get_commit(row.live).id if row.live else "",
            older=tuple(store.get_commit(commit).id for commit in row.older),
        )
        self._set(store._sessions, row.session, saved)
        self._tell("session", row.session)
        return saved

    def set_policy(self, artifact: str, policy: str, *, expires: int | None = None) -> None:
        """How long the artifact must stay."""
        naming.check_policy(policy, expires)
        found = self._store._artifact(artifact)
        self._set(self._store._artifacts, artifact, _Artifact(found.data, (policy, expires), found.size))
        self._tell("policy", artifact, policy)

    def evict(self, artifact: str) -> None:
        """Let the bytes go and keep the name."""
        found = self._store._artifact(artifact)
        if found.policy[0] == "pin":
            raise Conflict(f"{ids.artifact_ref(artifact)} is pinned", hint="unpin it first")
        self._set(self._store._artifacts, artifact, _Artifact(None, found.policy, found.size))
        self._tell("eviction", artifact)

    # -- changes that can be taken back ------------------------------------------------------------------------

    def _tell(self, kind: str, subject: str, detail: str = "") -> None:
        changes = self._store._changes
        self._append(changes, Change(number=len(changes) + 1, kind=kind, subject=subject, detail=detail))

    def _set(self, table: dict[K, V], key: K, value: V) -> None:
        if key in table:
            before = table[key]
            self._undo.append(lambda: table.__setitem__(key, before))
        else:
            self._undo.append(lambda: table.pop(key))
        table[key] = value

    def _drop(self, table: dict[K, V], key: K) -> None:
        before = table.pop(key)
        self._undo.append(lambda: table.__setitem__(key, before))

    def _append(self, items: list[V], item: V) -> None:
        items.append(item)
        self._undo.append(items.pop)
