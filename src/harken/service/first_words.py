"""The first words of a transcript as plain HTML, to be read while the page's script is loaded.

They stand where the script then draws the same rows (`rows.js`), and go when it does (`arrival.js`). So that nothing
moves, they end with the first row of which only the script knows how high it is. Everything in a transcript may pretend
to be something else: all of it is text, escaped, in elements that can do nothing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import msgspec

MOST_ROWS = 16
MOST_CHARACTERS = 6000
"""What more than fills a window."""
_LINE = 240
"""Characters of a row that is folded; `rows.js` shows as many."""
_FOLDED = frozenset({"thinking", "injected", "instructions", "result"})
_NOTICES = frozenset({"notice", "edit", "agent"})
_PARAGRAPHS = re.compile(r"\n\s*\n")
_SHOWN = {
    **{mark: f"\u2039U+{mark:X}\u203a" for mark in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F)},
    **{mark: chr(0x2400 + (mark & 0x1F)) for mark in (*range(0x20), *range(0x7F, 0xA0)) if chr(mark) not in "\t\n\r"},
}
"""Marks of direction and control characters, as the page shows them (`shown` in `words.js`): else words would change
when it draws them."""


class _FirstRow(msgspec.Struct):
    kind: str
    time: str | None
    who: str
    text: str
    cut: int
    title: str
    pictures: list[Any]


class _FirstRows(msgspec.Struct):
    rows: list[_FirstRow]


class _FirstHead(msgspec.Struct):
    title: str
    short: str
    running: bool
    agents: list[Any]


_HEADS, _TRANSCRIPTS = msgspec.json.Decoder(_FirstHead), msgspec.json.Decoder(_FirstRows)


def first_words(session_page: bytes, transcript: bytes) -> bytes:
    """The element, from the answers to what the page asks first; empty where there is nothing to read. A session that
    goes on is shown from its end, of which nothing is here."""
    try:
        head, told = _HEADS.decode(session_page), _TRANSCRIPTS.decode(transcript)
    except msgspec.DecodeError:  # half a surrogate pair: the page has its own way with that
        return b""
    rows = "" if head.running else "".join(_drawn(head, told.rows))
    if not rows:
        return b""
    return (
        '<div id="first-words" aria-busy="true"><div class="first-top"></div>'
        f'<div class="first-head"><b class="cut">{_text(head.title or head.short)}</b></div>'
        f'<div class="first-view"><i class="first-outline"></i><div class="first-rows">{rows}</div></div></div>'
    ).encode()


def _drawn(head: _FirstHead, rows: list[_FirstRow]) -> Iterator[str]:
    left = MOST_CHARACTERS
    for row in rows[:MOST_ROWS]:
        text = row.text[:left]
        if not (body := _body(row, text, has_several=len(head.agents) > 1)):
            return
        time = "&nbsp;" if row.time else ""
        yield f'<div class="first-row"><i class="first-time">{time}</i>{body}</div>'
        left -= 0 if row.kind in _FOLDED else len(text)
        if left <= 0 or row.kind == "answer" or (row.kind == "prompt" and (row.cut or row.pictures)):
            return


def _body(row: _FirstRow, text: str, *, has_several: bool) -> str:
    """The row; empty where it is drawn in a way of its own."""
    if row.kind == "prompt":
        words = f'<div class="plain">{_text(text)}</div>'
        return f'<div class="first-prompt">{_who("You" if row.who == "User" else row.who)}{words}</div>'
    if row.kind == "answer":
        parts = "".join(f'<p class="plain">{_text(part.strip())}</p>' for part in _PARAGRAPHS.split(text.strip()))
        return f'<div class="first-answer">{_who(row.who) if has_several else ""}<div class="prose">{parts}</div></div>'
    if row.kind in _NOTICES:
        return f'<p class="first-note">{f"<b>{_text(row.title)}</b> " if row.title else ""}{_text(text)}</p>'
    return _folded(row) if row.kind in _FOLDED else ""


def _who(name: str) -> str:
    return f'<div class="first-who"><b>{_text(name)}</b></div>'


def _folded(row: _FirstRow) -> str:
    line = _text(row.text.strip().partition("\n")[0][:_LINE])
    if row.kind == "thinking":
        return f'<div class="first-thought"><span class="cut">{line or "Sealed reasoning"}</span></div>'
    return f'<div class="first-folded cut"><b>{_text(row.title) or row.kind}</b> <span class="dim">{line}</span></div>'


def _text(words: str) -> str:
    return html.escape(words.translate(_SHOWN)).replace("\r", "&#13;")  # as it is: a reader of HTML makes it a new line
