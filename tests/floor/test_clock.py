"""Instants are written one way and read many ways, and nothing makes reading fail."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harken.clock import format_instant, format_seconds, from_datetime, parse_instant, to_datetime


@settings(suppress_health_check=[HealthCheck.too_slow])  # the first draw may wait for a busy machine
@given(st.datetimes())
def test_what_is_written_is_read_back(moment: object) -> None:
    instant = from_datetime(moment)  # type: ignore[arg-type]

    assert instant == parse_instant(format_instant(instant)) == from_datetime(to_datetime(instant))


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-22T10:30:00Z",
        "2026-02-22T10:30:00.000Z",
        "2026-02-22T12:30:00+02:00",
        "2026-02-22T10:30:00.000000000Z",
        "2026-02-22 10:30:00",
    ],
)
def test_an_instant_is_one_number_however_it_is_spelled(text: str) -> None:
    assert 1771756200_000000 == parse_instant(text)


def test_a_name_is_made_from_whole_seconds() -> None:
    assert "2026-02-22T10:30:00Z" == format_seconds(1771756200_999999)


@given(st.one_of(st.text(), st.none(), st.integers(), st.binary(), st.floats(), st.lists(st.text())))
def test_nothing_that_stands_where_a_time_should_makes_reading_fail(value: object) -> None:
    assert isinstance(parse_instant(value), int | None)
