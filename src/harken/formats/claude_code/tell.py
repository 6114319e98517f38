"""The conversation as it stands, as events in the order the model reads them.

A file is not in that order: what a compaction preserved stands before the summary it belongs behind, and records of
one message may have others between them. A translation into another runtime's session has to begin from this.
"""

from __future__ import annotations

from collections.abc import Iterator

from harken.events import Event

from .branch import Node, choose, survey
from .read import RecordReader
from .records import read_objects


def tell(data: bytes) -> Iterator[Event]:
    """The events of the active branch."""
    found = survey(data)
    reader = RecordReader()
    for index in choose(found).order:
        node = found.nodes[index]
        if node.first:
            yield from _events(reader, data, node)


def _events(reader: RecordReader, data: bytes, node: Node) -> Iterator[Event]:
    for start, end in ((node.start, node.end), *(() if node.summary is None else (node.summary,))):
        objects, _ = read_objects(data[start:end])
        if objects:
            value, first, last = objects[0]
            yield from reader.record(value, f"@{start + first}", data[start + first : start + last].rstrip(b"\r\n"))
