"""`events-v1` is Bureau's to the byte, loses nothing of ours, and obeys no hostile input."""

from __future__ import annotations

import contextlib

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import ids
from harken.errors import BadRecord, BadRequest
from harken.events import Event, Output, Prompt, Response, ToolCall
from harken.events.cbor import array_head, decode_events, dumps, encode_events, join_arrays, loads, split_head
from harken.events.wire import from_wire
from support.events import events

HALF_PAST_TEN = 1771756200_000000


class TestVectors:
    def test_a_prompt_has_bureaus_bytes_and_name(self) -> None:
        event = Prompt(time=HALF_PAST_TEN, content="hi", source="initial")
        expected = (
            "81a364747970656670726f6d70746670726f6d7074a266736f7572636567696e697469616c67636f6e74656e746268"
            "696974696d657374616d701a699adaa8"
        )

        assert expected == encode_events([event]).hex()
        assert "art-0100aa23ef97" == ids.artifact_ref(ids.artifact_id(encode_events([event])))
        assert [event] == decode_events(bytes.fromhex(expected))

    def test_a_tool_call_has_bureaus_bytes(self) -> None:
        event = ToolCall(time=HALF_PAST_TEN, id="tc-1", name="Read", input=b'{"path":"/tmp/test"}')
        expected = (
            "81a3647479706569746f6f6c5f63616c6c6974696d657374616d701a699adaa869746f6f6c5f63616c6ca362696464"
            "74632d31646e616d65645265616465696e707574547b2270617468223a222f746d702f74657374227d"
        )

        assert expected == encode_events([event]).hex()
        assert [event] == decode_events(bytes.fromhex(expected))


@given(st.lists(events(), max_size=5))
@settings(max_examples=200, deadline=None)
def test_any_events_come_back_as_they_went(batch: list[Event]) -> None:
    data = encode_events(batch)

    assert batch == decode_events(data)
    assert data == encode_events(decode_events(data))


@given(st.lists(st.lists(events(), max_size=4), max_size=5))
@settings(max_examples=50, deadline=None)
def test_joining_arrays_is_reading_them_one_after_the_other(batches: list[list[Event]]) -> None:
    joined = join_arrays(encode_events(batch) for batch in batches)

    assert encode_events([event for batch in batches for event in batch]) == joined


@pytest.mark.parametrize("count", [0, 1, 23, 24, 255, 256, 65535, 65536, 2**32])
def test_an_array_announces_its_count_in_the_shortest_form(count: int) -> None:
    assert (count, len(array_head(count))) == split_head(array_head(count))
    if count <= 65536:
        assert cbor2.dumps([0] * count).startswith(array_head(count))


class TestTime:
    def test_microseconds_survive_beside_bureaus_whole_seconds(self) -> None:
        event = Response(content="x", time=HALF_PAST_TEN + 123456)
        wire = loads(encode_events([event]))[0]

        assert (1771756200, "2026-02-22T10:30:00.123456Z") == (wire["timestamp"], wire["time"])

    def test_an_unknown_time_stays_unknown(self) -> None:
        assert None is decode_events(encode_events([Response(content="x")]))[0].time


class TestWhatCannotBeRead:
    def test_an_unknown_type_is_kept_and_written_back_as_it_was(self) -> None:
        data = dumps([{"type": "telepathy", "timestamp": 1, "telepathy": {"to": "Jill"}}])

        (event,) = decode_events(data)

        assert isinstance(event, Output)
        assert "unknown event type 'telepathy'" == event.why
        assert data == encode_events([event])

    @pytest.mark.parametrize("item", [5, "text", None, {"type": "prompt", "prompt": 7}, {"type": ["x"]}])
    def test_an_item_of_the_wrong_shape_is_kept(self, item: object) -> None:
        (event,) = decode_events(dumps([item]))

        assert isinstance(event, Output)
        assert event.why

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\x80\x80",  # something trails behind
            b"\x9f\xff",  # indefinite length
            b"\x81" * 100 + b"\x80",  # nested too deeply
            b"\xa2\x61a\x01\x61a\x02",  # the same key twice
            b"\x81\xd8\x23\x64(a+)",  # a tag that would compile a regular expression
            b"\x81\xc2\x41\x01",  # a big number
            b"\x81\xd9\x9c\x40\x00",  # a tag nobody knows
            b"\x81\xd8\x1c\x81\xd8\x1d\x00",  # a value that contains itself
            b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",  # more items than there are bytes
            b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff",  # a byte string larger than memory
            b"\x01",
        ],
    )
    def test_hostile_bytes_are_refused_with_a_reason(self, data: bytes) -> None:
        with pytest.raises(BadRecord):
            decode_events(data)

    @given(st.binary(max_size=200))
    def test_any_bytes_are_events_or_refused(self, data: bytes) -> None:
        with contextlib.suppress(BadRecord):
            decode_events(data)


class TestOldShapes:
    def test_the_json_form_with_a_text_timestamp_and_inlined_input_is_read(self) -> None:
        event = from_wire(
            {
                "timestamp": "2026-02-22T10:30:00.5Z",
                "type": "tool_call",
                "tool_call": {"id": "tc-1", "name": "Read", "input": {"path": "/tmp/test"}},
            }
        )

        assert ToolCall(time=HALF_PAST_TEN + 500000, id="tc-1", name="Read", input=b'{"path":"/tmp/test"}') == event


def test_an_event_has_a_substance_or_a_cause_but_not_both() -> None:
    with pytest.raises(BadRequest, match="both a substance and a cause"):
        Response(content="x", substance="msg_001", cause="msg_002")


def test_a_lone_surrogate_is_made_visible_rather_than_fatal() -> None:
    (event,) = decode_events(encode_events([Response(content="a\ud800b")]))

    assert "a�b" == event.content  # type: ignore[attr-defined]
