"""The messages of a session that have a word in them: all of them, not the best."""

from __future__ import annotations

from collections.abc import Sequence

from . import words
from .file import StoreIndex

# The words come first: asked the other way round, the text index is gone through once for each message of the session.
_OWN = """
SELECT m."commit", m.record, m.event FROM words CROSS JOIN messages m ON m.n = words.rowid
WHERE words MATCH ? AND m.session = ?
"""
_COPIED = """
SELECT c."commit", c.record, m.event
FROM words CROSS JOIN copies c ON c.message = words.rowid CROSS JOIN messages m ON m.n = c.message
WHERE words MATCH ? AND c.session = ?
"""
FoundMessage = tuple[int, str | None, int]
"""The number of its commit, its record, and the number of the event in that."""


def messages_with(index: StoreIndex, sessions: Sequence[int], term: str) -> list[FoundMessage] | None:
    """The messages of these sessions that have a word, or several in a row, of which the last may go on. None where
    there is no word in it, so that the index cannot tell."""
    expression = words.expression(term, prefix=True)
    if not expression:
        return None
    found: list[FoundMessage] = []
    has_copies = bool(index.query("SELECT 1 FROM copies LIMIT 1"))
    for session in sessions:
        found += index.query(_OWN, [expression, session])
        if has_copies:
            found += index.query(_COPIED, [expression, session])
    return [hit for hit in found if hit[0] is not None]
