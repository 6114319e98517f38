"""A runtime with files that grow: `$NOTEBOOK_HOME/books/SESSION.jsonl`, a head line and then records."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from harken.events import Event
from harken.formats import Delta, Format, Written
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
from harken.runtimes.scans import line_scan

from . import program
from .records import Record, encode, events_of, parse, records_of

HEAD = b'{"notebook":'


def head(session: str, cwd: str) -> bytes:
    return encode({"notebook": 1, "session": session, "cwd": cwd}) + b"\n"


# -- the format --------------------------------------------------------------------------------------------------------


def read(data: bytes) -> Iterator[Event]:
    for line in data.split(b"\n"):
        if line.strip():
            yield from events_of(line)


def write(events: Sequence[Event]) -> Written:
    records, losses = records_of(events)
    return Written(data=b"".join(encode(record) + b"\n" for record in records), losses=losses)


scan = line_scan("notebook", read, lambda record: str(record.get("session") or "") if "notebook" in record else "")


def split(data: bytes) -> Sequence[Delta]:
    return scan(data, b"").deltas


FORMAT = Format(
    name="notebook-v1", runtime="notebook", media_type="application/jsonl", split=split, reader=read, writer=write
)


# -- the runtime -------------------------------------------------------------------------------------------------------


def home(environ: Environment) -> Path:
    return Path(environ.get("NOTEBOOK_HOME") or user_home(environ) / ".notebook")


def claim(data: bytes, path: Path) -> Claim:
    return Claim(score=95, reason="it begins with a notebook's head line") if data.startswith(HEAD) else Claim()


def identify(path: Path, facts: FileFacts) -> Identity:
    return Identity(session=facts.session or path.stem)


def place(folder: Path, cwd: Path, now: int) -> Place:
    session = uuid.uuid4().hex
    command = ("notebook", "ask", "--continue", session)
    return Place(session=session, path=folder / "books" / f"{session}.jsonl", command=command, cwd=cwd, time=now)


def native(data: bytes, place: Place) -> bytes:
    lines = data.split(b"\n", 1)
    rest = lines[1] if lines[0].startswith(HEAD) else data
    return head(place.session, str(place.cwd)) + rest


def translated(events: Sequence[Event], place: Place) -> Written:
    made = write(events)
    return Written(data=head(place.session, str(place.cwd)) + made.data, losses=made.losses)


RUNTIME = Runtime(
    name="notebook",
    label="Notebook",
    format="notebook-v1",
    home=home,
    roots=lambda home: (home / "books",),
    claim=claim,
    environment=lambda home: {"NOTEBOOK_HOME": str(home)},
    read=SessionReader(scan=scan, identify=identify),
    resume=ResumeWriter(place=place, native=native, translated=translated),
    launch=program.launcher("notebook"),
)


# -- the program -------------------------------------------------------------------------------------------------------


class Books:
    """The program's own side of its files."""

    def _path(self, session: str) -> Path:
        return home(os.environ) / "books" / f"{session}.jsonl"

    def load(self, session: str) -> list[Record]:
        return [record for line in self._path(session).read_bytes().splitlines()[1:] if (record := parse(line))]

    def save(self, session: str, cwd: str, records: Sequence[Record], added: Sequence[Record]) -> None:
        path = self._path(session)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            if not file.tell():
                file.write(head(session, cwd))
            file.writelines(encode(record) + b"\n" for record in added)


def main() -> None:
    program.main(Books())
