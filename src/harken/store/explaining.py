"""What an error of SQLite means to whoever called us."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from harken.errors import BadRequest, Conflict, Corrupt, HarkenError, Locked

from . import sql

_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR}
_NO_FILE = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# A damaged file can hold text that is no text; a number too large for SQLite is the caller's.
ERRORS = (sqlite3.Error, UnicodeDecodeError, OverflowError)


def _has_room(path: str) -> bool:
    """Whether anything can still be written there: SQLite says only that a file beside the store could not be made."""
    import shutil  # loading it takes a while, and errors are few

    try:
        return shutil.disk_usage(Path(path).parent).free > 0
    except OSError:
        return True


def explain(error: Exception, path: str) -> HarkenError:
    """What an error of SQLite means to whoever called us."""
    if isinstance(error, OverflowError):
        return BadRequest("a number does not fit into 64 bits", hint="leave out what is not known")
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in _CORRUPT:
        return Corrupt(f"{path} is damaged: {error}", hint=f"`harken fsck` says what is left; {sql.PUT_BACK}")
    if code in _BUSY:
        return Locked(f"{path} is held by another program: {error}", hint="try again when it is done")
    if code == sqlite3.SQLITE_FULL or (code in _NO_FILE and not _has_room(path)):
        return HarkenError(f"no room to write {path}", hint="nothing was half written; make room and try again")
    return HarkenError(f"{path} could not be read or written: {error}", hint="look at the disk and the permissions")


def another_file(path: str) -> HarkenError:
    """What is said where another file took the place of the one that was opened: connections of before would tell of
    the old one, new ones of the new one, and pages of both together look like damage."""
    hint = "open it again; a program that goes on (`harken serve`, `harken watch`) has to be started again"
    return Conflict(f"{path} is no longer the file that was opened: another was put in its place", hint=hint)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another program holds the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY


def is_no_text(error: sqlite3.Error) -> bool:
    """Whether a damaged file holds text that is none."""
    return str(error).startswith("Could not decode to UTF-8")


def lenient(data: bytes) -> str:
    """Such a text all the same: one flipped bit must not stop every row beside it, and its own sum will not agree."""
    return data.decode("utf-8", "surrogateescape")
