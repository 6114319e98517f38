"""Artifacts in SQLite, the writing half, and the transaction itself.

The transaction begins with the first change, not with the block, so that what a caller does before it keeps nobody
waiting. Bytes gather in a buffer that becomes a frame when it is full, or when the block ends; the numbers of frames
and commits are drawn here, under the lock, so nobody else can draw the same. Every change is noted in the change log,
which is written last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from harken import ids
from harken.errors import BadRequest, NotFound

from . import sql, values
from .blobs import BULK, FRAME_SIZE, Frame, live_level, seal_frame
from .db import Row, checked
from .packed import even_parts
from .values import CHANGES, SessionRow

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from .db import Database
    from .kept import SavedSessions
    from .sqlite import SqliteStore

LOOSE_LIMIT = 64 << 10
"""A frame below this is loose: it waits to be gathered with its neighbours."""
_IN_ONE_ROW = 256
_KIND = {kind: number for number, kind in enumerate(CHANGES)}
_pack = msgspec.msgpack.Encoder().encode
_MANY_SLOTS, _SLOTS_AHEAD = 8, 32  # who has made so many gets more of them at once, at most so many
_SLOT = 3900  # bytes that make a row of `loose` fill its page
_LEFT = ("artifact", "slot")  # numbers that nobody draws but a writer
_SESSIONS_LEFT = 64
_AHEAD = 3  # frames that may wait for the thread that compresses them


class ChangeLog:
    """The changes of one transaction. Everything that changes a store says so here, and nowhere else."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._changes: list[list[Any]] = []
        self.last: int | None = None
        """The number of the newest change, where it is known."""

    def add(self, kind: str, subject: int | str | bytes, detail: str | bytes = "") -> None:
        """Note a change: the number of the row it is about (of the name: its text), and what of it changed."""
        self._changes.append([_KIND[kind], subject, detail] if detail else [_KIND[kind], subject])

    def write(self) -> None:
        """Give the changes their numbers, in the transaction that made them."""
        if not self._changes:
            return
        if self.last is None:
            newest = self._db.one(sql.LAST_CHANGE)
            self.last = int(checked("changes", newest)[0]) if newest else 0
        for at in range(0, len(self._changes), _IN_ONE_ROW):
            some = self._changes[at : at + _IN_ONE_ROW]
            self.last += len(some)
            row = (self.last, len(some), _pack(some))
            self._db.inside(sql.ADD_CHANGES, (*row, ids.row_sum("changes", row)))
        self._changes = []


