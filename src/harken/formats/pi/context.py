"""The conversation as it stands: what the program rebuilds from a file when it goes on with it.

Entries are a tree by `parentId`. The leaf is the last entry of the file, and the conversation is the way from the root
to it. The last `compaction` on that way (or `reset`, in OpenClaw) hides what came before, but for the entries from
`firstKeptEntryId` on: the model hears the summary, then those, then what follows.

`context` keeps the verbatim lines that are still in force. Before the first kept entry it keeps what the program is set
to (the model, how much it thinks, what extensions noted): no words of the conversation, but without them it would go
on otherwise. Their entries may then hang from one that is gone; what stands so before such an entry is still in force.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from harken.formats.kit.jsonl import Record

from .cut import calls_of
from .records import COMPACTION, CUSTOM, INFO, LEAF, LEVEL, MODEL, RESET, SESSION, PiLine, iter_lines, version_of

SETTINGS = frozenset({MODEL, LEVEL, CUSTOM, INFO})
"""Entries that outlive a compaction: the program looks for them on the whole way."""
BOUNDARIES = (COMPACTION, RESET)
_INDEX = "firstKeptEntryIndex"


class InForce(NamedTuple):
    """What is in force, as numbers of lines."""

    header: int | None
    settings: list[int]
    """What the program is set to, from before the first entry that the model hears."""
    path: list[int]
    """The entries from the first that is kept up to the leaf."""
    boundary: int | None = None
    """The compaction or reset whose summary the model hears first; it is one of `path`."""
    leaf: int | None = None
    """The line that chose the leaf, where that is none of the entries on the way."""
    by_number: bool = False
    """Whether a compaction of the first version counts entries, so that none may be missing."""

    @property
    def heard(self) -> list[int]:
        """The entries in the order in which the model hears them."""
        if self.boundary is None:
            return self.path
        return [self.boundary, *(number for number in self.path if number != self.boundary)]


class _EntryTree:
    """The entries of a file."""

    def __init__(self, lines: Sequence[PiLine]) -> None:
        self.records: dict[int, Record] = {}
        self.header: int | None = None
        self.order: list[int] = []
        """Line numbers of the entries."""
        self._before: dict[int, int | None] = {}
        """Entry to the one before it in the file."""
        self._by_id: dict[str, int] = {}
        last: int | None = None
        for number, line in enumerate(lines):
            if (record := line.record) is None:
                continue
            if record.get("type") == SESSION:
                self.header = number if self.header is None else self.header
                continue
            self.records[number] = record
            self._before[number] = last
            self.order.append(number)
            last = number
            if isinstance(name := record.get("id"), str):
                self._by_id[name] = number
        header = (lines[self.header].record if self.header is not None else None) or {}
        self._root = header.get("id")
        self.linear = self.header is not None and version_of(header) < 2

    def find(self, name: object) -> int | None:
        """The entry of that id; of several the last, as the program has it."""
        return self._by_id.get(name) if isinstance(name, str) else None

    def parent(self, number: int) -> tuple[int | None, bool]:
        """The entry that another hangs from, and whether one is missing that it names."""
        record = self.records[number]
        if self.linear:
            return self._before[number], False
        if record.get("type") == LEAF:
            return self.find(record.get("targetId")), False
        if "parentId" not in record:
            # The first version has none, and an entry that a newer one puts behind such entries has none either.
            return self._before[number], False
        found = self.find(record["parentId"])
        if found is None and isinstance(record["parentId"], str):
            found = self._callers.get(record["parentId"])
        return found, found is None and bool(record["parentId"]) and record["parentId"] != self._root

    @cached_property
    def _callers(self) -> dict[str, int]:
        """Calls to the answers that make them: some who write such files let a result hang from its call."""
        return {name: number for number in self.order for name in calls_of(self.records[number])}

    def leaf(self) -> tuple[int | None, int | None]:
        """The entry at which the conversation ends, and the line that says so where that is another."""
        leaf: int | None = None
        chosen: int | None = None
        for number in self.order:
            record = self.records[number]
            if record.get("type") == LEAF and not self.linear:
                target = record.get("targetId")
                if target is None or self.find(target) is not None:
                    leaf, chosen = self.find(target), number
            elif record.get("appendMode") != "side":
                leaf, chosen = number, None
        return leaf, chosen


def standing(lines: Sequence[PiLine]) -> InForce:
    """What of a file is in force."""
    tree = _EntryTree(lines)
    leaf, chosen = tree.leaf()
    way, orphan = _way(tree, leaf)
    boundary = next((at for at in range(len(way) - 1, -1, -1) if _kind(tree, way[at]) in BOUNDARIES), None)
    start, by_number = (0, False) if boundary is None else _first_kept(tree, way, boundary)
    settings = [number for number in way[:start] if _kind(tree, number) in SETTINGS]
    if orphan and way:
        on_way = set(way)
        before = (number for number in tree.order if number < way[0] and number not in on_way)
        settings = [number for number in before if _kind(tree, number) in SETTINGS] + settings
    return InForce(
        header=tree.header,
        settings=settings,
        path=way[start:],
        boundary=None if boundary is None else way[boundary],
        leaf=chosen,
        by_number=by_number,
    )


def _kind(tree: _EntryTree, number: int) -> object:
    return tree.records[number].get("type")


def _way(tree: _EntryTree, leaf: int | None) -> tuple[list[int], bool]:
    """From the root to the leaf, and whether the first entry names a parent that is not there."""
    way: list[int] = []
    seen: set[int] = set()
    orphan = False
    while leaf is not None and leaf not in seen:
        seen.add(leaf)
        way.append(leaf)
        leaf, orphan = tree.parent(leaf)
    return way[::-1], orphan


def _first_kept(tree: _EntryTree, way: list[int], boundary: int) -> tuple[int, bool]:
    """Where on the way the kept entries begin, and whether that is told by a number."""
    record = tree.records[way[boundary]]
    index = record.get(_INDEX)
    if tree.linear and isinstance(index, int):
        # It counts the records of the file, the header among them.
        numbers = sorted([*tree.order, *([tree.header] if tree.header is not None else [])])
        kept = numbers[index] if 0 <= index < len(numbers) else None
        return (way.index(kept) if kept in way[:boundary] else boundary), True
    wanted = record.get("firstKeptEntryId")
    if isinstance(wanted, str):
        for at in range(boundary):
            if tree.records[way[at]].get("id") == wanted:
                return at, False
    return boundary, False


def context(data: bytes) -> bytes:
    """The verbatim lines of the conversation as it stands."""
    while True:
        lines = list(iter_lines(data))
        found = standing(lines)
        if found.by_number:
            return data  # what a number counts cannot be left out
        alive = {*found.settings, *found.path, *(n for n in (found.header, found.leaf) if n is not None)}
        if len(alive) == len(lines):
            return data
        # Of a damaged file the lines that are left may say less again.
        data = b"".join(data[lines[number].start : lines[number].end] for number in sorted(alive))
