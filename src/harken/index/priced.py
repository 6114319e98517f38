"""A row of the table `usage`, as a price list reads it."""

from __future__ import annotations

from collections.abc import Sequence

from harken.analytics.usage import UsageRow


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
