"""Harken's own session logs. They lie wherever a program put them; an import without a path looks in Harken's folder
(`$XDG_DATA_HOME/harken`, else `~/.local/share/harken`):

    sessions/**/*.jsonl

A session is named after its file and the first line in it, so that two files of one name stay apart. Every agent of
the log but the root has a chain of its own, made of its lines.
"""

from __future__ import annotations

from pathlib import Path

from harken.formats import session_log
from harken.formats.facts import FileFacts
from harken.formats.kit.claims import Claim
from harken.runtimes.base import Environment, Identity, Runtime, SessionReader, user_home


def _home(environ: Environment) -> Path:
    data = environ.get("XDG_DATA_HOME", "")
    base = Path(data) if Path(data).is_absolute() else user_home(environ) / ".local" / "share"
    return base / "harken"


def _claim(head: bytes, path: Path) -> Claim:
    return session_log.claim(head, str(path))


def _identify(path: Path, facts: FileFacts) -> Identity:
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl")
    return Identity(session=f"{stem}-{facts.fingerprint[0]}" if facts.fingerprint else stem)


RUNTIME = Runtime(
    name="harken",
    label="Harken",
    format="session-log-v2",
    home=_home,
    roots=lambda home: (home / "sessions",),
    claim=_claim,
    keys=session_log.CLAIMED_BY,
    environment=lambda home: {"XDG_DATA_HOME": str(home.parent)} if home.name == "harken" else {},
    read=SessionReader(scan=session_log.scan, identify=_identify, side_chains=session_log.side_chains),
)
