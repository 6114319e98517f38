"""The changing half of the store in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from harken import clock, ids
from harken.errors import Conflict

from . import values
from .arguments import STORE, checks_arguments
from .base import Content, Writer
from .packed import PackedFrame
from .reports import GcReport
from .values import Annotation, Change, Commit, Draft, Move, Name, SessionRow, Sighting

if TYPE_CHECKING:
    from .memory import MemoryStore

K = TypeVar("K")
V = TypeVar("V")


class MemoryArtifact:
    """Bytes (None once evicted) and how long they must stay."""

    __slots__ = ("data", "policy", "size")

    def __init__(self, data: bytes | None, policy: tuple[str, int | None], size: int) -> None:
        self.data, self.policy, self.size = data, policy, size


@checks_arguments(STORE, Writer)
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
        values.check_policy(policy, expires)
        data, name = bytes(data), ids.artifact_id(data)
        before = self._store._artifacts.get(name)
        if self._store._is_kept_out(name):
            return name
        if before is None or before.data is None or ids.artifact_id(before.data) != name:
            data = self._store._let_in(self, name, data)
        kept = (policy, expires) if before is None else values.stronger(before.policy, (policy, expires))
        self.keep(self._store._artifacts, name, MemoryArtifact(data, kept, len(data)))
        if before is None or before.data is None:
            self.tell("artifact", name)
        if kept != (before.policy if before is not None else ("default", None)):
            self.tell("policy", name, kept[0])
        return name

    def put_stream(self, parts: Iterable[bytes], *, policy: str = "default", expires: int | None = None) -> str:
        """`put` for content that arrives in parts."""
        return self.put(b"".join(parts), policy=policy, expires=expires)

    def put_many(self, contents: Iterable[Content], *, like: Sequence[str] = ()) -> list[str]:
        """`put` for many."""
        names: list[str] = []
        for data in contents:
            if isinstance(data, PackedFrame):
                names += map(self.put, data.contents())
            else:
                names.append(self.put(data) if isinstance(data, bytes) else self.put_stream(data))
        return names

    def commit_many(self, drafts: Sequence[Draft]) -> list[str]:
        """`commit` for the next commits of a chain, each behind the one before."""
        made: list[str] = []
        for draft in drafts:
            made.append(self.commit(msgspec.structs.replace(draft, parent=made[-1]) if made else draft).id)
        return made

    def commit(self, draft: Draft) -> Commit:
        """Record a commit; the same commit twice is one commit."""
        store, draft = self._store, values.check_draft(draft)
        parent = store.get_commit(draft.parent) if draft.parent else None
        if parent is not None:
            draft = msgspec.structs.replace(draft, parent=parent.id)
        store.info(draft.artifact)
        created_at = clock.format_seconds(draft.time)
        name = values.commit_name(draft, created_at)
        seal = values.seal_of(draft, created_at, parent.seal if parent else "")
        for known in (name, name + seal):
            if known in store._commits and store._commits[known].seal == seal:
                self._sight(known, draft)
                return store.get_commit(known)
        name = name if name not in store._commits else name + seal
        digits = ids.digits_needed(name, store._alike.get(name[:8], ()))
        short = ids.commit_ref(name, digits)
        commit = values.to_commit(draft, id=name, seal=seal, short=short, created_at=created_at)
        self.keep(store._commits, name, commit)
        self.tell("commit", name)
        self._append(store._alike.setdefault(name[:8], []), name)
        self.keep(store._places, name, self._place(parent))
        if parent is not None:
            self._append(store._children.setdefault(parent.id, []), name)
        self.keep(store._sightings, name, [])
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
                self.tell("sighting", name, draft.principal)

    def link(self, commit: str, *, spawned_from: dict[str, Any] | None, forked_from: str) -> None:
        """Put these links in the place of the commit's."""
        values.check_origin(spawned_from)
        known = self._store.get_commit(commit)
        linked = msgspec.structs.replace(known, spawned_from=spawned_from, forked_from=forked_from)
        if linked != known:
            self.keep(self._store._commits, known.id, linked)
            self.tell("link", known.id)

    def annotate(self, commit: str, key: str, value: str, *, time: int, who: str = "") -> None:
        """Say something about a commit."""
        values.check_numbers(time=time)
        name = self._store.get_commit(commit).id
        said, value = self._store._annotations.setdefault(name, []), self._store.keep_out(value)
        self._append(said, Annotation(commit=name, key=key, value=value, time=time, who=who))
        self.tell("annotation", name, key)

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
        values.check_numbers(time=time)
        store = self._store
        current = store.find_name(name)
        values.check_move(name, kind, current, to, expect)
        target = store.get_commit(to).id if to else ""
        before = current.target if current else ""
        if target == before:
            return
        if target:
            self.keep(store._names, name, Name(name=name, kind=kind, target=target))
        else:
            self.drop(store._names, name)
        self.tell("name", name, kind)
        if record:
            number = store._moves[-1].number + 1 if store._moves else 1
            move = Move(number=number, name=name, kind=kind, before=before, after=target, time=time, who=who, why=why)
            self._append(store._moves, move)

    def save_session(self, row: SessionRow, *, expect: int | None = None) -> SessionRow:
        """Insert the session or put this row in its place, by compare-and-set on its version."""
        values.check_session(row)
        store, known = self._store, self._store._sessions.get(row.session)
        version = known.version if known else 0
        values.check_version(row.session, version, expect)
        saved = msgspec.structs.replace(
            row,
            version=version + 1,
            title=store.keep_out(row.title),
            tip=store.get_commit(row.tip).id if row.tip else "",
            live=store.get_commit(row.live).id if row.live else "",
            older=tuple(store.get_commit(commit).id for commit in row.older),
        )
        self.keep(store._sessions, row.session, saved)
        self.tell("session", row.session)
        return saved

    def compress_beside(self) -> None:
        """Nothing is compressed here."""

    def rename_session(self, session: str, to: str) -> SessionRow:
        """Call a session something else."""
        sessions = self._store._sessions
        values.check_rename(session, to, known=session in sessions, taken=to in sessions)
        row = msgspec.structs.replace(sessions[session], session=to, version=sessions[session].version + 1)
        self.drop(sessions, session)
        self.keep(sessions, to, row)
        self.tell("session", to)
        return row

    def set_policy(self, artifact: str, policy: str, *, expires: int | None = None) -> None:
        """How long the artifact must stay."""
        values.check_policy(policy, expires)
        found = self._store._artifact(artifact)
        self.keep(self._store._artifacts, artifact, MemoryArtifact(found.data, (policy, expires), found.size))
        self.tell("policy", artifact, policy)

    def evict(self, artifact: str) -> None:
        """Let the bytes go and keep the name."""
        found = self._store._artifact(artifact)
        if found.policy[0] == "pin":
            raise Conflict(f"{ids.artifact_ref(artifact)} is pinned", hint="unpin it first")
        self.keep(self._store._artifacts, artifact, MemoryArtifact(None, found.policy, found.size))
        self.tell("eviction", artifact)

    def drop_artifact(self, artifact: str) -> None:
        """Remove an artifact, its name too."""
        if artifact in self._store.stones:
            self.drop(self._store.stones, artifact)
        self.drop(self._store._artifacts, artifact)
        self.tell("eviction", artifact)

    def collect(
        self, report: GcReport, now: int, limit: int | None, backing: Callable[[str], bool] | None, needed: set[str]
    ) -> None:
        """What gc removes."""
        store = self._store
        used = needed | {commit.artifact for commit in store._commits.values()}
        for name, artifact in list(store._artifacts.items()):
            if artifact.policy[0] == "ephemeral" and (artifact.policy[1] or 0) <= now and name not in used:
                self.drop_artifact(name)
                report.note(name, artifact.size)
                report.expired += 1
        total = sum(artifact.size for artifact in store._artifacts.values() if artifact.data is not None)
        for name, artifact in list(store._artifacts.items()):
            if limit is None or backing is None or total <= limit:
                break
            if artifact.data is not None and artifact.policy[0] != "pin" and backing(name):
                self.evict(name)
                report.note(name, artifact.size)
                report.evicted += 1
                total -= artifact.size

    # -- changes that can be taken back ------------------------------------------------------------------------

    def tell(self, kind: str, subject: str, detail: str = "") -> None:
        """Note a change in the feed."""
        changes = self._store._changes
        self._append(changes, Change(number=len(changes) + 1, kind=kind, subject=subject, detail=detail))

    def keep(self, table: dict[K, V], key: K, value: V) -> None:
        """Put a value into a table."""
        if key in table:
            before = table[key]
            self._undo.append(lambda: table.__setitem__(key, before))
        else:
            self._undo.append(lambda: table.pop(key))
        table[key] = value

    def drop(self, table: dict[K, V], key: K) -> None:
        """Take a value out of a table."""
        before = table.pop(key)
        self._undo.append(lambda: table.__setitem__(key, before))

    def _append(self, items: list[V], item: V) -> None:
        items.append(item)
        self._undo.append(items.pop)

    def refill(self, items: list[V], new: list[V]) -> None:
        """Put other items in the place of all."""
        before = list(items)
        items[:] = new
        self._undo.append(lambda: items.__setitem__(slice(None), before))
