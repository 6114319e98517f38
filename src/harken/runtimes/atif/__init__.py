"""Trajectories (ATIF). No program keeps them in a place of its own: they are imported
by name, as a file or with the folder that they lie in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from harken.formats.facts import FileFacts
from harken.formats.kit.claims import Claim
from harken.runtimes.base import Identity, Runtime, SessionReader, path_name, user_home

SUFFIX = ".json"
_CONTINUED = re.compile(r"\.cont-([0-9]{1,6})\.")

# Every import asks whose a file is, and few have a trajectory: what reads them is loaded for these alone.


def _claim(head: bytes, path: Path) -> Claim:
    from harken.formats.atif import claim

    return claim(head, str(path))


def _scan(data: bytes, state: bytes = b"") -> FileFacts:
    from harken.formats.atif.scan import scan

    return scan(data, state)


def _side_chains(data: bytes) -> Mapping[str, bytes]:
    from harken.formats.atif.scan import side_chains

    return side_chains(data)


def _identify(path: Path, facts: FileFacts) -> Identity:
    """By the name in the document. The parts of a run that was continued have one name; where the document does not say
    which part it is, its file does."""
    if not facts.session:
        return Identity(session=path_name(path.with_name(path.name.removesuffix(SUFFIX))))
    part = _CONTINUED.search(path.name)
    named = part is None or facts.session.endswith(f"-cont-{part[1]}")
    return Identity(session=facts.session if named or part is None else f"{facts.session}-cont-{part[1]}")


RUNTIME = Runtime(
    name="atif",
    label="ATIF",
    format="atif-v1",
    source="document",
    home=user_home,
    roots=lambda home: (),
    claim=_claim,
    keys=("schema_version",),
    read=SessionReader(scan=_scan, identify=_identify, suffixes=(SUFFIX,), side_chains=_side_chains),
)
