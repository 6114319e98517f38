"""pi. Sessions lie in `$PI_CODING_AGENT_DIR` (else `~/.pi/agent`), one file each, in a folder for each project:

    sessions/--<the folder, its slashes as dashes>--/<time>_<session>.jsonl

A session is continued by `pi --session FILE`, in the folder that its header names, which must be there. A fork
(`pi --fork FILE`) copies the entries under a new header. pi has no sub-agents of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harken.clock import format_millis
from harken.errors import HarkenError
from harken.events import Event
from harken.formats import Written, pi
from harken.formats.facts import ORIGIN, FileFacts, Origin
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.ids import time_ordered_uuid
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

_SEPARATORS = re.compile(r"[/\\:]")
SETTINGS_LIMIT = 1 << 20


def _home(environ: Environment) -> Path:
    if not (given := environ.get("PI_CODING_AGENT_DIR")):
        return user_home(environ) / ".pi" / "agent"
    return user_home(environ) / given[2:] if given.startswith("~/") else Path(given)


def is_of_openclaw(head: bytes, path: Path) -> bool:
    """Whether a session is OpenClaw's, which writes the same format: by where it lies, or by what it notes."""
    parts = path.parts
    if ".pi" in parts:
        return False
    lies_there = len(parts) > 3 and parts[-2] == "sessions" and parts[-4] == "agents"
    return lies_there or not {".openclaw", "openclaw"}.isdisjoint(parts) or pi.is_of_openclaw(head)


def _claim(head: bytes, path: Path) -> Claim:
    found = pi.claim(head, str(path))
    return NO_CLAIM if not found.score or is_of_openclaw(head, path) else found


def identify(path: Path, facts: FileFacts) -> Identity:
    """Whose a file is: the session that its header names, else one that is called after the file."""
    stem = path.with_name(path.name.removesuffix(".zst").removesuffix(".jsonl"))
    return Identity(session=facts.session or path_name(stem))


# -- resume ------------------------------------------------------------------------------------------------------------


def slug(folder: Path) -> str:
    """pi's name for a working folder."""
    return f"--{_SEPARATORS.sub('-', str(folder).removeprefix('/'))}--"


def _place(home: Path, cwd: Path, now: int) -> Place:
    session = time_ordered_uuid(now)
    name = f"{re.sub('[:.]', '-', format_millis(now))}_{session}.jsonl"
    path = home / "sessions" / slug(cwd) / name
    return Place(
        session=session,
        path=path,
        command=("pi", "--session", str(path)),
        cwd=cwd,
        time=now,
        provider="/".join(_chosen_model(home)),
    )


def _chosen_model(home: Path) -> tuple[str, ...]:
    """The provider and the model that pi is set to; a session that names none goes on with a warning."""
    try:
        with OpenFile(home / "settings.json") as file:
            found = msgspec.json.decode(file.read(0, SETTINGS_LIMIT), type=dict[str, Any])
    except (HarkenError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return ()
    chosen = [found.get(key) for key in ("defaultProvider", "defaultModel")]
    names = tuple(name for name in chosen if isinstance(name, str) and name)
    return names if len(names) == 2 else ()


def _native(data: bytes, place: Place) -> bytes:
    return pi.rewrite(data, session_id=place.session, cwd=str(place.cwd), time=place.time)


def _translated(events: Sequence[Event], place: Place) -> Written:
    provider, _, model = place.provider.partition("/")
    return pi.write_session(
        events, session_id=place.session, cwd=str(place.cwd), time=place.time, model=(provider, model)
    )


def _name(place: Place, title: str) -> tuple[Path, bytes]:
    return place.path, pi.name_line(title, place.time)


def _sign(data: bytes, tell: Callable[[bytes], Origin]) -> bytes:
    """One more key of the header; pi passes over those that it does not know."""
    first, _, rest = pi.hang_name(data).partition(b"\n")
    header = msgspec.json.decode(first, type=dict[str, Any])
    header[ORIGIN] = tell(rest)
    return msgspec.json.encode(header) + b"\n" + rest


RUNTIME = Runtime(
    name="pi",
    label="pi",
    format="pi-v1",
    home=_home,
    roots=lambda home: (home / "sessions",),
    claim=_claim,
    keys=pi.CLAIMED_BY,
    environment=lambda home: {"PI_CODING_AGENT_DIR": str(home)},
    read=SessionReader(scan=pi.scan, identify=identify, record_names=pi.record_names),
    resume=ResumeWriter(place=_place, native=_native, translated=_translated, name=_name, sign=_sign),
    launch=LAUNCH,
)
