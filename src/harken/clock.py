"""Time: the one place that reads the clock or a calendar.

An instant is a whole number of microseconds since 1970 in UTC: it sorts, it compares, and it cannot carry a zone
by mistake. `None` is an instant nobody wrote down. A function that needs to know the time takes a `Clock`.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

Clock = Callable[[], int]
"""Answers with the present instant."""

SECOND = 1_000_000
_MINUTE = 60 * SECOND
_HOUR_LONG = 60 * _MINUTE
_MINUTES = 4096
"""How many beginnings of texts are remembered."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# The years 1 to 9999, which is what a calendar date can say.
_FIRST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_TEXT = re.compile(
    rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}"
    rf"(?:[T ]{_HOUR}:{_SIXTY}(?::{_SIXTY}(?:[.,][0-9]+)?)?(?:Z|[+-]{_HOUR}(?::?{_SIXTY})?)?)?"
)
"""How an instant may be spelled (FORMAT.md says it in words). What `fromisoformat` takes beyond this (weeks, ordinal
days, 24:00) differs between versions of Python, and a commit's name must not."""
_LONGEST = 40
_SECONDS_OF = {f"{second:02d}.": second * SECOND for second in range(60)}
_MILLIS_OF = {f"{millis:03d}Z": millis * 1000 for millis in range(1000)}
"""How nearly every instant ends (`2026-02-22T10:30:00.000Z`): to look it up is quicker than to read its digits."""
_SECONDS = len("2026-02-22T10:30:00Z")
"""How long the text of nearly every other is."""


def now() -> int:
    """The present instant."""
    return time.time_ns() // 1000


def monotonic() -> float:
    """Seconds that never go backwards, for measuring how long something took."""
    return time.monotonic()


def processor_seconds() -> float:
    """Seconds that this thread has kept a processor busy, for measuring what something costs."""
    return time.thread_time()


def in_calendar(instant: int) -> bool:
    """Whether the instant has a date at all; a hostile file may claim one that has not."""
    return _FIRST <= instant <= _LAST


def to_datetime(instant: int) -> datetime:
    """The instant as an aware datetime."""
    return _EPOCH + timedelta(microseconds=instant)


def from_datetime(moment: datetime) -> int:
    """The instant of a datetime; a naive one is taken as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def format_instant(instant: int) -> str:
    """RFC 3339 in UTC with six digits, the form Harken writes everywhere."""
    hours, rest = divmod(instant, _HOUR_LONG)
    digits = f"{rest % _MINUTE:08d}"
    return f"{_hour(hours)}{rest // _MINUTE:02d}:{digits[:2]}.{digits[2:]}Z"


def format_millis(instant: int) -> str:
    """RFC 3339 in UTC with three digits, the form that most runtimes write."""
    return format_instant(instant)[:-4] + "Z"


def format_seconds(instant: int) -> str:
    """RFC 3339 in UTC in whole seconds, the form a commit's name is made from."""
    hours, rest = divmod(instant, _HOUR_LONG)
    return f"{_hour(hours)}{rest // _MINUTE:02d}:{rest % _MINUTE // SECOND:02d}Z"


def add_micros(seconds: str, instant: int) -> str:
    """`format_instant` of an instant whose `format_seconds` is known: a fifth of the work."""
    return f"{seconds[:-1]}.{instant % SECOND:06d}Z"


@lru_cache(maxsize=1024)
def _hour(hours: int) -> str:
    """The hour so many hours after 1970 began; kept, since lists are long and their hours are few."""
    return (_EPOCH + timedelta(hours=hours)).isoformat()[:14]


def parse_instant(text: object) -> int | None:
    """The instant an RFC 3339 text names, or None where it names none or one outside the calendar; never raises."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return None
    millis, second = _MILLIS_OF.get(text[20:]), _SECONDS_OF.get(text[17:20])
    if millis is not None and second is not None and (minute := _minute(text[:17])) is not None:
        return minute + second + millis
    if len(text) == _SECONDS and text[19] == "Z":
        seconds = text[17:19]
        if seconds.isascii() and seconds.isdigit() and seconds < "60" and (minute := _minute(text[:17])) is not None:
            return minute + int(seconds) * SECOND
    return _parse(text)


def instant_of_seconds(value: object) -> int | None:
    """The instant that a record tells in seconds since 1970; None for what is no such number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 2**40:
        return None
    instant = int(value * SECOND)
    return instant if in_calendar(instant) else None


