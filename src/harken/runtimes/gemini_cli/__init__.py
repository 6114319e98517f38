"""Gemini CLI. Sessions lie in `~/.gemini` (`$GEMINI_CLI_HOME` stands in for the user's home), by project:

    projects.json                                          folder -> short name of the project
    tmp/<name>/.project_root                               the folder again
    tmp/<name>/chats/session-<time>-<8 digits>.jsonl       a session; every resume in a later minute adds an empty one
    tmp/<name>/chats/<session>/<agent>.jsonl               its sub-agents

The program deletes sessions by itself: those older than a month, and with an empty file all of the same eight digits.
A session is continued by `gemini --resume ID`, in its project's folder.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harken import clock, ids
from harken.events import Event
from harken.formats import Written, gemini_cli
from harken.formats.facts import ORIGIN, Origin
from harken.formats.kit.claims import Claim
from harken.runtimes.base import (
    Environment,
    Place,
    ResumeWriter,
    Runtime,
    SessionReader,
    user_home,
)
from harken.runtimes.chat_files import identify

from .launch import LAUNCH
from .projects import project_folder, register

FOLDER = ".gemini"
_DIGITS = re.compile(r"-([0-9a-f]{8}|[0-9a-f]{12})\.jsonl?$")
"""The first digits of the session's id, as the program names a file, or the last ones, as we do."""


def home_of(environ: Environment) -> Path:
    """The program's folder."""
    return Path(environ.get("GEMINI_CLI_HOME") or user_home(environ)) / FOLDER


def environment(home: Path) -> Mapping[str, str]:
    """What leads the program there: it always adds the folder's own name."""
    return {"GEMINI_CLI_HOME": str(home.parent)} if home.name == FOLDER else {}


def _claim(head: bytes, path: Path) -> Claim:
    return gemini_cli.claim(head, str(path))


def _agent_files(path: Path) -> Iterator[Path]:
    """The folder of a session's sub-agents is called after the session, of which the file's name has a part."""
    if found := _DIGITS.search(path.name):
        digits = found[1]
        for folder in sorted(path.parent.glob(f"{digits}-*" if len(digits) == 8 else f"*-{digits}")):
            yield from sorted(folder.glob("*.jsonl"))


# -- resume ------------------------------------------------------------------------------------------------------------


def _place(home: Path, cwd: Path, now: int) -> Place:
    session = str(uuid.UUID(bytes=os.urandom(16), version=4))
    # The program's own names end with the session's first eight digits. When it goes on with one it begins an empty
    # file of such a name beside it, and at its next start removes every file with the digits of an empty one; a name
    # that ends otherwise is found all the same, and stays.
    name = f"session-{clock.to_datetime(now):%Y-%m-%dT%H-%M-%S}-{session[-12:]}.jsonl"
    path = project_folder(home, cwd) / "chats" / name
    return Place(session=session, path=path, command=("gemini", "--resume", session), cwd=cwd, time=now)


def _project_hash(cwd: Path) -> str:
    return ids.plain_sha256(os.fsencode(cwd))


def _native(data: bytes, place: Place) -> bytes:
    return gemini_cli.rewrite(data, session_id=place.session, project=_project_hash(place.cwd), time=place.time)


def _translated(events: Sequence[Event], place: Place) -> Written:
    return gemini_cli.write_session(events, session_id=place.session, project=_project_hash(place.cwd), time=place.time)


def _write(place: Place, data: bytes) -> None:
    """The file, and the project's entry without which the program looks elsewhere."""
    from harken.runtimes.resume import write_new

    write_new(place.path, data)
    register(place.path.parents[1], place.cwd)


def _name(place: Place, title: str) -> tuple[Path, bytes]:
    return place.path, gemini_cli.name_line(title)


def _sign(data: bytes, tell: Callable[[bytes], Origin]) -> bytes:
    """One more key of the header; the program passes over those that it does not know."""
    first, _, rest = data.partition(b"\n")
    record = msgspec.json.decode(first, type=dict[str, Any])
    record[ORIGIN] = tell(rest)
    return msgspec.json.encode(record) + b"\n" + rest


RUNTIME = Runtime(
    name="gemini-cli",
    label="Gemini CLI",
    format="gemini-cli-v1",
    home=home_of,
    roots=lambda home: (home / "tmp",),
    claim=_claim,
    keys=gemini_cli.CLAIMED_BY,
    environment=environment,
    read=SessionReader(
        scan=gemini_cli.scan,
        identify=identify,
        agent_files=_agent_files,
        record_names=gemini_cli.record_names,
    ),
    resume=ResumeWriter(
        place=_place,
        native=_native,
        translated=_translated,
        write=_write,
        name=_name,
        drops=gemini_cli.dropped,
        sign=_sign,
    ),
    launch=LAUNCH,
)
