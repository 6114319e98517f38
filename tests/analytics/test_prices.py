"""Prices: exact, dated, with a source, and never guessed."""

from __future__ import annotations

import json
import re
import zlib
from fractions import Fraction
from importlib import resources
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.analytics.prices import MICRO, PriceList, micros, packaged, plain_model, read_prices
from harken.analytics.spending import price_of
from harken.analytics.usage import UsageRow, usage_rows
from harken.clock import parse_instant
from harken.errors import BadRequest
from harken.events.records import SessionRecord, by_record
from harken.formats import get
from harken.index import schema
from support.recordings import corpus_files

PRICED_VERSION, PRICED_SUM = 7, 2864234853
TABLE = """
[[model]]
name = "demo"
source = "a page"
date = 2026-01-01
input = 3
output = 15.0
cache_read = 0.3
cache_write_5m = 3.75
cache_write_1h = 6
[[model.tiers]]
above = 1000
input = 6
output = 22.5
cache_read = 0.6
"""


def prices() -> PriceList:
    return read_prices(TABLE, "table")


def row(**counts: object) -> UsageRow:
    return UsageRow(key="k", **{"model": "demo", **counts})  # type: ignore[arg-type]


def cost(**counts: object) -> int | None:
    found = prices().cost(row(**counts))
    return None if found is None else micros(found)


def test_each_kind_of_token_has_its_price() -> None:
    assert 3 * 100 + 15 * 10 == cost(input=100, output=10)
    assert 30 + 375 + 600 == cost(cache_read=100, cache_write_5m=100, cache_write_1h=100)


def test_a_long_request_is_paid_at_its_tier_as_a_whole() -> None:
    assert 3 * 1000 + 15 == cost(input=1000, output=1)
    assert 6 * 900 + 60 + 2250 == cost(input=900, cache_read=101, output=100) - 1  # type: ignore[operator]


def test_several_requests_together_are_no_long_request() -> None:
    assert 3 * 5000 == cost(input=5000, several=True)


def test_a_kind_without_a_price_makes_the_cost_unknown() -> None:
    assert cost(input=5000, cache_write_5m=1) is None


def test_reasoning_is_output_unless_it_has_a_price_of_its_own() -> None:
    table = read_prices(TABLE.replace("cache_read = 0.3\n", "cache_read = 0.3\nreasoning = 60\n"), "table")

    assert 15 * 10 == cost(output=10, reasoning=4)
    assert 15 * 6 + 60 * 4 == micros(table.cost(row(output=10, reasoning=4)) or 0)


def test_an_unknown_model_has_no_price_and_one_that_used_nothing_cost_nothing() -> None:
    assert cost(model="demo-2", input=1) is None
    assert 0 == cost(model="demo-2", input=0, output=0)
    assert cost(model="demo") is None  # nobody counted


@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)), max_size=20))
def test_costs_are_added_up_exactly_and_rounded_once(counts: list[tuple[int, int]]) -> None:
    found = sum(prices().cost(row(input=i, cache_read=r, several=True)) or 0 for i, r in counts)

    exact = sum((Fraction(3) * i + Fraction(3, 10) * r for i, r in counts), Fraction(0))
    assert exact == Fraction(found, MICRO)
    assert abs(micros(found) - exact) <= Fraction(1, 2)


def test_the_price_is_the_one_in_force_when_the_request_was_made() -> None:
    later = '[[model]]\nname = "demo"\nsince = 2026-02-01\ninput = 1\noutput = 1\n'
    table = read_prices(TABLE + later, "table")

    def at(day: str) -> int | None:
        return table.cost(row(input=100, time=parse_instant(f"{day}T00:00:00Z")))

    assert 300 * MICRO == at("2025-06-01") == at("2026-01-31")
    assert 100 * MICRO == at("2026-02-01") == table.cost(row(input=100))


