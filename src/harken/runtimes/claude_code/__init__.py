"""Claude Code. Sessions lie in `$CLAUDE_CONFIG_DIR` (else `~/.claude`), one JSONL file each:

    projects/<slug of the working folder>/<session>.jsonl
    projects/<slug>/<session>/subagents/[workflows/<run>/]agent-<id>.jsonl     sub-agents, with `.meta.json` beside
    projects/<slug>/<session>/tool-results/<id>.txt                            long outputs of tools
    projects/<slug>/agent-<id>.jsonl                                           sub-agents of the 2.0 versions

A sub-agent's records name their parent's session, so the file's own name is `<session>/<agent>`. A
session is continued by `claude --resume ID`.
"""

from __future__ import annotations

import contextlib
import os
import re
import unicodedata
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harken.errors import HarkenError
from harken.events import Event
from harken.events.base import clean
from harken.formats import Written, claude_code
from harken.formats.facts import ORIGIN, FileFacts, Origin
from harken.formats.kit.claims import Claim
from harken.ids import is_safe_name
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

SLUG_LIMIT = 200
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9]")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_UUID = re.compile(rb'"uuid"\s*:\s*"([^"\\]{1,64})"')
_TIMESTAMP = re.compile(rb'"timestamp":"([0-9A-Z:.-]{1,40})"')
META_LIMIT = 64 << 10
SIDE_FILE_LIMIT = 10_000
"""How many side files a session may have before we stop looking."""


def _home(environ: Environment) -> Path:
    return Path(environ.get("CLAUDE_CONFIG_DIR") or user_home(environ) / ".claude")


def _claim(head: bytes, path: Path) -> Claim:
    return claude_code.claim(head, str(path))


def _identify(path: Path, facts: FileFacts) -> Identity:
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl")
    session = facts.session or stem
    if not facts.sidechain:
        return Identity(session=session)
    if session == stem and "subagents" in path.parts:
        # The records do not name their parent, but the folder they lie in is called after it.
        session = path_name(Path(*path.parts[: path.parts.index("subagents")]))
    agent = facts.agents[0] if facts.agents else stem.removeprefix("agent-")
    return Identity(session=session, agent=agent, parent=session, call_id=_call_id(_meta(path)))


def _meta(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".jsonl") + ".meta.json")


def _call_id(meta: Path) -> str:
    """The call that started a sub-agent, as its `.meta.json` tells it."""
    try:
        with OpenFile(meta) as file:
            value = msgspec.json.decode(file.read(0, META_LIMIT), type=dict[str, Any])
    except (HarkenError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return ""
    call = value.get("toolUseId")
    return clean(call) if isinstance(call, str) else ""


def _side_files(path: Path) -> Iterator[Path]:
    """What belongs to the session and is not a transcript. A sub-agent has its `.meta.json`."""
    if path.name.startswith("agent-"):
        if (meta := _meta(path)).is_file():
            yield meta
        return
    count = 0
    for folder, _, names in os.walk(path.with_suffix("")):
        for name in sorted(names):
            if name.startswith("agent-") and name.endswith((".jsonl", ".meta.json")):
                continue
            count += 1
            if count > SIDE_FILE_LIMIT:
                return
            yield Path(folder, name)


def _agent_files(path: Path) -> Iterator[Path]:
    """The files of sub-agents: in the session's own folder, or beside it, where those of other sessions lie too."""
    if path.name.startswith("agent-"):
        return
    yield from sorted(path.with_suffix("").glob("subagents/**/agent-*.jsonl"))
    named = b'"' + path.stem.encode("utf-8", "replace") + b'"'
    for beside in sorted(path.parent.glob("agent-*.jsonl")):
        with contextlib.suppress(HarkenError), OpenFile(beside) as file:
            if named in file.read(0, META_LIMIT):
                yield beside


def _record_names(data: bytes) -> list[str]:
    return [found.decode("utf-8", "replace") for found in _UUID.findall(data)]


# -- resume ----------------------------------------------------------------------------------------------------------


def slug(folder: Path) -> str:
    """Claude Code's name for a working folder: everything but letters and digits becomes a dash."""
    text = unicodedata.normalize("NFC", str(folder))
    plain = _NOT_PLAIN.sub("-", text)
    return plain if len(plain) <= SLUG_LIMIT else f"{plain[:SLUG_LIMIT]}-{_base36(_hash(text))}"


def _hash(text: str) -> int:
    """The 32-bit string hash that tells long names apart, over UTF-16 code units."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (value * 31 + int.from_bytes(units[at : at + 2], "little")) & 0xFFFFFFFF
    return abs(value - (1 << 32) if value >= 1 << 31 else value)


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def _place(home: Path, cwd: Path, now: int) -> Place:
    session = str(uuid.uuid4())
    path = home / "projects" / slug(cwd) / f"{session}.jsonl"
    return Place(session=session, path=path, command=("claude", "--resume", session), cwd=cwd, time=now)


def _native(data: bytes, place: Place) -> bytes:
    folder = str(place.path.with_suffix(""))
    return claude_code.rewrite(data, session_id=place.session, cwd=str(place.cwd), folder=folder)


def _translated(events: Sequence[Event], place: Place) -> Written:
    written = claude_code.FORMAT.adopt(events)
    return Written(data=_native(written.data, place), losses=written.losses)


def _name(place: Place, title: str) -> tuple[Path, bytes]:
    line = {"type": "custom-title", "customTitle": title, "sessionId": place.session}
    return place.path, msgspec.json.encode(line) + b"\n"


def _sign(data: bytes, tell: Callable[[bytes], Origin]) -> bytes:
    """A record of its own: Claude Code passes over those whose type it does not know."""
    origin = tell(data)
    line: dict[str, Any] = {"type": "harken-origin", "sessionId": origin.session, ORIGIN: origin}
    if (first := _TIMESTAMP.search(data)) is not None:
        line["timestamp"] = first[1].decode()  # it is no older than what it stands before
    return msgspec.json.encode(line) + b"\n" + data


def _side_file(place: Place, name: str) -> Path | None:
    """The folder of the session has its name; what lay in the old one goes to the same place in the new one. A name
    that could lead anywhere else is passed over."""
    _, *inside = name.split("/")
    if not inside or not all(map(is_safe_name, inside)):
        return None
    return place.path.with_suffix("").joinpath(*inside)


RUNTIME = Runtime(
    name="claude-code",
    label="Claude Code",
    format="claude-code-v1",
    home=_home,
    roots=lambda home: (home / "projects",),
    claim=_claim,
    keys=claude_code.CLAIMED_BY,
    environment=lambda home: {"CLAUDE_CONFIG_DIR": str(home)},
    read=SessionReader(
        scan=claude_code.scan,
        identify=_identify,
        side_files=_side_files,
        agent_files=_agent_files,
        side_chains=claude_code.side_chains,
        record_names=_record_names,
    ),
    resume=ResumeWriter(
        place=_place, native=_native, translated=_translated, name=_name, sign=_sign, side_file=_side_file
    ),
    launch=LAUNCH,
)
