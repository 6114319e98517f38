"""Making the views on a connection. Somebody's own prices stand over the costs that the index keeps, as in `stats`."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from .views import VIEWS

if TYPE_CHECKING:
    from harken.analytics.prices import PriceList

_COST = "usage.cost"
_TOLD = "usage.model, usage.time, usage.several, usage.partial"
_TOKENS = "usage.input, usage.output, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h, usage.reasoning"
_PRICED = f"own_price({_COST}, {_TOLD}, {_TOKENS})"
"""What a report costs: a function, since a copy of all reports would be made for every question."""


def make_views(connection: sqlite3.Connection, prices: PriceList | None = None) -> None:
    """Make all of them in the connection's temporary schema. Of the models that `prices` has, costs are by these."""
    if prices is not None:
        _give_prices(connection, prices)
    for view in VIEWS:
        statement = view.statement
        connection.execute(statement if prices is None else statement.replace(_COST, _PRICED))


def _give_prices(connection: sqlite3.Connection, prices: PriceList) -> None:
    from .figures import MOST
    from .priced import usage_row

    own: dict[str, bool] = {}

    def own_price(
        cost: int | None, model: str, time: int | None, several: int, partial: int, *tokens: int | None
    ) -> int | None:
        if model not in own:
            own[model] = prices.names(model)
        if not own[model]:
            return cost
        found = prices.cost(usage_row(model, time, tokens, several, partial))
        return found if found is not None and found < MOST else None

    connection.create_function("own_price", -1, own_price, deterministic=True)
