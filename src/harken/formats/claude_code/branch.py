"""The conversation as it stands: which records of a file would be before the model if it were resumed now.

The file is a tree (`uuid`, `parentUuid`) with abandoned branches, side chains and the history before a compaction in
it. What Claude Code takes on `--resume` was found by experiment with the real program:

1. Records stand in the tree under their uuid; of two with the same uuid the later one counts. A parent that is not
   in the file stands for the record before this one. Progress records are passed through.
2. Messages that the last compaction preserved are hung between its anchor and what followed the anchor.
3. The end is the last record in the file without a child, unless it does not descend from the record that the last
   `last-prompt` names: then it is that record.
4. The path goes from the end to a record without a parent; never across a compaction.
5. Parallel tools leave records beside the path: those with the message id of a record on it, the results of their
   calls, and what the harness attached to those. They stand behind the first record of their message.

Side chains are left out, except in a sub-agent's own file, which has nothing else. Nothing here recurses, and a ring
of parents ends the path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from .records import GRAPH, Line, lines, read_objects, soften, take

KEPT_SIDE = frozenset({"content-replacement"})
"""Side records that change what the model is sent, and so belong to the context."""


class Node(msgspec.Struct):
    """A record of the tree with its place."""

    start: int
    end: int
    line: Line
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
    # Lines that were only in the way may have hidden an end; with them gone the answer has to be the same.
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
        for number, record in enumerate(_records(data[start:end])):
            if record.uuid and record.type in GRAPH:
                node = Node(start, end, record, number == 0)
                found.nodes.append(node)
                places[record.uuid] = len(found.nodes) - 1
                boundary = node if record.subtype == "compact_boundary" and record.type == "system" else None
                continue
            if record.type == "last-prompt" and record.leafUuid:
                found.chosen, found.chooser = record.leafUuid, (start, end)
            elif record.type in KEPT_SIDE:
                found.side.append((start, end))
            elif record.type == "summary" and boundary is not None:
                boundary.summary = (start, end)
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
        self.raw = self._raw_parents()
        self._relink()
        self.parent = self._through_progress()
        self.speaks = self._speaking()

    def _raw_parents(self) -> list[int]:
        parents: list[int] = []
        before = {True: -1, False: -1}
        for index, node in enumerate(self.nodes):
            side = node.line.isSidechain is True
            name = node.line.parentUuid
            parents.append(-1 if name is None else self.place.get(name, before[side]))
            before[side] = index
        return parents

    def _through_progress(self) -> list[int]:
        """Parents with the progress records between left out; each stretch of them is walked once."""
        known: dict[int, int] = {-1: -1}
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
        known: dict[int, bool] = {-1: False}
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
        boundary = next((n.line for n in reversed(self.nodes) if n.line.compactMetadata and _is_boundary(n.line)), None)
        last = next((n.line for n in reversed(self.nodes) if _is_boundary(n.line)), None)
        if boundary is None or boundary is not last or boundary.compactMetadata is None:
            return
        meta = boundary.compactMetadata
        if meta.preservedMessages is not None and meta.preservedMessages.uuids:
            anchor = self.place.get(meta.preservedMessages.anchorUuid)
            kept = [self.place.get(uuid, -1) for uuid in meta.preservedMessages.uuids]
        elif meta.preservedSegment is not None:
            anchor = self.place.get(meta.preservedSegment.anchorUuid)
            kept = self._segment(meta.preservedSegment.headUuid, meta.preservedSegment.tailUuid)
        else:
            return
        if anchor is None or not kept or -1 in kept or anchor in kept:
            return
        preserved = set(kept)
        for index, parent in enumerate(self.raw):
            if parent == anchor and index not in preserved:
                self.raw[index] = kept[-1]
        for before, index in zip([anchor, *kept], kept, strict=False):
            self.raw[index] = before

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
        """Where the path begins, going backwards; -1 where there is no conversation."""
        parents = {self.parent[index] for index in range(len(self.nodes)) if self._at_home(index)}
        end = -1
        for index in range(len(self.nodes) - 1, -1, -1):
            if index not in parents and self._at_home(index) and self.speaks[index]:
                end = index
                break
        named = self.place.get(chosen, -1) if chosen else -1
        if named < 0 or not self.speaks[named]:
            return end
        return end if end >= 0 and named in self._upwards(end) else named

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
        return list(self._upwards(end))[::-1]

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
        """The path, and behind the first record of each message what stands beside it."""
        beside = self._beside(path)
        done: set[str] = set()
        for index in path:
            yield index
            name = self._message(index)
            if name and name not in done:
                done.add(name)
                yield from beside.get(name, ())

    def _message(self, index: int) -> str:
        line = self.nodes[index].line
        return (line.message.id or "") if line.type == "assistant" and line.message is not None else ""

    def _beside(self, path: list[int]) -> dict[str, list[int]]:
        on_path = set(path)
        names = {name for index in path if (name := self._message(index))}
        group = {i: name for i in range(len(self.nodes)) if (name := self._message(i)) in names and self._at_home(i)}
        siblings: dict[str, list[int]] = defaultdict(list)
        for index, name in group.items():
            if index not in on_path:
                siblings[name].append(index)
        results: dict[str, list[int]] = defaultdict(list)
        owner: dict[int, str] = {}
        for index, node in enumerate(self.nodes):
            if index in on_path or not self._at_home(index):
                continue
            name = ""
            if node.line.type == "user" and any(block.type == "tool_result" for block in node.line.blocks()):
                source = self.place.get(node.line.sourceToolAssistantUUID, -1)
                name = group.get(self.parent[index], "") or group.get(source, "")
            elif node.line.type == "attachment":
                name = owner.get(self.parent[index], "")
            if name:
                owner[index] = name
                results[name].append(index)
        return {name: siblings[name] + results[name] for name in names}


def _is_boundary(line: Line) -> bool:
    return line.type == "system" and line.subtype == "compact_boundary"


def _records(text: bytes) -> list[Line]:
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
