"""Bytes that are no JSON: why, and what they must have been."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harken.errors import BadRecord
from harken.formats.std.document import dumps, loads
from harken.formats.std.repairing.broken_json import CAUSES, explain, mend
from support.std_documents import multi, single

BROKEN = {
    "quote": ('{"a": 1,\n "b": "say "yes" now", "c": 2}', 2, 12),
    "odd-quote": ('{"a": "a 5" disk", "b": 1}', 1, 11),
    "line-break": ('{"a": "one\ntwo"}', 1, 11),
    "control-character": ('{"a": "bell\x07"}', 1, 12),
    "trailing-comma": ('{"a": [1, 2,]}', 1, 12),
    "missing-comma": ('{"a": "x"\n "b": "y"}', 1, 10),
    "missing-colon": ('{"a" 1}', 1, 6),
    "wide-colon": ('{"a": "x",\n "b"： "y"}', 2, 5),
    "wide-comma": ('{"a": "x"，\n "b": 1}', 1, 10),
    "missing-value": ('{"a": }', 1, 7),
    "left-out": ('{"a": ["x", ...], "b": "y"}', 1, 13),
    "comment": ('{"a": 1 // why\n}', 1, 9),
    "single-quotes": ("{'a': 1}", 1, 2),
    "odd-quotes": ("{“a”: 1}", 1, 2),
    "key-without-quotes": ("{a: 1}", 1, 2),
    "text-without-quotes": ('{"a": success}', 1, 7),
    "broken-key": ('{"a\nb": 1}', 1, 4),
    "escape": ('{"a": "C:\\dir"}', 1, 10),
    "not-a-number": ('{"a": NaN}', 1, 7),
    "python-word": ('{"a": None}', 1, 7),
    "number": ('{"a": 1.}', 1, 7),
    "large-number": ('{"a": [1e30,\n -1e999]}', 2, 2),
    "wrong-bracket": ('{"a": [1}', 1, 9),
    "several": ('{"a": "b"}\n{"a": "c"}\n', 2, 1),
    "after-the-end": ('{"a": "b"}}', 1, 11),
    "cut-off": ('{"a": {"b": "the e', 1, 19),
    "empty": (" \n", 2, 1),
    "deep": ("[" * 5000, 1, 201),
    "words": ('The log:\n```json\n{"a": 1}\n```', 1, 1),
    "fence": ('```json\n{"a": 1}\n```', 1, 1),
    "html": ("\n<!doctype html><p>No", 2, 1),
    "utf-16": ("\ufeff{}".encode("utf-16-le"), 1, 1),
    "encoding": (b'{"a": "caf\xe9"}', 1, 11),
    "stray": ('{"a": ;}', 1, 7),
    "garbage": ("[" + "//\n" * 20_001 + "]", 1, 2),
}


@pytest.mark.parametrize("cause", sorted(CAUSES.keys() - {"bom", "garbage"}))
def test_each_cause_is_told_with_its_line_and_column(cause: str) -> None:
    text, line, column = BROKEN[cause]
    finding = explain(text if isinstance(text, bytes) else text.encode())
    assert finding is not None
    assert (CAUSES[cause], line, column) == (
        finding.message.partition("likely cause: ")[2],
        finding.line,
        finding.column,
    )
    assert ("invalid-json", "error") == (finding.rule, finding.level)


ODD = {
    '{"a": "x",,\n "b": "y", "c": "z"}': ("missing-value", 1, 11),
    '{"a": "x",\n ,\n "b": "y"}': ("missing-value", 2, 2),
    '{"a": [{"b": "x"},, {"b": "y"}], "c": "z"}': ("missing-value", 1, 19),
    '{"a": "x",\n ...\n "b": "y"}': ("left-out", 2, 2),
    '{"a": [{"b": "x"},\n …\n {"b": "y"}]}': ("left-out", 2, 2),
    '{"a": 1, ... "b": "y"}': ("left-out", 1, 10),
    '{"a": 1 ...}': ("left-out", 1, 9),
    '{"a": "x", # the "name"\n "b": "y", "c": 1}': ("comment", 1, 12),
    '{"a": "x";\n "b": "y"}': ("stray", 1, 10),
    '{"a": "x" + "y", "b": 1}': ("stray", 1, 11),
}
"""What is wrong stands behind a text, which it is no part of."""


@pytest.mark.parametrize("text", ODD)
def test_what_is_wrong_behind_a_text_is_told_where_it_stands(text: str) -> None:
    cause, line, column = ODD[text]
    finding = explain(text.encode())

    assert finding is not None
    assert (CAUSES[cause], line, column) == (
        finding.message.partition("likely cause: ")[2],
        finding.line,
        finding.column,
    )
    assert mend(text.encode()) is None


def test_more_flaws_than_anybody_would_read_are_not_mended() -> None:
    assert mend(BROKEN["garbage"][0].encode()) is None


MENDED = {
    '{"a": "x",\n  # the second\n "b": ["y", # first\r\n "z"]}': {"a": "x", "b": ["y", "z"]},
    '{"a": "see "# 3", twice", "b": 1}': {"a": 'see "# 3", twice', "b": 1},
    '{"p": "say "yes", "no" or "maybe"", "s": 1}': {"p": 'say "yes", "no" or "maybe"', "s": 1},
    '{"p": "修改 "时间线" 组件,把"确定"改成"好的"", "s": "x"}': {
        "p": '修改 "时间线" 组件,把"确定"改成"好的"',
        "s": "x",
    },
    '{"p": ""all" of it"}': {"p": '"all" of it'},
    '{"p": "use {"a": 1, "b": 2} here", "s": []}': {"p": 'use {"a": 1, "b": 2} here', "s": []},
    '{"p": "the set {"a"} is", "q": {"r": ["a "b" c"]}}': {"p": 'the set {"a"} is', "q": {"r": ['a "b" c']}},
    '["he said "yes"", "b"]': ['he said "yes"', "b"],
    '{"a": [1, {"b": 2,},],}': {"a": [1, {"b": 2}]},
    '{"a": "one\r\n\ttwo\x00"}': {"a": "one\r\n\ttwo\x00"},
    '{"a": 1, // why\n # and\n "b": /* so */ "// no"}': {"a": 1, "b": "// no"},
    '[{"a": 1} {"b": 2}]': [{"a": 1}, {"b": 2}],
    '{"a": 1\n "b": [2]\n "c": 3}': {"a": 1, "b": [2], "c": 3},
    '\ufeff{"a": 1,}': {"a": 1},
    '{"a": [1, # why\n],}': {"a": [1]},
    '```json\n{"a": 1, "b": "x"}\n```\n': {"a": 1, "b": "x"},
    '```\r\n{"a": 1}': {"a": 1},
    'Here is [the] log:\n\n```json\n{"a": 1,}\n```\n\nAnything else?\n': {"a": 1},
    '# Log\nof today\n```\n{"a": "```"}\n```': {"a": "```"},
    '{"a": "C:\\proj\\src", "b": ["\\d+\\s"], "c": "One.\\n Two."}': {
        "a": "C:\\proj\\src",
        "b": ["\\d+\\s"],
        "c": "One.\n Two.",
    },
    '{"a": "in "C:\\proj" now"}': {"a": 'in "C:\\proj" now'},
    '{"a": [NaN, -Infinity, True, False, None]}': {"a": [None, None, True, False, None]},
    "{'a': 'b', 'c': [1, 'd']}": {"a": "b", "c": [1, "d"]},
    "{'a': \"it's\", 'b': None, 'c': ('x', -1.5)}": {"a": "it's", "b": None, "c": ["x", -1.5]},
    "{'a': 'say \\'yes\\' to \"him\"'}": {"a": "say 'yes' to \"him\""},
    '{\n a: "b",\n c: {d: 1}, // why\n}': {"a": "b", "c": {"d": 1}},
    "{“a”: “b”}": {"a": "b"},
    '{"a": "x",\n "b": “y”,\n "c": "z"}': {"a": "x", "b": "y", "c": "z"},
    '{"a": "x",\n "b"： "y",\n "c"： 1}': {"a": "x", "b": "y", "c": 1},
    '{"a": "x"\n "b": "say "yes" now"\n "c": {}}': {"a": "x", "b": 'say "yes" now', "c": {}},
    '{"a": {"b": "x"}\n "c": ["y"]\n "d": 1}': {"a": {"b": "x"}, "c": ["y"], "d": 1},
    '[\n {"a": {"b": "x"}}\n {"a": ["y"]}\n]': [{"a": {"b": "x"}}, {"a": ["y"]}],
    '{"a": "x"，\n "b": [1]，\n "c": "y，z"}': {"a": "x", "b": [1], "c": "y，z"},
    'Here it is:\n\n```json\n{"a": {"b": "x"}}\n```\nAnything else?\n': {"a": {"b": "x"}},
    '{"a": "a "b" c", "d": "one\ntwo",}': {"a": 'a "b" c', "d": "one\ntwo"},
}


@pytest.mark.parametrize("text", MENDED)
def test_what_has_only_one_reading_is_mended_and_told(text: str) -> None:
    mended = mend(text.encode())
    assert mended is not None and mended.changes
    assert MENDED[text] == loads(mended.data)
    finding = explain(text.encode())
    assert finding is None or finding.repairable


def test_what_was_mended_is_told_line_by_line() -> None:
    mended = mend(b'{"a": "x "y" z", // why\n "b": "one\ntwo", "c": [1,]}')
    assert mended is not None
    assert [
        "line 1: 2 quotes inside a text were escaped",
        "line 1: a comment was removed",
        "line 2: a line break in a text was escaped",
        "line 3: a comma behind the last entry was removed",
    ] == [change.message for change in mended.changes]


def test_utf_16_is_mended() -> None:
    for encoding in ("utf-16", "utf-16-be", "utf-16-le"):
        mended = mend('{"a": "é"}'.encode(encoding))
        assert mended is not None
        assert {"a": "é"} == loads(mended.data)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "set "x", "b": "c" and go", "s": 1}',  # where does `a` end?
        '{"a": "x" "b": "y", "c": 1}',  # a comma missing, or quotes?
        '["a" "b", "c"]',
        '{"a": {"b": "x"} "c": "y"}',  # no comma, and no new line
        '{"a": "x"，"b": "y"}',
        '{"a": "x, "b": "y"}',  # a closing quote missing, or quotes?
        '{"a": "x,\n "b": 5,\n "c": "y"}',
        '{"a": "x"", "b": 1}',
        '{"a": "x"; "b": 1}',
        '{"a": "x", "b"： "y", "c": 1}',  # nothing of a key may become part of the text before it
        '{"a": "x",\n "b": ,\n "c": "y"}',
        '{"a": "x" + "y", "b": 1}',
        '{"a": ["x", “y”, "z"]}',
        '{"a": ["x"，"y"]}',
        "{'a': 'it's'}",
        "{'a': 'x' 'y'}",  # Python joins them
        "{'a': 1, 'a': 'it\\'s'}",
        "{'a': {1, 2}, 'b': \"it's\"}",
        '{"a": 1} ``` more',
        *(text for text, _, _ in (BROKEN["cut-off"], BROKEN["several"])),
        '{"a": "C:\\proj\\new"}',  # a line break, or a folder?
        '{"a": "src\\components\\Auth.tsx", "b": "src\\types.ts"}',
        '{"a": "\\d+", "b": "\\bfoo\\b"}',
        '{"a": "cd .\\src", "b": "type .\\readme.md"}',
        '{"a": "C:\\proj", "b": "C:\\temp"}',  # the one is no JSON, so that nobody knows what the other means
        'The log:\n```json\n{"a": 1}\n```\nand\n```json\n{"a": 2}\n```',
        'The log:\n```json\n{"a": 1}\n```\n{"a": 2}',
        'The log:\n```json\n{"a": 1}\nand so on',
        '{"a": 1}\n```\nand so on',
    ],
)
def test_what_could_be_read_in_two_ways_is_not_mended(text: str) -> None:
    finding = explain(text.encode())
    assert finding is not None and not finding.repairable
    assert mend(text.encode()) is None


WHOLE = dumps(multi()).rstrip()


@pytest.mark.parametrize("half", ["t", "tru", "fals", "nu", "-", "12.", "1e", "1.5E-"])
def test_a_document_that_was_cut_off_inside_a_word_or_a_number_is_one_that_was_cut_off(half: str) -> None:
    for text in (f'{{"a": {half}', f'{{"a": [1, {half}'):
        finding = explain(text.encode())
        assert finding is not None and CAUSES["cut-off"] in finding.message
        assert mend(text.encode()) is None


@given(st.integers(1, len(WHOLE) - 1))
def test_a_document_that_was_cut_off_is_never_completed(end: int) -> None:
    finding = explain(WHOLE[:end])
    assert finding is not None and CAUSES["cut-off"] in finding.message
    assert mend(WHOLE[:end]) is None


WORDS = st.text(st.characters(codec="utf-8", exclude_characters='"\\{}[],:/'), min_size=1, max_size=8)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4), WORDS)
@example([("a", "b")], "")
def test_words_in_quotes_that_were_not_escaped_come_back(parts: list[tuple[str, str]], last: str) -> None:
    prompt = "".join(f'{before}x"x{inside}x"' for before, inside in parts) + "x" + last
    document = single() | {"user_prompt": prompt}
    broken = dumps(document).replace(b'\\"', b'"')
    mended = mend(broken)
    assert mended is not None
    assert document == loads(mended.data)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_has_nothing_to_explain_and_nothing_to_mend(value: object) -> None:
    data = json.dumps(value).encode()
    assert explain(data) is None
    assert mend(data) is None


TOKENS = [
    '"',
    '""',
    '"a"',
    ":",
    ",",
    "{",
    "}",
    "[",
    "]",
    " ",
    "\n",
    "1",
    "x",
    "\\",
    '\\"',
    "//",
    "/*",
    "*/",
    "#",
    "'",
    "true",
    "-",
    "é",
]


SOUND = '{"a": [1, "b"], "c": {"d": true, "e": "f"}}'
FLAWS = [
    ('"b"', "'b'"),
    ("true", "True"),
    ("1", "1 // one\n"),
    ("1", "1 /* one */"),
    ("}}", ",}}"),
    ("]", ",]"),
    ('f"', 'f\n"'),
    ('f"', 'f" g"'),
    ('{"a"', '\ufeff{"a"'),
    ('"c"', "c"),
    ("}}", "}"),
    (",", ""),
]


def broken(flaws: list[tuple[str, str]]) -> str:
    """Sound JSON with flaws as people and models make them; some can be mended, some cannot."""
    text = SOUND
    for sound, flawed in flaws:
        text = text.replace(sound, flawed, 1)
    return text


@given(
    st.lists(st.sampled_from(TOKENS), max_size=20).map("".join)
    | st.binary(max_size=30)
    | st.lists(st.sampled_from(FLAWS), min_size=1, max_size=3, unique=True).map(broken)
)
@example(broken(FLAWS[:2]))
@example(broken(FLAWS[2:8]))
def test_whatever_the_bytes_are_they_are_json_or_explained_and_mended_to_json(text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    finding, mended = explain(data), mend(data)
    try:
        loads(data)
        is_json = True
    except BadRecord:
        is_json = False
    assert is_json == (finding is None)
    assert finding is None or (mended is not None) == finding.repairable
    if mended is not None:
        loads(mended.data)
        assert mend(mended.data) is None
