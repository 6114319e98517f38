"""OpenClaw, as long as it kept its sessions in files: those of pi's format, in `$OPENCLAW_STATE_DIR` (else
`~/.openclaw`), a folder for each of the agents that somebody set up:

    agents/<agent>/sessions/<session>.jsonl         and beside them sessions.json, the list of what goes on

The list says which session a key like `agent:main:subagent:<id>` stands for, and which key started it: so sub-agents
are found. The result in the session that started one names its key. By 2026.9.6 the program keeps its sessions in a
database, and takes no file in again by itself; what it kept in files goes on in pi.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import msgspec

from harken.errors import HarkenError
from harken.events.base import clean, named
from harken.formats import pi
from harken.formats.facts import FileFacts
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.ids import is_safe_name
from harken.runtimes.base import Environment, Identity, Runtime, SessionReader, user_home
from harken.runtimes.files import OpenFile, stamp_of

from . import identify, is_of_openclaw

INDEX = "sessions.json"
INDEX_LIMIT = 64 << 20
DEPTH = 16
"""How many sessions may stand above a sub-agent before we stop looking."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the list says of a session, as far as it matters here."""

    session_id: str = ""
    session_file: str = ""
    spawned_by: str = ""
    label: str = ""
    display_name: str = ""


def _home(environ: Environment) -> Path:
    if given := environ.get("OPENCLAW_STATE_DIR"):
        return Path(given)
    return Path(environ.get("OPENCLAW_HOME") or user_home(environ)) / ".openclaw"


def _claim(head: bytes, path: Path) -> Claim:
    found = pi.claim(head, str(path))
    return found if found.score and is_of_openclaw(head, path) else NO_CLAIM


def _scan(data: bytes, state: bytes) -> FileFacts:
    return msgspec.structs.replace(pi.scan(data, state), runtime="openclaw")


def _identify(path: Path, facts: FileFacts) -> Identity:
    found = identify(path, facts)
    entries = _entries(path.with_name(INDEX))
    key, entry = next(
        ((key, each) for key, each in entries.items() if _is_of(each, found.session, path)), ("", _Entry())
    )
    title = " ".join(clean(entry.label or entry.display_name).split())[:200]
    top = _top(path, entry)
    if top and top != found.session and is_safe_name(agent := key.rpartition(":")[2]):
        return Identity(session=found.session, agent=agent, parent=top, title=title)
    return msgspec.structs.replace(found, title=title)


def _is_of(entry: _Entry, session: str, path: Path) -> bool:
    return entry.session_id == session or (bool(entry.session_file) and Path(entry.session_file).name == path.name)


def _top(path: Path, entry: _Entry) -> str:
    """The session that everything above a sub-agent goes back to; empty where it is none, or nobody knows."""
    session, key = "", entry.spawned_by
    for _ in range(DEPTH):
        parent = _entries(_index_of(path, key)).get(key) if key else None
        if parent is None:
            break
        session, key = named(parent.session_id), parent.spawned_by
    return session


def _index_of(path: Path, key: str) -> Path:
    """The list that has a key: `agent:<agent>:…` is in that agent's folder."""
    kind, _, rest = key.partition(":")
    agent = rest.partition(":")[0]
    beside = path.with_name(INDEX)
    if kind != "agent" or not agent or "/" in agent or agent in (".", ".."):
        return beside
    other = path.parent.parent.parent / agent / "sessions" / INDEX
    return other if len(path.parents) > 2 and other.is_file() else beside


def _entries(index: Path) -> dict[str, _Entry]:
    try:
        found = stamp_of(index)
    except HarkenError:  # not there, or no file
        return {}
    return _read_entries(index, found.size, found.modified) if found.size <= INDEX_LIMIT else {}


@functools.lru_cache(maxsize=16)
def _read_entries(index: Path, size: int, modified: int) -> dict[str, _Entry]:
    """Key to what the list of that size and time says; what is damaged in it is passed over."""
    try:
        with OpenFile(index) as file:
            listed = msgspec.json.decode(file.read(0, size), type=dict[str, Any])
    except (HarkenError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return {}
    entries: dict[str, _Entry] = {}
    for key, value in listed.items():
        try:
            entries[key] = msgspec.convert(value, _Entry)
        except msgspec.ValidationError:
            continue
    return entries


RUNTIME = Runtime(
    name="openclaw",
    label="OpenClaw",
    format="pi-v1",
    home=_home,
    roots=lambda home: (home / "agents",),
    claim=_claim,
    keys=pi.CLAIMED_BY,
    environment=lambda home: {"OPENCLAW_STATE_DIR": str(home)},
    read=SessionReader(scan=_scan, identify=_identify, record_names=pi.record_names),
)
