"""Copies of a store: of a file while others go on writing to it, and of a store in memory into a file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harken import ids
from harken.errors import Conflict, HarkenError
from harken.files import give_name, sync_file, sync_folder, write_hint

from . import sql
from .erasing import add_tombstone
from .explaining import explain
from .opening import drawn_epoch
from .values import Draft, text

if TYPE_CHECKING:
    from .db import Database
    from .memory import MemoryStore
    from .sqlite import SqliteStore
    from .sqlite_writer import SqliteWriter


def copy_file(store: SqliteStore, path: str | os.PathLike[str]) -> int:
    """Copy a store that is in use into a new file for its owner alone; the answer is its size in bytes.

    The copy is of one moment, and holds up no writer: it is read from a snapshot, in one step, since SQLite would
    begin again with every change between two steps. It has its name only when it is whole and on the disk.
    From here on it goes its own way, so it has an epoch of its own."""
    target = Path(path).absolute()
    if target.exists():
        raise Conflict(f"{target} is there already", hint="choose another name")
    partial = target.with_name(f"{target.name}.part-{os.getpid()}")
    try:
        os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        _copy_pages(store, partial)
        give_name(partial, target)
        sync_folder(target.parent)
        return target.stat().st_size
    except FileExistsError:
        raise Conflict(f"{target} is there already", hint="choose another name") from None
    except OSError as error:
        raise HarkenError(f"{target} could not be written: {error.strerror}", hint=write_hint(error)) from error
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
            raise explain(error, str(target)) from error
        raise HarkenError(f"{target} could not be written: {error}", hint="`harken fsck` looks at the store") from error
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{partial}{suffix}").unlink(missing_ok=True)


def _copy_pages(store: SqliteStore, partial: Path) -> None:
    held = store.db.acquire()  # so that whoever closes the store waits
    try:
        _copy(store.db, partial)
    finally:
        store.db.release(held)


def _copy(db: Database, partial: Path) -> None:
    source = sqlite3.connect(f"{Path(db.path).as_uri()}?{db.how_to_read}", uri=True, timeout=60.0)
    try:
        copy = sqlite3.connect(partial, isolation_level=None)
        try:
            source.backup(copy)
            # In the mode that every store is opened in: whoever looks at the copy would change its header otherwise.
            copy.execute("PRAGMA journal_mode = WAL").fetchall()
            copy.execute(sql.SET_FACT, drawn_epoch())
        finally:
            copy.close()
    finally:
        source.close()
    sync_file(partial)


def copy_memory(store: MemoryStore, path: str | os.PathLike[str]) -> int:
    """Write everything into a new store at the path; the answer is its size in bytes."""
    target = Path(path).absolute()
    if target.exists():
        raise Conflict(f"{target} is there already", hint="choose another name")
    from .sqlite import SqliteStore

    with contextlib.closing(SqliteStore(target)) as copy, copy.write() as writer:
        _copy_rows(store, writer)
    return target.stat().st_size


def _copy_rows(store: MemoryStore, writer: SqliteWriter) -> None:
    stones = store.tombstones(store.artifacts(limit=1 << 60))
    for artifact in store.artifacts(limit=1 << 60):
        info = store.info(artifact)
        if info.evicted or artifact in stones:
            writer.put_name(artifact, info.size)
        else:
            writer.put(store.get(artifact))
        if info.policy != "default":
            writer.set_policy(artifact, info.policy, expires=info.expires)
    _copy_forgotten(store, writer)
    for commit in store.commits_as_made():
        draft = Draft(**{field: getattr(commit, field) for field in Draft.__struct_fields__})
        writer.commit(draft)
        for seen in store.sightings(commit.id)[1:]:
            who = {"principal": seen.principal, "machine": seen.machine, "time": seen.time}
            writer.commit(msgspec.structs.replace(draft, **who))
        for note in store.annotations(commit.id):
            writer.annotate(commit.id, note.key, note.value, time=note.time, who=note.who)
    for move in reversed(store.moves()):
        writer.move(move.name, kind=move.kind, to=move.after, expect=None, time=move.time, who=move.who, why=move.why)
    for name in store.names():
        writer.move(name.name, kind=name.kind, to=name.target, expect=None, time=0, record=False)
    for row in store.sessions():
        writer.save_session(row)


def _copy_forgotten(store: MemoryStore, writer: SqliteWriter) -> None:
    """Write down what a store in memory has forgotten, and what it has left of it."""
    for erasure in store.erasures():
        row = tuple(text(value) if isinstance(value, str) else value for value in msgspec.structs.astuple(erasure))
        writer.store.db.do(sql.ADD_ERASURE, (*row, ids.row_sum("erasures", row)))
    for word in store.watchwords:
        kept = (writer.draw("watchwords"), *msgspec.structs.astuple(word))
        writer.store.db.do(sql.ADD_WATCHWORD, (*kept, ids.row_sum("watchwords", kept)))
    for artifact, (stone, erasure_number) in store.stones.items():
        found = writer.store.find_artifact(artifact)
        if found is not None:
            add_tombstone(writer.store, found[0], stone.hash, stone.spans, erasure_number)
            if stone.spans:
                writer.place_again(artifact, store.get(artifact), found)
