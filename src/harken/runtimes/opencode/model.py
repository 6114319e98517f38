"""The model with which the program goes on. Every prompt of a session names one, and the next goes to the last that was
named; where the program does not know that one, it fails. So a session from elsewhere names what the program is set to
use here: as the settings of the project say, else the user's own, else as the last session there has it."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

from harken.errors import HarkenError
from harken.formats.kit.jsonl import NotJson, parse_document
from harken.runtimes.files import open_snapshot

LIMIT = 1 << 20
DATABASE_LIMIT = 256 << 20
"""A larger database is not copied to find a name."""
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_LAST = "SELECT data FROM message WHERE json_extract(data, '$.role') = 'user' ORDER BY time_created DESC LIMIT 1"


def chosen_model(program: str, home: Path, cwd: Path, environ_home: Path) -> str:
    """`PROVIDER/MODEL`; empty where nobody has chosen one."""
    folders = [*(cwd, *cwd.parents), environ_home / ".config" / program]
    for folder in folders:
        for inside in (folder, folder / f".{program}"):
            for name in (f"{program}.json", f"{program}.jsonc", "config.json"):
                if (name != "config.json" or folder == folders[-1]) and (model := _set(inside / name)):
                    return model
    return _last_used(home / f"{program}.db")


def _set(path: Path) -> str:
    """The model that settings choose."""
    try:
        if path.stat().st_size > LIMIT:
            return ""
        text = path.read_text("utf-8")
        found = parse_document(_COMMA.sub(_kept, _COMMENT.sub(_kept, text)).encode())
    except (OSError, ValueError, NotJson, RecursionError):
        return ""
    return _name(found.get("model")) if isinstance(found, dict) else ""


def _kept(match: re.Match[str]) -> str:
    return match[1] or ""


def _name(value: Any) -> str:
    return value if isinstance(value, str) and all(value.partition("/")) else ""


def _last_used(database: Path) -> str:
    """The model of the last prompt in a database."""
    try:
        if database.stat().st_size > DATABASE_LIMIT:
            return ""
        with open_snapshot(database) as connection:
            rows = connection.execute(_LAST).fetchall()
        found = parse_document(rows[0][0].encode()) if rows else {}
        model = found.get("model", {})
        return _name(f"{model['providerID']}/{model['modelID']}")
    except (OSError, HarkenError, NotJson, sqlite3.Error, KeyError, TypeError, AttributeError):
        return ""
