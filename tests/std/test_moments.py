"""Times for events that have none."""

from __future__ import annotations

from harken.events import Prompt
from harken.formats.std.exporting.moments import Moments


def test_an_event_without_a_time_has_the_one_before_it_else_the_one_after_it() -> None:
    events = [Prompt(time=time) for time in (None, 5, None, 9)]

    moments = Moments(events)

    assert [5, 5, 5, 9] == [moments.of(event) for event in events]
    assert "1970-01-01T00:00:00.000009Z" == moments.text(events[3])


def test_where_no_time_is_known_the_given_one_stands() -> None:
    event = Prompt()

    assert 7 == Moments([event], otherwise=7).of(event)
