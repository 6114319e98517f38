"""The sessions of OpenCode before version 1.2, a JSON file for each session, message and part, below its home:

    storage/session/PROJECT/SESSION.json, storage/message/SESSION/MESSAGE.json, storage/part/MESSAGE/PART.json
    project/PROJECT/storage/session/{info/SESSION,message/SESSION/MESSAGE,part/SESSION/MESSAGE/PART}.json    before 0.6

Here and there all parts lie in one folder, or files are called otherwise than their ids. The first file of a session is
its source, the others are its pieces; all together are the rows that the database of today's program would have.
Versions 1.2 and 1.3 moved them into it, later ones leave them alone; in both places it is one session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from harken import ids
from harken.errors import HarkenError
from harken.formats.kit.claims import Claim
from harken.formats.kit.jsonl import parse_beginning
from harken.formats.opencode.records import text
from harken.formats.opencode.rows import record_names
from harken.formats.opencode.stored import StoredFile, session_rows, stored_file
from harken.runtimes.base import Runtime, SessionReader
from harken.runtimes.files import OpenFile

from . import RUNTIME as TODAY
from .reading import identify, scan

NAME = "opencode-storage"
HEAD = 64 * 1024
KEYS = ("projectID", "directory", "time")
"""Of these every one that a program wrote has one, and most files of others have none."""
TOLD = (*KEYS, "version", "title")


def _claim(head: bytes, path: Path) -> Claim:
    if path.suffix != ".json" or path.parent.parent.name != "session" or path.parent.name in ("message", "part"):
        return Claim()
    found = parse_beginning(head)
    if isinstance(found, dict) and "id" in found and sum(key in found for key in TOLD) > 1:
        return Claim(score=90, reason="the file of a session in the storage that OpenCode had before 1.2")
    return Claim()


class _Storage:
    """Where the pieces of a session lie."""

    def __init__(self, session: Path) -> None:
        above = session.parents[1]  # `session`
        is_old = session.parent.name == "info" and (above / "message").is_dir()
        base = above if is_old else above.parent
        names = dict.fromkeys((session.stem, session.stem.removeprefix("ses_")))
        self._folders = [base / "message" / name for name in names]
        self._parts = [base / "part" / name for name in names] if is_old else [base / "part"]

    def messages(self) -> list[Path]:
        """The files of its messages."""
        return [file for folder in self._folders for file in _files(folder)]

    def parts(self, message: Path) -> list[Path]:
        """The files in the folder of a message: it is called as the file or, where that is not there, as what the file
        says it is called."""
        for parts in self._parts:
            if (named := parts / message.stem).is_dir():
                return _files(named)
            if ids.is_safe_name(name := _name_in(message)) and (named := parts / name).is_dir():
                return _files(named)
        return []

    def scattered(self) -> list[Path]:
        """The files of parts that are in no folder of a message."""
        return [file for parts in self._parts for file in _files(parts)]


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json" and path.is_file())
    except OSError:
        return []


def _name_in(path: Path) -> str:
    try:
        with OpenFile(path) as file:
            found = parse_beginning(file.read(0, HEAD))
    except HarkenError:
        return ""
    return text(found.get("id")) if isinstance(found, dict) else ""


def _pieces(path: Path) -> Iterator[Path]:
    """The files of the messages, then those of the parts."""
    if path.suffix != ".json" or path.parent.parent.name != "session":
        return
    storage = _Storage(path)
    messages = storage.messages()
    yield from messages
    for message in messages:
        yield from storage.parts(message)
    yield from storage.scattered()


def _gather(path: Path, data: bytes, pieces: Sequence[tuple[Path, bytes]]) -> bytes:
    """The rows of a session."""
    storage = _Storage(path)
    own = {file: stored_file(file.stem, content) for file, content in pieces}
    messages = [file for file in storage.messages() if file in own]
    scattered: dict[str, list[StoredFile]] = {}
    for file in storage.scattered():
        if file in own:
            scattered.setdefault(text(own[file].record.get("messageID")), []).append(own[file])
    found = []
    for message in messages:
        beside = [own[file] for file in storage.parts(message) if file in own]
        found.append((own[message], [*beside, *scattered.get(own[message].id, ())]))
    return session_rows(path.stem, data, found)


def _holds_pieces(folder: Path) -> bool:
    """Whether a folder is that of a session's messages or of a message's parts. Messages of a session that is not there
    are nobody's pieces."""
    for kind in (folder, *folder.parents[:3]):
        beside = kind.parent / "session" if kind.parent.name != "session" else kind.parent
        if kind.name == "part" and (kind.parent / "message").is_dir() and beside.is_dir():
            return True
        if kind.name == "message" and folder.parent == kind and beside.is_dir():
            names = (f"{folder.name}.json", f"ses_{folder.name}.json")
            return any((below / name).exists() for below in _folders(beside) for name in names)
    return False


def _folders(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir()]
    except OSError:
        return []


RUNTIME = Runtime(
    name=NAME,
    label="OpenCode before 1.2",
    format=TODAY.format,
    older_files_of=TODAY.name,
    source="document",
    home=TODAY.home,
    roots=TODAY.roots,
    claim=_claim,
    keys=KEYS,
    environment=TODAY.environment,
    read=SessionReader(
        scan=partial(scan, runtime=NAME),
        identify=identify,
        suffixes=(".json",),
        pieces=_pieces,
        gather=_gather,
        piece_folders=frozenset({"message", "part"}),
        holds_pieces=_holds_pieces,
        record_names=record_names,
    ),
)
