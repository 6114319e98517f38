"""What a record is called in every copy of the file: by its uuid, or by the one that it was copied from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harken.formats.kit.jsonl import is_overlong, lines, parse

FORKED = b'"forkedFrom"'


def shared_names(data: bytes) -> Callable[[str], str]:
    """From a record's name to what its copies are called too. A fork keeps the uuids; one that the SDK makes has new
    ones, and each record says which it was."""
    origins: dict[str, str] = {}
    for start, end in lines(data) if FORKED in data else ():
        if not is_overlong(end - start) and FORKED in data[start:end]:
            record: dict[str, Any] = parse(data[start:end]) or {}
            origin, name = record.get("forkedFrom"), record.get("uuid")
            if isinstance(origin, dict) and isinstance(name, str) and isinstance(origin.get("messageUuid"), str):
                origins[name] = origin["messageUuid"]
    return lambda name: "" if name.startswith("@") else origins.get(name, name)
