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
from collections.abc import Iterator, Mapping
from pathlib import Path

from harken.formats import claude_code
from harken.formats.facts import FileFacts

from .base import Identity, Runtime

_UUID = re.compile(rb'"uuid"\s*:\s*"([^"\\]{1,64})"')
BESIDE_LIMIT = 10_000
"""How many side files a session may have before we stop looking."""


def _home(home: Path, environ: Mapping[str, str]) -> Path:
    return Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"


def _identify(path: Path, facts: FileFacts) -> Identity:
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl")
    session = facts.session or stem
    if facts.sidechain:
        agent = facts.agents[0] if facts.agents else stem.removeprefix("agent-")
        return Identity(session=session, agent=agent, parent=session)
    return Identity(session=session)


def _beside(path: Path) -> Iterator[Path]:
    """What belongs to the session and is not a transcript. A sub-agent has its `.meta.json`."""
    meta = path.with_name(path.name.removesuffix(".jsonl") + ".meta.json")
    if path.name.startswith("agent-"):
        if meta.is_file():
            yield meta
        return
    count = 0
    for folder, _, names in os.walk(path.with_suffix("")):
        for name in sorted(names):
            if name.startswith("agent-") and name.endswith((".jsonl", ".meta.json")):
                continue
            count += 1
            if count > BESIDE_LIMIT:
                return
            yield Path(folder, name)


def _record_names(data: bytes) -> list[str]:
    return [found.decode("utf-8", "replace") for found in _UUID.findall(data)]


RUNTIME = Runtime(
    name="claude-code",
    format="claude-code-v1",
    home=_home,
    scan=claude_code.scan,
    identify=_identify,
    beside=_beside,
    side_chains=claude_code.side_chains,
    record_names=_record_names,
)
