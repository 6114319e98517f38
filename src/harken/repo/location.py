"""Where the store lies that nobody named."""

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


def home_folder() -> Path:
    """The user's home folder: what HOME says, or the user's account where that is not set or empty."""
    if told := os.environ.get("HOME"):
        return Path(told)
    import pwd  # almost everybody has HOME set

    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        raise NotFound("the user has no home folder", hint="set HOME; --store names a store elsewhere") from None
