"""From a path or a URL to a store."""

from __future__ import annotations

import os
from pathlib import Path

from harken.errors import BadRequest

from .base import Store
from .memory import MemoryStore
from .sqlite import SqliteStore

FILE_NAME = "harken.db"
"""What the store is called inside a folder that was named instead of a file."""


def open_store(where: str | os.PathLike[str]) -> Store:
    """The store at a path, made if it is not there. `memory:` is one that goes with the program.

    A folder stands for the file `harken.db` inside it; `sqlite:PATH` says the same as PATH."""
    text = os.fspath(where)
    if text == "memory:":
        return MemoryStore()
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "sqlite":
        text = rest.removeprefix("//")
    elif colon and rest.startswith("//"):
        raise BadRequest(f"no store for {scheme}: addresses", hint="a path, or `memory:`")
    path = Path(text)
    return SqliteStore(path / FILE_NAME if path.is_dir() else path)
