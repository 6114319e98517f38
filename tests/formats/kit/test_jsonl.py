"""One reader for every line format: what a record is, which rules dirt falls under, and what the limits cost."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harken.events import Event, Output
from harken.formats import claude_code, codex, get
from harken.formats.codex_stream import CodexStreamReader as CodexStream
from harken.formats.kit import jsonl
from harken.formats.kit.jsonl import NotJson, encode, parse, parse_at, parse_document, parse_slowly, read_objects
from support.work import lines_run

FEW = settings(max_examples=80, deadline=None)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=4)
BYTES = st.binary(max_size=40) | st.text(alphabet='{}[]",:\\a1 \t\n', max_size=30).map(str.encode)


def nested(depth: int, text: str = "") -> bytes:
    """An object that is exactly so deep."""
    return b'{"a":' + b"[" * (depth - 1) + json.dumps(text).encode() + b"]" * (depth - 1) + b"}"


class TestTheGrammar:
    @FEW
    @given(VALUES)
    def test_json_text_of_any_library_parses_to_the_same_value(self, value: Any) -> None:
        assert (value, len(text := json.dumps(value).encode())) == parse_at(text, 0)
        assert value == parse_at(json.dumps(value, ensure_ascii=False, indent=1).encode(), 0)[0]

    @FEW
    @given(VALUES)
    def test_what_is_encoded_parses_to_the_same_value(self, value: Any) -> None:
        assert value == parse_document(encode(value))

    @FEW
    @given(OBJECTS)
    @example({"a": 2**64 - 1, "b": -(2**63)})
    def test_the_fast_library_and_the_judge_read_the_same(self, value: dict[str, Any]) -> None:
        text = json.dumps(value).encode()

        assert value == parse(text) == parse_slowly(text)

    @FEW
    @given(st.lists(OBJECTS, max_size=3), BYTES)
    def test_any_bytes_at_all_are_read_or_refused_and_none_is_lost(
        self, before: list[dict[str, Any]], other: bytes
    ) -> None:
        line = b" ".join([*(json.dumps(value).encode() for value in before), other])

        objects, rest = jsonl.take_apart(line, 0, len(line))

        assert before == [value for value, _, _ in objects][: len(before)]
        assert all(isinstance(value, dict) for value, _, _ in objects)
        assert [line[start:end] for _, start, end in objects] == [
            line[start:end] for value, start, end in objects if parse(line[start:end]) == value or "NaN" in str(value)
        ]
        left = line[max((end for _, _, end in objects), default=0) :].strip(jsonl.SPACE)
        assert (left or None) == (rest.raw if rest else None)

    @pytest.mark.parametrize(
        "text",
        [b"", b"{", b"[1,]", b'{"a":1,}', b'{"a" 1}', b"01", b"1.", b"-", b'"\\q"', b'"\\u12"', b"tru", b"nan", b"\0"],
    )
    def test_what_the_grammar_forbids_is_not_json(self, text: bytes) -> None:
        assert parse(b'{"a":' + text + b"}") is None
        with pytest.raises(NotJson):
            parse_document(text)

    @pytest.mark.parametrize("line", [b'"text"', b"42", b"[1]", b"null", b'{"a":1} {"b":2}', b"// remark", b'{"a":1'])
    def test_a_line_that_is_not_exactly_one_object_is_no_record(self, line: bytes) -> None:
        assert parse(line) is None


DIRT = {
    "spaces and CRLF around it": (b' \t{"a":1}\r\n', {"a": 1}),
    "a byte order mark": (b'\xef\xbb\xbf{"a":1}\n', {"a": 1}),
    "two equal keys: the last counts": (b'{"a":1,"a":2}', {"a": 2}),
    "a lone surrogate": (b'{"a":"x\\ud800y"}', {"a": "x\ufffdy"}),
    "a lone surrogate in a key": (b'{"\\udc00":1}', {"\ufffd": 1}),
    "a pair of surrogates": (b'{"a":"\\ud83d\\ude00","b":"\\ud800"}', {"a": "😀", "b": "\ufffd"}),
    "bytes that are not UTF-8": (b'{"a":"\xff"}', {"a": "\ufffd"}),
    "a surrogate in UTF-8": (b'{"a":"\xed\xa0\x80"}', {"a": "\ufffd\ufffd\ufffd"}),
    "a control character in a string": (b'{"a":"x\ty\0z"}', {"a": "x\ty\0z"}),
    "the largest integer": (b'{"a":18446744073709551615}', {"a": 2**64 - 1}),
    "an integer beyond 64 bits": (b'{"a":18446744073709551616}', {"a": 2.0**64}),
    "a negative one": (b'{"a":-9223372036854775809}', {"a": -(2.0**63)}),
    "a number beyond all": (b'{"a":1e999}', {"a": math.inf}),
    "Infinity": (b'{"a":Infinity,"b":-Infinity}', {"a": math.inf, "b": -math.inf}),
}


class TestOneRuleForDirt:
    @pytest.mark.parametrize(("line", "expected"), DIRT.values(), ids=DIRT)
    def test_it_is_read(self, line: bytes, expected: dict[str, Any]) -> None:
        assert expected == parse(line)
        assert expected == parse_slowly(line)
        assert [expected] == [value for value, _, _ in read_objects(line)[0]]

    def test_nan_is_a_number_that_is_written_as_null(self) -> None:
        value = parse(b'{"a":NaN}')

        assert value is not None
        assert math.isnan(value["a"])
        assert b'{"a":null}' == encode(value)

    def test_two_objects_on_one_line_are_both_found(self) -> None:
        line = b'\xef\xbb\xbf {"a":1}{"b":{"c":[2]}} rest\n'

        objects, rest = jsonl.take_apart(line, 0, len(line))

        assert [({"a": 1}, 4, 11), ({"b": {"c": [2]}}, 11, 26)] == objects
        assert rest is not None
        assert (27, b"rest") == (rest.start, rest.raw)

    def test_more_than_a_thousand_objects_on_one_line_are_kept_as_bytes(self) -> None:
        assert 1000 == len(read_objects(b"{}" * 1000)[0])
        assert ([], 0) == read_objects(b"{}" * 1001)


class TestLimits:
    def test_depth(self) -> None:
        assert parse(nested(1000)) is not None
        assert parse(nested(1001)) is None
        assert "nested more than 1000 deep" == jsonl.refusal(nested(1001))

    @pytest.mark.parametrize("depth", [1000, 1001])
    def test_depth_of_objects_inside_each_other(self, depth: int) -> None:
        line = b'{"a":' * depth + b"1" + b"}" * depth

        assert (depth <= 1000) == (parse(line) is not None)

    @FEW
    @given(st.text(alphabet='[{]}"\\x', min_size=1, max_size=60))
    def test_brackets_in_strings_do_not_count(self, text: str) -> None:
        inside = text * 800

        assert parse(nested(900, inside)) is not None
        assert parse(nested(1001, inside)) is None

    def test_length(self) -> None:
        room = jsonl.MAX_LINE - len(b'{"a":""}')

        assert parse(b'{"a":"' + b"x" * room + b'"}\n') is not None
        assert parse(b'{"a":"' + b"x" * room + b' "}\n') is None
        assert parse(b'{"a":1}' + b" " * jsonl.MAX_LINE) is None

    def test_values_on_a_large_line(self) -> None:
        few = b'{"a":[' + b",".join([b"{}"] * 400_000) + b"]}"
        padding = b',"b":"' + b", " * (1 << 20) + b'"}'

        assert parse(few[:-1] + padding) is None
        assert parse(b'{"a":[' + b"0," * 400_000 + b"0]" + padding) is not None

    def test_a_document_is_limited_in_depth_alone(self) -> None:
        assert 400_000 == len(parse_document(b"[" + b",".join([b"{}"] * 400_000) + b"]"))
        with pytest.raises(NotJson):
            parse_document(nested(1001))


def read_claude(data: bytes) -> list[Event]:
    return get("claude-code-v1").read(data)


def read_stream(data: bytes) -> list[Event]:
    return get("claude-stream-v1").read(data)


def read_codex_stream(data: bytes) -> list[Event]:
    reader = CodexStream()
    return [event for start, end in jsonl.lines(data) for event in reader.feed(data[start:end])]


READERS = {"claude": read_claude, "claude stream": read_stream, "codex": codex.read, "codex stream": read_codex_stream}
DEEP = {
    "1,001 levels": nested(1001),
    "1,100 levels": nested(1100),
    "5,000,000 levels": nested(5_000_000),
    "5,000,000 that never close": b'{"a":' + b"[" * 5_000_000,
    "5,000,000 objects": b'{"a":' * 5_000_000,
}


class TestEveryFormatAlike:
    """A line beyond a limit is kept as bytes and opaque, in every line format (#44, #51)."""

    @pytest.mark.parametrize("read", READERS.values(), ids=READERS)
    @pytest.mark.parametrize("line", DEEP.values(), ids=DEEP)
    def test_a_deep_line_is_kept_and_costs_no_more_than_a_look(
        self, read: Callable[[bytes], list[Event]], line: bytes
    ) -> None:
        events: list[Event] = []

        work = lines_run(lambda: events.extend(read(line + b"\n")))

        assert [(line, "nested more than 1000 deep")] == [
            (event.raw, event.why) for event in events if isinstance(event, Output)
        ]
        assert 1 == len(events)
        # Some per level up to the limit, none for the levels beyond it.
        assert work < 20_000

    @pytest.mark.parametrize("scan", [claude_code.scan, codex.scan], ids=["claude", "codex"])
    @pytest.mark.parametrize("line", DEEP.values(), ids=DEEP)
    def test_a_deep_line_is_counted_as_opaque(self, scan: Callable[[bytes], Any], line: bytes) -> None:
        facts: list[Any] = []

        work = lines_run(lambda: facts.append(scan(line + b"\n")))

        assert [(1, 1)] == [(one.records, one.opaque) for one in facts]
        assert work < 20_000

    @pytest.mark.parametrize("read", READERS.values(), ids=READERS)
    def test_an_overlong_line_gives_its_head_and_its_length(self, read: Callable[[bytes], list[Event]]) -> None:
        """However harmless it is: here a record with spaces behind it."""
        line = b'{"type":"error","message":"m"}' + b" " * jsonl.MAX_LINE + b"\n"

        (event,) = read(line + b"\n")

        assert isinstance(event, Output)
        assert line[: jsonl.HEAD] == event.raw
        assert "more than 67108864" in event.why

    @pytest.mark.parametrize("read", READERS.values(), ids=READERS)
    def test_two_objects_on_a_line_are_two_records(self, read: Callable[[bytes], list[Event]]) -> None:
        events = read(b'{"type":"error","message":"m"}{"type":"error","message":"n"} x\n')

        assert 3 == len({event.message_id for event in events})
        assert ["something stands behind the record"] == [
            event.why for event in events[-1:] if isinstance(event, Output)
        ]

    @pytest.mark.parametrize("read", READERS.values(), ids=READERS)
    @pytest.mark.parametrize(("line", "expected"), DIRT.values(), ids=DIRT)
    def test_dirt_makes_a_line_no_less_of_a_record(
        self, read: Callable[[bytes], list[Event]], line: bytes, expected: dict[str, Any]
    ) -> None:
        (event,) = read(line)

        assert isinstance(event, Output)
        assert event.why.startswith("unknown")
