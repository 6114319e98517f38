"""Wording: what differs between said and heard."""

from __future__ import annotations

import difflib
import re
from typing import TypedDict

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")

CELLS = 250_000
"""How large a table of words one comparison may fill; beyond it the middle is shown as one replacement."""


class DiffPiece(TypedDict):
    """A run of text that stayed, went or came."""

    op: str
    """`same`, `removed` or `added`."""
    text: str


class Differ:
    """Compares by words, within a budget: a hostile log must not buy hours with a megabyte of words."""

    def __init__(self, budget: int = 16 * CELLS) -> None:
        self.left = budget
        self._known: dict[tuple[str, str], list[DiffPiece]] = {}

    def compare(self, said: str, heard: str) -> list[DiffPiece]:
        """The pieces that stayed, went and came, in reading order."""
        found = self._known.get((said, heard))
        if found is None:
            found = self._known[said, heard] = self._compare(said, heard)
        return found

    def _compare(self, said: str, heard: str) -> list[DiffPiece]:
        if said == heard:
            return [DiffPiece(op="same", text=said)] if said else []
        a, b = _WORDS.findall(said), _WORDS.findall(heard)
        head = _shared(a, b)
        tail = _shared(a[head:][::-1], b[head:][::-1])
        old, new = a[head : len(a) - tail], b[head : len(b) - tail]
        middle = self._middle(old, new)
        pieces = [("same", a[:head]), *middle, ("same", a[len(a) - tail :])]
        return [DiffPiece(op=op, text="".join(words)) for op, words in pieces if words]

    def _middle(self, old: list[str], new: list[str]) -> list[tuple[str, list[str]]]:
        cells = len(old) * len(new)
        if cells > min(CELLS, self.left):
            return [("removed", old), ("added", new)]
        self.left -= cells
        pieces: list[tuple[str, list[str]]] = []
        for op, a0, a1, b0, b1 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if op == "equal":
                pieces.append(("same", old[a0:a1]))
            else:
                pieces += [("removed", old[a0:a1]), ("added", new[b0:b1])]
        return pieces


def _shared(a: list[str], b: list[str]) -> int:
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count
