"""Where the store lies that nobody named."""

from __future__ import annotations

import os
from pathlib import Path


def default_location() -> Path:
    """Where the store lies unless somebody says otherwise: in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME", "")
    # The specification of these folders has relative paths ignored.
    base = Path(data) if Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "harken" / "store.db"
