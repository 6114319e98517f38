"""Forgetting in SQLite: bytes that really leave the file.

It happens in three steps. `erase` is one transaction: the blanked bytes are stored beside the old ones, the artifacts
point at them, tombstones say what was forgotten, and the erasure is noted as begun; from here on nobody is shown what
was there. `scrub` writes every frame anew that holds bytes which nobody points at, with those that lean on it, then the
whole file, and empties the log and the cache. `finish` notes that it is done. Whoever is killed in between leaves an
erasure that is begun, and the next who writes goes on: the second step needs to know nothing of the secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from harken import clock, ids
from harken.errors import Conflict, Corrupt, Evicted, Forgotten, Locked, NotFound

from . import sql
from .blob_writer import add_frame, place_artifact
from .blobs import BULK, seal_frame
from .db import Row, checked
from .opening import drawn_epoch
from .packing import highest_frame, keep_highest
from .tombstones import (
    BEGUN,
    DONE,
    LIFTED,
    ByteSpan,
    Erasure,
    ErasureOrder,
    Tombstone,
    Watchword,
    blanked,
    find_watched,
    find_words,
    keep_out_of_text,
    merged,
    spans_of,
    spans_text,
    windows,
    without,
)
from .values import text, untext

if TYPE_CHECKING:
    from .blobs import SqliteBlobs
    from .commits import SqliteCommits
    from .sqlite import SqliteStore
    from .sqlite_writer import SqliteWriter

_TEXTS = {
    "annotations": ("key", "value", "who"),
    "names": ("name",),
    "moves": ("name", "who", "why"),
    "principals": ("principal", "machine"),
    "changes": ("what",),
}
"""What people said, or what repeats it; a session's row is for the caller, who can read all of it."""
_PATIENCE = 5.0  # seconds for which others may go on reading what was there


# -- reading ----------------------------------------------------------------------------------------------------------


def erasures(store: SqliteBlobs) -> list[Erasure]:
    """Everything that was forgotten, the oldest first."""
    rows = _all(store, "erasures", f"{sql.ERASURES} ORDER BY n")
    return [
        Erasure(number=number, time=time, who=untext(who), why=untext(why), what=untext(what), state=state)
        for number, time, who, why, what, state in rows
    ]


def tombstones(store: SqliteBlobs, artifacts: Sequence[str]) -> dict[str, Tombstone]:
    """What was forgotten of these artifacts, by their names; those that are whole are left out."""
    if not artifacts or not _all(store, "tombstones", f"{sql.TOMBSTONES} LIMIT 1"):
        return {}
    said = {erasure.number: erasure for erasure in erasures(store)}
    found: dict[str, Tombstone] = {}
    for at in range(0, len(artifacts), 128):
        asked = {*artifacts[at : at + 128]}
        known = {
            row[0]: row[1].hex() for row in store.artifact_rows([a for a in asked if len(a) == 64 and ids.is_hex(a)])
        }
        numbers = msgspec.json.encode([*known]).decode()
        for number, hash, spans, erasure in _all(store, "tombstones", sql.TOMBSTONES_AT, (numbers,)):
            if known[number] in asked:
                by = said[erasure]
                found[known[number]] = Tombstone(
                    spans=spans_of(spans), hash=hash.hex(), who=by.who, why=by.why, time=by.time
                )
    return found


def gone(store: SqliteBlobs, artifact: str) -> Evicted:
    """Why the bytes of an artifact are not here."""
    name = ids.artifact_ref(artifact)
    found = tombstones(store, [artifact]).get(artifact)
    if found is None:
        return Evicted(f"the bytes of {name} were evicted", hint="put them again, or fetch them from a backup")
    return forgotten(artifact, found)


def forgotten(artifact: str, found: Tombstone) -> Forgotten:
    """What is said of an artifact all of which was forgotten."""
    return Forgotten(
        f"the bytes of {ids.artifact_ref(artifact)} were forgotten{found.said}",
        hint="this store has them no more; `harken import --restore` reads them from their source again",
    )


