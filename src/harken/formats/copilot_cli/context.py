"""The conversation of a session as it stands: its lines, verbatim and in order.

What sub-agents did, and the side chain in which the program tells of its own requests, is no part of it. A compaction
that took place leaves what people said before it (the program repeats that to its model) and itself; a cleared context
leaves nothing before it; a rewind takes back what it names. Of pictures those stay that are named by a line that does.
"""

from __future__ import annotations

from harken.formats.kit.jsonl import Record

from .records import (
    ASSET,
    CLEARED,
    COMPACTED,
    PROMPT,
    REWOUND,
    START,
    CopilotLine,
    agent_of,
    applied,
    content_of,
    iter_lines,
    kind_of,
    text_of,
)

_SIDE = "model."
"""How the types of events begin in which the program tells of its own requests."""


def context(data: bytes) -> bytes:
    """The lines of the conversation as it stands. Of one agent's lines alone: all of them."""
    kept: list[CopilotLine] = []
    found = [line for line in iter_lines(data) if line.record is not None]
    alone = all(agent_of(_record(line)) for line in found)
    for line in found:
        record = _record(line)
        kind = kind_of(record)
        if (agent_of(record) and not alone) or kind.startswith(_SIDE):
            continue
        if kind == REWOUND:
            kept = _rewound(kept, content_of(record))
            continue
        if kind == CLEARED:
            kept = [one for one in kept if kind_of(_record(one)) in (START, ASSET)]
        elif kind == COMPACTED and applied(content_of(record)):
            kept = [one for one in kept if kind_of(_record(one)) in (START, ASSET) or _is_typed(_record(one))]
        kept.append(line)
    named = {name for line in kept for name in _assets(_record(line))}
    return b"".join(
        data[line.start : line.end]
        for line in kept
        if kind_of(_record(line)) != ASSET or text_of(content_of(_record(line)).get("assetId")) in named
    )


def _record(line: CopilotLine) -> Record:
    return line.record or {}


def _is_typed(record: Record) -> bool:
    """Whether a person said it."""
    return kind_of(record) == PROMPT and not content_of(record).get("source")


def _rewound(kept: list[CopilotLine], data: Record) -> list[CopilotLine]:
    """What is left when a person goes back."""
    listed, first = data.get("eventIds"), data.get("upToEventId")
    if isinstance(listed, list):
        gone = {name for name in listed if isinstance(name, str)}
        return [line for line in kept if _record(line).get("id") not in gone]
    at = next((at for at, line in enumerate(kept) if _record(line).get("id") == first), len(kept))
    return kept[:at]


def _assets(record: Record) -> list[str]:
    """The pictures that a line names."""
    data = content_of(record)
    result = data.get("result")
    lists = (data.get("attachments"), result.get("binaryResultsForLlm") if isinstance(result, dict) else None)
    parts = [part for found in lists if isinstance(found, list) for part in found if isinstance(part, dict)]
    return [name for part in parts if isinstance(name := part.get("assetId"), str)]
