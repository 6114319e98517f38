"""A short piece of a message around what was looked for, and where in it that stands. Pure functions of texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from .query import Query, Term
from .words import is_unspaced, parts_of, without_colours

WIDTH = 240
"""Characters of a snippet."""
_MOST, _TRIES = 300, 3000
"""Places of a word in a text that are kept, and that are looked at."""
_SPACE = re.compile(r"\s+")
_TOKEN = re.compile(r"[^\W_]+")
# A word begins and ends at what is no letter, or where a part of an identifier does.
_SEAM = r"(?-i:(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9]))"
_BEGIN = rf"(?:(?<![^\W_])|{_SEAM})"
_END = rf"(?:(?![^\W_])|{_SEAM})"
_BETWEEN = r"[\W_]{0,4}"
# Letters with accents as the index has them: without. One character for one, so that places stay.
_PLAIN = {
    code: unicodedata.normalize("NFD", chr(code))[0]
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))
    if unicodedata.decomposition(chr(code))
}
_NO_ACCENTS = bytes(byte for byte in range(256) if byte != 0xE1 and not 0xC3 <= byte <= 0xC9)
"""Bytes with which none of them begins."""


class Snippet(msgspec.Struct, frozen=True):
    """A piece of a text on one line; `spots` are the beginnings and ends of what was found in it."""

    text: str = ""
    spots: tuple[tuple[int, int], ...] = ()


def snippet(text: str, query: Query, width: int = WIDTH) -> Snippet:
    """The piece of the text that has most of what was looked for; its beginning where nothing is recognized."""
    text = unicodedata.normalize("NFC", without_colours(text))
    spots = _spots(text, [term for group in query.wanted for term in group])
    start = _best_start(spots, width) if len(text) > width else 0
    start = min(start, max(0, len(text) - width))
    end = min(len(text), start + width)
    return _laid_out(text, start, end, [(a, b) for a, b, _ in spots if start <= a and b <= end])


def _spots(text: str, terms: Iterable[Term]) -> list[tuple[int, int, int]]:
    """Where the terms stand, in order, none inside another: beginning, end, and which it is."""
    if not text.isascii() and text.encode("utf-8", "replace").translate(None, _NO_ACCENTS):
        text = text.translate(_PLAIN)
    small = text.lower()
    if len(small) != len(text):  # few letters become two
        small = "".join(one if len(one := character.lower()) == 1 else character for character in text)
    found = [(*spot, which) for which, term in enumerate(terms) for spot in _spots_of(term, text, small)]
    found.sort()
    kept: list[tuple[int, int, int]] = []
    for spot in found:
        if not kept or spot[0] >= kept[-1][1]:
            kept.append(spot)
    return kept


def _spots_of(term: Term, text: str, small: str) -> Iterator[tuple[int, int]]:
    """A word is looked for as it is, which is quick, and then whether it stands there by itself."""
    if (wanted := _wanted(term)) is None:
        return
    first, pattern = wanted
    at, kept = small.find(first), 0
    for _ in range(_TRIES):
        if at < 0 or kept == _MOST:
            return
        spot = pattern.match(text, at)
        if spot is not None:
            yield spot.span()
            kept += 1
        at = small.find(first, at + 1 if spot is None else spot.end())


def holds_exactly(text: str, query: Query) -> bool:
    """Whether a text has every identifier of the query letter for letter."""
    return all(any(term.text in text for term in group) for group in query.wanted if any(map(_is_name, group)))


def names_something(query: Query) -> bool:
    """Whether an identifier is looked for: then those who have it letter for letter come first."""
    return any(_is_name(term) for group in query.wanted for term in group)


def _is_name(term: Term) -> bool:
    """Whether a term is a single word that can be spelled otherwise: `find_session`, `findSession`, `a/b.py`."""
    return not _SPACE.search(term.text) and (len(_TOKEN.findall(term.text)) > 1 or len(parts_of(term.text)) > 1)


def _best_start(spots: Sequence[tuple[int, int, int]], width: int) -> int:
    """Where the window begins that shows most of the different terms, with a little of what stands before."""
    best, most = 0, (0, 0)
    last = 0
    for first, (start, _, _) in enumerate(spots):
        last = max(last, first)
        while last < len(spots) and spots[last][1] <= start + width * 3 // 4:
            last += 1
        inside = spots[first:last]
        worth = (len({term for _, _, term in inside}), len(inside))
        if worth > most:
            best, most = max(0, start - width // 4), worth
    return best


def _laid_out(text: str, start: int, end: int, spots: Iterable[tuple[int, int]]) -> Snippet:
    """The window as one line: white space as single spaces, an ellipsis where something is missing."""
    line = "…" if start else ""
    places = []
    at = start
    for begin, stop in spots:
        line += _SPACE.sub(" ", text[at:begin])
        shown = _SPACE.sub(" ", text[begin:stop])
        places.append((len(line), len(line) + len(shown)))
        line += shown
        at = stop
    line += _SPACE.sub(" ", text[at:end])
    return Snippet(line.rstrip() + ("…" if end < len(text) else ""), tuple(places))


@lru_cache(maxsize=256)
def _wanted(term: Term) -> tuple[str, re.Pattern[str]] | None:
    """The first part of a term in small letters, and what stands where it is found; None for no word at all."""
    text = unicodedata.normalize("NFC", term.text).translate(_PLAIN)
    tokens = [part for token in _TOKEN.findall(text) for part in _pieces(token)]
    if not tokens:
        return None
    begin = "" if is_unspaced(tokens[0][0]) else _BEGIN
    end = r"[^\W_]*" if term.prefix else "" if is_unspaced(tokens[-1][-1]) else _END
    pattern = begin + _BETWEEN.join(map(re.escape, tokens)) + end
    return tokens[0].lower(), re.compile(pattern, re.IGNORECASE)


def _pieces(token: str) -> list[str]:
    return parts_of(token) if token.isascii() else [token]
