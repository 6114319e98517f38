"""The document of a trajectory: what its fields are called, and what is made of values that are not what they should
be. Everything beyond the format's own fields that Harken says stands under `extra`, in an object of its name."""

from __future__ import annotations

from typing import Any

from harken.formats.kit.jsonl import BOM, SPACE, NotJson, Record, parse_document

VERSION = "ATIF-v1.8"
"""The version that is written."""
PREFIX = "ATIF-v"
OWN = "harken"
"""The key under `extra` with what the format has no field for."""
SUBAGENTS = "subagent_trajectories"
CACHE_WRITE = "cache_creation_input_tokens"
"""What went into the cache, under `extra` of the metrics: by the format it is a part of the prompt like any other."""
BETWEEN = "\n\n"
"""What stands between thoughts that are written as one text."""
PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
SOUNDS = (
    "audio/wav", "audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg", "audio/flac", "audio/webm", "audio/aiff",
)  # fmt: skip
COMPACTION = {"type": "compaction", "boundary": "replace"}
"""What `extra.context_management` of a system step says where a summary takes the place of what was said before."""


def load(data: bytes) -> tuple[Record | None, str]:
    """The trajectory, or why the bytes are none."""
    if not data.strip(SPACE + BOM):
        return None, ""
    try:
        value = parse_document(data)
    except NotJson as problem:
        return None, f"not a trajectory: {problem}"
    if not isinstance(value, dict) or not isinstance(value.get("steps"), list):
        return None, "a trajectory is an object with steps"
    return value, ""


def is_version(value: object) -> bool:
    """Whether a document that says this of its version is a trajectory."""
    return isinstance(value, str) and value.startswith(PREFIX)


def items(record: Record, key: str) -> list[Any]:
    """The list there; empty where there is none."""
    value = record.get(key)
    return value if isinstance(value, list) else []


def inner(record: Record, key: str) -> Record:
    """The object there; empty where there is none."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def own(record: Record) -> Record:
    """What Harken said besides, of a step, a call or a result."""
    return inner(inner(record, "extra"), OWN)