def test_a_users_table_replaces_the_entries_of_the_models_it_names() -> None:
    mine = read_prices('[[model]]\nname = "claude-opus-4-6"\ninput = 1\noutput = 2\n', "mine")

    both = mine.over(packaged())

    assert 1 * MICRO == both.cost(row(model="claude-opus-4-6", input=1))
    assert both.cost(row(model="claude-opus-4-6", cache_read=1)) is None
    assert 5 * MICRO == both.cost(row(model="claude-opus-4-5-20251101", input=1))


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("claude-opus-4-8[1m]", "claude-opus-4-8"),
        ("gpt-4.1-2025-04-14", "gpt-4.1"),
        ("openai/gpt-5.5", "gpt-5.5"),
        ("copilot/gpt-4o", "copilot/gpt-4o"),
        ("kimi-k2.7-code", "kimi-k2.7-code"),
    ],
)
def test_a_name_says_where_and_when_a_model_was_served(name: str, plain: str) -> None:
    assert plain == plain_model(name)


def test_every_entry_that_comes_along_has_a_source_a_date_and_the_prices_that_are_used() -> None:
    entries = list(packaged())

    assert len(entries) > 40
    for entry in entries:
        assert re.match(r"(LiteLLM \d+\.\d+\.\d+, from )?https://", entry.source), entry.model
        assert len("2026-11-16") == len(entry.date), entry.model
        assert entry.rates.input and entry.rates.output, entry.model
        assert entry.rates.cache_read or "claude-3-sonnet" == entry.model  # it had no cache
        assert entry.model == plain_model(entry.model)


def test_what_nobody_checked_is_marked_and_named_where_it_is_used() -> None:
    unchecked = {entry.model for entry in packaged() if not entry.verified}

    assert {"claude-3-sonnet", "claude-opus-4-0", "claude-sonnet-4-0"} == unchecked
    assert {"claude-opus-4-0": 1} == price_of([row(model="claude-opus-4-0", input=1)], packaged()).unverified
    assert {} == price_of([row(model="claude-opus-4-5", input=1)], packaged()).unverified


def test_a_changed_price_makes_costs_that_are_kept_out_of_date() -> None:
    # The index keeps costs: who changes a price raises `VERSION` there, and writes down here since which one it holds.
    table = resources.files("harken.analytics").joinpath("prices.toml").read_bytes()

    assert PRICED_SUM == zlib.crc32(table)
    assert PRICED_VERSION <= schema.VERSION


def test_a_request_that_was_served_in_another_way_has_another_price() -> None:
    table = read_prices(TABLE.replace("[[model.tiers]]", "served = { fast = 2, us = 1.1 }\n[[model.tiers]]"), "table")

    def paid(model: str, tokens: int = 100) -> int | None:
        found = table.cost(row(model=model, input=tokens))
        return None if found is None else micros(found)

    assert (300, 600, 660) == (paid("demo"), paid("demo (fast)"), paid("demo (fast, us)"))
    assert 2 * 6 * 2000 == paid("demo (fast)", 2000)
    assert paid("demo (priority)") is None and paid("demo (fast, batch)") is None  # never guessed


def test_a_price_of_ones_own_for_a_model_says_nothing_of_other_ways_to_serve_it() -> None:
    mine = read_prices('[[model]]\nname = "claude-opus-5-5"\ninput = 1\noutput = 2\n', "mine").over(packaged())

    assert mine.cost(row(model="claude-opus-5-5 (fast)", input=1)) is None
    assert 8 * MICRO == packaged().cost(row(model="claude-opus-5-5 (fast)", input=1))


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ({"service_tier": "standard", "speed": None, "inference_geo": "not_available"}, "claude-opus-5-5"),
        ({"service_tier": "batch"}, "claude-opus-5-5 (batch)"),
        ({"speed": "fast", "inference_geo": "us"}, "claude-opus-5-5 (fast, us)"),
        ({"service_tier": {"hostile": []}, "speed": 3}, "claude-opus-5-5"),
        ({"service_tier": "[removed]", "speed": "no name at all"}, "claude-opus-5-5"),
    ],
)
def test_claude_codes_records_say_how_a_request_was_served(said: dict[str, object], model: str) -> None:
    usage = {"input_tokens": 1, "output_tokens": 1, **said}
    body = {"id": "m", "model": "claude-opus-5-5", "role": "assistant", "content": [], "usage": usage}
    line = json.dumps({"type": "assistant", "uuid": "u", "sessionId": "s", "message": body}).encode() + b"\n"

    records = [SessionRecord(events=one) for one in by_record(get("claude-code-v1").read(line))]

    assert [model] == [one.model for one in usage_rows(records)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no toml", "cannot be read"),
        ("a = 1", "no [[model]] entries"),
        ("[[model]]\ninput = 1\noutput = 1\n", "without a name"),
        ('[[model]]\nname = "m"\ninput = 1\n', "needs prices for input and output"),
        ('[[model]]\nname = "m"\ninput = -1\noutput = 1\n', "-1 is no price of m"),
        ('[[model]]\nname = "m"\ninput = nan\noutput = 1\n', "is no price of m"),
        ('[[model]]\nname = "m"\ninput = 0.0000001\noutput = 1\n', "at most six decimals"),
        ('[[model]]\nname = "m"\ninput = 1\noutput = 1\nsince = 3\n', "is a date"),
        ('[[model]]\nname = "m"\ninput = 1\noutput = 1\ninptu = 3\n', "unknown key 'inptu'"),
        ('[[model]]\nname = "m"\ninput = 1\noutput = 1\nserved = 3\n', "a number for each way"),
        ('[[model]]\nname = "m"\ninput = 1\noutput = 1\nserved = { fast = -1 }\n', "a number for each way"),
        ('[[model]]\nname = "m"\ninput = 1\noutput = 1\n[[model.tiers]]\ninput = 1\n', "needs a number of tokens"),
    ],
)
def test_a_table_that_cannot_be_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(BadRequest, match="the prices in mine") as refused:
        read_prices(text, "mine.toml")

    assert why in str(refused.value)


