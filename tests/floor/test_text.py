"""Text laid out in columns: nothing is lost, nothing is too wide, and words stay whole where they can."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.text import one_line, safe, safe_json, width_of, wrap

LINES = st.text(st.sampled_from("ab  c日é\u0301🙂"), max_size=60)
COLUMNS = st.integers(2, 12)


@given(LINES, COLUMNS)
def test_the_pieces_of_a_line_are_the_line_but_for_the_spaces_between_them(line: str, columns: int) -> None:
    at = 0
    for start, end in wrap(line, columns):
        assert line[at:start] in ("", " ")
        at = end

    assert len(line) == at


@given(LINES, COLUMNS)
def test_no_piece_has_more_columns_than_it_may(line: str, columns: int) -> None:
    assert all(sum(map(width_of, line[start:end])) <= columns for start, end in wrap(line, columns))


@given(st.lists(st.text("ab日", min_size=1, max_size=4), min_size=1), st.integers(8, 20))
def test_a_word_that_has_room_is_not_cut(words: list[str], columns: int) -> None:
    line = " ".join(words)

    assert words == [word for start, end in wrap(line, columns) for word in line[start:end].split(" ")]


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ("", [""]),
        ("one two three", ["one two", "three"]),
        ("abcdefghijklm", ["abcdefgh", "ijklm"]),
        ("a abcdefg b", ["a", "abcdefg", "b"]),
        ("a abcdefghijklm b", ["a abcdef", "ghijklm", "b"]),
        ("漢字漢字漢", ["漢字漢字", "漢"]),
    ],
)
def test_lines_end_between_words_and_only_a_word_that_is_too_long_is_cut(line: str, pieces: list[str]) -> None:
    assert pieces == [line[start:end] for start, end in wrap(line, 8)]


UNSEEN = "\x1b\x7f\x9b\u202e\u200b\u2028\u2029\u2063\ufeff\U000e0041"


@pytest.mark.parametrize("character", UNSEEN)
def test_what_a_terminal_obeys_or_nobody_sees_is_made_visible(character: str) -> None:
    assert f"a\\x{ord(character):02x}b" == safe(f"a{character}b") == one_line(f"a{character}b")


@pytest.mark.parametrize("text", ["tab\tand\nline", "👩\u200d👧", "می\u200cخواهم", "日本"])
def test_what_is_needed_to_write_stays(text: str) -> None:
    assert text == safe(text)


@given(st.text(st.sampled_from(UNSEEN + 'a"\\日🙂'), max_size=20))
def test_json_says_the_same_without_such_characters(text: str) -> None:
    line = safe_json(json.dumps(text, ensure_ascii=False))

    assert text == json.loads(line)
    assert not set(UNSEEN) & set(line)
