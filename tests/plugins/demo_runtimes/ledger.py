"""A runtime with a database: `$LEDGER_HOME/ledger.db`, a row for every session and one for every record."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from harken.runtimes import (
    Claim,
    Environment,
    FileFacts,
    Identity,
    Place,
    ResumeWriter,
    Runtime,
    SessionReader,
    user_home,
)

from . import program
from .documents import DocumentFormat
from .records import Record, encode, parse

SHAPE = DocumentFormat("ledger")
FORMAT = SHAPE.format()
TABLES = """
create table if not exists sessions (id text primary key, cwd text not null);
create table if not exists entries (session text, number integer, data blob, primary key (session, number));
"""


def home(environ: Environment) -> Path:
    return Path(environ.get("LEDGER_HOME") or user_home(environ) / ".ledger")


def claim(data: bytes, path: Path) -> Claim:
    if data.startswith(b"SQLite format 3\0") and path.name == "ledger.db":
        return Claim(score=80, reason="a database of Ledger's name")
    return Claim()


def sessions(connection: sqlite3.Connection) -> Iterator[tuple[str, bytes]]:
    """Every session's rows as they stand, in the order they were written."""
    for session, cwd in connection.execute("select id, cwd from sessions order by id"):
        rows = connection.execute("select data from entries where session = ? order by number", (session,))
        head = encode({"ledger": 1, "session": session, "cwd": cwd})[:-1]
        yield session, b'%s,"messages":[%s]}' % (head, b",".join(data for (data,) in rows))


def identify(path: Path, facts: FileFacts) -> Identity:
    return Identity(session=facts.session)


def place(folder: Path, cwd: Path, now: int) -> Place:
    session = uuid.uuid4().hex
    command = ("ledger", "ask", "--continue", session)
    return Place(session=session, path=folder / "ledger.db", command=command, cwd=cwd, time=now)


def insert(path: Path, session: str, cwd: str, records: Sequence[Record], first: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(TABLES)
        database.execute("insert or ignore into sessions values (?, ?)", (session, cwd))
        rows = [(session, first + number, encode(record)) for number, record in enumerate(records)]
        database.executemany("insert into entries values (?, ?, ?)", rows)


def write(place: Place, data: bytes) -> None:
    """Into the database instead of a file."""
    insert(place.path, place.session, str(place.cwd), (parse(data) or {})["messages"], 0)


RUNTIME = Runtime(
    name="ledger",
    label="Ledger",
    format="ledger-v1",
    source="database",
    home=home,
    roots=lambda home: (home,),
    claim=claim,
    environment=lambda home: {"LEDGER_HOME": str(home)},
    read=SessionReader(scan=SHAPE.scan, identify=identify, suffixes=("ledger.db",), sessions=sessions),
    resume=ResumeWriter(place=place, native=SHAPE.native, translated=SHAPE.translated, write=write),
    launch=program.launcher("ledger"),
)


class Rows:
    """The program's own side of its database."""

    def load(self, session: str) -> list[Record]:
        with closing(sqlite3.connect(home(os.environ) / "ledger.db")) as database:
            rows = database.execute("select data from entries where session = ? order by number", (session,))
            return [record for (data,) in rows if (record := parse(data))]

    def save(self, session: str, cwd: str, records: Sequence[Record], added: Sequence[Record]) -> None:
        insert(home(os.environ) / "ledger.db", session, cwd, added, len(records) - len(added))


def main() -> None:
    program.main(Rows())
