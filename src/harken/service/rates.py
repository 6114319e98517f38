"""How often a token may ask."""

from __future__ import annotations

from harken import clock
from harken.errors import TooMany

BUCKETS = 10_000


class RateLimits:
    """How much of what it may each token has used: a bucket that fills by itself."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str, rate: float, burst: float) -> None:
        """Use one; `TooMany` where none is left."""
        now = clock.monotonic()
        left, at = self._buckets.get(name, (burst, now))
        left = min(burst, left + (now - at) * rate)
        if left < 1:
            raise TooMany("too many requests", hint="wait a moment", after=max(1, round((1 - left) / rate)))
        if len(self._buckets) >= BUCKETS:
            self._buckets.clear()
        self._buckets[name] = (left - 1, now)
