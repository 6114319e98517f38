"""The conversation as it stands: which records of a file would be before the model if it were resumed now.

The file is a tree (`uuid`, `parentUuid`) with abandoned branches, side chains and the history before a compaction in
it. What Claude Code takes on `--resume` was found by experiment with the real program:

1. Records stand in the tree under their uuid; of two with the same uuid the later one counts. Progress records are
   passed through.
2. Messages that the last compaction preserved are hung between its anchor and what followed the anchor.
3. The end is the last record in the file without a child, unless the record that the last `last-prompt` since the
   last compaction names is neither on the way to it nor beside it: then it is that record.
4. The path goes from the end to a record without a parent; never across a compaction. Where a parent is not in the
   file, the record nearest in time stands for it, if it is at most five seconds older.
5. Parallel tools leave records beside the path: those with the message id of a record on it, the results of their
   calls, and what the harness attached to those. They take their place inside their message. What a compaction left
   behind stays there.

Side chains are left out, except in a sub-agent's own file, which has nothing else. Nothing here recurses, and a ring
of parents ends the path.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Container, Iterator
from itertools import accumulate
from typing import TypeVar

import msgspec

from harken.clock import SECOND, parse_instant
from harken.formats.kit.jsonl import is_overlong, lines, read_objects

from .records import GRAPH, ClaudeRecord, Compacted, soften, take

GAP = 5 * SECOND
"""How much older the stand-in for a lost parent may be."""
_LOOKED_AT = 1000
"""How many stand-ins are considered; a hostile file could offer any number."""
_LOST = -2
"""In the place of a parent: it is named, and not in the file. A record without a parent has -1."""
KEPT_SIDE = frozenset({"content-replacement"})
"""Side records that change what the model is sent, and so belong to the context."""


class Node(msgspec.Struct):
    """A record of the tree with its place."""

    start: int
    end: int
    line: ClaudeRecord
    first: bool = True
    """Whether it is the first object of its line; Claude Code itself does not see the others."""
    summary: tuple[int, int] | None = None
    """Where the `summary` record stands that belongs to this boundary."""


class Survey(msgspec.Struct):
    """The file, looked over once."""

    nodes: list[Node]
    """Everything that has a place in the tree, in the order of the file."""
    chosen: str | None = None
    """What the last `last-prompt` names."""
    chooser: tuple[int, int] | None = None
    """Where that record stands."""
    side: list[tuple[int, int]] = []
    """Where the side records stand that belong to the context."""


class Active(msgspec.Struct):
    """The conversation as it stands, as indices of nodes."""

    order: list[int]
    """In the order of the conversation."""
    passed: list[int]
    """What the path leads through without being conversation; kept so that the path can be found again."""


def context(data: bytes) -> bytes:
    """The lines of the conversation as it stands, verbatim and in the order of the file."""
    found = survey(data)
    active = choose(found)
    # A record that is left out may have been the parent of another end, which now has no child any more and would be
    # chosen; so choose again from what is left until nothing changes. Each round drops a record, hence it ends.
    while len(kept := sorted({*active.order, *active.passed})) < len(found.nodes):
        smaller = msgspec.structs.replace(found, nodes=[found.nodes[index] for index in kept])
        found, active = smaller, choose(smaller)
        if len({*active.order, *active.passed}) == len(found.nodes):
            break
    places = {(node.start, node.end) for node in found.nodes}
    places.update(node.summary for node in found.nodes if node.summary is not None)
    if any(node.line.uuid == found.chosen for node in found.nodes) and found.chooser is not None:
        places.add(found.chooser)
    if places:
        places.update(found.side)
    return b"".join(data[start:end] for start, end in sorted(places))


def survey(data: bytes) -> Survey:
    """Look over the whole file."""
    found = Survey(nodes=[], side=[])
    places: dict[str, int] = {}
    boundary: Node | None = None
    for start, end in lines(data):
        if is_overlong(end - start):
            continue
        for number, record in enumerate(_records(data[start:end])):
            if record.uuid and record.type in GRAPH and _has_substance(record):
                node = Node(start, end, record, number == 0)
                found.nodes.append(node)
                places[record.uuid] = len(found.nodes) - 1
                boundary = node if _is_boundary(record) else None
                if boundary is not None:
                    # A compaction makes the earlier choice of a branch void: the program looks behind it only.
                    found.chosen = found.chooser = None
                continue
            if record.type == "last-prompt" and record.leafUuid:
                found.chosen, found.chooser = record.leafUuid, (start, end)
            elif record.type in KEPT_SIDE:
                found.side.append((start, end))
            elif record.type == "summary" and boundary is not None:
                boundary.summary = (start, end)
            # Only the line directly behind a boundary is its summary; any other `summary` is a title.
            boundary = None
    found.nodes = [node for index, node in enumerate(found.nodes) if places[node.line.uuid or ""] == index]
    _drop_titles(found.nodes)
    return found


def choose(found: Survey) -> Active:
    """The active branch of what was surveyed."""
    tree = _Tree(found.nodes)
    path = tree.path(tree.end(found.chosen))
    return Active(order=list(tree.with_parallels(path)), passed=tree.passed(path))


class _Tree:
    """Parents by index, with every gap bridged."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.place = {node.line.uuid: index for index, node in enumerate(nodes)}
        talks = [node for node in nodes if node.line.type in ("user", "assistant")]
        self.home = bool(talks) and all(node.line.isSidechain is True for node in talks)
        """The value of `isSidechain` that this file's own conversation has."""
        self.clock: list[tuple[int, int]] | None = None
        self.raw = self._raw_parents()
        self.left: set[int] = set()
        """What a compaction that preserved something left behind; the conversation does not end there."""
        self._relink()
        self.parent = self._through_progress()
        self.speaks = self._speaking()

    def _raw_parents(self) -> list[int]:
        names = [node.line.parentUuid for node in self.nodes]
        return [-1 if name is None else self.place.get(name, _LOST) for name in names]

    def _through_progress(self) -> list[int]:
        """Parents with the progress records between left out; each stretch of them is walked once.

        Without that memory a file of a hundred thousand progress records in a row would take their square.
        """
        known: dict[int, int] = {-1: -1, _LOST: _LOST}
        for index in range(len(self.nodes)):
            trail: list[int] = []
            while index not in known and self.nodes[index].line.type == "progress":
                known[index] = -1  # closes a ring
                trail.append(index)
                index = self.raw[index]
            for passed in trail:
                known[passed] = known.get(index, index)
        return [known.get(parent, parent) for parent in self.raw]

    def _speaking(self) -> list[bool]:
        """Whether a user or assistant record stands at or above each record; each stretch is walked once."""
        known: dict[int, bool] = {-1: False, _LOST: False}
        for index in range(len(self.nodes)):
            trail: list[int] = []
            while index not in known and not self._talks(index):
                known[index] = False
                trail.append(index)
                index = self.parent[index]
            answer = known.get(index, True)
            known.update(dict.fromkeys(trail, answer))
            known[index] = answer
        return [known[index] for index in range(len(self.nodes))]

    def _relink(self) -> None:
        """Hang what the last compaction preserved behind its anchor."""
        boundary = max((i for i, node in enumerate(self.nodes) if _is_boundary(node.line)), default=-1)
        meta = self.nodes[boundary].line.compactMetadata if boundary >= 0 else None
        if meta is None:
            return
        named, kept = preserved_by(meta, lambda uuid: self.place.get(uuid, -1), self._segment)
        anchor = self.place.get(named)
        preserved = set(kept)
        # The program ignores a list with a record that is not there, is there twice, or is the anchor itself.
        if anchor is None or not kept or preserved & {-1, anchor} or len(preserved) < len(kept):
            return
        # The anchor is the summary: what was said after it now follows what was preserved, not the summary.
        for index, parent in enumerate(self.raw):
            if parent == anchor and index not in preserved:
                self.raw[index] = kept[-1]
        for before, index in zip([anchor, *kept], kept, strict=False):
            self.raw[index] = before
        self.left = set(range(boundary)) - preserved

    def _segment(self, head: str | None, tail: str | None) -> list[int]:
        found: list[int] = []
        first, index = self.place.get(head, -1), self.place.get(tail, -1)
        while index >= 0 and first >= 0 and len(found) <= len(self.nodes):
            found.append(index)
            if index == first:
                return found[::-1]
            index = self.raw[index]
        return []

    def _at_home(self, index: int) -> bool:
        line = self.nodes[index].line
        return line.type != "progress" and (line.isSidechain is True) == self.home

    def end(self, chosen: str | None) -> int:
        """Where the path begins, going backwards; -1 where there is no conversation.

        The last line does not tell: it may be a side chain's, a notice, or belong to a branch that was left."""
        # A side chain, or what a compaction left behind, does not keep a record from being the end.
        counted = (index for index in range(len(self.nodes)) if self._at_home(index) and index not in self.left)
        parents = {self.parent[index] for index in counted}
        end = -1
        for index in range(len(self.nodes) - 1, -1, -1):
            if index not in parents and self._at_home(index) and self.speaks[index] and index not in self.left:
                end = index
                break
        if end < 0:
            # In a ring everything has a child.
            end = max((i for i in range(len(self.nodes)) if self._at_home(i) and self._talks(i)), default=-1)
        named = self.place.get(chosen, -1) if chosen else -1
        if named < 0 or not self.speaks[named]:
            return end
        # What was chosen is where the last prompt was typed: a later end of the same branch has grown from it.
        return end if end >= 0 and self._leads_to(named, end) else named

    def _leads_to(self, index: int, end: int) -> bool:
        """Whether a record is on the way to the end, or belongs beside it as the result of a parallel call does."""
        path = list(self._upwards(end))[::-1]
        return index in path or any(index in beside for beside in self._beside(path)[0].values())

    def _talks(self, index: int) -> bool:
        return self.nodes[index].line.type in ("user", "assistant")

    def _upwards(self, index: int) -> Iterator[int]:
        seen: set[int] = set()
        while index >= 0 and index not in seen:
            seen.add(index)
            yield index
            index = self.parent[index]

    def path(self, end: int) -> list[int]:
        """From the root to the end."""
        found: dict[int, None] = {}
        while end >= 0 and end not in found:
            found[end] = None
            parent = self.parent[end]
            end = self._stand_in(end, found) if parent == _LOST or parent in found else parent
        return list(found)[::-1]

    def _stand_in(self, index: int, taken: Container[int]) -> int:
        """The youngest record that is not younger than this one; the first of several."""
        instant = parse_instant(self.nodes[index].line.timestamp)
        if instant is None:
            return -1
        # Few files need it, and then perhaps for every record: sorted once, searched by halving.
        if self.clock is None:
            timed = (
                (parse_instant(self.nodes[i].line.timestamp), i) for i in range(len(self.nodes)) if self._at_home(i)
            )
            self.clock = sorted((time, -i) for time, i in timed if time is not None)
        place = bisect_right(self.clock, (instant, 0))
        for time, negative in reversed(self.clock[max(0, place - _LOOKED_AT) : place]):
            if time < instant - GAP:
                break
            if -negative not in taken:
                return -negative
        return -1

    def passed(self, path: list[int]) -> list[int]:
        """The progress records between a record of the path and its parent."""
        found: list[int] = []
        seen: set[int] = set()
        for index in path:
            parent = self.raw[index]
            while parent >= 0 and self.nodes[parent].line.type == "progress" and parent not in seen:
                seen.add(parent)
                found.append(parent)
                parent = self.raw[parent]
        return found

    def with_parallels(self, path: list[int]) -> Iterator[int]:
        """The path with what stands beside it: in the order of the file, but inside its message."""
        beside, spans = self._beside(path)
        behind: dict[int, list[int]] = defaultdict(list)
        for name, (first, last) in spans.items():
            # Each goes behind the last record of its message's stretch that stands before it in the file; the path need
            # not be in the file's order. The smallest index from each place on rises: that place is found by halving.
            floors = list(accumulate(reversed(path[first : last + 1]), min))[::-1]
            for index in beside[name]:
                behind[first + max(0, bisect_left(floors, index) - 1)].append(index)
        for place, index in enumerate(path):
            yield index
            yield from sorted(behind.get(place, ()))

    def _message(self, index: int) -> str:
        line = self.nodes[index].line
        return (line.message.id or "") if line.type == "assistant" and line.message is not None else ""

    def _beside(self, path: list[int]) -> tuple[dict[str, list[int]], dict[str, tuple[int, int]]]:
        """By message id: what stands beside the path, and from where to where the message and its results reach."""
        names = {name for index in path if (name := self._message(index))}
        places = {index: place for place, index in enumerate(path)}
        # A message that a compaction cut in two keeps only its records behind the boundary.
        since = max((index for index in path if _is_boundary(self.nodes[index].line)), default=-1)
        near = [i for i in range(len(self.nodes)) if i in places or (i > since and self._at_home(i))]
        group = {index: name for index in near if (name := self._message(index)) in names}
        # In file order, so that an attachment finds the group of the result it hangs from.
        for index in near:
            if index not in group and (name := self._owner(self.nodes[index].line, index, group)):
                group[index] = name
        beside: dict[str, list[int]] = {name: [] for name in names}
        spans: dict[str, tuple[int, int]] = {}
        for index, name in sorted(group.items()):
            if (place := places.get(index)) is None:
                beside[name].append(index)
            else:
                first, last = spans.get(name, (place, place))
                spans[name] = (min(first, place), max(last, place))
        return beside, spans

    def _owner(self, line: ClaudeRecord, index: int, group: dict[int, str]) -> str:
        """The message whose call a result answers, or to whose result something was attached."""
        parent = self.parent[index]
        if line.type == "attachment":
            above = self.nodes[parent].line.type if parent >= 0 else ""
            return group.get(parent, "") if above in ("user", "attachment") else ""
        if line.type != "user" or not any(block.type == "tool_result" for block in line.blocks()):
            return ""
        return group.get(parent, "") or group.get(self.place.get(line.sourceToolAssistantUUID, -1), "")


