"""How long a model that fails is asked again: bounded, and longer each time."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts, and the seconds between them."""

    attempts: int = 5
    first: float = 1.0
    factor: float = 2.0
    longest: float = 60.0

    def pauses(self) -> Iterator[float]:
        """The pause after each failed attempt but the last."""
        pause = self.first
        for _ in range(self.attempts - 1):
            yield min(pause, self.longest)
            pause *= self.factor
