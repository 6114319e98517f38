"""The typed decoder of records, and the judge it must agree with."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.formats.claude_code.records import ClaudeRecord, soften, take

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
@given(st.dictionaries(_fields, _records, max_size=6))
def test_the_fast_path_and_the_judge_agree_on_every_object(value: dict[str, Any]) -> None:
    text = json.dumps(value).encode()

    assert msgspec.to_builtins(soften(value)) == msgspec.to_builtins(take(text))


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


def test_a_deep_record_is_taken_as_far_as_the_limit_goes() -> None:
    """The typed decoder gives up where the interpreter's stack does; the limit is ours."""
    levels = 998
    deep = b'{"type":"user","x":{"y":' + b"[" * levels + b"]" * levels + b"}}"

    assert ClaudeRecord(type="user") == take(deep)
    assert take(deep.replace(b'"y":', b'"y":[').replace(b"}}", b"]}}")) is None
