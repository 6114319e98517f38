"""The parser that decides what a JSON object is, and the fast path that must agree with it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.formats.claude_code.grammar import NotJson, encode, parse_at, parse_object, parse_several
from harken.formats.claude_code.records import Line, soften, take

FEW = settings(max_examples=80, deadline=None)
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
_fields = st.sampled_from(
    ["type", "uuid", "parentUuid", "isMeta", "message", "id", "content", "usage", "output_tokens", "data", "attachment"]
)
_records = st.recursive(
    _values,
    lambda inner: st.dictionaries(_fields, inner, max_size=5) | st.lists(inner, max_size=3),
    max_leaves=10,
)


@FEW
@given(_values)
def test_json_text_of_any_library_parses_to_the_same_value(value: Any) -> None:
    assert (value, len(text := json.dumps(value).encode())) == parse_at(text, 0)
    assert value == parse_at(json.dumps(value, ensure_ascii=False, indent=1).encode(), 0)[0]


@FEW
@given(_values)
def test_what_is_encoded_parses_to_the_same_value(value: Any) -> None:
    assert value == parse_at(encode(value), 0)[0]


@FEW
@given(st.dictionaries(_fields, _records, max_size=6))
def test_the_fast_path_and_the_judge_agree_on_every_object(value: dict[str, Any]) -> None:
    text = json.dumps(value).encode()

    assert msgspec.to_builtins(soften(value)) == msgspec.to_builtins(take(text))


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[1,]", b'{"a":1,}', b'{"a" 1}', b"01", b"1.", b"-", b"NaN", b'"\x01"', b'"\\q"', b'"\\u12"', b"tru"],
)
def test_what_the_grammar_forbids_is_not_json(text: bytes) -> None:
    with pytest.raises(NotJson):
        _, end = parse_at(text, 0)
        if end < len(text):
            raise NotJson("something is left")
    assert take(b'{"a":' + text + b"}") is None


@pytest.mark.parametrize("line", [b'"text"', b"42", b"[1]", b"null", b'{"a":1} {"b":2}', b"// remark", b'{"a":1'])
def test_a_line_that_is_not_exactly_one_object_is_none(line: bytes) -> None:
    assert parse_object(line) is None
    assert take(line) is None


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b' {"type":"user"}\r\n', "user"),
        (b'{"type":"user","x":"\xff"}', "user"),
        (b'{"type":"user","x":"\\ud800"}', "user"),
        (b'{"type":"user","type":"system"}', "system"),
        (b'{"type":"user","x":1e999}', "user"),
        (b'\xef\xbb\xbf{"type":"user"}', "user"),
        (b'{"type":"user","message":"a string where an object belongs"}', "user"),
    ],
)
def test_dirt_that_is_still_one_object_is_read(line: bytes, kind: str) -> None:
    record = take(line)

    assert record is not None
    assert kind == record.type


def test_depth_is_no_limit() -> None:
    deep = b'{"type":"user","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

    record, value = take(deep), parse_object(deep)

    assert Line(type="user") == record
    assert value is not None
    assert deep == encode(value)


def test_two_objects_on_one_line_are_both_found() -> None:
    line = b'{"a":1}{"b":{"c":[2]}} rest'

    found, end = parse_several(line)

    assert [({"a": 1}, 0, 7), ({"b": {"c": [2]}}, 7, 22)] == found
    assert b"rest" == line[end:]
