"""From a path or a URL to a store."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from harken.errors import BadRequest, HarkenError, NotFound

from .base import Store
from .memory import MemoryStore
from .sqlite import SqliteStore

FILE_NAME = "harken.db"
"""What the store is called inside a folder that was named instead of a file."""

GROUP = "harken.stores"
"""The entry-point group of other kinds of store: the name is the scheme, the value a function that takes the URL and
`create`, and gives a `Store`."""

MEMORY = "memory:"
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(?!\\)")


def open_store(where: str | os.PathLike[str], *, create: bool = True) -> Store:
    """The store at a path, made if it is not there unless `create` forbids it.

    A folder stands for the file `harken.db` inside it; `sqlite:PATH` says the same as PATH. `memory:` is a store that
    goes with the program. Other schemes come from plug-ins."""
    path = locate(where)
    if path is None:
        text = os.fspath(where)
        return MemoryStore() if text == MEMORY else _plugin(_scheme(text))(text, create=create)
    if not create and not path.exists():
        raise NotFound(
            f"there is no store at {path}",
            hint="is that the place? `harken import` and `harken checkpoint` make one; --store names another",
        )
    return SqliteStore(path)


def locate(where: str | os.PathLike[str]) -> Path | None:
    """The file that the words name; None for a store that is in no file of ours."""
    text = os.fspath(where)
    scheme = _scheme(text)
    # Plug-ins are looked for only where there is a scheme: that takes longer than all the rest.
    if text == MEMORY or (scheme and scheme != "sqlite" and scheme in _plugins()):
        return None
    if scheme == "sqlite":
        text = text.removeprefix("sqlite:").removeprefix("//")
    elif text.startswith(f"{scheme}://"):
        raise BadRequest(f"no store for {scheme}: addresses", hint=f"a path, {_known()}")
    if not text:
        raise BadRequest("an empty path names no store", hint=f"a path, {_known()}")
    path = Path(text)
    return path / FILE_NAME if path.is_dir() else path


def _scheme(text: str) -> str:
    """What stands before the colon; empty where it cannot be a scheme, or where there is a file of that name."""
    found = _SCHEME.match(text)
    return found[1] if found and not Path(text).exists() else ""


def _plugins() -> set[str]:
    from importlib.metadata import entry_points

    return {entry.name for entry in entry_points(group=GROUP)}


def _plugin(scheme: str) -> Callable[..., Store]:
    """The function that opens stores of this scheme."""
    from importlib.metadata import entry_points

    (entry, *_) = entry_points(group=GROUP, name=scheme)
    try:
        opener: Callable[..., Store] = entry.load()
    except Exception as error:
        raise HarkenError(
            f"the plug-in for {scheme}: addresses cannot be loaded: {error}", hint=f"it is {entry.value}"
        ) from error
    return opener


def _known() -> str:
    return "or one of " + ", ".join(f"`{name}:`" for name in ("memory", "sqlite", *sorted(_plugins())))
