"""Which folder of Gemini CLI's is a project's. Every such folder has a file that names the project's own; by it the
program finds the folder again, and writes its list anew where the list does not have it."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from harken.files import make_folder

LIST = "projects.json"
MARKER = ".project_root"
BASES = ("tmp", "history")
"""Folders in which every project has one of its own."""
_LIMIT = 16 << 20


def project_folder(home: Path, cwd: Path) -> Path:
    """The project's folder for temporary files, where its sessions lie; whether it is there or not."""
    known = _listed(home)
    listed = known.get(str(cwd))
    if listed and _is_free(home, listed, cwd):
        return home / "tmp" / listed
    for base in BASES:
        with contextlib.suppress(OSError):
            for folder in sorted((home / base).iterdir()):
                if _owner(folder) == str(cwd):
                    return home / "tmp" / folder.name
    taken, number, name = set(known.values()), 0, _short_name(cwd.name)
    candidate = name
    while candidate in taken or not _is_free(home, candidate, cwd):
        number += 1
        candidate = f"{name}-{number}"
    return home / "tmp" / candidate


def register(folder: Path, cwd: Path) -> None:
    """Say whose the folder is, unless it says so."""
    make_folder(folder)
    with contextlib.suppress(FileExistsError), (folder / MARKER).open("x", encoding="utf-8") as file:
        file.write(str(cwd))


def _short_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "project"


def _listed(home: Path) -> dict[str, str]:
    """Project to the name of its folder, as the program's list has it."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        path = home / LIST
        if path.is_file() and path.stat().st_size <= _LIMIT:
            found: Any = msgspec.json.decode(path.read_bytes())
            listed = found.get("projects") if isinstance(found, dict) else None
            if isinstance(listed, dict):
                return {key: name for key, name in listed.items() if isinstance(name, str) and _is_name(name)}
    return {}


def _is_name(name: str) -> bool:
    return bool(name) and name not in (".", "..") and os.path.basename(name) == name  # noqa: PTH119


def _owner(folder: Path) -> str:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        path = folder / MARKER
        if path.is_file() and path.stat().st_size < 1 << 16:
            return path.read_text("utf-8").strip()
    return ""


def _is_free(home: Path, name: str, cwd: Path) -> bool:
    """Whether no other project owns the folders of this name."""
    return all(_owner(home / base / name) in ("", str(cwd)) for base in BASES)
