"""The changing half of the SQLite store, alive inside one transaction.

The transaction begins with the first change, not with the block, so that what a caller does before it keeps nobody
waiting. Bytes gather in a buffer that becomes a frame when it is full, or when the block ends; the numbers of frames
and commits are drawn here, under the lock, so nobody else can draw the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from harken import clock, ids
from harken.errors import BadRequest, Conflict, NotFound

from . import naming, sql
from .base import Commit, Draft, SessionRow
from .db import text
from .frames import BULK, FRAME_SIZE, Frame, live_level, seal_frame
from .packing import SMALL

if TYPE_CHECKING:
    from .sqlite import SqliteStore

LOOSE_LIMIT = SMALL
"""A frame below this is loose: it waits to be gathered with its neighbours."""


class SqliteWriter:
    """Everything that changes the store."""

    def __init__(self, store: SqliteStore) -> None:
        self._store, self._db = store, store.db
        if getattr(self._db.local, "writer", None) is not None:
            raise BadRequest("this thread is already inside a transaction of this store")
        self._db.local.writer = self
        self._begun = False
        self._next: dict[str, int] = {}
        self._known: dict[str, tuple[int, str]] = {}  # commit name -> row, seal
        self._interned: dict[tuple[str, ...], int] = {}
        self._bases: dict[int, int | None] = {}
        self._chain = 0
        self.loosened: list[tuple[int, int]] = []
        """Chain and size of each loose frame that was added."""
        self.ended: set[int] = set()
        """Chains that were closed."""
        self._reset_buffer()

    def _reset_buffer(self) -> None:
        self._buffer: dict[str, bytes] = {}
        self._size = 0
        self._prefix: int | None = None
        self._numbers: dict[str, int] = {}  # of the artifacts in the buffer, whose rows are yet to be written
        self._noted: set[str] = set()  # those of them that have a row nevertheless
        self._scattered = False  # one of them was evicted before, so its row is not next to the others

    # -- the transaction ---------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if not self._begun:
            self._db.begin()
            self._begun = True

    def _draw(self, what: str) -> int:
        """The next free number of a kind; nobody else can draw while we hold the lock."""
        number = self._next.get(what)
        if number is None:
            (number,) = self._db.one(sql.NEXT[what]) or (1,)
        self._next[what] = number + 1
        return number

    def finish(self) -> None:
        """Write what is left in the buffer and make everything durable."""
        if self._begun:
            self._flush()
            self._db.commit()
            self._begun = False
            self._store.remember(self._known, self._interned)

    def end(self) -> None:
        """Take back what was not finished; what was noted of it is forgotten before anybody else may write."""
        self._db.local.writer = None
        if self._begun:
            self._begun = False
            self._store.forget()
            self._db.rollback()

    def pending(self, artifact: str) -> bytes | None:
        """Bytes that are still in the buffer."""
        return self._buffer.get(artifact)

    # -- artifacts ---------------------------------------------------------------------------------------------

    def put(self, data: bytes, *, like: str = "", policy: str = "default", expires: int | None = None) -> str:
        """Keep the bytes; the answer is their full name."""
        naming.check_policy(policy, expires)
        data = bytes(data)
        if len(data) > FRAME_SIZE:
            return self.put_stream((data,), policy=policy, expires=expires)
        name = ids.artifact_id(data)
        self._begin()
        number = self._numbers.get(name)
        if number is None:
            found = self._find_or_draw(name)
            if found is None or (found[1] is None and not self._store.has(name)):
                self._place(name, data, like, found)
                if found is None and policy != "default":
                    self._set_policy(self._numbers[name], policy, expires)
            number = found[0] if found is not None else None
        if number is not None:
            self._strengthen(number, policy, expires)
        return name

    def _find_or_draw(self, name: str) -> tuple[Any, ...] | None:
        """Where an artifact is, or None; the first time, the next number is asked for in the same breath."""
        if "artifact" in self._next:
            return self._store.find_artifact(name)
        id = bytes.fromhex(name)
        *found, following = self._db.all(sql.ARTIFACT_AND_NEXT, (id[:8], id))
        self._next["artifact"] = following[0]
        return found[0] if found else None

    def _place(self, name: str, data: bytes, like: str, found: tuple[Any, ...] | None) -> None:
        """Put new bytes into the buffer; a full one, or one that leans on another frame, is written first."""
        base = self._base(like) if like else self._prefix
        if self._buffer and (
            self._size + len(data) > FRAME_SIZE or (self._prefix is not None and base != self._prefix)
        ):
            self._flush()
            base = self._base(like) if like else None
        self._prefix = base
        if found is None:
            self._numbers[name] = self._draw("artifact")
        else:
            self._numbers[name] = found[0]
            self._noted.add(name)
            self._scattered = True
        self._buffer[name] = data
        self._size += len(data)

    def _flush(self) -> None:
        """Make the buffer a frame. A small one is loose until it is gathered with its neighbours."""
        if not self._buffer:
            return
        small = self._size < LOOSE_LIMIT
        prefix = None if self._prefix is None else self._store.frame(self._prefix)
        frame = seal_frame(
            b"".join(self._buffer.values()), level=live_level(self._size) if small else BULK, prefix=prefix
        )
        if small and prefix is None and not self._scattered:
            number = -self._fill_slot(frame)
        else:
            number = self._draw("frame")
            self._db.do(sql.ADD_FRAME, (number, frame.hash, frame.size, self._prefix, frame.data))
        start, fresh = 0, []
        for name, data in self._buffer.items():
            if name in self._noted:
                self._db.do(sql.PLACE_ARTIFACT, (number, start, self._numbers[name]))
            else:
                fresh.append((self._numbers[name], bytes.fromhex(name), number, start, len(data)))
            start += len(data)
        if len(fresh) == 1:
            self._db.do(sql.ADD_ARTIFACT, fresh[0])
        else:
            self._db.many(sql.ADD_ARTIFACT, fresh)
        self._reset_buffer()

    def _fill_slot(self, frame: Frame) -> int:
        """Put a small frame into a slot whose own has been packed, or into a new one."""
        numbers, free = list(self._numbers.values()), self._store.packer.free
        row = (frame.hash, frame.size, self._chain, numbers[0], numbers[-1], frame.data)
        slot = 0
        while free and not slot:
            slot = free.pop()
            if self._db.one(sql.SLOT_IN_USE, (slot,)) is not None:  # somebody was faster
                slot = 0
        slot = slot or self._draw("slot")
        self._db.do(sql.FILL_SLOT, (slot, *row))
        self.loosened.append((self._chain, frame.size))
        return slot

    def note_rows(self) -> None:
        """Write the rows of what is in the buffer, though it is not known yet where it will lie."""
        for name in self._numbers.keys() - self._noted:
            self._db.do(
                sql.ADD_ARTIFACT, (self._numbers[name], bytes.fromhex(name), None, None, len(self._buffer[name]))
            )
            self._noted.add(name)

    def _base(self, like: str) -> int | None:
        """The frame to compress against: the one that holds `like`, or the one that one was compressed against."""
        found = self._store.find_artifact(like)
        if found is not None and (found[1] or 0) < 0:
            # A frame that others lean on must not be packed away, so what is loose is gathered for good first.
            self._flush()
            loose = self._db.one(sql.LOOSE_ROW, (-found[1],))
            self._store.packer.settle(loose[3] if loose else 0)
            self._next.pop("frame", None)
            found = self._store.find_artifact(like)
        if found is None or found[1] is None:
            return None
        frame = int(found[1])
        if frame not in self._bases:
            prefix = self._db.one(sql.FRAME_PREFIX, (frame,))
            self._bases[frame] = prefix[0] if prefix and prefix[0] is not None else frame
        return self._bases[frame]

    def put_stream(self, parts: Iterable[bytes], *, policy: str = "default", expires: int | None = None) -> str:
        """`put` for content that need not fit into memory: every part is a frame of its own."""
        naming.check_policy(policy, expires)
        self._begin()
        hasher, first = ids.ArtifactHasher(), b""
        frames: list[tuple[int, int]] = []
        for part in _even(parts):
            hasher.update(part)
            if not frames and not first:
                first = part  # the only one, perhaps
                continue
            for content in filter(None, (first, part)):
                frames.append((self._add_part(content), len(content)))
            first = b""
        if not frames:
            return self.put(first, policy=policy, expires=expires)
        name = hasher.hexdigest()
        found = self._store.find_artifact(name)
        if found is not None and self._store.has(name):
            self._db.many(sql.DROP_FRAME, [(frame,) for frame, _ in frames])
        else:
            size = sum(size for _, size in frames)
            if found is not None:
                number = found[0]
            else:
                number = self._draw("artifact")
                self._db.do(sql.ADD_ARTIFACT, (number, bytes.fromhex(name), None, None, size))
            self._db.many(sql.ADD_PART, [(number, n, *row) for n, row in enumerate(frames)])
            if found is None and policy != "default":
                self._set_policy(number, policy, expires)
        if found is not None:
            self._strengthen(found[0], policy, expires)
        return name

    def _add_part(self, content: bytes) -> int:
        number = self._draw("frame")
        frame = seal_frame(content, level=BULK)
        self._db.do(sql.ADD_FRAME, (number, frame.hash, frame.size, None, frame.data))
        return number

    def set_policy(self, artifact: str, policy: str, *, expires: int | None = None) -> None:
        """How long the artifact must stay."""
        naming.check_policy(policy, expires)
        self._begin()
        self._set_policy(self._numbers.get(artifact) or self._artifact(artifact)[0], policy, expires)

    def evict(self, artifact: str) -> None:
        """Let the bytes go and keep the name; the room they took is gc's to give back."""
        self._begin()
        self._flush()
        number = self._artifact(artifact)[0]
        if (self._db.one(sql.POLICY, (number,)) or ("",))[0] == "pin":
            raise Conflict(f"{ids.artifact_ref(artifact)} is pinned", hint="unpin it first")
        self._db.do(sql.DROP_PARTS, (number,))
        self._db.do(sql.PLACE_ARTIFACT, (None, None, number))

    def _artifact(self, artifact: str) -> tuple[Any, ...]:
        found = self._store.find_artifact(artifact)
        if found is None:
            raise NotFound(f"no artifact {ids.artifact_ref(artifact)}", hint="put it first")
        return found

    def _set_policy(self, number: int, policy: str, expires: int | None) -> None:
        if policy == "default":
            self._db.do(sql.DROP_POLICY, (number,))
        else:
            self._db.do(sql.SET_POLICY, (number, policy, expires, ids.row_sum((number, policy, expires))))

    def _strengthen(self, number: int, policy: str, expires: int | None) -> None:
        row = self._db.one(sql.POLICY, (number,))
        before: tuple[str, int | None] = (row[0], row[1]) if row else ("default", None)
        after = naming.stronger(before, (policy, expires))
        if after != before:
            self._set_policy(number, *after)

    # -- commits -----------------------------------------------------------------------------------------------

    def commit(self, draft: Draft) -> Commit:
        """Record a commit; the same commit twice is one commit."""
        naming.check_draft(draft)
        self._begin()
        if len(draft.parent) > naming.FULL:  # a first commit may be named with its seal too
            draft = msgspec.structs.replace(draft, parent=self._store.get_commit(draft.parent).id)
        parent = self._parent(draft.parent)
        artifact = self._numbers.get(draft.artifact) or self._artifact(draft.artifact)[0]
        created_at = clock.format_seconds(draft.time)
        name = naming.commit_name(draft, created_at)
        seal = naming.seal_of(draft, created_at, parent[1] if parent else "")
        after = parent[0] + 1 if parent else None
        alike = self._db.all(sql.ALIKE_OR_AT, (*_near(name), after))
        if alike and alike[-1][1] is None:  # somebody follows the parent already
            after = None
            alike.pop()
        same_name = [row for row in alike if row[1].hex() == name]
        for number, _, sealed, twin, _ in same_name:
            if sealed.hex() == seal:
                return self._seen(number, name + seal if twin else name, draft)
        full = name + seal if same_name else name
        digits = self._make_room(full, alike)
        self._insert(draft, full, seal, digits, parent[0] if parent else None, after, artifact)
        short = ids.commit_ref(full, digits)
        return naming.to_commit(draft, id=full, seal=seal, short=short, created_at=created_at)

    def _parent(self, name: str) -> tuple[int, str] | None:
        if not name:
            return None
        known = self._known.get(name) or self._store.recall(name)
        if known is None:
            known = self._store.number_and_seal(name)
        return known

    def _make_room(self, full: str, alike: list[tuple[Any, ...]]) -> int:
        """How many digits the new name needs; those it resembles get as many as they need now."""
        if not alike:
            return ids.COMMIT_SHORT
        names = {row[0]: row[1].hex() + row[2].hex() if row[3] else row[1].hex() for row in alike}
        for number, *_, digits in alike:
            needed = naming.digits_needed(names[number], [full])
            if needed > (digits or ids.COMMIT_SHORT):
                self._db.do(sql.SET_DIGITS, (needed, number))
        return naming.digits_needed(full, names.values())

    def _insert(
        self,
        draft: Draft,
        full: str,
        seal: str,
        digits: int,
        parent: int | None,
        after: int | None,
        artifact: int,
    ) -> None:
        """Write the row: in the place after its parent if that is free, else as the first of a new chain."""
        number = after if after is not None else self._draw("chain") << 32
        fork = parent if after is None else None
        id, sealed, twin = bytes.fromhex(full[: naming.FULL]), bytes.fromhex(seal), int(len(full) > naming.FULL)
        links = naming.links_text(draft) or None
        facts = (draft.message_count, draft.token_count, int(draft.approximate), links)
        total = ids.row_sum((id, sealed, twin, draft.time, draft.principal, draft.machine, *facts))
        self._db.do(
            sql.ADD_COMMIT,
            (
                number,
                id,
                sealed,
                twin,
                digits if digits != ids.COMMIT_SHORT else None,
                fork,
                artifact,
                draft.time,
                self._origin(draft),
                self._principal(draft),
                *facts,
                total,
            ),
        )
        self._known[full] = (number, seal)
        if draft.artifact in self._buffer:
            self._chain = number >> 32
        if draft.checkpoint == "session_end":
            self.ended.add(number >> 32)

    def _seen(self, number: int, name: str, draft: Draft) -> Commit:
        """The commit was there; note who made it again, once for each principal."""
        if all(sighting.principal != draft.principal for sighting in self._store.sightings(name)):
            total = ids.row_sum((bytes.fromhex(name[: naming.FULL]), draft.principal, draft.machine, draft.time))
            self._db.do(sql.ADD_SIGHTING, (number, self._principal(draft), draft.time, total))
        return self._store.get_commit(name)

    def _origin(self, draft: Draft) -> int:
        return self._intern(
            sql.ORIGIN,
            sql.ADD_ORIGIN,
            (
                draft.session_id,
                draft.format,
                draft.commit_type,
                draft.checkpoint,
                draft.template,
                draft.ticket_id,
                draft.thread_id,
            ),
        )

    def _principal(self, draft: Draft) -> int:
        return self._intern(sql.PRINCIPAL, sql.ADD_PRINCIPAL, (draft.principal, draft.machine))

    def _intern(self, find: str, add: str, values: tuple[str, ...]) -> int:
        """The number of a row of repeated text, added if it is new."""
        number = self._store.interned.get(values) or self._interned.get(values)
        if number is None:
            kept = tuple(map(text, values))
            row = self._db.one(find, kept)
            number = self._interned[values] = int(row[0]) if row else self._db.do(add, kept)
        return number

    # -- what is said about them -------------------------------------------------------------------------------

    def annotate(self, commit: str, key: str, value: str, *, time: int, who: str = "") -> None:
        """Say something about a commit."""
        self._begin()
        number = self._number(commit)
        total = ids.row_sum((self._id(number), key, value, time, who))
        self._db.do(sql.ADD_ANNOTATION, (number, text(key), text(value), time, text(who), total))

    def _number(self, commit: str) -> int:
        known = self._known.get(commit)
        return known[0] if known else self._store.number(commit)

    def _id(self, number: int | None) -> bytes | None:
        """What a row's sum says of a commit it names: the name and the seal, not our number for it."""
        row = self._db.one(sql.COMMIT_NAME, (number,)) if number is not None else None
        return bytes(row[0]) + bytes(row[1]) if row else None

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
        naming.check_name(name)
        self._begin()
        current = self._store.find_name(name)
        naming.check_move(name, kind, current, to, expect)
        target = self._number(to) if to else None
        before = self._number(current.target) if current else None
        if target == before:
            return
        if target is None:
            self._db.do(sql.DROP_NAME, (name,))
        else:
            self._db.do(sql.SET_NAME, (name, kind, target, ids.row_sum((name, kind, self._id(target)))))
        if record:
            number = self._draw("move")
            fields = (number, name, kind, self._id(before), self._id(target), time, who, why)
            self._db.do(
                sql.ADD_MOVE, (number, name, kind, before, target, time, text(who), text(why), ids.row_sum(fields))
            )

    def save_session(self, row: SessionRow) -> None:
        """Insert the session or put this row in its place."""
        self._begin()
        tip = self._number(row.tip) if row.tip else None
        words = (row.parent, row.agent, row.title, row.source)
        rest = (row.started, row.ended, row.messages, row.state)
        total = ids.row_sum((row.session, row.runtime, self._id(tip), *words, *rest))
        values = (text(row.session), text(row.runtime), tip, *map(text, words), *rest, total)
        self._db.do(sql.SAVE_SESSION, values)


def _near(name: str) -> tuple[bytes, bytes]:
    """Every name that shares the eight digits people see."""
    start = bytes.fromhex(name[: ids.COMMIT_SHORT])
    return start + b"\0\0\0\0", start + b"\xff\xff\xff\xff"


def _even(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of exactly one frame, but for the last; nothing at all gives one empty piece."""
    held = bytearray()
    given = False
    for part in parts:
        view = memoryview(part)
        while len(view):
            taken = view[: FRAME_SIZE - len(held)]
            held += taken
            view = view[len(taken) :]
            if len(held) == FRAME_SIZE:
                yield bytes(held)
                held.clear()
                given = True
    if held or not given:
        yield bytes(held)
