"""Where things lie on this machine, from the environment: the runtimes' homes, sockets, templates."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def environment() -> dict[str, str]:
    """The environment, with a home folder in it even where only the user's account has one."""
    return {"HOME": str(Path.home()), **os.environ}


def runtime_home(runtime: str, given: Path | None) -> tuple[Path, bool]:
    """The folder in which a runtime keeps its sessions, and whether it would look there by itself."""
    from harken.runtimes.instantiate import claude_config, codex_home

    variable, name = ("CLAUDE_CONFIG_DIR", ".claude") if runtime == "claude-code" else ("CODEX_HOME", ".codex")
    usual = Path(os.environ.get(variable) or Path.home() / name)
    if given is None:
        return usual, True
    home = claude_config(given) if runtime == "claude-code" else codex_home(given)
    return home.absolute(), home.absolute() == usual.absolute()


def socket_folder() -> Path:
    """Where sockets go: the user's runtime folder, else the folder for temporary files."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    return Path(given) if given and Path(given).is_dir() else Path(tempfile.gettempdir())


def template_folder() -> Path:
    """Where templates lie: `harken/templates` in the user's configuration folder."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "harken" / "templates"