def meant_instant(moment: datetime | str | float) -> int | None:
    """The instant that somebody means. The size of a number tells its unit: no two of them overlap for any day since
    1973."""
    if isinstance(moment, datetime):
        return from_datetime(moment)
    if isinstance(moment, str):
        # Fewer digits are no day of any log, but may well be a mistyped id.
        return meant_instant(float(moment)) if _DIGITS.fullmatch(moment) else parse_instant(moment)
    if isinstance(moment, bool) or not isinstance(moment, (int, float)) or not math.isfinite(moment):
        return None
    size = abs(moment)
    return round(moment * (SECOND if size < 10**11 else 1000 if size < 10**14 else 1))


_DIGITS = re.compile(r"[0-9]{9,16}(\.[0-9]{1,9})?", re.ASCII)


@lru_cache(maxsize=_MINUTES)
def _minute(beginning: str) -> int | None:
    """The instant of a minute by the text of it, to its colon; kept, since those that follow each other share it."""
    return _parse(f"{beginning}00Z")


def _parse(text: str) -> int | None:
    if _TEXT.fullmatch(text) is None:
        return None
    try:
        instant = from_datetime(datetime.fromisoformat(text))
    except ValueError:  # a day that its month does not have
        return None
    # An offset may carry the last day of the calendar out of it.
    return instant if _FIRST <= instant <= _LAST else None


_AGO = re.compile(r"([0-9]{1,5})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def parse_when(text: str, present: int, *, end: bool = False) -> int | None:
    """The instant that people mean: `today`, `yesterday`, a day like 2026-01-31, `12h`, `7d` or `2w` ago, or RFC 3339;
    None for anything else. A day is one of the local time zone, and stands for its first instant, or its last."""
    if ago := _AGO.fullmatch(text):
        instant = present - int(ago[1]) * _HOURS[ago[2]] * _HOUR_LONG
        return instant if in_calendar(instant) else None
    try:
        if text in ("today", "yesterday"):
            day = to_datetime(present).astimezone().date() - timedelta(days=text == "yesterday")
        elif _DAY.fullmatch(text):
            day = datetime.fromisoformat(text).date()
        else:
            return parse_instant(text)
        # Without a zone it is local time, also where that changes with the season.
        midnight = datetime.combine(day + timedelta(days=end), datetime.min.time())
        return from_datetime(midnight.astimezone()) - end
    except (ValueError, OverflowError, OSError):  # a day that its month does not have, or outside every calendar
        return None


def local_period(instant: int, by: str = "day") -> str:
    """The `day` (2026-01-31), `week` (2026-W05, as ISO counts) or `month` (2026-01) of an instant in the local time
    zone; empty for one that has no date there."""
    try:
        day = to_datetime(instant).astimezone().date()
    except (ValueError, OverflowError, OSError):
        return ""
    if by == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04d}-W{week:02d}"
    return day.isoformat()[: len("2026-01") if by == "month" else None]


def local_hour(instant: int) -> tuple[int, int] | None:
    """The weekday (Monday is 0) and the hour of an instant in the local time zone; None for one that has no date."""
    try:
        moment = to_datetime(instant).astimezone()
    except (ValueError, OverflowError, OSError):
        return None
    return moment.weekday(), moment.hour


def local_zone(instant: int) -> str:
    """What the local time zone is called at that instant, as `UTC` or `CET`."""
    try:
        return to_datetime(instant).astimezone().tzname() or ""
    except (ValueError, OverflowError, OSError):
        return ""


def local_text(text: str) -> str:
    """An instant that is told as `format_instant` does, for people: 2026-01-31 14:05:09 CET, in the local time zone."""
    minute, zone = _local_minute(text[:16], time.timezone)
    return f"{minute}{text[16:19]} {zone}"


@lru_cache(maxsize=1024)
def _local_minute(minute: str, _zone: int) -> tuple[str, str]:
    """A minute in the local time zone, and what that is called; kept, since lists are long and minutes are shared."""
    try:
        moment = datetime.fromisoformat(f"{minute}:00+00:00").astimezone()
    except (ValueError, OverflowError, OSError):  # it has no date there
        return minute.replace("T", " "), "UTC"
    return str(moment)[:16], moment.tzname() or ""


class Timestamps:
    """Instants as text; those of one minute share the work, so that formatting many costs a third."""

    def __init__(self) -> None:
        self._minutes: dict[int, str] = {}

    def __call__(self, instant: int) -> str:
        """RFC 3339 in UTC with six digits; `OverflowError` for an instant that has no date."""
        minute, rest = divmod(instant, _MINUTE)
        prefix = self._minutes.get(minute)
        if prefix is None:
            prefix = self._begin(minute)
        digits = f"{rest:08d}"
        return f"{prefix}{digits[:2]}.{digits[2:]}Z"

    def _begin(self, minute: int) -> str:
        if len(self._minutes) >= _MINUTES:
            self._minutes.clear()
        prefix = self._minutes[minute] = format_instant(minute * _MINUTE)[:17]
        return prefix
