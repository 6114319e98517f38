"""What a record is called in every copy of the file: a fork keeps the uuids."""

from __future__ import annotations

from collections.abc import Callable


def shared_names(data: bytes) -> Callable[[str], str]:
    """From a record's name to what its copies are called too; a place in a file is no such name."""
    return lambda name: "" if name.startswith("@") else name
