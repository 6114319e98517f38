"""The session-log format: every event has one way in and back, and nothing a file may hold stops the reading."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.errors import BadRequest
from harken.events import (
    KINDS,
    AgentCreated,
    Event,
    Metric,
    Output,
    PieceOfText,
    Prompt,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
)
from harken.events.tally import Tally
from harken.formats import get
from harken.formats.kit.jsonl import TOO_DEEP
from harken.formats.session_log import (
    FORMAT,
    MAX_LINE,
    LogRecord,
    encode,
    events_of,
    normalise,
    read_records,
    record_of,
    records_of,
    scan,
    side_chains,
)
from harken.formats.session_log.scan import SOFT
from support.events import events as any_event

DOCUMENT = Path(__file__).parents[2] / "docs" / "FORMAT.md"


def read(data: bytes, size: int = 1 << 16) -> list[LogRecord]:
    return list(read_records(data[at : at + size] for at in range(0, len(data), size)))


def line(**keys: Any) -> bytes:
    return orjson.dumps({"message_id": "m1", "event_type": "transcript_entry", "agent_id": "a", **keys})


# The way in and back


@given(st.lists(any_event(), max_size=8))
@settings(max_examples=100, deadline=None)
def test_any_sequence_of_events_comes_back_from_the_log(events: list[Event]) -> None:
    written = FORMAT.write(events)

    assert () == written.losses
    assert events == FORMAT.read(written.data)


@st.composite
def assistant_records(draw: st.DrawFn) -> list[Event]:
    """The events of one record, in whatever order a runtime may tell them."""
    kinds = draw(st.lists(st.sampled_from(["thinking", "response", "tool_call", "metric"]), min_size=1, max_size=6))
    bare = [draw(any_event((kind,))) for kind in kinds]
    envelope = {name: getattr(bare[0], name) for name in ("message_id", "agent_id", "time", "api_id")}
    return [
        event.replace(**envelope, substance=None, cause=bare[0].cause, index=index) for index, event in enumerate(bare)
    ]


@given(st.lists(assistant_records(), max_size=4))
@settings(max_examples=100, deadline=None)
def test_records_of_several_events_come_back_whatever_their_order(records: list[list[Event]]) -> None:
    events = [event for record in records for event in record]

    assert events == FORMAT.read(FORMAT.write(events).data)


def test_thinking_words_and_calls_are_one_line() -> None:
    said = {"message_id": "m1", "agent_id": "a"}
    events: list[Event] = [
        Thinking(content="hm", index=0, **said),
        Response(content="yes", index=1, **said),
        ToolCall(id="c1", name="go", input=b"{}", index=2, **said),
        ToolCall(id="c2", name="go", input=b"{}", index=3, **said),
    ]

    (data,) = records_of(events)

    assert "hm" == data["thinking"]
    assert "yes" == data["content"]
    assert ["c1", "c2"] == [call["id"] for call in data["tool_calls"]]
    assert events == events_of(data)


def test_events_that_are_not_one_line_are_refused_as_one() -> None:
    with pytest.raises(BadRequest):
        record_of([Response(message_id="m"), Prompt(message_id="m", index=1)])


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"\x00", b"", b'{"a":1}'])
def test_bytes_of_any_kind_come_back(raw: bytes) -> None:
    events: list[Event] = [
        Output(message_id="m1", raw=raw),
        ToolCall(message_id="m2", id="c", input=raw),
        System(message_id="m3", subtype="init", metadata=raw),
        AgentCreated(message_id="m4", agent_id="a", attributes=raw),
    ]

    assert events == FORMAT.read(FORMAT.write(events).data)


@pytest.mark.parametrize("text", [b'{"base64":"aGk="}', b'{"a": 1}', b"[1e400]", b"36893488147419103232", b'"x"'])
def test_embedded_json_comes_back_byte_for_byte(text: bytes) -> None:
    event = System(subtype="init", metadata=text)

    assert [event] == FORMAT.read(FORMAT.write([event]).data)


@pytest.mark.parametrize("text", [b"[" * 198 + b"]" * 198, b"[" * 230 + b"]" * 230, b"[" + b"{}," * 600_000 + b"0]"])
def test_embedded_json_that_no_line_may_hold_comes_back_too(text: bytes) -> None:
    event = System(message_id="m", subtype="init", metadata=text)

    assert [event] == FORMAT.read(FORMAT.write([event]).data)


def test_an_infinite_cost_comes_back() -> None:
    event = Metric(cost_usd=float("inf"))

    assert [event] == FORMAT.read(FORMAT.write([event]).data)


def test_a_number_beyond_64_bits_is_written_exactly() -> None:
    event = Metric(input_tokens=2**70)

    assert [event] == FORMAT.read(FORMAT.write([event]).data)


def test_a_lone_surrogate_is_written_as_it_is_and_read_as_visible_damage() -> None:
    data = FORMAT.write([Prompt(content="a\ud800b")]).data

    assert b"\\ud800" in data
    assert "a\ufffdb" == FORMAT.read(data)[0].content  # type: ignore[attr-defined]


def test_a_line_too_long_to_be_read_again_is_refused() -> None:
    with pytest.raises(BadRequest, match="too long"):
        encode({"content": "x" * MAX_LINE})


def test_what_json_cannot_say_is_refused() -> None:
    with pytest.raises(BadRequest, match="JSON"):
        encode({"content": object()})


def test_the_table_of_formats_finds_it_and_it_knows_itself() -> None:
    assert FORMAT is get("session-log-v2")
    assert FORMAT.claim is not None
    assert 90 == FORMAT.claim(b"\n" + line(role="user", content="x") + b"\n", "").score
    assert 0 == FORMAT.claim(b'{"type":"user","message":{}}\n', "").score
    assert 0 == FORMAT.claim(b"\x80", "").score
    assert 0 == FORMAT.claim(b"", "").score


# The document


def documented() -> list[dict[str, Any]]:
    section = DOCUMENT.read_text("utf-8").split("\n## Session log")[1].split("\n## ")[0]
    blocks = re.findall(r"```jsonl\n(.*?)```", section, re.S)
    return [json.loads(text) for block in blocks for text in block.splitlines()]


def test_every_line_of_the_document_is_just_what_we_write() -> None:
    lines = documented()

    assert lines == [record_of(events_of(data)) for data in lines]
    assert [encode(data) for data in lines] == [encode(record_of(events_of(data))) for data in lines]


def test_the_document_shows_every_kind_of_event() -> None:
    assert set(KINDS) == {event.kind for data in documented() for event in events_of(data)}


# Dialects


def test_v1_reads_with_the_keys_of_v2() -> None:
    heard = {"message_id": "m2", "event_type": "transcript_entry", "agent_id": "a", "role": "user", "content": "x"}

    assert heard | {"substance": "m1"} == normalise(heard | {"content_id": "m1"})
    assert heard == normalise(heard | {"content_id": "m2"})
    assert {"event_type": "piece_of_text", "content": "x", "cause": "m1"} == normalise(
        {"event_type": "piece_of_text", "content": "x", "caused_by": "m1"}
    )


def test_an_old_key_gives_way_to_the_new_one() -> None:
    assert {"agent_id": "a", "substance": "new"} == normalise(
        {"agent_id": "a", "substance": "new", "content_id": "old"}
    )


@pytest.mark.parametrize(
    ("shipped", "event"),
    [
        (
            {"message_id": "0", "event_type": "fragment", "agent": "user", "content": "hi", "cause": "user"},
            PieceOfText(message_id="0", agent_id="user", content="hi"),
        ),
        (
            {"message_id": "1", "event_type": "fragment", "agent": "main", "content": "hi", "cause": "12.call_a.b"},
            PieceOfText(message_id="1", agent_id="main", content="hi", cause="12"),
        ),
        (
            {
                "message_id": "2",
                "event_type": "agent_created",
                "agent": "main",
                "role": "primary",
                "name": "main",
                "parent": "user",
                "cause": "user",
            },
            AgentCreated(message_id="2", agent_id="main", name="main", role="root"),
        ),
        (
            {
                "message_id": "3",
                "event_type": "transcript_entry",
                "agent": "main",
                "role": "tool",
                "content": "ok",
                "name": "discuss",
                "cause": ["7", "8.call_x"],
                "tool_call": "6",
                "tool_call_id": "call_x",
            },
            ToolResult(message_id="3", agent_id="main", id="call_x", output="ok", name="discuss", cause=("7", "8")),
        ),
    ],
)
def test_smallchats_lines_read_as_events(shipped: dict[str, Any], event: Event) -> None:
    assert [event] == FORMAT.read(orjson.dumps(shipped) + b"\n\n")


KEYS = [
    "message_id",
    "event_type",
    "agent_id",
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "thinking",
    "timestamp",
]
KEYS += ["substance", "cause", "index", "images", "name", "n", "action", "attributes", "metadata", "raw", "cost_usd"]
KEYS += ["timestamp", "source", "agent", "content_id", "caused_by"]


# Shapes that other writers give a line


def test_arguments_that_are_an_object_become_text() -> None:
    call = {"id": "c", "function": {"name": "go", "arguments": {"a": 1}}}

    (event,) = FORMAT.read(line(role="assistant", tool_calls=[call]) + b"\n")

    assert b'{"a":1}' == event.input  # type: ignore[attr-defined]


def test_content_in_parts_becomes_text_and_images() -> None:
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "https://x.test/i.png"}}]

    (event,) = FORMAT.read(line(role="user", content=parts) + b"\n")

    assert "look" == event.content  # type: ignore[attr-defined]
    assert ["https://x.test/i.png"] == [image.url for image in event.images]  # type: ignore[attr-defined]


def test_substance_stands_where_a_line_has_both_links() -> None:
    (event,) = FORMAT.read(line(role="user", content="x", substance="m0", cause="m9") + b"\n")

    assert ("m0", None) == (event.substance, event.cause)


@given(
    st.dictionaries(
        st.sampled_from(KEYS),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.sampled_from(["transcript_entry", "assistant", "tool", "metric", "agent_created", "user", "x"])
            | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["id", "function", "name", "arguments", "content", "base64"]), inner)
            ),
            max_leaves=6,
        ),
    )
)
@settings(max_examples=150, deadline=None)
def test_an_object_of_any_shape_gives_events(data: dict[str, Any]) -> None:
    (record,) = read(json.dumps(data).encode() + b"\n")

    assert record.data is not None
    events = events_of(record.data, record.raw)
    assert events
    assert events == FORMAT.read(FORMAT.write(events).data) or "NaN" in json.dumps(data)


# Dirt


def deep(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize(
    ("raw", "problem", "readable"),
    [
        (b"{broken", "not JSON", False),
        (b"[1,2]", "not an object", False),
        (b"17", "not an object", False),
        (b"   ", "blank line", False),
        (b'{"a": "\\ud800"}', "lone surrogate", True),
        (b'{"a": "\xff"}', "not UTF-8", True),
        (b'{"a": 123456789012345678901234567890}', "number beyond 64 bits", True),
        (b'{"a": 1e999}', "number beyond 64 bits", True),
        (b'{"a": NaN}', "NaN or infinity", True),
        (b'{"a": ' + b"9" * 10_000 + b"}", "number beyond 64 bits", True),
        (deep(1001), TOO_DEEP, False),
        (deep(100_000), TOO_DEEP, False),
        (b'{"agent_id":"a","x":' + deep(1000) + b"}", TOO_DEEP, False),
        (b'{"agent_id":"a","x":' + b"[" * 1000 + b"]" * 1000 + b"}", TOO_DEEP, False),
        (deep(990).replace(b"1", b"NaN"), "an oddity in a deep value", True),
        (deep(990).replace(b"1", b'"\\ud800"'), "an oddity in a deep value", True),
        (deep(990).replace(b"1", b"+"), "not JSON", False),
    ],
)
def test_dirt_is_kept_and_reported_and_the_reading_goes_on(raw: bytes, problem: str, readable: bool) -> None:
    good = line(role="user", content="x")

    before, odd, after = read(good + b"\n" + raw + b"\n" + good + b"\n")

    assert (2, len(good) + 1, len(raw), raw) == (odd.line, odd.offset, odd.length, odd.raw)
    assert problem == odd.problem
    assert readable == (odd.data is not None)
    assert before.data == after.data
    assert (None, None) == (before.problem, after.problem)


def test_the_bytes_nobody_could_read_are_an_event_with_the_reason() -> None:
    assert [Output(message_id="@0", raw=b"{broken", why="not JSON")] == FORMAT.read(b"{broken\n")


def test_a_number_beyond_64_bits_is_read_exactly() -> None:
    (record,) = read(b'{"agent_id":"a","n":36893488147419103233}\n')

    assert record.data is not None
    assert 36893488147419103233 == record.data["n"]


def test_digits_in_a_text_are_no_number() -> None:
    (record,) = read(line(role="user", content="1" * 50) + b"\n")

    assert record.problem is None


def test_brackets_in_a_text_do_not_nest() -> None:
    (record,) = read(line(role="user", content="[{" * 500) + b"\n")

    assert record.problem is None


def test_nesting_within_the_limit_is_read() -> None:
    (record,) = read(b'{"agent_id":"a","x":' + deep(999) + b"}\n")

    assert record.problem is None


@pytest.mark.parametrize("levels", [200, 254, 300, 990, 997])
def test_what_is_read_can_be_written_again(levels: int) -> None:
    raw = b'{"event_type":"transcript_entry","agent_id":"a","role":"user","content":' + deep(levels) + b"}\n"
    (record,) = read(raw)

    assert record.data is not None
    assert raw == encode(record.data)
    (event,) = FORMAT.read(raw)
    assert deep(levels).decode() == event.content  # type: ignore[attr-defined]
    assert [event] == FORMAT.read(FORMAT.write([event]).data)


@pytest.mark.parametrize("levels", [300, 990])
def test_a_kind_or_role_that_is_a_deep_value_is_told_in_a_few_words(levels: int) -> None:
    for key in (b"event_type", b"role"):
        (event,) = FORMAT.read(b'{"event_type":"transcript_entry","agent_id":"a","%b":' % key + deep(levels) + b"}\n")

        assert isinstance(event, Output)
        assert len(event.why) < 120


def test_two_objects_on_a_line_are_two_records() -> None:
    first, second = line(role="user", content="é"), line(role="user", content="b")

    one, two = read(first + second + b"\n")

    assert (1, 0, first) == (one.line, one.offset, one.raw)
    assert (1, len(first), second) == (two.line, two.offset, two.raw)
    assert ["several objects on one line"] * 2 == [one.problem, two.problem]
    assert one.data is not None
    assert "é" == one.data["content"]


def test_a_line_of_very_many_objects_is_kept_whole() -> None:
    raw = b"{}" * 500_000

    (record,) = read(raw + b"\n")

    assert (None, "not JSON", len(raw)) == (record.data, record.problem, record.length)


def test_a_last_line_without_a_newline_is_read_where_it_is_whole() -> None:
    whole, cut = line(role="user", content="x"), line(role="user", content="y")[:-2]

    assert ["no newline at the end"] == [record.problem for record in read(whole)]
    assert [None, "no newline at the end; not JSON"] == [record.problem for record in read(whole + b"\n" + cut)]


def test_windows_line_ends_do_no_harm() -> None:
    assert [None, None] == [record.problem for record in read((line(role="user", content="x") + b"\r\n") * 2)]


def test_a_line_of_300_megabytes_is_passed_over_in_bounded_memory() -> None:
    good = line(role="user", content="x") + b"\n"
    part = b"x" * (1 << 20)

    def chunks() -> Any:
        yield good + b'{"message_id":"msg_007","content":"'
        for _ in range(300):
            yield part
        yield b'"}\n' + good

    tracemalloc.start()
    records = list(read_records(chunks()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert [1, 2, 3] == [record.line for record in records]
    assert (records[1].problem or "").startswith("line too long: 3145")
    assert b'{"message_id":"msg_007"' == records[1].raw[:23]
    assert records[1].offset + records[1].length + 1 == records[2].offset
    assert peak < 160 * 1024 * 1024, "the line is held up to the limit, and is then let go"


@given(
    st.lists(
        st.sampled_from(
            [
                line(role="user", content="x"),
                b"",
                b"{broken",
                b'{"agent_id":"a","n":36893488147419103233}',
                b"{}{}",
                deep(250),
                deep(1001),
                b'{"agent":"a"}',
                '{"agent_id":"a","content":"é"}'.encode(),
            ]
        ),
        max_size=6,
    ),
    st.integers(1, 40),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_how_the_bytes_arrive_does_not_matter(lines: list[bytes], size: int, ended: bool) -> None:
    data = b"\n".join(lines) + (b"\n" if ended else b"")

    assert read(data, len(data) or 1) == read(data, size)


@given(st.binary(max_size=200))
@settings(max_examples=150, deadline=None)
def test_every_byte_of_a_file_is_in_a_record_or_between_two(data: bytes) -> None:
    records = read(data)

    rest = bytearray(data)
    for record in records:
        assert data[record.offset : record.offset + record.length] == record.raw
        rest[record.offset : record.offset + record.length] = b" " * record.length
    assert not bytes(rest).strip()


def test_an_edit_that_does_not_say_what_it_does_changes_nothing() -> None:
    said = [
        {"message_id": f"m{n}", "event_type": "transcript_entry", "agent_id": "a", "role": "user", "content": f"{n}"}
        for n in range(3)
    ]
    edit = {"message_id": "m3", "event_type": "transcript_edit", "agent_id": "a", "n": 1}
    entries = b"".join(orjson.dumps(line) + b"\n" for line in said)

    assert entries == get("session-log-v2").context(entries + orjson.dumps(edit) + b"\n")


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ((ToolResult(id="a"), ToolResult(id="b"), Prompt(content="and hurry")), (1, 0, 1)),
        ((Prompt(content="hello"), Prompt(source="injected", origin="reminder")), (1, 0, 0)),
        ((Prompt(source="injected", origin="reminder"), Prompt(content="hello")), (1, 0, 0)),
        ((Prompt(source="injected", origin="reminder"), Prompt(source="injected", origin="other")), (0, 1, 0)),
        ((Prompt(source="injected", origin="reminder"), ToolResult(id="a")), (0, 0, 1)),
    ],
)
def test_a_record_of_several_lines_counts_once(record: tuple[Event, ...], expected: tuple[int, int, int]) -> None:
    events = [event.replace(message_id="m1", agent_id="a", index=at) for at, event in enumerate(record)]
    data = FORMAT.write([*events, Prompt(content="next", message_id="m2", agent_id="a")]).data
    tally = scan(data).tally
    prompts = tally.prompts
    human, injected, results = expected
    assert (human + 1, injected, results) == (prompts.human, prompts.injected, prompts.tool_result)
    assert tally.prompts == Tally.of(FORMAT.read(data)).prompts
    assert ({"reminder": 1} if injected else {}) == tally.origins


GO = Prompt(content="go", message_id="m1", agent_id="a")
CALLED = ToolCall(id="c", name="look", input=b"{}", message_id="m2", agent_id="a")
FOUND = ToolResult(id="c", output="four", message_id="m3", agent_id="a")
HINT = Prompt(content="hint", source="injected", origin="reminder", message_id="m3", agent_id="a", index=1)
ADVICE = HINT.replace(origin="advice", index=2)
SAID = Response(content="four", message_id="m4", agent_id="a")
CALLED_BELOW = ToolCall(id="d", name="look", input=b"{}", message_id="n1", agent_id="b")
ASKED_BELOW = Prompt(content="find it", message_id="n2", agent_id="b")
HINT_FIRST, FOUND_LATER = HINT.replace(index=0), FOUND.replace(index=1)
FOLDED = System(subtype="compact_boundary", message_id="m5", agent_id="a")
SUMMED_UP = Prompt(content="so far", source="injected", origin="summary", message_id="m5", agent_id="a", index=1)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param((GO, CALLED, FOUND, HINT, SAID), (1, 0, 1), id="a cut within it"),
        pytest.param((GO, CALLED, FOUND, HINT.replace(source="user"), SAID), (2, 0, 1), id="a person's words"),
        pytest.param((GO, CALLED, FOUND, CALLED_BELOW, HINT, SAID), (1, 0, 1), id="another's call within it"),
        pytest.param((GO, HINT_FIRST, ASKED_BELOW, ADVICE, SAID), (2, 1, 0), id="another's prompt within it"),
        pytest.param((GO, CALLED, HINT_FIRST, ASKED_BELOW, FOUND_LATER, SAID), (2, 0, 1), id="the result comes later"),
        pytest.param((GO, SAID, FOLDED, SUMMED_UP), (1, 0, 0), id="what a compaction puts in its place"),
        pytest.param((GO, ASKED_BELOW, HINT.replace(message_id=""), SAID), (2, 0, 0), id="a line without a name"),
    ],
)
def test_a_record_counts_once_wherever_it_is_cut_or_parted(
    events: tuple[Event, ...], expected: tuple[int, int, int]
) -> None:
    data = FORMAT.write(events).data
    lines = data.splitlines(keepends=True)
    fresh, read = scan(data), Tally.of(FORMAT.read(data))
    state, at = b"", 0
    for count in range(1, len(lines) + 1):
        grown = scan(b"".join(lines[:count])[at:], state)
        state, at = grown.state, grown.offset
        assert all((delta.messages or 0) >= 0 for delta in grown.deltas)

    prompts = fresh.tally.prompts
    assert expected == (prompts.human, prompts.injected, prompts.tool_result)
    assert (prompts, fresh.tally.origins) == (read.prompts, read.origins)
    assert (prompts, fresh.tally.origins) == (grown.tally.prompts, grown.tally.origins)
    assert (fresh.messages, fresh.inside) == (grown.messages, grown.inside)
    own = [scan(lines).tally.prompts.injected for lines in side_chains(data).values()]
    main = scan(b"".join(line for line in lines if b'"agent_id":"a"' in line)).tally.prompts.injected
    assert prompts.injected == main + sum(own)


def test_a_record_that_takes_back_what_is_committed_makes_no_commit_of_less_than_nothing() -> None:
    long = HINT_FIRST.replace(content="x" * SOFT)
    facts = scan(FORMAT.write([long, FOUND_LATER]).data)

    assert [1, 0] == [delta.messages for delta in facts.deltas]
    assert 0 == facts.messages


def test_a_state_of_before_that_knows_no_record_is_gone_on_from() -> None:
    data = FORMAT.write([GO, CALLED, FOUND, HINT, SAID]).data
    closed = scan(data).offset
    state = orjson.loads(scan(data).state)
    of_before = {key: value for key, value in state.items() if key not in ("last", "latest")}

    assert {"last", "latest"} <= state.keys()
    assert 1 == scan(data[closed:], orjson.dumps(of_before)).tally.prompts.injected
