"""What the two standards have in common."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harken.errors import BadRecord
from harken.formats.facts import FileFacts
from harken.formats.kit.claims import Claim
from harken.formats.std.importing.claiming import CLAIMED_BY, claim_of
from harken.formats.std.naming import RECORDED, SUFFIX
from harken.runtimes.base import Identity, Runtime, SessionReader, user_home
from harken.runtimes.files import Unfit

if TYPE_CHECKING:
    from harken.formats.std.document import Kind

# Every import asks whose a file is, and few have a document: what reads them is loaded for these alone.


def _scan(data: bytes, state: bytes = b"", *, runtime: Kind) -> FileFacts:
    from harken.formats.std.importing.scan import scan

    try:
        return scan(data, state, runtime=runtime)
    except BadRecord as problem:
        raise Unfit(str(problem), hint=problem.hint) from None


def _side_chains(data: bytes) -> Mapping[str, bytes]:
    from harken.formats.std.importing.to_events import side_chains

    return side_chains(data)


def _identify(path: Path, facts: FileFacts) -> Identity:
    return Identity(session=facts.session or path.name.removesuffix(SUFFIX))


def document_runtime(kind: Kind) -> Runtime:
    """The documents of one standard."""
    claims = claim_of(kind)

    def claim(head: bytes, path: Path) -> Claim:
        return claims(head, str(path))

    return Runtime(
        name=kind,
        label=kind.upper(),
        format=kind,
        source="document",
        home=user_home,
        roots=lambda home: (),
        claim=claim,
        keys=CLAIMED_BY,
        read=SessionReader(
            scan=partial(_scan, runtime=kind),
            identify=_identify,
            suffixes=(SUFFIX,),
            made_from=RECORDED,
            side_chains=_side_chains,
        ),
    )
