"""Words in a transcript: the rows that hold them.

The full-text index answers where it can: it knows the words of every message and their beginnings. What it cannot find,
a part in the middle of a word or signs alone, is looked for in the deltas themselves, and only those are read whose
bytes hold it.
"""

from __future__ import annotations

import json
import re
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harken import clock
from harken.analytics.transcript_rows import RowEvents, name_key
from harken.context.readable import contents_of
from harken.errors import BadRequest, HarkenError
from harken.store import Store

from .transcripts import OpenTranscript, Transcripts

if TYPE_CHECKING:
    from harken.index import StoreIndex


MOST_WORDS, LONGEST = 16, 1_000
SECONDS = 2.0
"""How long deltas are looked through."""
_READ = 2_000
"""Deltas that are read to tell rows of one record apart."""
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
            return FoundRows(sorted(found), complete=True)
    return _by_reading(transcripts, store, opened, [term.casefold() for term in terms])


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
            if read.row is not None and _holds(read.row, terms):
                found.append(read.number)
    return FoundRows(found, complete=True)


def _raw_test(terms: Sequence[str]) -> Callable[[bytes], bool]:
    """Whether bytes may hold one of the words: as it is, or as JSON has it. Letters beyond ASCII have other small ones
    in bytes than in text, so where there are some all is read."""
    if not all(term.isascii() for term in terms):
        return lambda _: True
    wanted = [{term.encode(), json.dumps(term)[1:-1].encode()} for term in terms]

    def test(data: bytes) -> bool:
        small = data.lower()
        return any(needle in small for needles in wanted for needle in needles) or b"\\u00" in small

    return test


def _holds(row: RowEvents, terms: Sequence[str]) -> bool:
    from harken.index.rows import said

    told = [said(event) for event in (row.event, row.joined) if event is not None]
    text = "\n".join(one.text for one in told if one is not None).casefold()
    return all(term in text for term in terms)


def nearest(rows: Sequence[int], start: int, limit: int) -> list[int]:
    """Of many rows, those from a number on; then from the beginning."""
    at = bisect_left(rows, start)
    return sorted([*rows[at : at + limit], *rows[: min(at, max(0, limit - (len(rows) - at)))]])
