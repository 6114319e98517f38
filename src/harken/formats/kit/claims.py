"""Whose bytes these are: everyone who could know gives a score and a reason, and the best score decides.

A claim rests on what a program always writes, never on one telling word: runtimes borrow each other's shapes. It is
made from the first bytes of a file (`HEAD` of them are enough; a line may be longer than that) and from its path,
which can strengthen what the bytes say and never replaces it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

HEAD = 64 * 1024
"""How many bytes of a file are looked at."""
ENOUGH = 50
"""A lower score claims nothing."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """How sure a format or a runtime is that a file is its own, and why."""

    score: int = 0
    """0 is certainly not, 100 is certainly."""
    reason: str = ""


NO_CLAIM = Claim()
T = TypeVar("T")


def best(claims: Iterable[tuple[T, Claim]]) -> tuple[T, Claim] | None:
    """The highest claim and whose it is; None where none is high enough, or two are equally high."""
    ranked = sorted((one for one in claims if one[1].score >= ENOUGH), key=lambda one: -one[1].score)
    if not ranked or (len(ranked) > 1 and ranked[0][1].score == ranked[1][1].score):
        return None
    return ranked[0]
