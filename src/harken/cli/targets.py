"""Files that a user names for what a command makes: never over the store, and over another file only when asked to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harken.errors import BadRequest, Conflict, HarkenError
from harken.files import folder_named, write_hint, write_whole

from . import ui


def check_target(path: Path, store: str, *, force: bool) -> None:
    """Refuse to write over the store, whatever is asked for, and over any other file unless that was asked for.
    A store behind a service is no file (empty)."""
    target, kept = path.resolve(), Path(store).resolve()
    # SQLite's files, the lock and the cache lie beside the store, each with its name and a word behind a hyphen.
    own = target.parent == kept.parent and (target.name == kept.name or target.name.startswith(f"{kept.name}-"))
    if store and (own or (target.exists() and kept.exists() and target.samefile(kept))):
        raise BadRequest(f"{path} is a file of the store", hint="name another file; nothing was written")
    if target.is_file() and not force:
        raise _exists(path)


def target_folder(output: str) -> Path | None:
    """The folder that was named to write into; None where a file was."""
    if not output:
        raise BadRequest("-o names no file", hint="name a file, a folder, or `-` for stdout")
    return folder_named(output)


def note_file(path: Path) -> None:
    """Say that a file was written, where a folder may have been meant."""
    if not path.suffix and path.is_file():
        ui.note(f"{path} is a file: there was no folder of that name")


def write_target(path: Path, data: bytes | Iterable[bytes], *, force: bool) -> None:
    """Put the bytes there whole or not at all; a pipe or device is just written to."""
    try:
        _put(path.resolve(), data, force=force)
    except FileExistsError:  # it came meanwhile
        raise _exists(path) from None
    except OSError as problem:
        raise _unwritten(path, problem) from None


def make_target_folder(path: Path) -> None:
    """Make a folder for files that belong to the one that was named."""
    try:
        path.mkdir()
    except OSError as problem:
        raise _unwritten(path, problem) from None


def _put(path: Path, data: bytes | Iterable[bytes], *, force: bool) -> None:
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
    else:
        write_whole(path, data, replace=force)


def _unwritten(path: Path, problem: OSError) -> HarkenError:
    return HarkenError(f"cannot write {path}: {problem.strerror or problem}", hint=write_hint(problem))


def _exists(path: Path) -> HarkenError:
    return Conflict(f"{path} exists already", hint="name a new file, or replace this one with --force")