# -- real files --------------------------------------------------------------------------------------------------------

LISTED = {
    "claude-opus-4-5-20251101": ("5", "25", "0.5", "6.25", "10"),
    "claude-opus-4-6": ("5", "25", "0.5", "6.25", "10"),
    "claude-sonnet-4-5-20250929": ("3", "15", "0.3", "3.75", "6"),
    "claude-sonnet-4-20250514": ("3", "15", "0.3", "3.75", "6"),
    "claude-haiku-4-5-20251001": ("1", "5", "0.1", "1.25", "2"),
}
"""Dollars for a million tokens, as the provider's page has them: input, output, cache read, 5 minutes, an hour."""


def plainly(path: Path) -> Fraction | None:
    """What a file's requests cost in micro-dollars, straight from its lines; None where another model was asked."""
    best: dict[tuple[str, str], tuple[str, list[int]]] = {}
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        body = record.get("message") if isinstance(record, dict) and record.get("type") == "assistant" else None
        if not isinstance(body, dict) or not isinstance(body.get("usage"), dict) or body["model"] == "<synthetic>":
            continue
        usage = body["usage"]
        written = usage.get("cache_creation_input_tokens") or 0
        hour = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens") or 0
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens")
        counts = [*(usage.get(name) or 0 for name in names), written - hour, hour]
        key = (body.get("id") or record["uuid"], record.get("requestId") or "")
        if key not in best or counts[1] > best[key][1][1]:
            best[key] = (body["model"], counts)
    if any(model not in LISTED for model, _ in best.values()):
        return None
    prices = [zip(LISTED[model], counts, strict=True) for model, counts in best.values()]
    return sum((Fraction(price) * count for row in prices for price, count in row), Fraction(0))


def test_on_the_corpus_the_cost_is_that_of_the_plain_lines() -> None:
    files = [path for path in corpus_files("claude_code/**/*.jsonl") if b'"agent_progress"' not in path.read_bytes()]
    for path in sorted(files, key=lambda path: path.stat().st_size)[:40]:
        if (expected := plainly(path)) is not None:
            records = [SessionRecord(events=one) for one in by_record(get("claude-code-v1").read(path.read_bytes()))]

            found = price_of(usage_rows(records), packaged())

            assert {} == found.unpriced, path
            assert abs(expected - (found.usd_micros or 0)) <= Fraction(1, 2), path


def test_what_another_agent_repeats_of_a_request_counts_only_where_nobody_else_tells_of_it() -> None:
    own, told = row(api="m", output=10), row(api="m", output=9, nested=True)
    told = msgspec.structs.replace(told, key="m elsewhere")

    assert [15 * 10, 15 * 9] == [price_of(rows, prices()).usd_micros for rows in ([own, told], [told])]
