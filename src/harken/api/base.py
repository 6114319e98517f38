"""What every request and answer has in common, and how times are written."""

from __future__ import annotations

import msgspec

from harken import clock


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a caller asks for. A key that no operation knows is refused, not ignored."""


class ApiAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller is told."""


def stamp(instant: int | None) -> str | None:
    """An instant as answers write it: RFC 3339, UTC, six digits; None where nobody knows it."""
    return None if instant is None or not clock.in_calendar(instant) else clock.format_instant(instant)