def _has_substance(line: ClaudeRecord) -> bool:
    """A user or assistant record without content is no record of the tree."""
    if line.type not in ("user", "assistant"):
        return True
    return line.message is not None and line.message.content is not None


def _is_boundary(line: ClaudeRecord) -> bool:
    return line.type == "system" and line.subtype == "compact_boundary"


def _records(text: bytes) -> list[ClaudeRecord]:
    line = take(text)
    if line is not None:
        return [line]
    return [soften(value) for value, _, _ in read_objects(text)[0]]


def _drop_titles(nodes: list[Node]) -> None:
    """A `summary` behind a boundary is only a title where the compaction has its own summary record."""
    boundaries = {node.line.uuid: node for node in nodes if node.summary is not None}
    for node in nodes:
        if node.line.isCompactSummary is True and (boundary := boundaries.get(node.line.parentUuid)):
            boundary.summary = None


# -- what a compaction preserved ---------------------------------------------------------------------------------------

T = TypeVar("T")


def preserved_by(
    meta: Compacted, named: Callable[[str], T], between: Callable[[str | None, str | None], list[T]]
) -> tuple[str | None, list[T]]:
    """The anchor of what a compaction kept word for word, and the records: listed, or in older builds by both ends."""
    if meta.preservedMessages is not None and meta.preservedMessages.uuids:
        return meta.preservedMessages.anchorUuid, [named(uuid) for uuid in meta.preservedMessages.uuids]
    if (ends := meta.preservedSegment) is not None:
        return ends.anchorUuid, between(ends.headUuid, ends.tailUuid)
    return None, []
