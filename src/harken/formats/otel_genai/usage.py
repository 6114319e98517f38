"""What a call of a model used, under all the names that the counts have had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harken.events import Metric
from harken.events.base import figure
from harken.formats.kit.jsonl import Record

from .calls import REQUEST, ModelSpan, first_text
from .messages import loaded
from .spans import text_of

_INPUT = (
    "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens", "llm.token_count.prompt",
    "ai.usage.inputTokens", "ai.usage.promptTokens",
)  # fmt: skip
_OUTPUT = (
    "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens",
    "llm.token_count.completion", "ai.usage.outputTokens", "ai.usage.completionTokens",
)  # fmt: skip
_TOTAL = ("gen_ai.usage.total_tokens", "llm.usage.total_tokens", "llm.token_count.total", "ai.usage.totalTokens")
_CACHE_READ = (
    "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_input_tokens", "gen_ai.usage.details.cache_read_tokens",
    "gen_ai.usage.details.cached_tokens", "llm.token_count.prompt_details.cache_read", "ai.usage.cachedInputTokens",
    "gen_ai.usage.cached_tokens",
)  # fmt: skip
_CACHE_WRITE = (
    "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_creation_input_tokens", "gen_ai.usage.details.cache_write_tokens",
    "llm.token_count.prompt_details.cache_write",
)  # fmt: skip
_REASONING = (
    "gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens", "gen_ai.usage.details.reasoning_tokens",
    "gen_ai.usage.details.thoughts_tokens", "llm.usage.reasoning_tokens",
    "llm.token_count.completion_details.reasoning", "ai.usage.reasoningTokens",
)  # fmt: skip
_COST = ("gen_ai.usage.cost", "operation.cost", "llm.cost.total", "gen_ai.usage.total_cost")


def usage_of(found: ModelSpan) -> Metric | None:
    """What the call used; None where nothing is told of that."""
    said = found.span.attributes
    given, written = _count(said, _INPUT), _count(said, _OUTPUT)
    read, kept = _count(said, _CACHE_READ), _count(said, _CACHE_WRITE)
    cost = _cost(said)
    if given is written is read is kept is cost is None and "gen_ai.response.finish_reasons" not in said:
        return None
    cached, total = (read or 0) + (kept or 0), _count(said, _TOTAL)
    # What came from the cache is counted in, by the conventions; who counts it apart has a total that tells so.
    apart = cached > (given or 0) or (given is not None and total == given + (written or 0) + cached and cached > 0)
    return Metric(
        api_id=found.response_id,
        request_id=first_text(said, REQUEST),
        model=found.model,
        input_tokens=given if given is None or apart else given - cached,
        output_tokens=written,
        cache_read_tokens=read,
        cache_write_tokens=kept,
        reasoning_tokens=_count(said, _REASONING),
        cost_usd=cost,
        stop_reason=next(_reasons(found), ""),
    )


def _count(said: Record, keys: Iterable[str]) -> int | None:
    """The first that is a count; some stores make texts of numbers."""
    for key in keys:
        value = said.get(key)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            value = int(value)
        value = int(value) if isinstance(value, float) and value.is_integer() else value
        if (found := figure(value)) is not None:
            return found
    return None


def _cost(said: Record) -> float | None:
    for key in _COST:
        value = said.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53:
            return float(value)
    return None


def _reasons(found: ModelSpan) -> Iterator[str]:
    """Why the model stopped, of each choice."""
    said = loaded(found.span.attributes.get("gen_ai.response.finish_reasons"))
    for one in said if isinstance(said, list) else [said]:
        if text := text_of(one):
            yield text
    for message in found.outputs:
        if text := text_of(message.get("finish_reason")):
            yield text
    if text := first_text(found.span.attributes, "ai.response.finishReason", "gen_ai.response.stop_reason"):
        yield text
