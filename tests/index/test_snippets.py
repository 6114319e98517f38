"""The piece of a message that is shown, and what is marked in it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.index.query import parse
from harken.index.snippets import WIDTH, holds_exactly, names_something, snippet


def marked(text: str, query: str) -> str:
    """The snippet with what was found in brackets."""
    found = snippet(text, parse(query))
    said = found.text
    for start, end in reversed(found.spots):
        said = f"{said[:start]}[{said[start:end]}]{said[end:]}"
    return said


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("a timeout of the concatenated cat", "cat", "a timeout of the concatenated [cat]"),
        ("def findSession(x)", "session", "def find[Session](x)"),
        ("def findSession(x)", "find_session", "def [findSession](x)"),
        ("def find_session(x)", "findSession", "def [find_session](x)"),
        ("HTTPServer2", "server", "HTTP[Server]2"),
        ("Connection lost", "conn*", "[Connection] lost"),
        ("off by\n   one error", '"off by one"', "[off by one] error"),
        ("全文検索です", "検索", "全文[検索]です"),
        ("Ein Résumé", "resume", "Ein [Résumé]"),
        ("timeout, deadline", "timeout OR deadline", "[timeout], [deadline]"),
        ("nothing of it", "else", "nothing of it"),
        ("src/a.py:10", "src/a.py", "[src/a.py]:10"),
    ],
)
def test_what_was_found_is_marked_where_it_stands(text, query, shown):
    assert shown == marked(text, query)


def test_of_a_long_text_the_piece_with_most_of_it_is_shown():
    text = "alpha " + "x " * 2000 + "then alpha met beta there " + "y " * 2000

    shown = marked(text, "alpha beta")

    assert "[alpha] met [beta]" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_a_filter_alone_shows_the_beginning():
    assert "hello world" == marked("hello\nworld", "role:human")


def test_a_name_is_told_from_its_other_spellings():
    query = parse("find_session")

    assert (True, True, False) == (
        names_something(query),
        holds_exactly("a find_session b", query),
        holds_exactly("a findSession b", query),
    )
    assert not names_something(parse("find session"))


@given(st.text(max_size=600), st.text(max_size=12))
@settings(max_examples=200, deadline=None)
def test_a_snippet_is_short_on_one_line_and_marks_only_what_is_in_it(text, word):
    query = parse(f'"{word.replace(chr(34), "")}" x')

    found = snippet(text, query)

    assert len(found.text) <= WIDTH + 2
    assert len(found.text.splitlines()) <= 1
    assert all(0 <= start < end <= len(found.text) for start, end in found.spots)
    assert sorted(found.spots) == list(found.spots)
