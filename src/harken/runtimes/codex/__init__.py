"""Codex. Sessions lie in `$CODEX_HOME` (else `~/.codex`), one rollout file each, compressed when they grow cold:

    sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl[.zst]        and the same under archived_sessions/

A sub-agent is a thread of its own; its first record names the thread that spawned it. A
thread is continued by `codex resume ID`; its id is a version-7 UUID.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harken import clock
from harken.errors import HarkenError
from harken.events import Event
from harken.formats import Written, codex
from harken.formats.facts import ORIGIN, FileFacts, Origin
from harken.formats.kit.claims import Claim
from harken.formats.kit.jsonl import lines, parse
from harken.formats.kit.openai import text_of
from harken.ids import time_ordered_uuid
from harken.runtimes.base import UUID, Environment, Identity, Place, ResumeWriter, Runtime, SessionReader, user_home
from harken.runtimes.files import stamp_of

from .launch import LAUNCH
from .relatives import relatives

INDEX = "session_index.jsonl"
"""The list of the names that people gave to threads; the last line of a thread counts."""
INDEX_LIMIT = 16 << 20
NAME = 200
"""Characters of a name that are kept."""


def _home(environ: Environment) -> Path:
    return Path(environ.get("CODEX_HOME") or user_home(environ) / ".codex")


def _claim(head: bytes, path: Path) -> Claim:
    return codex.claim(head, str(path))


def _identify(path: Path, facts: FileFacts) -> Identity:
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl")
    thread = UUID.search(stem)
    session = facts.session or (thread[0] if thread else stem)
    parent = facts.parent if facts.parent != session else ""
    return Identity(session=session, parent=parent, title=_given_name(path, session))


def _given_name(path: Path, session: str) -> str:
    """The name that somebody gave a thread: the last one in the list that Codex keeps beside its sessions."""
    for folder in path.parents[:5]:
        if folder.name in ("sessions", "archived_sessions"):
            return _names(folder.with_name(INDEX)).get(session, "")
    return ""


def _names(index: Path) -> dict[str, str]:
    try:
        found = stamp_of(index)
    except HarkenError:  # not there, or no file: a pipe of that name would hold us for ever
        return {}
    return _read_names(index, found.size, found.modified) if found.size <= INDEX_LIMIT else {}


@functools.lru_cache(maxsize=4)
def _read_names(index: Path, size: int, modified: int) -> dict[str, str]:
    """Thread to name, as the list of that size and time has it."""
    try:
        data = index.read_bytes()
    except OSError:
        return {}
    records = filter(None, (parse(data[start:end]) for start, end in lines(data)))
    names = {text_of(record.get("id")): text_of(record.get("thread_name")) for record in records}
    return {thread: " ".join(name.split())[:NAME] for thread, name in names.items()}


# -- resume ----------------------------------------------------------------------------------------------------------


def _place(home: Path, cwd: Path, now: int) -> Place:
    thread = time_ordered_uuid(now)
    day = clock.to_datetime(now)
    folder = home / "sessions" / f"{day:%Y}" / f"{day:%m}" / f"{day:%d}"
    path = folder / f"rollout-{day:%Y-%m-%dT%H-%M-%S}-{thread}.jsonl"
    settings = _settings(home)
    return Place(
        session=thread,
        path=path,
        command=("codex", "resume", thread),
        cwd=cwd,
        time=now,
        # A thread that names no provider, or another one, it does not go on with.
        provider=str(settings.get("model_provider", "openai")),
        longest_result=codex.output_budget(settings.get("model"), settings.get("tool_output_token_limit")),
    )


def _settings(home: Path) -> dict[str, str | int]:
    """What Codex is set to there, a chosen profile before the rest; what it could not use is left out."""
    import tomllib

    try:
        found = tomllib.loads((home / "config.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    profiles, chosen = found.get("profiles"), found.get("profile")
    profile = profiles.get(chosen) if isinstance(profiles, dict) and isinstance(chosen, str) else None
    kinds = {"model_provider": str, "model": str, "tool_output_token_limit": int}
    layers = (found, profile if isinstance(profile, dict) else {})
    return {
        key: layer[key] for layer in layers for key, kind in kinds.items() if key in layer and type(layer[key]) is kind
    }


def _native(data: bytes, place: Place) -> bytes:
    return codex.rewrite(data, session_id=place.session, cwd=str(place.cwd), time=place.time, provider=place.provider)


def _translated(events: Sequence[Event], place: Place) -> Written:
    return codex.write_session(
        events,
        session_id=place.session,
        cwd=str(place.cwd),
        time=place.time,
        provider=place.provider,
        longest=place.longest_result,
    )


def _name(place: Place, title: str) -> tuple[Path, bytes]:
    """Codex has a list of the names people gave, beside the sessions."""
    line = {"id": place.session, "thread_name": title, "updated_at": clock.format_instant(place.time)}
    return place.path.parents[4] / INDEX, msgspec.json.encode(line) + b"\n"


def _sign(data: bytes, tell: Callable[[bytes], Origin]) -> bytes:
    """One more key of the first line, `session_meta`; Codex passes over those that it does not know."""
    first, _, rest = data.partition(b"\n")
    record = msgspec.json.decode(first, type=dict[str, Any])
    record["payload"][ORIGIN] = tell(rest)
    return msgspec.json.encode(record) + b"\n" + rest


RUNTIME = Runtime(
    name="codex",
    label="Codex",
    format="codex-v1",
    home=_home,
    roots=lambda home: (home / "sessions", home / "archived_sessions"),
    claim=_claim,
    keys=codex.CLAIMED_BY,
    environment=lambda home: {"CODEX_HOME": str(home)},
    read=SessionReader(
        scan=codex.scan,
        identify=_identify,
        agent_files=relatives,
        record_names=codex.record_names,
    ),
    resume=ResumeWriter(place=_place, native=_native, translated=_translated, name=_name, sign=_sign),
    launch=LAUNCH,
)
