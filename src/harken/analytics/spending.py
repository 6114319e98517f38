"""What requests cost together: known prices are added up, and models without one are named."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .prices import PriceList, micros
from .usage import UsageRow


class PriceSum(msgspec.Struct, frozen=True, kw_only=True):
    """A cost at list price."""

    usd_micros: int | None
    """In millionths of a dollar; None where no price is known, the least it can be where some are not."""
    unpriced: dict[str, int] = {}
    """Requests whose price nobody knows, by model."""
    unverified: dict[str, int] = {}
    """Requests that were added up at a price which nobody compared with what was published, by model."""


def price_of(rows: Iterable[UsageRow], prices: PriceList) -> PriceSum:
    """What rows of usage cost, each request once."""
    total, known = 0, False
    unpriced: dict[str, int] = {}
    unverified: dict[str, int] = {}
    for row in distinct(rows):
        cost = prices.cost(row)
        if cost is not None:
            total, known = total + cost, True
            if cost and not prices.is_verified(row.model):
                unverified[row.model] = unverified.get(row.model, 0) + 1
        elif any((row.input, row.output, row.cache_read, row.cache_write)):
            unpriced[row.model] = unpriced.get(row.model, 0) + 1
    return PriceSum(
        usd_micros=None if unpriced and not known else micros(total),
        unpriced=dict(sorted(unpriced.items())),
        unverified=dict(sorted(unverified.items())),
    )


def distinct(rows: Iterable[UsageRow]) -> list[UsageRow]:
    """Of several reports of one request the one that counts: not embedded, then the largest output, then input."""
    best: dict[str, UsageRow] = {}
    for row in rows:
        known = best.get(row.key)
        if known is None or _weight(row) > _weight(known):
            best[row.key] = row
    seen = {row.api for row in best.values() if not row.nested}
    return [row for row in best.values() if not row.nested or row.api not in seen]


def _weight(row: UsageRow) -> tuple[bool, int, int]:
    return not row.nested, -1 if row.output is None else row.output, row.tokens.prompt
