"""A runtime with documents that are rewritten: `$SCRIBE_HOME/sessions/SESSION.json`."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
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
from .documents import DocumentFormat, document
from .records import Record

SHAPE = DocumentFormat("scribe")
FORMAT = SHAPE.format()


def home(environ: Environment) -> Path:
    return Path(environ.get("SCRIBE_HOME") or user_home(environ) / ".scribe")


def claim(data: bytes, path: Path) -> Claim:
    return Claim(score=95, reason="it begins as Scribe's documents do") if data.startswith(b'{"scribe":') else Claim()


def identify(path: Path, facts: FileFacts) -> Identity:
    return Identity(session=facts.session or path.stem)


def place(folder: Path, cwd: Path, now: int) -> Place:
    session = uuid.uuid4().hex
    command = ("scribe", "ask", "--continue", session)
    return Place(session=session, path=folder / "sessions" / f"{session}.json", command=command, cwd=cwd, time=now)


RUNTIME = Runtime(
    name="scribe",
    label="Scribe",
    format="scribe-v1",
    source="document",
    home=home,
    roots=lambda home: (home / "sessions",),
    claim=claim,
    environment=lambda home: {"SCRIBE_HOME": str(home)},
    read=SessionReader(scan=SHAPE.scan, identify=identify, suffixes=(".json",)),
    resume=ResumeWriter(place=place, native=SHAPE.native, translated=SHAPE.translated),
    launch=program.launcher("scribe"),
)


class Documents:
    """The program's own side of its files."""

    def _path(self, session: str) -> Path:
        return home(os.environ) / "sessions" / f"{session}.json"

    def load(self, session: str) -> list[Record]:
        found: list[Record] = json.loads(self._path(session).read_bytes())["messages"]
        return found

    def save(self, session: str, cwd: str, records: Sequence[Record], added: Sequence[Record]) -> None:
        path = self._path(session)
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(".tmp")
        scratch.write_bytes(document("scribe", session, cwd, records))
        scratch.rename(path)


def main() -> None:
    program.main(Documents())
