"""Databases that somebody writes while they are read, and what of them need not be read again."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harken.runtimes.base import Runtime
from harken.runtimes.databases import SessionVersion
from harken.runtimes.files import open_snapshot
from harken.runtimes.importer import Importer

from .test_kinds import TABLES, Table, message, sessions


def counting(read: list[str]) -> Runtime:
    """The runtime of a database that tells what has changed; the sessions whose rows are read are added to `read`."""

    def versions(connection: sqlite3.Connection) -> Iterator[SessionVersion]:
        for session, data in sessions(connection):

            def rows(session: str = session, data: bytes = data) -> bytes:
                read.append(session)
                return data

            yield SessionVersion(key=session, version=data, changed=0, rows=rows)

    reader = msgspec.structs.replace(TABLES.read, versions=versions)
    return msgspec.structs.replace(TABLES, read=reader)


def test_only_the_rows_of_sessions_that_changed_are_read(repo: Any, tmp_path: Path) -> None:
    read: list[str] = []
    table, runtime = Table(tmp_path), counting(read)
    for name in ("s1", "s2"):
        table.write([message(1), message(2)], name)
    first = {result.session: result.tip for result in Importer(repo.store, [runtime]).run([table.path])}
    table.write([message(1), message(2), message(3)], "s2")

    again = {result.session: result for result in Importer(repo.store, [runtime]).run([table.path])}

    assert ["s1", "s2", "s2"] == read
    assert ("unchanged", first["s1"]) == (again["s1"].status, again["s1"].tip)
    assert "grown" == again["s2"].status


def test_with_verify_all_rows_are_read_again(repo: Any, tmp_path: Path) -> None:
    read: list[str] = []
    table, runtime = Table(tmp_path), counting(read)
    table.write([message(1), message(2)])
    list(Importer(repo.store, [runtime]).run([table.path]))

    list(Importer(repo.store, [runtime], verify=True).run([table.path]))

    assert ["s1", "s1"] == read


def test_a_version_that_may_not_change_with_the_next_change_is_not_trusted(repo: Any, tmp_path: Path) -> None:
    read: list[str] = []
    table, runtime = Table(tmp_path), counting(read)
    table.write([message(1), message(2)])

    def just_now(connection: sqlite3.Connection) -> Iterator[SessionVersion]:
        for one in runtime.read.versions(connection):
            yield msgspec.structs.replace(one, changed=1_794_738_000_000_000)

    reader = msgspec.structs.replace(runtime.read, versions=just_now)
    hurried = msgspec.structs.replace(runtime, read=reader)
    list(Importer(repo.store, [hurried], now=lambda: 1_794_738_001_000_000).run([table.path]))
    table.write([message(1)], "s2")

    list(Importer(repo.store, [hurried], now=lambda: 1_794_738_001_000_000).run([table.path]))

    assert ["s1", "s1", "s2"] == read


@pytest.mark.parametrize("pages", [500, 1000])
def test_a_database_that_is_written_all_the_time_is_read_as_it_was_at_one_instant(tmp_path: Path, pages: int) -> None:
    """Each transaction changes two rows alike. However often the log is moved into the file, nobody sees half of it."""
    path = tmp_path / "busy.db"
    writer = sqlite3.connect(path, check_same_thread=False)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute(f"PRAGMA wal_autocheckpoint = {pages}")
    writer.execute("CREATE TABLE pair (a, pad, b)")
    writer.execute("INSERT INTO pair VALUES (0, ?, 0)", ("x" * 200_000,))
    writer.commit()
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            with writer:
                writer.execute("UPDATE pair SET a = ?, pad = ?, b = ?", (number, str(number % 10) * 200_000, number))

    thread = threading.Thread(target=write)
    thread.start()
    seen = []
    try:
        for _ in range(20):
            with open_snapshot(path) as connection:
                seen.append(connection.execute("SELECT a, b, pad FROM pair").fetchone())
                assert [("ok",)] == connection.execute("PRAGMA integrity_check").fetchall()
    finally:
        stop.set()
        thread.join()
        writer.close()

    assert all(a == b and set(pad) <= {str(a % 10), "x"} for a, b, pad in seen)
    assert len({a for a, _, _ in seen}) > 1