class SqliteBlobWriter:
    """What changes artifacts, and begins and ends a transaction."""

    def __init__(self, store: SqliteStore) -> None:
        self._store, self._db = store, store.db
        if self._db.local.writer is not None:
            raise BadRequest("this thread is already inside a transaction of this store", hint="use its writer")
        self._db.local.writer = self
        self._begun = False
        self._next: dict[str, int] = {}
        self._known: dict[str, tuple[int, str]] = {}  # commit name -> row, seal
        self._interned: dict[tuple[str, ...], int] = {}
        self.session_rows: SavedSessions = {}  # as they are now: nobody else can change them before we are done
        self._bases: dict[int, int | None] = {}
        self._chain = 0
        self._changes = ChangeLog(self._db)
        self.loosened: list[tuple[int, int]] = []
        """Chain and size of each loose frame that was added."""
        self.ended: set[int] = set()
        """Chains that were closed."""
        self._beside: Executor | None = None
        self._sealing: list[tuple[int, Future[Frame]]] = []  # frames that are being compressed, with their numbers
        self._reset_buffer()

    def _reset_buffer(self) -> None:
        self._buffer: dict[str, bytes] = {}
        self._size = 0
        self._prefix: int | None = None
        self._numbers: dict[str, int] = {}  # of the artifacts in the buffer, whose rows are yet to be written
        self._unnoted: list[str] = []  # those of them that have no row at all
        self._noted: set[str] = set()  # and those that have one nevertheless
        self._scattered = False  # one of them was evicted before, so its row is not next to the others

    def compress_beside(self) -> None:
        """Have a thread of its own compress what is put from now on."""
        from concurrent.futures import ThreadPoolExecutor  # not needed by a checkpoint

        self._beside = ThreadPoolExecutor(1)

    # -- the transaction ---------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin the transaction, with the first change or for one who must look before changing anything."""
        if not self._begun:
            left = self._db.begin()
            self._begun = True
            if left is None:
                self._db.run(self._store.look)
            else:  # nobody has written since the writer before: what it knew last is still so
                self._next, self._changes.last, self.session_rows = left

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
            self.add_sealed()
            self._changes.write()
            if len(self.session_rows) > _SESSIONS_LEFT:
                self.session_rows = {}
            numbers, kept = {what: self._next[what] for what in _LEFT if what in self._next}, self._store.kept_rows
            self._db.commit((numbers, self._changes.last, self.session_rows))
            self._begun = False
            self._store.remember(kept, self._known, self._interned, self.session_rows)

    def end(self) -> None:
        """Take back what was not finished."""
        self._db.local.writer = None
        if self._beside is not None:
            self._beside.shutdown(cancel_futures=True)
        if self._begun:
            self._begun = False
            self._db.rollback()

    def session_row(self, session: str | bytes) -> SessionRow | None:
        """The session of this id, if this transaction knows it already."""
        _, known = self.session_rows.get(session, ((), None))
        return known

    def pending(self, artifact: str) -> bytes | None:
        """Bytes that are still in the buffer."""
        self.add_sealed()
        return self._buffer.get(artifact)

    # -- artifacts ---------------------------------------------------------------------------------------------

    def put(self, data: bytes, *, like: str = "", policy: str = "default", expires: int | None = None) -> str:
        """Keep the bytes; the answer is their full name."""
        values.check_policy(policy, expires)
        if len(data) > FRAME_SIZE:
            return self.put_stream((data,), policy=policy, expires=expires)
        name = ids.artifact_id(data)
        self.begin()
        number, found = self._numbers.get(name), None
        if number is None:
            found = self._find(name)
            if found is None or self._is_wanted(found):
                self._place(name, data, like, found)
                self._changes.add("artifact", self._numbers[name])
        if found is None or policy != "default" or found[5] == "ephemeral":  # no other policy is weaker
            self._keep_for(name, policy, expires, new=found is None and number is None)
        return name

    def _find(self, name: str) -> Row | None:
        """Where an artifact is, or None; most often the index says that it is new."""
        known = self._db.inside(sql.ARTIFACT_ALIKE, (bytes.fromhex(name[:16]),)).fetchone()
        return None if known is None else self._store.find_artifact(name)

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
            self._unnoted.append(name)
        else:
            self._numbers[name] = found[0]
            self._noted.add(name)
            self._scattered = True
        self._buffer[name] = data if self._store.kept_rows.watchwords == () else self._kept_out(name, data)
        self._size += len(data)

    def _is_wanted(self, found: Row) -> bool:
        """Whether the bytes of a known artifact, which somebody puts again, are not here and may be."""
        from .erasing import is_wanted  # few were ever let go

        return (found[2] is None or self._store.kept_rows.watchwords != ()) and is_wanted(self._store, found)

    def _kept_out(self, name: str, data: bytes) -> bytes:
        """The bytes without what was forgotten before."""
        from .erasing import keep_out

        return keep_out(self._store, self._numbers[name], data)

    def _flush(self) -> None:
        """Make the buffer a frame. A small one is loose until it is gathered with its neighbours."""
        if not self._buffer:
            return
        small = self._size < LOOSE_LIMIT
        content = b"".join(self._buffer.values())
        if self._beside is not None and not small and self._prefix is None:
            number = self._draw("frame")
            self._sealing.append((number, self._beside.submit(seal_frame, content)))
            self.add_sealed(but=_AHEAD)
        else:
            self.add_sealed()
            prefix = None if self._prefix is None else self._store.frame(self._prefix)
            frame = seal_frame(content, level=live_level(self._size) if small else BULK, prefix=prefix)
            if small and prefix is None and not self._scattered:
                number = -self._fill_slot(frame)
            else:
                number = self._draw("frame")
                add_frame(self._db, number, frame, self._prefix)
        start, fresh = 0, []
        for name, data in self._buffer.items():
            if name in self._noted:
                place_artifact(self._db, self._artifact(name), number, start)
            else:
                row = (self._numbers[name], bytes.fromhex(name), number, start, len(data), None, None)
                fresh.append((*row, ids.row_sum("artifacts", row)))
            start += len(data)
        if len(fresh) == 1:
            self._db.inside(sql.ADD_ARTIFACT, fresh[0])
        else:
            self._db.many(sql.ADD_ARTIFACT, fresh)
        self._reset_buffer()

    def add_sealed(self, but: int = 0) -> None:
        """Write the frames that were compressed beside, before anybody looks for them; of a few it need not be now."""
        while len(self._sealing) > but:
            number, frame = self._sealing.pop(0)
            add_frame(self._db, number, frame.result())

    def _fill_slot(self, frame: Frame) -> int:
        """Put a small frame into a slot whose own has been packed, or into a new one."""
        numbers, free = list(self._numbers.values()), self._store.packer.free
        slot = 0
        while free and not slot:
            slot = free.pop()
            if self._db.inside(sql.SLOT_IN_USE, (slot,)).fetchone() is not None:  # somebody was faster
                slot = 0
        slot = slot or self._new_slot(len(frame.data))
        fill_slot(self._db, slot, frame, self._chain, numbers[0], numbers[-1])
        self.loosened.append((self._chain, frame.size))
        return slot

    def _new_slot(self, size: int) -> int:
        """A slot behind all others. Whoever goes on and on gets free ones for what comes next: to fill a slot that is
        there changes one page, to make one changes four. Not where several frames of that size share a page."""
        packer, slot = self._store.packer, self._draw("slot")
        ahead = min(packer.made // 2, _SLOTS_AHEAD) if size > _SLOT // 2 and packer.made >= _MANY_SLOTS else 0
        more = [self._draw("slot") for _ in range(ahead)]
        for free in more:
            fill_slot(self._db, free, Frame(bytes(32), 0, bytes(_SLOT)), 0, 0, 0)
        packer.free = more[::-1]
        packer.made += 1 + len(more)
        return slot

    def note_rows(self) -> None:
        """Write the rows of what is in the buffer, though it is not known yet where it will lie."""
        for name in self._unnoted:
            self._add_artifact(self._numbers[name], name, len(self._buffer[name]))
        self._noted.update(self._unnoted)
        self._unnoted.clear()

    def put_name(self, artifact: str, size: int) -> None:
        """Note an artifact whose bytes were evicted before it came here."""
        self.begin()
        self._add_artifact(self._draw("artifact"), artifact, size)

    def _add_artifact(self, number: int, name: str, size: int) -> None:
        row = (number, bytes.fromhex(name), None, None, size, None, None)
        self._db.do(sql.ADD_ARTIFACT, (*row, ids.row_sum("artifacts", row)))

    def _base(self, like: str) -> int | None:
        """The frame to compress against: the one that holds `like`, or the one that one was compressed against."""
        self.add_sealed()
        found = self._store.find_artifact(like)
        if found is not None and (found[2] or 0) < 0:
            # A frame that others lean on must not be packed away, so what is loose is gathered for good first.
            self._flush()
            self.add_sealed()  # the packer takes the number behind the highest that is written
            loose = self._db.one(sql.LOOSE_ROW, (-found[2],))
            self._store.packer.settle(checked("loose", loose)[3] if loose else 0)
            self._next.pop("frame", None)
            found = self._store.find_artifact(like)
        if found is None or found[2] is None:
            return None
        frame = int(found[2])
        if frame not in self._bases:
            row = self._db.one(sql.FRAME_PREFIX, (frame,))
            prefix = checked("frames", row)[3] if row else None
            self._bases[frame] = prefix if prefix is not None else frame
        return self._bases[frame]

    def put_stream(self, parts: Iterable[bytes], *, policy: str = "default", expires: int | None = None) -> str:
        """`put` for content that need not fit into memory: every part is a frame of its own."""
        values.check_policy(policy, expires)
        self.begin()
        hasher, first = ids.ArtifactHasher(), b""
        frames: list[tuple[int, int]] = []
        for part in even_parts(parts):
            hasher.update(part)
            if not frames and not first:
                first = part  # the only one, perhaps
                continue
            for content in filter(None, (first, part)):
                frames.append((self._draw("frame"), len(content)))
                add_frame(self._db, frames[-1][0], seal_frame(content))
            first = b""
        if not frames:
            return self.put(first, policy=policy, expires=expires)
        name = hasher.hexdigest()
        found = self._store.find_artifact(name)
        if found is not None and not self._is_wanted(found):
            self._db.many(sql.DROP_FRAME, [(frame,) for frame, _ in frames])
        else:
            if found is not None:
                number = found[0]
            else:
                number = self._draw("artifact")
                self._add_artifact(number, name, sum(size for _, size in frames))
            rows = [(number, n, *frame) for n, frame in enumerate(frames)]
            self._db.many(sql.ADD_PART, [(*row, ids.row_sum("parts", row)) for row in rows])
            self._changes.add("artifact", number)
            if self._store.kept_rows.watchwords != ():
                from .erasing import keep_out_of_parts

                keep_out_of_parts(self._store, name, self._draw)
        self._keep_for(name, policy, expires, new=found is None)
        return name

    def _artifact(self, artifact: str) -> tuple[Any, ...]:
        if artifact in self._numbers:
            self.note_rows()
        found = self._store.find_artifact(artifact)
        if found is None:
            raise NotFound(f"no artifact {ids.artifact_ref(artifact)}", hint="put it first")
        return found

    def _set_policy(self, row: tuple[Any, ...], policy: str, expires: int | None) -> None:
        set_artifact(self._db, (*row[:5], None if policy == "default" else policy, expires))
        self._changes.add("policy", row[0], policy)

    def _keep_for(self, artifact: str, policy: str, expires: int | None, *, new: bool) -> None:
        """The policy of bytes that were put: theirs if they are new, else the stronger of two."""
        if new and policy == "default":
            return
        row = self._artifact(artifact)
        before = (row[5] or "default", row[6])
        after = (policy, expires) if new else values.stronger(before, (policy, expires))
        if after != before:
            self._set_policy(row, *after)


def add_frame(db: Database, number: int, frame: Frame, prefix: int | None = None) -> None:
    """Write a frame's row."""
    row = (number, frame.hash, frame.size, prefix)
    db.do(sql.ADD_FRAME, (*row, ids.row_sum("frames", row), frame.data))


def fill_slot(db: Database, slot: int, frame: Frame, chain: int, first: int, last: int) -> None:
    """Write a loose frame's row."""
    row = (slot, frame.hash, frame.size, chain, first, last)
    db.inside(sql.FILL_SLOT, (*row, ids.row_sum("loose", row), frame.data))


def place_artifact(db: Database, row: tuple[Any, ...], frame: int | None, start: int | None) -> None:
    """Write where an artifact lies now."""
    set_artifact(db, (*row[:2], frame, start, *row[4:]))


def set_artifact(db: Database, row: tuple[Any, ...]) -> None:
    """Write what is known of an artifact now; its name and size never change."""
    number, _, frame, start, _, policy, expires = row
    db.do(sql.SET_ARTIFACT, (frame, start, policy, expires, ids.row_sum("artifacts", row), number))
