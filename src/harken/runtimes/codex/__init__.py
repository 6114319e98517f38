"""Codex. Sessions lie in `$CODEX_HOME` (else `~/.codex`), one rollout file each, compressed when they grow cold:

    sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl[.zst]        and the same under archived_sessions/

A sub-agent is a thread of its own; its first record names the thread that spawned it.
"""

from __future__ import annotations

import re
from pathlib import Path

from harken.formats import codex
from harken.formats.facts import FileFacts
from harken.formats.kit.claims import Claim
from harken.runtimes.base import Environment, Identity, Runtime, SessionReader, user_home

_THREAD = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _home(environ: Environment) -> Path:
    return Path(environ.get("CODEX_HOME") or user_home(environ) / ".codex")


def _claim(head: bytes, path: Path) -> Claim:
    return codex.claim(head, str(path))


def _identify(path: Path, facts: FileFacts) -> Identity:
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl")
    thread = _THREAD.search(stem)
    session = facts.session or (thread[0] if thread else stem)
    return Identity(session=session, parent=facts.parent if facts.parent != session else "")


RUNTIME = Runtime(
    name="codex",
    label="Codex",
    format="codex-v1",
    home=_home,
    roots=lambda home: (home / "sessions", home / "archived_sessions"),
    claim=_claim,
    environment=lambda home: {"CODEX_HOME": str(home)},
    read=SessionReader(
        scan=codex.scan,
        identify=_identify,
        record_names=codex.record_names,
    ),
)
