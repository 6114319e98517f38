"""How the bytes of a run become lines."""

from __future__ import annotations

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from harken.runtimes.lines import LineSplitter


@given(st.lists(st.text("ab\n", max_size=12).map(str.encode), max_size=12))
def test_lines_are_the_same_however_the_bytes_come_and_however_often_they_are_cut(parts: list[bytes]) -> None:
    """What a run cut into pieces and wrote into a spool is read as the same pieces."""
    with mock.patch("harken.formats.kit.jsonl.MAX_LINE", 4):
        cut = split(parts)
        whole = split([b"".join(parts)])
        again = split([b"".join(line + b"\n" for line in cut)])

    assert cut == whole == again
    assert b"".join(parts).replace(b"\n", b"") == b"".join(cut)
    assert all(0 < len(line) <= 4 for line in cut)


def test_a_line_of_just_the_greatest_length_is_one_line() -> None:
    with mock.patch("harken.formats.kit.jsonl.MAX_LINE", 4):
        assert [b"abcd", b"efgh", b"i"] == split([b"abcd\nefghi\n"])


def split(parts: list[bytes]) -> list[bytes]:
    splitter = LineSplitter()
    lines = [line for part in parts for line in splitter.feed(part)]
    return [line for line in [*lines, *splitter.end()] if line]
