"""From a path or a URL to a store."""

from __future__ import annotations

import os
from pathlib import Path

from harken.errors import BadRequest, NotFound

from .base import Store
from .memory import MemoryStore
from .sqlite import SqliteStore

FILE_NAME = "harken.db"
"""What the store is called inside a folder that was named instead of a file."""


def open_store(where: str | os.PathLike[str], *, create: bool = True) -> Store:
    """The store at a path, made if it is not there unless `create` forbids it. `memory:` is one that goes with the
    program.

    A folder stands for the file `harken.db` inside it; `sqlite:PATH` says the same as PATH."""
    path = locate(where)
    if path is None:
        return MemoryStore()
    if not create and not path.exists():
        raise NotFound(
            f"there is no store at {path}",
            hint="is that the place? `harken import` and `harken checkpoint` make one; --store names another",
        )
    return SqliteStore(path)


def locate(where: str | os.PathLike[str]) -> Path | None:
    """The file that the words name; None for a store in memory."""
    text = os.fspath(where)
    if text == "memory:":
        return None
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "sqlite":
        text = rest.removeprefix("//")
    elif colon and rest.startswith("//"):
        raise BadRequest(f"no store for {scheme}: addresses", hint="a path, or `memory:`")
    if not text:
        raise BadRequest("an empty path names no store", hint="a path, or `memory:`")
    path = Path(text)
    return path / FILE_NAME if path.is_dir() else path
