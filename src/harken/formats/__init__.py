"""One file (or folder) per format, the kit they share, and what is asked of all of them at once.

Ours are listed by name in `base.py` and loaded when asked for. Others come through the entry-point group
`harken.formats`, each naming a `Format`, and pass the same contract suite (`harken.testing.FormatContract`).
"""

from __future__ import annotations

import contextlib
from functools import cache

from .base import Delta, Format, Loss, Written, find, get, names, problem
from .kit.claims import HEAD, NO_CLAIM, Claim, best


@cache
def runtime_notices() -> frozenset[str]:
    """What any runtime tells its model about itself, for conversations in a format that is no runtime's own."""
    found: set[str] = set()
    for name in names():
        # A format of somebody else that cannot be loaded has nothing to add here; whoever asks for it is told why.
        with contextlib.suppress(Exception):
            found |= get(name).notices
    return frozenset(found)


def claims(head: bytes, path: str = "") -> list[tuple[str, Claim]]:
    """Every format that claims the bytes, the surest first, with its reason; `head` is the beginning of the file."""
    made = [(name, claim) for name in names() if (claim := _claim(name, head[:HEAD], path)).reason]
    return sorted(made, key=lambda one: -one[1].score)


def _claim(name: str, head: bytes, path: str) -> Claim:
    try:
        found = get(name)
        return NO_CLAIM if found.claim is None else found.claim(head, path)
    except Exception as problem:  # noqa: BLE001  a format of somebody else may break in any way, and the others must not
        return Claim(reason=f"it could not be asked: {type(problem).__name__}: {problem}")


def detect(head: bytes, path: str = "") -> Format | None:
    """The format whose claim is the best; None where no claim is good enough, or two are equally good."""
    found = best(claims(head, path))
    return None if found is None else get(found[0])


__all__ = [
    "HEAD",
    "Claim",
    "Delta",
    "Format",
    "Loss",
    "Written",
    "claims",
    "detect",
    "find",
    "get",
    "names",
    "problem",
    "runtime_notices",
]
