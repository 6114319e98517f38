"""From a path or URL to a `Repo`; the one place besides the command line that looks at the environment."""

from __future__ import annotations

import os
from pathlib import Path

from harken import clock as clocks
from harken.store import open_store

from .repo import Repo


def default_location() -> Path:
    """Where the store lies unless somebody says otherwise: in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME", "")
    # The specification of these folders has relative paths ignored.
    base = Path(data) if Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "harken" / "store.db"


def open(
    path_or_url: str | os.PathLike[str] | None = None, *, create: bool = True, clock: clocks.Clock = clocks.now
) -> Repo:
    """Open the store at a path or URL; without one, the user's own.

    One that is not there is made, or with `create=False` is `NotFound`."""
    where = default_location() if path_or_url is None else path_or_url
    return Repo(open_store(where, create=create), clock=clock)
