"""A document is the JSON object it is: read from hostile bytes, written back as it was, looked at as another kind."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.errors import BadRecord
from harken.formats.std.document import Document, as_multi_agent, kind_of, parse_session, read, write
from harken.formats.std.json_text import DEEPEST, HiddenValue, dumps, hidden_values, loads, nesting
from support.std_documents import multi, single
from support.std_strategies import documents, json_values, older, with_unknown_fields


class TestWhatIsWritten:
    @given(documents() | older())
    def test_is_read_back(self, data: dict[str, object]) -> None:
        document = parse_session(data)

        again = read(write(document))

        assert document.data == again.data
        assert document.kind == again.kind
        assert again.generation in (document.generation, "v3")

    @given(documents())
    def test_has_every_field_where_it_stood(self, data: dict[str, object]) -> None:
        assert json.dumps(data) == json.dumps(read(dumps(data)).data)

    @given(json_values)
    def test_is_the_same_value_whatever_it_is(self, value: object) -> None:
        again = loads(dumps(value))

        assert json.dumps(value) == json.dumps(again)

    @given(json_values, st.booleans())
    def test_is_read_as_the_decoder_of_python_reads_it(self, value: object, is_plain: bool) -> None:
        text = json.dumps(value, ensure_ascii=is_plain)

        assert repr(json.loads(text)) == repr(loads(text.encode("utf-8", "backslashreplace")))

    def test_ends_with_a_line_break(self) -> None:
        assert write(parse_session(single())).endswith(b"}\n")


class TestHostileBytes:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
    def test_may_begin_with_a_byte_order_mark(self, encoding: str) -> None:
        data = single() | {"task_title": "修复"}

        assert data == read(json.dumps(data, ensure_ascii=False).encode(encoding)).data

    @pytest.mark.parametrize(
        ("sentence", "data"),
        [
            ("no JSON", b""),
            ("no JSON", b"{"),
            ("no JSON", b"\x00" * 9),
            ("byte 6 is no UTF-8", b'{"a":"\xff"}'),
            ("byte 6 is no UTF-8", b'{"a":"\xed\xa0\x80"}'),
            ("the file may be UTF-16", '{"a": "ä"}'.encode("utf-16")),
            ("no JSON", '{"a": "b"}'.encode("utf-16-le")),
            ("NaN is no number", b'{"a": NaN}'),
            ("-Infinity is no number", b'{"a": -Infinity}'),
            ("1e999 is too large a number", b'{"a": 1e999}'),
            ("too large a number", b'{"a": ' + b"9" * 5000 + b"}"),
            ("a session document is a JSON object", b"[]"),
            ("a session document is a JSON object", b"null"),
            (f"more than {DEEPEST} deep", b'{"a":' * 100_000),
            (f"more than {DEEPEST} deep", b'{"a":' + b"[" * DEEPEST + b"]" * DEEPEST + b"}"),
        ],
        ids=range(15),
    )
    def test_that_are_no_document_are_refused_with_the_reason(self, sentence: str, data: bytes) -> None:
        with pytest.raises(BadRecord) as refused:
            read(data)

        assert sentence in str(refused.value)
        assert len(str(refused.value)) < 200
        assert refused.value.hint

    def test_may_be_nested_as_deeply_as_any_program_can_walk(self) -> None:
        data = b'{"a":' + b"[" * (DEEPEST - 1) + b"]" * (DEEPEST - 1) + b"}"

        assert data == write(read(data)).translate(None, b" \n")

    @given(json_values)
    def test_are_nested_as_deeply_as_their_values(self, value: object) -> None:
        def depth(below: object) -> int:
            if isinstance(below, dict):
                below = list(below.values())
            return 1 + max(map(depth, below), default=0) if isinstance(below, list) else 0

        assert depth(value) == nesting(json.dumps(value).encode())

    def test_keep_lone_surrogates_and_large_numbers(self) -> None:
        data = b'{\n  "\\ud800": 123456789012345678901234567890,\n  "b": "\\udfff"\n}\n'

        assert data == write(read(data))

    @settings(max_examples=200)
    @given(st.binary(max_size=40))
    def test_never_crash(self, data: bytes) -> None:
        try:
            read(data)
        except BadRecord:
            hidden = None
        else:
            hidden = hidden_values(data, loads(data))
        assert hidden in (None, [])


class TestAFieldThatStandsTwice:
    def test_hides_what_it_was_and_where(self) -> None:
        data = b'{"a": 1, "b": [{"c": {"d": 1}, "c": 2, "c": 2}], "a": 1}'

        assert {"a": 1, "b": [{"c": 2}]} == loads(data)
        assert [
            HiddenValue(path="a", value=1),
            HiddenValue(path="b[0].c", value={"d": 1}),
            HiddenValue(path="b[0].c", value=2),
        ] == hidden_values(data)
        assert hidden_values(data) == hidden_values(data, loads(data))

    def test_in_a_value_that_is_hidden_itself_is_part_of_it(self) -> None:
        assert [HiddenValue(path="a", value={"b": 2})] == hidden_values(b'{"a": {"b": 1, "b": 2}, "a": 3}')

    @given(documents())
    def test_is_in_no_document_that_was_written_by_a_program(self, data: dict[str, object]) -> None:
        assert [] == hidden_values(dumps(data)) == hidden_values(dumps(data), data)

    @given(
        st.lists(st.tuples(st.sampled_from('ab"\\:'), st.text('"\\: ', max_size=4)), max_size=4),
        st.sampled_from(["", " ", "\n"]),
    )
    def test_is_found_whatever_the_texts_and_the_gaps_are(self, fields: list[tuple[str, str]], gap: str) -> None:
        text = "{" + ",".join(f"{json.dumps(key)}{gap}:{json.dumps(value)}" for key, value in fields) + "}"

        hidden = hidden_values(text.encode(), loads(text.encode()))

        assert len(fields) - len(dict(fields)) == len(hidden)


class TestTheKind:
    @pytest.mark.parametrize(
        ("kind", "data", "name"),
        [
            ("std-008", {"collaboration": {"mode": "multi_agent"}}, "x.json"),
            ("std-001", {"collaboration": {"mode": "single"}}, "x-multi.json"),
            ("std-001", {"collaboration": {"mode": "single"}, "sub_sessions": [{}]}, ""),
            ("std-008", {"collaboration": {"mode": "multi-agent"}}, ""),
            ("std-001", {}, "x.json"),
            ("std-001", {}, "x-multi.json"),
            ("std-008", {"messages": []}, "x-multi.json"),
            ("std-008", {"collaboration": {"pattern": "pipeline"}}, "x-multi.json"),
            ("std-001", {"collaboration": {"pattern": "pipeline"}}, "x.json"),
            ("std-008", {"sub_sessions": [{}]}, "x.json"),
            ("std-001", {"sub_sessions": [], "messages": []}, ""),
            ("std-001", {"collaboration": 7}, ""),
            ("std-001", {"collaboration": {"mode": ["multi_agent"]}}, ""),
        ],
    )
    def test_is_told_by_the_content_and_else_by_the_name(self, kind: str, data: dict[str, object], name: str) -> None:
        assert kind == kind_of(data, name)
        assert kind == parse_session(data, name).kind


class TestASingleAgentSessionAsAMultiAgentOne:
    def test_has_what_the_migration_of_the_standard_adds(self) -> None:
        migrated = as_multi_agent(parse_session(single()))

        assert "single" == migrated.data["collaboration"]["mode"]
        assert [] == migrated.data["sub_sessions"] == migrated.data["messages"]
        assert "std-001" == migrated.kind

    @given(documents() | older())
    def test_keeps_everything_and_once_is_enough(self, data: dict[str, object]) -> None:
        document = parse_session(data)

        once = as_multi_agent(document)

        assert once == as_multi_agent(once)
        assert list(document.data.items()) == list(once.data.items())[: len(document.data)]
        assert document.kind == read(write(once)).kind

    def test_replaces_nothing_that_is_there(self) -> None:
        document = parse_session(single() | {"messages": ["mine"]})

        assert ["mine"] == as_multi_agent(document).data["messages"]

    def test_leaves_a_multi_agent_one_as_it_is(self) -> None:
        document = parse_session(multi())

        assert document is as_multi_agent(document)


class TestReading:
    @given(with_unknown_fields(st.just(multi()).map(copy.deepcopy)) | older())
    def test_changes_nothing_in_what_it_was_given(self, data: dict[str, object]) -> None:
        before = copy.deepcopy(data)

        document = parse_session(data)

        assert isinstance(document, Document)
        assert before == data
