"""Files that a program makes from others: what they were made from is imported in their place."""

from __future__ import annotations

from pathlib import Path

from harken.errors import HarkenError
from harken.formats.kit.claims import HEAD, best

from . import claim_of, get, names
from .base import Runtime
from .files import OpenFile
from .sources import may_claim


def why_made(runtime: Runtime, path: Path) -> str:
    """Why a file is not imported with the folder it lies in: what it was made from lies beside it. Else nothing: a log
    that is empty, or no session, cannot stand for the document."""
    origin = path.with_name(path.name.removesuffix(path.suffix) + runtime.read.made_from)
    try:
        with OpenFile(origin) as file:
            head = file.read(0, HEAD)
    except HarkenError:
        return ""
    known = (one for one in map(get, names()) if may_claim(one, head))
    is_session = best((one, claim_of(one, head, origin)) for one in known) is not None
    return f"it is made from {origin.name}, which has more" if is_session else ""
