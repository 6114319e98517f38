"""Whose bytes these are: everyone who could know gives a score and a reason, and the best score decides."""

from __future__ import annotations

import msgspec


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """How sure a format or a runtime is that a file is its own, and why."""

    score: int = 0
    """0 is certainly not, 100 is certainly."""
    reason: str = ""


NO_CLAIM = Claim()
