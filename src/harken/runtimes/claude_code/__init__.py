"""Claude Code. Sessions lie in `$CLAUDE_CONFIG_DIR` (else `~/.claude`), one JSONL file each:

    projects/<slug of the working folder>/<session>.jsonl
    projects/<slug>/<session>/subagents/[workflows/<run>/]agent-<id>.jsonl     sub-agents, with `.meta.json` beside
    projects/<slug>/<session>/tool-results/<id>.txt                            long outputs of tools
    projects/<slug>/agent-<id>.jsonl                                           sub-agents of the 2.0 versions

A sub-agent's records name their parent's session, so the file's own name is `<session>/<agent>`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harken.errors import HarkenError
from harken.events.text import clean
from harken.formats import claude_code
from harken.formats.facts import FileFacts
from harken.formats.kit.claims import Claim
from harken.runtimes.base import Environment, Identity, Runtime, SessionReader, user_home
from harken.runtimes.files import OpenFile

_UUID = re.compile(rb'"uuid"\s*:\s*"([^"\\]{1,64})"')
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
        session = path.parts[path.parts.index("subagents") - 1]
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


def _record_names(data: bytes) -> list[str]:
    return [found.decode("utf-8", "replace") for found in _UUID.findall(data)]


RUNTIME = Runtime(
    name="claude-code",
    label="Claude Code",
    format="claude-code-v1",
    home=_home,
    roots=lambda home: (home / "projects",),
    claim=_claim,
    environment=lambda home: {"CLAUDE_CONFIG_DIR": str(home)},
    read=SessionReader(
        scan=claude_code.scan,
        identify=_identify,
        side_files=_side_files,
        side_chains=claude_code.side_chains,
        record_names=_record_names,
    ),
)
