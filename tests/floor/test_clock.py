"""Instants are written one way and read many ways, and nothing makes reading fail."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harken.clock import (
    add_micros,
    format_instant,
    format_millis,
    format_seconds,
    from_datetime,
    in_calendar,
    instant_of_seconds,
    parse_instant,
    to_datetime,
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # the first draw may wait for a busy machine
@given(st.datetimes())
def test_what_is_written_is_read_back(moment: object) -> None:
    instant = from_datetime(moment)  # type: ignore[arg-type]

    assert instant == parse_instant(format_instant(instant)) == from_datetime(to_datetime(instant))


@given(st.datetimes())
def test_whole_seconds_and_what_is_behind_them_are_the_instant(moment: object) -> None:
    instant = from_datetime(moment)  # type: ignore[arg-type]

    assert format_instant(instant) == add_micros(format_seconds(instant), instant)
    assert instant - instant % 1_000_000 == parse_instant(format_seconds(instant))


@given(st.datetimes())
def test_thousandths_are_cut_off_and_never_rounded(moment: object) -> None:
    instant = from_datetime(moment)  # type: ignore[arg-type]

    assert len("2026-02-22T10:30:00.000Z") == len(format_millis(instant))
    assert instant - instant % 1000 == parse_instant(format_millis(instant))


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        (1_771_756_200, 1_771_756_200_000_000),
        (1.5, 1_500_000),
        (-1, -1_000_000),
        *((value, None) for value in (None, "1", True, [], float("nan"), float("inf"), 2**40, -(10**12))),
    ],
)
def test_seconds_of_a_record_are_an_instant_or_unknown(value: object, instant: int | None) -> None:
    assert instant == instant_of_seconds(value)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-22T10:30:00Z",
        "2026-02-22T10:30:00.000Z",
        "2026-02-22T12:30:00+02:00",
        "2026-02-22T10:30:00.000000000Z",
        "2026-02-22 10:30:00",
        "2026-02-22T10:30",
        "2026-02-22T10:30:00,0+00",
        "2026-02-22T12:30:00.0000009+0200",
        "2026-02-22T00:00:00.000000-10:30",
    ],
)
def test_an_instant_is_one_number_however_it_is_spelled(text: str) -> None:
    assert 1771756200_000000 == parse_instant(text)


def test_a_name_is_made_from_whole_seconds() -> None:
    assert "2026-02-22T10:30:00Z" == format_seconds(1771756200_999999)


@given(st.one_of(st.text(), st.none(), st.integers(), st.binary(), st.floats(), st.lists(st.text())))
def test_nothing_that_stands_where_a_time_should_makes_reading_fail(value: object) -> None:
    assert isinstance(parse_instant(value), int | None)


@pytest.mark.parametrize(
    "text",
    [
        "2026-W08-7T10:30:00Z",
        "2026-053T10:30:00Z",
        "20260222T103000Z",
        "2026-02-22T24:00:00Z",
        "2026-02-22T23:59:60Z",
        "2026-02-22T10:30:00+02:00:30",
        "2026-02-22x10:30:00Z",
        "2026-02-30T10:30:00Z",
        "0000-02-22T10:30:00Z",
        "2026-02-22T10:30:00Z\n",
        "\u0662026-02-22T10:30:00Z",
        "2026-02-22T10:30:00." + "0" * 40 + "Z",
    ],
)
def test_what_versions_of_python_read_differently_names_no_instant(text: str) -> None:
    assert parse_instant(text) is None


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-02:00", "0001-01-01T00:00:00+00:01"])
def test_an_instant_that_its_zone_carries_out_of_the_calendar_is_unknown(text: str) -> None:
    assert parse_instant(text) is None


@given(st.datetimes(), st.integers(-1439, 1439), st.sampled_from("T "), st.sampled_from(["", ":"]))
def test_a_zone_is_taken_off(moment: datetime, minutes: int, between: str, colon: str) -> None:
    """Counted here by hand: days of the calendar, hours, minutes, seconds, less the offset."""
    seconds = (moment.toordinal() - 719_163) * 86_400 + moment.hour * 3600 + moment.minute * 60 + moment.second
    instant = (seconds - minutes * 60) * 1_000_000 + moment.microsecond
    zone = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{colon}{abs(minutes) % 60:02}"

    read = parse_instant(f"{moment:%H:%M:%S.%f}".join([f"{moment.date().isoformat()}{between}", zone]))

    assert (instant if in_calendar(instant) else None) == read
