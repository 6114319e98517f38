"""Tokens and money: every answer tells what its request used; input is without what came from the cache or went into
it. A file repeats nothing, but a fork copies entries: a request is known by the provider's id of the answer and by the
moment of the message, or without such an id by the entry's own id and time, all of which a copy keeps.

Figures that are all zero are those of a request that nobody counted: one that broke off, or an answer from elsewhere.
"""

from __future__ import annotations

from harken.events import Metric, Tokens
from harken.events.base import clean, figure
from harken.events.runs import EMBEDDED
from harken.events.tally import RequestUsage
from harken.formats.kit.jsonl import Record

from .records import id_of, text_of


def tokens_of(usage: Record) -> Tokens | None:
    """The figures; None where nobody counted."""
    given, output = usage.get("input"), usage.get("output")
    read, written = usage.get("cacheRead"), usage.get("cacheWrite")
    if not (given or output or read or written):
        return None
    return Tokens(input=figure(given), output=figure(output), cache_read=figure(read), cache_write=figure(written))


def cost_of(usage: Record) -> float | None:
    """What the program says that it cost, in dollars: its own price list, which has none for some models."""
    cost = usage.get("cost")
    total = cost.get("total") if isinstance(cost, dict) else None
    return float(total) if isinstance(total, int | float) and not isinstance(total, bool) and total > 0 else None


def key_of(record: Record, message: Record) -> tuple[str, str]:
    """By what a request is known, in every copy of its entry."""
    answer, moment = text_of(message.get("responseId")), message.get("timestamp")
    told = str(moment) if isinstance(moment, int) else ""
    if answer and told:
        return _joined(answer), told
    return _joined(f"pi:{id_of(record)}@{text_of(record.get('timestamp')) or told}"), _joined(answer)


def _joined(text: str) -> str:
    """A name in which no blank stands."""
    parts = clean(text).split()
    return parts[0] if len(parts) == 1 else "_".join(parts)


def model_of(message: Record) -> str:
    """The model that answered."""
    return clean(text_of(message.get("responseModel")) or text_of(message.get("model")))


def request_of(record: Record, message: Record, *, nested: bool = False) -> tuple[tuple[str, str], RequestUsage] | None:
    """What an entry says that a request used, for a scan; `metric_of` says the same."""
    usage = message.get("usage")
    if not isinstance(usage, dict) or (tokens := tokens_of(usage)) is None:
        return None
    api_id, request_id = key_of(record, message)
    key = (f"{api_id}#{request_id}", NESTED) if nested else (api_id, request_id)
    counts = (tokens.input, tokens.output, tokens.cache_read, tokens.cache_write)
    return key, RequestUsage(*counts, model_of(message), cost_of(usage), nested)


NESTED = "nested"


def metric_of(record: Record, message: Record, *, nested: bool = False) -> Metric | None:
    """The metric of an answer, a summary or (nested) of what a tool asked of a model."""
    usage = message.get("usage")
    found = request_of(record, message, nested=nested)
    if found is None or not isinstance(usage, dict):
        return None
    (api_id, request_id), used = found
    return Metric(
        api_id=api_id,
        request_id=request_id,
        input_tokens=used.input,
        output_tokens=used.output,
        cache_read_tokens=used.cache_read,
        cache_write_tokens=used.cache_write,
        cache_write_1h_tokens=figure(usage.get("cacheWrite1h")) or None,
        reasoning_tokens=figure(usage.get("reasoning")) or None,
        cost_usd=used.cost_usd,
        model=used.model,
        stop_reason=clean(text_of(message.get("stopReason"))),
        scope=EMBEDDED if nested else "",
    )
