"""Codex. Sessions lie in `$CODEX_HOME` (else `~/.codex`), one rollout file each, compressed when they grow cold:

    sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl[.zst]        and the same under archived_sessions/

A sub-agent is a thread of its own; its first record names the thread that spawned it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from harken.formats.codex.scan import record_names, scan
from harken.formats.facts import FileFacts

from .base import Identity, Runtime

_THREAD = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _home(home: Path, environ: Mapping[str, str]) -> Path:
    return Path(environ.get("CODEX_HOME") or home / ".codex")


def _identify(path: Path, facts: FileFacts) -> Identity:
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl")
    thread = _THREAD.search(stem)
    session = facts.session or (thread[0] if thread else stem)
    return Identity(session=session, parent=facts.parent if facts.parent != session else "")


RUNTIME = Runtime(
    name="codex",
    format="codex-v1",
    home=_home,
    scan=scan,
    identify=_identify,
    record_names=record_names,
)
