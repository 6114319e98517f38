"""Settings hold what their types say, from the start: whatever the log could not give back is refused when it is made.

A setting is logged and read again, also by the program that has just made it. One that cannot be read counts for
nothing, which must not happen to a limit because somebody wrote `tokens=1e6`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harken.errors import BadRequest

_LARGEST = 2**63 - 1
"""What JSON is read and written with takes no larger number."""


def whole(value: Any) -> Any:
    """A whole number as an int, however it was written; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def hold(setting: msgspec.Struct) -> None:
    """Refuse a setting with a field that is not of its type; a whole number may be written as a float."""
    for field in msgspec.structs.fields(setting):
        given = getattr(setting, field.name)
        if isinstance(given, float) and not _fits(given, field.type):
            given = whole(given)
            msgspec.structs.force_setattr(setting, field.name, given)
        if not _fits(given, field.type):
            raise BadRequest(
                f"{field.name} of {type(setting).__name__} cannot be {given!r:.80}",
                hint="look at the type of the field",
            )


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool) and not abs(value) <= _LARGEST:
        return False  # NaN as well
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True
