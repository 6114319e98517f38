"""The words of a session's first rows, in its page as plain HTML."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from harken.service.first_words import first_words

HEAD = {"title": "Mend the clock", "short": "ctx", "running": False, "agents": [{"id": "main"}]}


def row(kind: str, text: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "who": "User", "text": text, "time": None, "cut": 0, "title": "", "pictures": [], **more}


def words(*rows: dict[str, Any], **head: Any) -> str:
    return first_words(msgspec.json.encode(HEAD | head), msgspec.json.encode({"rows": rows})).decode()


class _Read(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_prompts_and_folded_rows_stand_there_up_to_the_first_answer() -> None:
    told = words(
        row("instructions", "Be kind.\nAnd brief.", title="System prompt"),
        row("prompt", "It is late."),
        row("thinking", "Which clock?"),
        row("answer", "I look.\n\nIt is the big one.", who="Claude"),
        row("prompt", "And now?"),
    )

    read = re.sub(r"<[^>]*>|&nbsp;", " ", told)
    assert [
        "Mend the clock",
        "System prompt Be kind.",
        "You It is late.",
        "Which clock?",
        "I look. It is the big one.",
    ] == [re.sub(r"\s+", " ", part).strip() for part in re.split(r" {5,}", read) if part.strip()]


@pytest.mark.parametrize("kind", ["call", "compaction", "error", "unread", "new"])
def test_they_end_with_the_row_of_which_only_the_script_knows_how_high_it_is(kind: str) -> None:
    assert "after" not in words(row("prompt", "before"), row(kind, "between"), row("prompt", "after"))
    assert "between" not in words(row("prompt", "before"), row(kind, "between"))


@pytest.mark.parametrize("more", [{"cut": 9}, {"pictures": [{"url": None}]}])
def test_they_end_with_a_prompt_that_is_not_all_there(more: dict[str, Any]) -> None:
    told = words(row("prompt", "before", **more), row("prompt", "after"))

    assert "before" in told
    assert "after" not in told


def test_a_session_that_goes_on_or_says_nothing_has_none() -> None:
    assert "" == words(row("prompt", "before"), running=True)
    assert "" == words()
    assert "" == words(row("call", ""))


def test_who_says_it_is_told_where_several_speak() -> None:
    answer = row("answer", "yes", who="Jill")

    assert "Jill" not in words(answer)
    assert "Jill" in words(answer, agents=[{"id": "main"}, {"id": "jill"}])


HOSTILE = "</div></body><script>alert(1)</script><img src=x onerror=alert(1)>\" onclick='x' \u202e \x1b[31m &lt;"


@pytest.mark.parametrize("kind", ["prompt", "answer", "thinking", "injected", "notice"])
def test_whatever_is_said_is_text(kind: str) -> None:
    read = _Read()
    told = words(row(kind, HOSTILE, who=HOSTILE, title=HOSTILE), title=HOSTILE, agents=[{}, {}])
    read.feed(told)

    assert {"div", "b", "i", "p", "span"} >= {tag for tag, _ in read.tags}
    assert {"id", "class", "aria-busy"} >= {name for _, attrs in read.tags for name, _ in attrs}
    assert "<script>alert(1)</script>" in read.text
    assert "\u202e" not in told
    assert "\x1b" not in told
    assert "\u2039U+202E\u203a \u241b[31m" in read.text


def test_half_a_surrogate_pair_is_left_to_the_page() -> None:
    page = msgspec.json.encode(HEAD)

    assert b"" == first_words(page, json.dumps({"rows": [row("prompt", "\ud800")]}).encode())


def test_a_long_text_is_cut_where_no_window_shows_more() -> None:
    told = words(row("prompt", "a" * 100_000), row("prompt", "after"))

    assert 5_000 < told.count("a") < 8_000
    assert "after" not in told
