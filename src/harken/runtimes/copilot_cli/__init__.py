"""Copilot CLI. Sessions lie in `$COPILOT_HOME` (else `~/.copilot`), a folder each:

    session-state/<session>/events.jsonl       all that happened, its sub-agents among it
    session-state/<session>/workspace.yaml     where it worked, and what it is called
    session-state/<session>/checkpoints/*.md   the summaries of its compactions

A session is continued by `copilot --resume=ID`.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harken.errors import HarkenError
from harken.events import Event
from harken.events.base import clean
from harken.formats import Written, copilot_cli
from harken.formats.facts import ORIGIN, FileFacts, Origin
from harken.formats.kit.claims import Claim
from harken.runtimes.base import (
    Environment,
    Identity,
    Place,
    ResumeWriter,
    Runtime,
    SessionReader,
    path_name,
    user_home,
)
from harken.runtimes.files import OpenFile

from .launch import LAUNCH

EVENTS = "events.jsonl"
FOLDER = "session-state"
WORKSPACE = "workspace.yaml"
WORKSPACE_LIMIT = 64 << 10
SIDE_FILE_LIMIT = 1000
"""How many side files a session may have before we stop looking."""
_NAME = re.compile(rb"^name: *(.+?) *$", re.MULTILINE)
_GIVEN = re.compile(rb"^user_named: *true *$", re.MULTILINE)
TITLE = 200


def _home(environ: Environment) -> Path:
    return Path(environ.get("COPILOT_HOME") or user_home(environ) / ".copilot")


def _claim(head: bytes, path: Path) -> Claim:
    return copilot_cli.claim(head, str(path))


def _identify(path: Path, facts: FileFacts) -> Identity:
    stem = path.parent if path.name == EVENTS else path.with_suffix("")
    return Identity(session=facts.session or path_name(stem), title=_given_name(path.with_name(WORKSPACE)))


def _given_name(workspace: Path) -> str:
    """The name that somebody gave the session; the program itself calls it after its first prompt."""
    try:
        with OpenFile(workspace) as file:
            data = file.read(0, WORKSPACE_LIMIT)
    except HarkenError:
        return ""
    found = _NAME.search(data) if _GIVEN.search(data) else None
    return clean(found[1].decode("utf-8", "replace")).strip("\"'")[:TITLE] if found else ""


def _side_files(path: Path) -> Iterator[Path]:
    """The summaries of its compactions, and what the program says of the session."""
    if path.name != EVENTS:
        return
    yield from (found for found in (path.with_name(WORKSPACE),) if found.is_file())
    notes = sorted(path.parent.glob("checkpoints/*.md"))[:SIDE_FILE_LIMIT]
    yield from (found for found in notes if found.is_file())


# -- resume ----------------------------------------------------------------------------------------------------------


def _place(home: Path, cwd: Path, now: int) -> Place:
    session = str(uuid.UUID(bytes=os.urandom(16), version=4))
    path = home / FOLDER / session / EVENTS
    return Place(session=session, path=path, command=("copilot", f"--resume={session}"), cwd=cwd, time=now)


def _native(data: bytes, place: Place) -> bytes:
    return copilot_cli.rewrite(data, session_id=place.session, cwd=str(place.cwd), time=place.time)


def _translated(events: Sequence[Event], place: Place) -> Written:
    written = copilot_cli.FORMAT.adopt(events)
    return msgspec.structs.replace(written, data=_native(written.data, place))


def _sign(data: bytes, tell: Callable[[bytes], Origin]) -> bytes:
    """One more key in what the first line says, which the program passes over."""
    first, _, rest = data.partition(b"\n")
    record = msgspec.json.decode(first, type=dict[str, Any])
    record["data"][ORIGIN] = tell(rest)
    return msgspec.json.encode(record) + b"\n" + rest


RUNTIME = Runtime(
    name="copilot-cli",
    label="Copilot CLI",
    format="copilot-cli-v1",
    home=_home,
    roots=lambda home: (home / FOLDER,),
    claim=_claim,
    keys=copilot_cli.CLAIMED_BY,
    environment=lambda home: {"COPILOT_HOME": str(home)},
    read=SessionReader(
        scan=copilot_cli.scan,
        identify=_identify,
        suffixes=(".jsonl",),
        side_files=_side_files,
        side_chains=copilot_cli.side_chains,
        record_names=copilot_cli.record_names,
    ),
    resume=ResumeWriter(place=_place, native=_native, translated=_translated, sign=_sign),
    launch=LAUNCH,
)
