"""The numbers of one session and its sub-agents, from the totals that the index keeps."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harken.analytics.prices import MICRO, PriceList
from harken.events import Tokens

from . import schema
from .file import StoreIndex
from .priced import own_costs
from .spending import Spending


class CountedFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the index has counted of a session."""

    counts: dict[str, int | None]
    """Of the session's own agent: `human`, `injected`, `responses`, `calls`, `errors`, `compactions`."""
    calls: dict[str, int | None]
    """Calls by session: its own, and those of its sub-agents."""
    spending: Spending
    """What it and its sub-agents used."""
    models: dict[str, Tokens]
    """The tokens of that by model."""
    stale: bool
    """Whether some of it is not up to date."""


_COUNTS = ("human", "injected", "responses", "calls", "errors", "compactions")


def session_figures(
    index: StoreIndex, session: str, below: Sequence[str], prices: PriceList | None = None
) -> CountedFigures:
    """The numbers of a session, those of the sub-agents below it included where they are of what was used. `prices`
    stand over those that come with Harken."""
    names = msgspec.json.encode([session, *below]).decode()
    within = "s.session IN (SELECT value FROM json_each(?))"
    found = index.query(
        f"SELECT s.session, {', '.join(_COUNTS)} FROM sessions s JOIN figures f ON f.session = s.n WHERE {within}",
        [names],
    )
    by_session = {name: dict(zip(_COUNTS, counts, strict=True)) for name, *counts in found}
    used = index.query(
        "SELECT model, sum(requests), total(input), total(output), total(cache_read), total(cache_write),"
        " count(input), count(output), count(cache_read), count(cache_write), total(cost), total(fraction),"
        " sum(priced), sum(unpriced)"
        f" FROM usage_totals u JOIN sessions s ON s.n = u.session WHERE {within} GROUP BY model",
        [names],
    )
    stale = f"SELECT 1 FROM sessions s WHERE {within} AND n IN {schema.UNCOUNTED} LIMIT 1"
    spending, models = Spending(), dict[str, Tokens]()
    own = own_costs(index, [session, *below], prices)
    for model, requests, *numbers in used:
        totals, known = numbers[:4], numbers[4:8]
        cost, fraction, priced, unpriced = numbers[8:]
        given, output, read, written = (int(n) if told else None for n, told in zip(totals, known, strict=True))
        tokens = Tokens(input=given, output=output, cache_read=read, cache_write=written)
        models[model] = tokens
        spending.requests += requests
        spending.tokens = spending.tokens + tokens
        cost = int(cost) * MICRO + int(fraction)
        if model in own:
            cost, priced, unpriced = (sum(column) for column in zip((0, 0, 0), *own[model].values(), strict=True))
        spending.cost += cost
        spending.priced = (spending.priced or 0) + priced
        if unpriced:
            spending.unpriced[model] = unpriced
    return CountedFigures(
        counts=by_session.get(session, {}),
        calls={name: counts["calls"] for name, counts in by_session.items()},
        spending=spending,
        models=models,
        stale=bool(index.query(stale, [names])) or session not in by_session,
    )


def calls_by_agent(index: StoreIndex, sessions: Sequence[int]) -> dict[str, int]:
    """How many calls each agent made, where all agents speak in one chain."""
    marks = ", ".join("?" * len(sessions))
    rows = index.query(
        "SELECT coalesce(m.agent, ''), count(*) FROM calls c JOIN messages m ON m.n = c.message"
        f" WHERE c.session IN ({marks}) GROUP BY 1",
        list(sessions),
    )
    return dict(rows)
