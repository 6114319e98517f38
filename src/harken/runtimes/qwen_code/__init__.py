"""Qwen Code. Sessions lie in `$QWEN_RUNTIME_DIR` (else `$QWEN_HOME`, else `~/.qwen`), one JSONL file each:

    projects/<slug of the working folder>/chats/<session>.jsonl            and the same under chats/archive/
    projects/<slug>/subagents/<session>/agent-<id>.jsonl                   sub-agents, with `.meta.json` beside

So since 0.5. A sub-agent's records name their parent's session, so the file's own name is `<session>/<agent>`. A
session is continued by `qwen -r ID`, in the folder that its first record names.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harken.errors import HarkenError
from harken.events import Event
from harken.events.base import clean
from harken.formats import Written, qwen_code
from harken.formats.facts import ORIGIN, FileFacts, Origin
from harken.formats.kit.claims import Claim
from harken.formats.qwen_code.write import title_line
from harken.runtimes.base import Environment, Identity, Place, ResumeWriter, Runtime, SessionReader, user_home
from harken.runtimes.files import OpenFile

from .launch import LAUNCH

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9]")
META_LIMIT = 64 << 10


def _home(environ: Environment) -> Path:
    return Path(environ.get("QWEN_RUNTIME_DIR") or environ.get("QWEN_HOME") or user_home(environ) / ".qwen")


def _environment(home: Path) -> dict[str, str]:
    return {"QWEN_HOME": str(home), "QWEN_RUNTIME_DIR": str(home)}


def _claim(head: bytes, path: Path) -> Claim:
    return qwen_code.claim(head, str(path))


def _identify(path: Path, facts: FileFacts) -> Identity:
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl")
    if not facts.sidechain:
        return Identity(session=facts.session or stem)
    meta = _meta(path)
    parent = facts.session or _text(meta.get("parentSessionId")) or path.parent.name
    agent = facts.agents[0] if facts.agents else stem.removeprefix("agent-")
    return Identity(session=parent, agent=agent, parent=parent, call_id=_text(meta.get("toolUseId")))


def _meta_file(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".jsonl") + ".meta.json")


def _meta(path: Path) -> dict[str, Any]:
    """What lies beside a sub-agent's file about it."""
    try:
        with OpenFile(_meta_file(path)) as file:
            return msgspec.json.decode(file.read(0, META_LIMIT), type=dict[str, Any])
    except (HarkenError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return {}


def _text(value: object) -> str:
    return clean(value) if isinstance(value, str) else ""


def _side_files(path: Path) -> Iterator[Path]:
    if path.name.startswith("agent-") and (meta := _meta_file(path)).is_file():
        yield meta


def _agent_files(path: Path) -> Iterator[Path]:
    """The files of sub-agents lie in a folder of the session's name, beside that of the sessions."""
    chats = next((folder for folder in path.parents[:2] if folder.name == "chats"), None)
    if chats is not None:
        yield from sorted((chats.parent / "subagents" / path.stem).glob("agent-*.jsonl"))


# -- resume ----------------------------------------------------------------------------------------------------------


def slug(folder: Path) -> str:
    """Qwen Code's name for a working folder: everything but letters and digits becomes a dash."""
    # It counts as UTF-16 does: what takes two places there becomes two dashes.
    units = "".join(sign if ord(sign) <= 0xFFFF else "--" for sign in str(folder))
    return _NOT_PLAIN.sub("-", units)


def _place(home: Path, cwd: Path, now: int) -> Place:
    session = str(uuid.uuid4())
    path = home / "projects" / slug(cwd) / "chats" / f"{session}.jsonl"
    return Place(session=session, path=path, command=("qwen", "-r", session), cwd=cwd, time=now)


def _native(data: bytes, place: Place) -> bytes:
    return qwen_code.rewrite(data, session_id=place.session, cwd=str(place.cwd))


def _translated(events: Sequence[Event], place: Place) -> Written:
    written = qwen_code.FORMAT.adopt(events)
    return Written(data=_native(written.data, place), losses=written.losses)


def _name(place: Place, title: str) -> tuple[Path, bytes]:
    line = title_line(place.session, str(place.cwd), place.time, title)
    return place.path, msgspec.json.encode(line) + b"\n"


def _sign(data: bytes, tell: Callable[[bytes], Origin]) -> bytes:
    """One more key of the first record; Qwen Code passes over those that it does not know. A name that was put behind
    the conversation gets its place in the chain: the conversation ends with its last record."""
    *lines, last = data.splitlines(keepends=True)
    record = msgspec.json.decode(last, type=dict[str, Any])
    if lines and record["parentUuid"] is None:
        record["parentUuid"] = msgspec.json.decode(lines[-1], type=dict[str, Any])["uuid"]
        lines.append(msgspec.json.encode(record) + b"\n")
    else:
        lines.append(last)
    first, rest = msgspec.json.decode(lines[0], type=dict[str, Any]), b"".join(lines[1:])
    return msgspec.json.encode({**first, ORIGIN: tell(rest)}) + b"\n" + rest


RUNTIME = Runtime(
    name="qwen-code",
    label="Qwen Code",
    format="qwen-code-v1",
    home=_home,
    roots=lambda home: (home / "projects",),
    claim=_claim,
    keys=qwen_code.CLAIMED_BY,
    environment=_environment,
    read=SessionReader(
        scan=qwen_code.scan,
        identify=_identify,
        side_files=_side_files,
        agent_files=_agent_files,
        record_names=qwen_code.record_names,
    ),
    resume=ResumeWriter(place=_place, native=_native, translated=_translated, name=_name, sign=_sign),
    launch=LAUNCH,
)
