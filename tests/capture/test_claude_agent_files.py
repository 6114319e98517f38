"""Files that Claude Code writes, read while they grow: every line once, whole, whatever happens to the file."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.capture.claude_agent_sdk.tail import TailedFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def write(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_a_file_that_is_not_there_yet_has_no_lines_until_it_is(path: Path) -> None:
    tail = TailedFile(path)
    assert [] == list(tail.lines())
    write(path, b"one\n")
    assert [b"one"] == list(tail.lines())
    tail.close()


def test_a_line_is_given_out_when_its_newline_is_there(path: Path) -> None:
    tail = TailedFile(path)
    write(path, b'{"a": ')
    assert [] == list(tail.lines())
    write(path, b'1}\n{"b"')
    assert [b'{"a": 1}'] == list(tail.lines())
    assert [b'{"b"'] == list(tail.end())


def test_a_character_cut_in_two_is_whole_again(path: Path) -> None:
    tail, cup = TailedFile(path), "☕".encode()
    write(path, cup[:2])
    assert [] == list(tail.lines())
    write(path, cup[2:] + b"\n")
    assert [cup] == list(tail.lines())
    tail.close()


def test_lines_end_at_a_newline_and_nowhere_else(path: Path) -> None:
    line = "a\u2028b\u0085c\x0bd\re".encode()
    write(path, line + b"\n")
    tail = TailedFile(path)
    assert [line] == list(tail.lines())
    tail.close()


def test_a_line_longer_than_any_read_is_whole(path: Path) -> None:
    line = b"x" * 300_000
    write(path, line + b"\nnext\n")
    tail = TailedFile(path, piece=65536)
    assert [line, b"next"] == list(tail.lines())
    tail.close()


def test_what_was_left_of_a_replaced_file_is_read_before_the_new_one(path: Path) -> None:
    tail = TailedFile(path)
    write(path, b"one\n")
    assert [b"one"] == list(tail.lines())
    write(path, b"two\n")
    path.rename(path.with_suffix(".old"))
    write(path, b"three\n")
    assert [b"two", b"three"] == list(tail.lines())
    tail.close()


@pytest.mark.parametrize("anew", [b"a\n", b"other\nwords\nhere\n"], ids=["shorter", "longer"])
def test_a_file_that_was_written_anew_is_read_from_its_beginning(path: Path, anew: bytes) -> None:
    tail = TailedFile(path)
    write(path, b"one\ntwo\n")
    assert [b"one", b"two"] == list(tail.lines())
    path.write_bytes(anew)
    assert anew.splitlines() == list(tail.lines())
    assert 2 == tail.beginnings
    tail.close()


def test_a_file_that_is_gone_for_a_moment_is_not_begun_again(path: Path) -> None:
    tail = TailedFile(path)
    write(path, b"one\n")
    assert [b"one"] == list(tail.lines())
    path.unlink()
    assert [] == list(tail.lines())
    tail.close()


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=8), st.integers(1, 50))
def test_in_whatever_pieces_a_file_is_written_and_read_its_lines_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: list[int], piece: int
) -> None:
    path = tmp_path_factory.mktemp("pieces") / "file"
    tail, found = TailedFile(path, piece=piece), []
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(edges):
        write(path, data[start:end])
        found += list(tail.lines())
    found += list(tail.end())
    whole = data.split(b"\n")
    assert (whole if whole[-1] else whole[:-1]) == found
