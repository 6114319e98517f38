"""Whatever a transcript says, it is text in our Markdown: judged by a reader of CommonMark that is not ours."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it.token import Token

from harken.views.markdown_text import JOINER, code_span, fenced, literal, prose
from support.markdown import READER

OPEN, CLOSE = "<details><summary>ours</summary>", "</details>"
PIECES = (
    "```", "````", "~~~", "`", "``", "<script>alert(1)</script>", "</details>", "<!--", "-->", "<b",
    "[a](javascript:b)", "![x](http://y)", "[x]: http://y", "[x]", "[^1]: z", "# h", "## ", "===", "---", "-", "> ",
    "- ", "* ", "1. ", "+ ", "fixes ", "Closes: ", "org/repo",
    "\t", "    ", " ", "\n", "\n\n", "\\", "*", "_", "**", "@user", "#1", "!2", "GH-3", "&lt;", "&#64;", "|", "|-|",
    "$", "<http://a.b>", "http://a.b/?c=1&d=2#@e", "a", "b c", "\r", "\x0b", "\x1b[31m", "\u2028", "é", "\ud800",
)  # fmt: skip
hostile = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def tokens(text: str) -> Iterator[Token]:
    for token in READER.parse(text):
        yield token
        yield from token.children or ()


def kinds(text: str) -> list[str]:
    return [token.type for token in tokens(text)]


@given(hostile)
@example("    ```\n<script>\n    ```")
@example("- ```\n<script>\n```\n# h")
@example("a\n-")
@example("> # h\n> ===")
@example("`a\\`<b>`")
@example("- a\n\n      ```\n<b>")
@example("\\``` ``")
@example("~~~```")
@example("a|b\n-|-\n`|<b>`")
@example("a|b\n-|-\n`<b>|`")
@example("`|![x](http://y)`|b\n:-|-|-")
@example("> a|b\n> -|-\n> ``\\|<b>|``")
def test_prose_is_never_more_than_text(text: str) -> None:
    document = f"# ours\n\n{prose(text)}\n\n{OPEN}\n\nafter\n\n{CLOSE}\n"

    found = list(tokens(document))

    assert [OPEN, CLOSE] == [token.content.strip() for token in found if token.type == "html_block"]
    assert ["h1"] == [token.tag for token in found if token.type == "heading_open"]
    assert not {"html_inline", "link_open", "image"} & {token.type for token in found}


@given(hostile)
def test_code_is_what_stands_between_our_fences(text: str) -> None:
    found = READER.parse(f"{fenced(text)}\n\nafter\n")

    assert ["fence", "paragraph_open", "inline", "paragraph_close"] == [token.type for token in found]
    assert "after" == found[2].content


@given(hostile)
def test_a_literal_line_is_one_paragraph_of_text(text: str) -> None:
    found = kinds(f"# {literal(text)} .")

    assert {"heading_open", "inline", "heading_close", "text", "text_special"} >= set(found) - {"softbreak"}


@given(hostile)
def test_a_code_span_is_one_span(text: str) -> None:
    assert ["code_inline"] == [kind for kind in kinds(f"- {code_span(text)}") if kind in ("code_inline", "text")]


MENTION = re.compile(r"(?<![A-Za-z0-9])(?:@[A-Za-z0-9]|GH-[0-9])|[#!][0-9]")
CLOSING = re.compile(r"\b(?:clos|fix|resolv|implement)(?:e|es|ed|s|ing)?:?\s+(?:http|[\w/.-]*[#!][0-9])", re.IGNORECASE)


@given(hostile)
@example("_@user_")
@example("fixes org/repo#12, Closes: org/repo!3")
@example("Fixed http://a.b/org/repo/issues/12 and resolves:  http://a.b/c/-/issues/1")
@example("\\@user")
def test_nobody_is_mentioned(text: str) -> None:
    """In code and in an address nobody is."""
    shown = "".join(token.content for token in tokens(prose(text)) if token.type in ("text", "text_special"))

    assert [] == MENTION.findall(re.sub(r"http://\S+", "", shown))
    assert [] == CLOSING.findall(shown)


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("plain *words* and `code`", "plain *words* and `code`"),
        ("## Plan", "**Plan**"),
        ("# C# ##", "**C#**"),
        ("a <b> & c", "a &lt;b> &amp; c"),
        ("see [here](http://x)", "see \\[here\\](http://x)"),
        ("ask @jill about #12", f"ask @{JOINER}jill about #{JOINER}12"),
        ("fixes org/repo#12", f"fixes org/repo#{JOINER}12"),
        ("Closes http://a.b/issues/1", f"Closes{JOINER} http://a.b/issues/1"),
        ("it closes at 5", "it closes at 5"),
        ("me@example.org", "me@example.org"),
        ("- one\n- two", "- one\n- two"),
        ("a\n\n---\n\nb", "a\n\n---\n\nb"),
        ("a\n---", "a\n\\---"),
        ("costs $5", "costs \\$5"),
        ("run `a | b`\n\n---", "run `a | b`\n\n---"),
        ("|a|b|\n|-|-|\n|`c|d`|`e\\|f`|", "|a|b|\n|-|-|\n|`c\\|d`|`e\\|f`|"),
    ],
)
def test_what_reads_well_stays(said: str, written: str) -> None:
    assert written == prose(said)


def test_code_keeps_its_language_and_outgrows_its_own_fences() -> None:
    said = "~~~~md\n```py\nx = 1\n```\n~~~~\nafter"

    assert "\n````md\n```py\nx = 1\n```\n````\n\nafter" == prose(said)


@pytest.mark.parametrize(
    "line", ["# " + " " * 200_000 + "x", "- " * 100_000 + "x", "`" * 100_001 + " ` `` " * 9_999, "<" * 200_000]
)
def test_a_hostile_line_takes_no_longer_than_its_length(line: str) -> None:
    """Whatever is quadratic would take minutes."""
    assert prose(line)
    assert fenced(line)
