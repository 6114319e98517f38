"""Text laid out in columns: nothing is lost, nothing is too wide, and words stay whole where they can."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.text import width_of, wrap

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
