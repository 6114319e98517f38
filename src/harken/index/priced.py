"""Rows of the table `usage`, as a price list reads them: what they cost at somebody's own prices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from harken.analytics.prices import PriceList
from harken.analytics.usage import UsageRow
from harken.events import Tokens

from .file import StoreIndex

TOKENS = "input, output, cache_read, cache_write_5m, cache_write_1h, reasoning"
_ROWS = f"""
SELECT s.session, u.agent, u.model, u.time, u.several, u.partial, {TOKENS}
FROM usage u JOIN sessions s ON s.n = u.session
WHERE u.counted AND s.session IN (SELECT value FROM json_each(?)) AND u.model IN (SELECT value FROM json_each(?))
"""


class OwnCost(NamedTuple):
    """What some requests cost, in 1e-12 dollars, and of how many that is known and unknown."""

    cost: int = 0
    priced: int = 0
    unpriced: int = 0

    def and_one(self, row: UsageRow, prices: PriceList) -> OwnCost:
        """With one more request."""
        found = prices.cost(row)
        unknown = found is None and row.tokens != Tokens()
        return OwnCost(self.cost + (found or 0), self.priced + (found is not None), self.unpriced + unknown)


def own_models(index: StoreIndex, prices: PriceList | None) -> list[str]:
    """The models that somebody has prices of their own for."""
    if prices is None:
        return []
    models = index.query("SELECT DISTINCT model FROM usage_totals")
    return sorted(model for (model,) in models if prices.names(model))


def own_costs(
    index: StoreIndex, sessions: Sequence[str], prices: PriceList | None
) -> dict[str, dict[tuple[str, str], OwnCost]]:
    """By model that somebody has prices of their own for, by session and agent: what its requests cost at these."""
    models = own_models(index, prices)
    found: dict[str, dict[tuple[str, str], OwnCost]] = {model: {} for model in models}
    if prices is None or not models:
        return found
    values = [msgspec.json.encode(several).decode() for several in (list(sessions), models)]
    for session, agent, model, time, several, partial, *tokens in index.query(_ROWS, values):
        by_agent, row = found[model], usage_row(model, time, tokens, several, partial)
        by_agent[session, agent] = by_agent.get((session, agent), OwnCost()).and_one(row, prices)
    return found


def usage_row(model: str, time: int | None, tokens: Sequence[int | None], several: int, partial: int) -> UsageRow:
    """A row of the table `usage`, as far as a price depends on it."""
    given, output, read, for_minutes, for_an_hour, reasoning = tokens
    return UsageRow(
        key="",
        time=time,
        model=model,
        input=given,
        output=output,
        cache_read=read,
        cache_write_5m=for_minutes,
        cache_write_1h=for_an_hour,
        reasoning=reasoning,
        several=bool(several),
        partial=bool(partial),
    )
