"""Where the store lies: the one that nobody named, and a named one for somebody in another folder."""

from __future__ import annotations

import os
from pathlib import Path

from harken.errors import NotFound


def default_location() -> Path:
    """Where the store lies unless somebody says otherwise: in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME", "")
    # The specification of these folders has relative paths ignored.
    base = Path(data) if Path(data).is_absolute() else home_folder() / ".local" / "share"
    return base / "harken" / "store.db"


SERVICES = ("http://", "https://", "unix:", "harken+unix:")
"""How the address of a service begins."""


def is_service(where: object) -> bool:
    """Whether this names a service (`harken serve`) that has the store, and not the store itself."""
    return isinstance(where, str) and where.startswith(SERVICES)


def absolute_location(where: str) -> str:
    """A store's path or URL, as somebody in another folder has to name it."""
    from harken.store.opening import locate

    if is_service(where):
        return where
    path = locate(where)
    return where if path is None else str(path.absolute())


def home_folder() -> Path:
    """The user's home folder: what HOME says, or the user's account where that is not set or empty."""
    if told := os.environ.get("HOME"):
        return Path(told)
    import pwd  # almost everybody has HOME set

    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        raise NotFound("the user has no home folder", hint="set HOME; --store names a store elsewhere") from None
