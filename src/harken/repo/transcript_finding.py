"""Words in a transcript: the rows that hold them.

The full-text index answers where it can: it knows the words of every message and their beginnings. What it cannot find,
a part in the middle of a word or signs alone, is looked for in the deltas themselves, and only those are read whose
bytes hold it.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harken import clock
from harken.analytics.transcript_rows import RowEvents, name_key
from harken.context.readable import contents_of
from harken.errors import BadRequest, HarkenError
from harken.events import Output, Recovery
from harken.store import Store

from .transcripts import OpenTranscript, ReadRow, Transcripts

if TYPE_CHECKING:
    from harken.index import StoreIndex


MOST_WORDS, LONGEST = 16, 1_000
SECONDS = 2.0
"""How long deltas are looked through."""
_READ = 2_000
"""Deltas that are read to tell rows of one record apart."""
_UNINDEXED = frozenset("?X")
"""The letters of rows that may be of something the index has no words of."""
_MAY_BE_ACCENTED = re.compile(rb"[\xc3-\xc9\xcc\xcd]|\xe1[\xb8-\xbb]|\\u0[0-3]|\\u1[eE]")
"""Bytes with which a letter with an accent begins, or an accent, also as JSON has them."""
_PIECE = re.compile(r'"([^"]*)"?|(\S+)')


class FoundRows(NamedTuple):
    """The rows that hold some words."""

    rows: list[int]
    complete: bool
    """Whether all of the transcript was looked through."""


def terms_of(words: str) -> list[str]:
    """What is looked for: words, and what stands in quotation marks in one piece."""
    if len(words) > LONGEST:
        raise BadRequest(f"at most {LONGEST} characters are looked for", hint="a few words will do")
    found = [(quoted or word).strip() for quoted, word in _PIECE.findall(words)]
    found = list(dict.fromkeys(filter(None, found)))
    if not found:
        raise BadRequest("there is nothing to look for", hint="give some words")
    if len(found) > MOST_WORDS:
        raise BadRequest(f"at most {MOST_WORDS} words are looked for", hint="a few words will do")
    return found


def find_rows(transcripts: Transcripts, store: Store, opened: OpenTranscript, words: str) -> FoundRows:
    """The numbers of the rows in which all of the words stand, in order."""
    terms = terms_of(words)
    index = transcripts.index()
    if index is not None and all(number >= 0 for number in opened.layout.numbers):
        try:
            found = _by_index(transcripts, index, opened, terms)
        except (HarkenError, OSError, sqlite3.Error):
            found = None
        if found:
            found |= _unindexed(transcripts, opened, [plain(term) for term in terms])
            return FoundRows(sorted(found), complete=True)
    return _by_reading(transcripts, store, opened, [plain(term) for term in terms])


# -- by the index ------------------------------------------------------------------------------------------------------


def _by_index(
    transcripts: Transcripts, index: StoreIndex, opened: OpenTranscript, terms: Sequence[str]
) -> set[int] | None:
    from harken.index.row_words import messages_with

    places = _RowFinder(transcripts, opened)
    found: set[int] | None = None
    for term in terms:
        hits = messages_with(index, sorted(opened.layout.sessions), term)
        if hits is None:
            return None  # there is no word in it
        rows = places.rows(hits)
        found = rows if found is None else found & rows
        if not found:
            break
    return found


class _RowFinder:
    """Finds the rows of messages that the index names."""

    def __init__(self, transcripts: Transcripts, opened: OpenTranscript) -> None:
        self._transcripts, self._opened = transcripts, opened
        self._layout = opened.layout
        self._deltas = {number: at for at, number in enumerate(self._layout.numbers)}
        self._only = self._layout.by_name()
        self._reads = _READ

    def rows(self, hits: Iterable[tuple[int, str | None, int]]) -> set[int]:
        """The rows of messages, each given by its commit, its record and the number of the event in it."""
        layout, found, doubtful = self._layout, set[int](), dict[int, set[tuple[str, int]]]()
        for commit, record, event in hits:
            key = name_key(record or "")
            row = self._only.get(key, -1)
            delta = self._deltas.get(commit)
            # The index may know a record from its agent's own chain, whose commits are not those of the whole session.
            if row >= 0 and (record or delta is not None):
                found.add(row)
                continue
            if delta is None:
                continue
            same = [row for row in layout.rows_of(delta) if layout.names[row] == key]
            if len(same) > 1:
                doubtful.setdefault(delta, set()).add((record or "", event))
            else:
                found.update(same or [row for row in layout.beside_in(delta, key) if row in layout.rows_of(delta)])
        return found | self._told_apart(doubtful)

    def _told_apart(self, doubtful: dict[int, set[tuple[str, int]]]) -> set[int]:
        """Of records that are several rows, those of the events that are meant."""
        found: set[int] = set()
        numbers = [row for delta in doubtful for row in self._layout.rows_of(delta)]
        for read in self._transcripts.some_rows(self._opened, numbers[: self._reads]):
            if read.row is not None:
                wanted = doubtful[self._layout.delta_of(read.number)]
                if any(
                    event and (event.message_id, event.index) in wanted for event in (read.row.event, read.row.joined)
                ):
                    found.add(read.number)
        return found


def _unindexed(transcripts: Transcripts, opened: OpenTranscript, terms: Sequence[str]) -> set[int]:
    """The rows of which the index has no words: records that could not be read, and where a log was torn."""
    numbers = [number for number, letter in enumerate(opened.layout.letters) if letter in _UNINDEXED][:_READ]
    return {read.number for read in transcripts.some_rows(opened, numbers) if _holds(read, terms)}


# -- by reading --------------------------------------------------------------------------------------------------------


def _by_reading(transcripts: Transcripts, store: Store, opened: OpenTranscript, terms: Sequence[str]) -> FoundRows:
    layout = opened.layout
    until = clock.monotonic() + SECONDS
    found: list[int] = []
    deltas = [at for at in range(len(layout.commits)) if layout.has_rows(at)]
    may_hold = _raw_test(terms)
    for first in range(0, len(deltas), 500):
        if clock.monotonic() > until:
            return FoundRows(found, complete=False)
        some = deltas[first : first + 500]
        contents = contents_of(store, [layout.step(delta) for delta in some])
        told = zip(some, contents, strict=True)
        held = [delta for delta, (_, data) in told if not isinstance(data, HarkenError) and may_hold(data)]
        numbers = [row for delta in held for row in layout.rows_of(delta)]
        for read in transcripts.some_rows(opened, numbers):
            if _holds(read, terms):
                found.append(read.number)
    return FoundRows(found, complete=True)


def _raw_test(terms: Sequence[str]) -> Callable[[bytes], bool]:
    """Whether bytes may hold one of the words: as it is, or as JSON has it. Letters beyond ASCII have other small ones
    in bytes than in text, so where there are some all is read; so is what has letters with accents."""
    if not all(term.isascii() for term in terms):
        return lambda _: True
    wanted = [{term.encode(), json.dumps(term)[1:-1].encode()} for term in terms]

    def test(data: bytes) -> bool:
        small = data.lower()
        held = any(needle in small for needles in wanted for needle in needles)
        return held or _MAY_BE_ACCENTED.search(data) is not None

    return test


def _holds(read: ReadRow, terms: Sequence[str]) -> bool:
    text = plain(_told(read.row)) if read.row is not None else plain(read.problem)
    return all(term in text for term in terms)


def _told(row: RowEvents) -> str:
    """What a row says: as the index has it, and where it has nothing, as a reader sees it."""
    from harken.index.rows import said

    if isinstance(row.event, Output):
        return row.event.raw.decode("utf-8", "replace")
    if isinstance(row.event, Recovery):
        return row.event.reason
    told = [said(event) for event in (row.event, row.joined) if event is not None]
    return "\n".join(one.text for one in told if one is not None)


def plain(text: str) -> str:
    """The text in small letters without accents, as the full-text index takes it."""
    small = text.casefold()
    if small.isascii():
        return small
    return "".join(letter for letter in unicodedata.normalize("NFD", small) if not unicodedata.combining(letter))


def nearest(rows: Sequence[int], start: int, limit: int) -> list[int]:
    """Of many rows, those from a number on; then from the beginning."""
    at = bisect_left(rows, start)
    return sorted([*rows[at : at + limit], *rows[: min(at, max(0, limit - (len(rows) - at)))]])
