"""What tokens cost: a table with date and source for each model, and exact arithmetic over it.

Prices are dollars for a million tokens. One of 0.30 is kept as 300,000: millionths of a dollar for a million tokens,
which are also billionths of a thousandth (1e-12) of a dollar for one. So a cost is a whole number of those; it is added
up as such, and rounded to micro-dollars last.

Rule 1: an unknown model has no price. Of a name only what says where or when a model was served is left out
        (`anthropic/`, `us.anthropic.`, `-20250929`, `[1m]`); nothing is taken for something like it.
Rule 2: of several entries of a model the newest counts that was in force when the request was made; before the first
        one that first one does.
Rule 3: a request that is larger than a tier's `above` is paid at the tier's prices as a whole.
Rule 4: a request that was not served in the standard way (`claude-opus-5-5 (fast)`) is paid at as many times the prices
        as the entry's `served` says; where it says nothing of that way, the price is unknown.
Rule 5: a price that is not in the table makes the cost unknown where there are tokens of that kind, and only there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

import msgspec

from harken.clock import SECOND
from harken.errors import BadRequest
from harken.events import Tokens

from .usage import UsageRow

MICRO = 1_000_000
"""Of the units in which costs are added up, so many are a micro-dollar."""
_KINDS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "reasoning")
_DAY = 86_400 * SECOND
_EPOCH = date(1970, 1, 1).toordinal()


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Prices of one model, in millionths of a dollar for a million tokens; None where the source has none."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write_5m: int | None = None
    cache_write_1h: int | None = None
    reasoning: int | None = None
    """Where reasoning has a price of its own; else it is output."""

    def times(self, factor: Decimal) -> Rates:
        """As many times these prices."""
        kinds = {kind: getattr(self, kind) for kind in _KINDS}
        return Rates(**{kind: None if price is None else round(price * factor) for kind, price in kinds.items()})

    def cost(self, row: UsageRow) -> int | None:
        """What the row's tokens cost; None where a price is missing."""
        apart = row.reasoning or 0 if self.reasoning is not None else 0
        parts = (
            (row.input, self.input),
            ((row.output or 0) - apart, self.output),
            (apart, self.reasoning),
            (row.cache_read, self.cache_read),
            (row.cache_write_5m, self.cache_write_5m),
            (row.cache_write_1h, self.cache_write_1h),
        )
        if any(count and price is None for count, price in parts):
            return None
        return sum((count or 0) * (price or 0) for count, price in parts)


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the table."""

    model: str
    source: str
    """Where the price was published."""
    date: str
    """When it was read there."""
    verified: bool = True
    """Whether somebody compared it with what was published; one that nobody did is reported where it is used."""
    since: int | None = None
    """From when on it is in force, in microseconds; None for always."""
    rates: Rates
    tiers: tuple[tuple[int, Rates], ...] = ()
    """For requests with more tokens before the model than this, the smallest limit first."""
    served: dict[str, Decimal] = {}
    """How many times as much a request costs that was served in another way than the standard one."""

    def rates_for(self, row: UsageRow) -> Rates:
        """What a request of this size is paid at."""
        size = 0 if row.several else row.tokens.prompt
        return next((rates for above, rates in reversed(self.tiers) if size > above), self.rates)

    def served_in(self, ways: str) -> Price | None:
        """The price of requests that were served so, as in `fast, us`; None where it is not known."""
        factor = Decimal(1)
        for way in ways.split(", "):
            if way not in self.served:
                return None
            factor *= self.served[way]
        tiers = tuple((above, rates.times(factor)) for above, rates in self.tiers)
        return msgspec.structs.replace(self, rates=self.rates.times(factor), tiers=tiers)


class PriceList:
    """The prices of models."""

    def __init__(self, prices: Iterable[Price]) -> None:
        self._prices: dict[str, list[Price]] = {}
        for price in prices:
            self._prices.setdefault(price.model, []).append(price)
        for entries in self._prices.values():
            entries.sort(key=lambda price: price.since or 0)

    def __iter__(self) -> Iterator[Price]:
        return (price for name in sorted(self._prices) for price in self._prices[name])

    def find(self, model: str, time: int | None = None) -> Price | None:
        """The price of a model at an instant; None for a model that nobody knows."""
        entries, ways = self._entries(model)
        if not entries:
            return None
        in_force = [price for price in entries if time is None or price.since is None or price.since <= time]
        price = in_force[-1] if in_force else entries[0]
        return price.served_in(ways) if ways else price

    def names(self, model: str) -> bool:
        """Whether the list has the model, in whatever way it was served."""
        return bool(self._entries(model)[0])

    def is_verified(self, model: str) -> bool:
        """Whether every price of a model was compared with what was published."""
        return all(price.verified for price in self._entries(model)[0])

    def _entries(self, model: str) -> tuple[list[Price], str]:
        """The entries of a model, and how it was served where they are those of the standard way."""
        if (entries := self._prices.get(model) or self._prices.get(plain_model(model))) is not None:
            return entries, ""
        name, _, ways = model.partition(" (")
        return (self._entries(name)[0], ways.removesuffix(")")) if ways else ([], "")

    def cost(self, row: UsageRow) -> int | None:
        """What a request cost, in units of which `MICRO` are a micro-dollar; None where that is unknown."""
        if row.tokens == Tokens() or row.partial:
            return None
        if not any((row.input, row.output, row.cache_read, row.cache_write)):
            return 0
        price = self.find(row.model, row.time)
        return None if price is None else price.rates_for(row).cost(row)

    def over(self, other: PriceList) -> PriceList:
        """These prices, and those of the other list for models that are not here."""
        mine = [price for entries in self._prices.values() for price in entries]
        rest = [price for name, entries in other._prices.items() if name not in self._prices for price in entries]
        return PriceList([*mine, *rest])


def micros(cost: int) -> int:
    """A cost that was added up, in whole micro-dollars."""
    return (cost + MICRO // 2) // MICRO


# -- names ------------------------------------------------------------------------------------------------------------

_SERVED = re.compile(
    r"^(?:(?:anthropic|openai|google|gemini|bedrock|vertex_ai)/)?(?:(?:us|eu|apac|global)\.)?(?:anthropic\.)?"
)
_VERSION = re.compile(r"(?:\[1m\]|-v\d+(?::\d+)?|-latest|[-@]20\d{6}|-20\d\d-\d\d-\d\d)$")


@cache
def plain_model(name: str) -> str:
    """A model's name without where and when it was served; Claude's versions are written with dashes."""
    name = _SERVED.sub("", name.lower())
    while (shorter := _VERSION.sub("", name)) != name:
        name = shorter
    return name.replace(".", "-") if name.startswith("claude-") else name


# -- the table --------------------------------------------------------------------------------------------------------


@cache
def packaged() -> PriceList:
    """The prices that come with Harken."""
    from importlib import resources  # who reads totals needs no prices

    text = resources.files(__package__).joinpath("prices.toml").read_text(encoding="utf-8")
    return read_prices(text, "prices.toml")


def read_prices(text: str, name: str) -> PriceList:
    """A table of prices, as `prices.toml` has it; `BadRequest` says what is wrong with it."""
    import tomllib  # who reads totals needs no prices

    try:
        table = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, ValueError) as problem:
        raise _bad(name, str(problem)) from None
    entries = table.get("model")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _bad(name, "it has no [[model]] entries")
    return PriceList([_price(entry, name) for entry in entries])


def _price(entry: Mapping[str, Any], name: str) -> Price:
    model = entry.get("name")
    if not isinstance(model, str) or not model:
        raise _bad(name, "an entry without a name")
    rest = entry.keys() - {"name", "source", "date", "verified", "since", "tiers", "served", *_KINDS}
    if rest:
        raise _bad(name, f"{model} has an unknown key {min(rest)!r}")
    tiers = entry.get("tiers", [])
    if not isinstance(tiers, list) or not all(
        isinstance(tier, dict) and _is_count(tier.get("above")) for tier in tiers
    ):
        raise _bad(name, f"a tier of {model} needs a number of tokens, `above`")
    return Price(
        model=model,
        source=str(entry.get("source", name)),
        date=str(entry.get("date", "")),
        verified=entry.get("verified") is not False,
        since=_since(entry, name),
        rates=_rates(entry, model, name),
        tiers=tuple(sorted(((tier["above"], _rates(tier, model, name)) for tier in tiers), key=lambda tier: tier[0])),
        served=_factors(entry.get("served", {}), model, name),
    )


def _factors(served: object, model: str, name: str) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for way, factor in served.items() if isinstance(served, dict) else ((str(served), None),):
        number = Decimal(factor) if isinstance(factor, int | Decimal) and not isinstance(factor, bool) else Decimal(0)
        if not number.is_finite() or not 0 < number < 1000:
            raise _bad(name, f"`served` of {model} has a number for each way, as in {{ fast = 2 }}")
        found[way] = number
    return found


def _is_count(value: object) -> bool:
    return type(value) is int and value > 0


def _since(entry: Mapping[str, Any], name: str) -> int | None:
    since = entry.get("since")
    if since is None:
        return None
    if not isinstance(since, date):
        raise _bad(name, f"`since` of {entry['name']} is a date, as in 2026-09-22")
    return (since.toordinal() - _EPOCH) * _DAY


def _rates(entry: Mapping[str, Any], model: str, name: str) -> Rates:
    prices = {kind: _exact(entry[kind], model, name) for kind in _KINDS if kind in entry}
    if not {"input", "output"} <= prices.keys():
        raise _bad(name, f"{model} needs prices for input and output")
    return Rates(**prices)


def _exact(value: object, model: str, name: str) -> int:
    number = Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else Decimal("nan")
    if number.is_finite() and 0 <= number < MICRO:
        micros_per_million = number * MICRO
        if micros_per_million == int(micros_per_million):
            return int(micros_per_million)
    raise _bad(name, f"{value} is no price of {model}: dollars for a million tokens, with at most six decimals")


def _bad(name: str, why: str) -> BadRequest:
    return BadRequest(f"the prices in {name} cannot be read: {why}", hint="docs/guides/numbers.md shows an entry")
