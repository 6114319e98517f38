"""What a record says was used, and by which request; `harken.events.tally` counts it once.

A response is written over several lines which all repeat its `usage`, forks copy the lines, and progress records embed
those of a sub-agent. The request is named by the API's message id and its own id; a message without one by its record.
"""

from __future__ import annotations

from harken.events.tally import RequestUsage, Tally, figure

from .records import Line, UsageFields, real


def count_usage(tally: Tally, line: Line) -> None:
    """Count what an assistant record says."""
    body = line.message
    if body is None:
        return
    fields = body.usage or _old_fields(line)
    if fields is None and line.costUSD is None:
        return
    # Most lines only repeat what the first line of their message said.
    known = tally.requests.get(f"{body.id} {line.requestId or ''}") if body.id else None
    if known is not None and not known.nested and (known.output or 0) >= (fields.output_tokens or 0 if fields else 0):
        return
    tally.request(
        body.id or line.uuid or "", line.requestId or "", _usage(fields or UsageFields(), body.model, line.costUSD)
    )


def count_nested(tally: Tally, line: Line) -> None:
    """Count what a progress record embeds of another agent's message."""
    inner = line.data.message if line.data is not None else None
    body = inner.message if inner is not None and not isinstance(inner, str) else None
    if inner is None or isinstance(inner, str) or body is None or body.usage is None or not body.id:
        return
    tally.request(body.id, inner.requestId or "", _usage(body.usage, body.model, None, nested=True))


def _usage(fields: UsageFields, model: str | None, cost: float | None, *, nested: bool = False) -> RequestUsage:
    return RequestUsage(
        figure(fields.input_tokens),
        figure(fields.output_tokens),
        figure(fields.cache_read_input_tokens),
        figure(fields.cache_creation_input_tokens),
        model or "",
        None if cost is None else real(cost),
        nested,
    )


def _old_fields(line: Line) -> UsageFields | None:
    """Early builds are said to have written the figures beside the message."""
    if line.inputTokens is None and line.outputTokens is None:
        return None
    return UsageFields(line.inputTokens, line.outputTokens, line.cacheReadInputTokens, line.cacheCreationInputTokens)