def contents(store: SqliteStore) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Every artifact that has bytes, in the order in which they lie; damaged rows are told behind the others."""
    damage: Corrupt | None = None
    for row in store.db.all(f"{sql.ARTIFACTS} ORDER BY frame, start"):
        try:
            number, id, frame, *_ = checked("artifacts", row)
        except Corrupt as problem:
            damage = damage or problem
            continue
        if frame is not None or store.db.one(sql.PARTS, (number,)) is not None:
            yield id.hex(), store.iter_parts(id.hex())
    if damage is not None:
        raise damage


def _all(store: SqliteBlobs, table: str, statement: str, values: Sequence[Any] = ()) -> list[Row]:
    """Checked rows of a table; none where the file is of an older version, and can only be read."""
    if store.db.is_old:
        return []
    return [checked(table, row) for row in store.db.all(statement, values)]


# -- what is put again ------------------------------------------------------------------------------------------------


def is_wanted(store: SqliteBlobs, found: Row) -> bool:
    """Whether bytes that somebody puts again are to be kept: they were evicted, or the erasure was lifted."""
    stone = next(iter(_all(store, "tombstones", sql.TOMBSTONE, (found[0],))), None)
    if stone is None:
        return found[2] is None and store.db.one(sql.PARTS, (found[0],)) is None
    if next((one.state for one in erasures(store) if one.number == stone[3]), DONE) != LIFTED:
        return False
    store.db.do(sql.DROP_TOMBSTONE, (found[0],))
    store.db.do(sql.DROP_PARTS, (found[0],))
    return True


def keep_out(store: SqliteCommits, number: int, data: bytes) -> bytes:
    """The bytes of a new artifact without the secrets that were forgotten before; a tombstone then says so."""
    found = list(find_watched(data, watched(store)))
    if not found:
        return data
    spans = merged(span for span, _ in found)
    data = blanked(data, spans)
    add_tombstone(store, number, ids.artifact_id(data), spans, found[0][1])
    return data


def keep_out_of_parts(store: SqliteCommits, artifact: str, draw: Callable[[str], int]) -> None:
    """The same for one that was put in parts."""
    words = watched(store)
    found: list[tuple[ByteSpan, int]] = []
    for at, window in windows(store.iter_parts(artifact), max(word.size for word in words)) if words else ():
        found += [((at + start, at + end), by) for (start, end), by in find_watched(window, words)]
    row = store.find_artifact(artifact) if found else None
    if row is not None:
        _blank_parts(store, row, merged(span for span, _ in found), found[0][1], draw)


def kept_out(store: SqliteCommits, value: str) -> str:
    """The text without the secrets that were forgotten before."""
    return keep_out_of_text(value, watched(store))


def watched(store: SqliteCommits) -> tuple[Watchword, ...]:
    """The secrets that are not let in, as this epoch has them."""
    kept = store.kept_rows
    if kept.watchwords is None:
        kept.watchwords = tuple(store.db.all(sql.WATCHED))
    return tuple(Watchword(*checked("watchwords", row)[1:]) for row in kept.watchwords if row[2] > 0)


# -- the first step ---------------------------------------------------------------------------------------------------


def erase(store: SqliteStore, order: ErasureOrder) -> Erasure:
    """Forget, in one transaction: from its end on nobody is shown what was there."""
    with store.write() as writer:
        writer.begin()
        if store.last_change() != order.at:
            raise Conflict("the store has changed meanwhile", hint="look again")
        number = writer.draw("erasures")
        row = (number, order.time, text(order.who), text(order.why), text(order.what), BEGUN)
        store.db.do(sql.ADD_ERASURE, (*row, ids.row_sum("erasures", row)))
        for artifact, spans in order.artifacts.items():
            _forget(writer, artifact, spans, number)
        for word in order.words:
            kept = (writer.draw("watchwords"), *msgspec.structs.astuple(Watchword.of(number, word)))
            store.db.do(sql.ADD_WATCHWORD, (*kept, ids.row_sum("watchwords", kept)))
        _blank_rows(store, order.words)
        _drop_notes(store, order.notes)
        # Nobody can tell what a repair has set aside.
        store.db.do("DELETE FROM quarantine")
        for session in order.sessions:
            writer.save_session(session, expect=session.version)
        store.db.do(sql.SET_FACT, drawn_epoch())
    store.forget_all()
    return next(one for one in erasures(store) if one.number == number)


def _forget(writer: SqliteWriter, artifact: str, spans: tuple[ByteSpan, ...], erasure: int) -> None:
    row = writer.store.find_artifact(artifact)
    if row is None:
        raise NotFound(f"no artifact {ids.artifact_ref(artifact)}", hint="`harken fsck` says what is lost")
    before = next(iter(_all(writer.store, "tombstones", sql.TOMBSTONE, (row[0],))), None)
    if not spans:
        writer.store.db.do(sql.DROP_PARTS, (row[0],))
        place_artifact(writer.store.db, row, None, None)
        add_tombstone(writer.store, row[0], "", (), erasure)
    elif before is not None and not before[2]:
        return  # all of it is gone
    else:
        spans = merged((*spans, *(spans_of(before[2]) if before else ())))
        if row[2] is None:
            _blank_parts(writer.store, row, spans, erasure, writer.draw)
        else:
            data = blanked(writer.store.get(artifact), spans)
            add_tombstone(writer.store, row[0], ids.artifact_id(data), spans, erasure)
            writer.place_again(artifact, data, row)
    writer.tell("erasure", row[0])


def _blank_parts(
    store: SqliteBlobs, row: Row, spans: Sequence[ByteSpan], erasure: int, draw: Callable[[str], int]
) -> None:
    """Write those parts of a large artifact anew that hold something to forget; each is a frame of its own."""
    hasher, begin = ids.ArtifactHasher(), 0
    for _, part, frame, size in [checked("parts", raw) for raw in store.db.all(sql.PARTS, (row[0],))]:
        before = store.frame(frame)
        data = blanked(before, spans, begin)
        hasher.update(data)
        if data != before:
            number = draw("frame")
            add_frame(store.db, number, seal_frame(data))
            kept = (row[0], part, number, size)
            store.db.do("DELETE FROM parts WHERE artifact = ? AND part = ?", kept[:2])
            store.db.do(sql.ADD_PART, (*kept, ids.row_sum("parts", kept)))
        begin += size
    add_tombstone(store, row[0], hasher.hexdigest(), spans, erasure)


def add_tombstone(store: SqliteBlobs, number: int, hash: str, spans: Sequence[ByteSpan], erasure: int) -> None:
    """Say what was forgotten of an artifact."""
    row = (number, bytes.fromhex(hash), spans_text(spans), erasure)
    store.db.do(sql.ADD_TOMBSTONE, (*row, ids.row_sum("tombstones", row)))


def _blank_rows(store: SqliteStore, words: Sequence[bytes]) -> None:
    """Blank the words wherever people can say something. A row keeps its number."""
    for table, blankable in _TEXTS.items() if words else ():
        columns = [name for _, name, *_ in store.db.all(f"PRAGMA table_info({table})")][:-1]
        listed = ", ".join(f'"{name}"' for name in columns)
        for raw in store.db.all(f"SELECT {listed}, sum FROM {table}"):
            row = checked(table, raw)
            new = tuple(
                _without(value, words) if name in blankable else value for name, value in zip(columns, row, strict=True)
            )
            if new != row:
                changed = ", ".join(f'"{name}" = ?' for name in columns)
                store.db.do(
                    f"UPDATE {table} SET {changed}, sum = ? WHERE n = ?", (*new, ids.row_sum(table, new), row[0])
                )


def _without(value: Any, words: Sequence[bytes]) -> Any:
    if isinstance(value, bytes):
        return blanked(value, merged(find_words(value, words)))
    return without(value, words)


def _drop_notes(store: SqliteStore, notes: Iterable[tuple[str, str]]) -> None:
    """Empty what was said of commits."""
    for commit, key in notes:
        for raw in store.db.all(sql.ANNOTATIONS, (f"[{store.number(commit)}]",)):
            row = checked("annotations", raw)
            if untext(row[2]) == key:
                new = (*row[:3], "", *row[4:])
                store.db.do(
                    "UPDATE annotations SET value = '', sum = ? WHERE n = ?", (ids.row_sum("annotations", new), row[0])
                )


# -- the second step --------------------------------------------------------------------------------------------------


def scrub(store: SqliteStore) -> None:
    """Take what nobody points at out of the file, its log and the cache. It may be called at any time, and twice."""
    with store.db.transaction():
        store.db.many(sql.DROP_SLOT, [(slot,) for slot, *_ in store.db.all(sql.FREE_SLOTS)])
        highest = highest_frame(store)
        _Scrubber(store).run()
        keep_highest(store, highest)
    store.forget_all()
    store.packer.free.clear()
    store.db.alone("VACUUM")
    _empty_log(store)
    store.derived.clear()


class _Scrubber:
    """Writes frames anew that hold bytes nobody points at, and those that lean on them."""

    def __init__(self, store: SqliteStore) -> None:
        self._store, self._db = store, store.db
        self._free = highest_frame(store) + 1
        self._sizes: dict[int, tuple[int, int | None]] = {
            n: (size, prefix) for n, size, prefix in self._db.all("SELECT n, size, prefix FROM frames")
        }
        self._sizes |= {-slot: (size, None) for slot, size in self._db.all("SELECT slot, size FROM loose")}

    def run(self) -> None:
        """All of them; what others lean on first."""
        used: dict[int, int] = dict(
            self._db.all("SELECT frame, sum(size) FROM artifacts WHERE frame IS NOT NULL GROUP BY frame")
        )
        parts = {frame for (frame,) in self._db.all("SELECT frame FROM parts")}
        leaning: dict[int, list[int]] = {}
        for frame, (_, prefix) in self._sizes.items():
            if prefix is not None:
                leaning.setdefault(prefix, []).append(frame)
        bad = [f for f, (size, _) in self._sizes.items() if f not in parts and used.get(f, 0) != size]
        done: set[int] = set()
        for frame in sorted(bad, key=lambda f: (self._sizes[f][1] is not None, f)):
            if frame in done:
                continue
            above = leaning.get(frame, [])
            contents = {one: self._store.frame(one) for one in above}
            base = self._renew(frame, self._store.frame(frame), self._sizes[frame][1])
            for one in above:
                self._renew(one, contents[one], base)
            done |= {frame, *above}

    def _renew(self, frame: int, content: bytes, prefix: int | None) -> int | None:
        """Write a frame anew without what nobody points at; its new number, or None where nothing is left of it."""
        pieces, start, number = list[bytes](), 0, self._free
        for raw in self._db.all(f"{sql.ARTIFACTS} WHERE frame = ? ORDER BY start", (frame,)):
            row = checked("artifacts", raw)
            pieces.append(content[row[3] : row[3] + row[4]])
            place_artifact(self._db, row, number, start)
            start += row[4]
        self._db.do(*((sql.DROP_FRAME, (frame,)) if frame > 0 else (sql.DROP_SLOT, (-frame,))))
        if not pieces:
            return None
        base = self._store.frame(prefix) if prefix is not None else None
        add_frame(self._db, number, seal_frame(b"".join(pieces), level=BULK, prefix=base), prefix)
        self._free += 1
        return number


def _empty_log(store: SqliteStore) -> None:
    """Write the log into the file and cut it to nothing; whoever still reads what was there is waited for."""
    deadline = clock.monotonic() + _PATIENCE
    while True:
        (busy, *_), *_ = store.db.run(lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        if not busy:
            return
        if clock.monotonic() > deadline:
            raise Locked(
                f"somebody is still reading what {store.location} held before",
                hint="let the others finish; the next command that writes goes on",
            )


# -- the third step ---------------------------------------------------------------------------------------------------


def finish(store: SqliteStore, number: int, state: int = DONE) -> None:
    """Note that an erasure is done, or lifted: then what it forgot is let in again."""
    with store.db.transaction():
        row = store.db.one(f"{sql.ERASURES} WHERE n = ?", (number,))
        if row is None:
            raise NotFound(f"no erasure {number}", hint="`erasures` lists them")
        new = (*checked("erasures", row)[:5], state)
        store.db.do(sql.ADD_ERASURE, (*new, ids.row_sum("erasures", new)))
        if state == LIFTED:
            store.db.do(sql.DROP_WATCHWORDS, (number,))
            store.db.do(sql.SET_FACT, drawn_epoch())
    store.forget_all()
