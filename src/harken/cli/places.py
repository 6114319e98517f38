"""Where things of Harken's own lie on this machine, from the environment: sockets and templates."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def socket_folder() -> Path:
    """Where sockets go: the user's runtime folder, else the folder for temporary files."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    return Path(given) if given and Path(given).is_dir() else Path(tempfile.gettempdir())


def template_folder() -> Path:
    """Where templates lie: `harken/templates` in the user's configuration folder."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "harken" / "templates"
