"""Is the installation whole, and does the store lie as it should? Looking changes nothing."""

from __future__ import annotations

import glob
import importlib.util
import os
import platform
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harken import __version__, formats, runtimes
from harken.errors import HarkenError
from harken.runtimes.spool import odd_spools
from harken.store.opening import locate

from .location import default_location
from .repo import open

EXTRAS = {"agents": "litellm"}
LOW_SPACE = 1 << 30


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    check: str
    status: str = "ok"
    """`ok`, `warning` or `failure`."""
    detail: str
    hint: str = ""


def diagnose(location: str | os.PathLike[str] | None = None) -> Iterator[Check]:
    """Look at the installation, the formats, the runtimes and the store at that place (without one, the user's own)."""
    yield from _installation()
    yield from _formats()
    yield from _runtimes()
    yield from _store(default_location() if location is None else location)


def _installation() -> Iterator[Check]:
    system = f"Python {platform.python_version()}, {platform.system()}"
    yield Check(check="harken", detail=f"{__version__} on {system}")
    yield Check(check="sqlite", detail=sqlite3.sqlite_version)
    for extra, module in EXTRAS.items():
        there = importlib.util.find_spec(module) is not None
        detail = "installed" if there else f"not installed (`pip install '.[{extra}]'` in a clone of Harken)"
        yield Check(check=f"extra {extra}", detail=detail)


def _formats() -> Iterator[Check]:
    for name in formats.names():
        if why := formats.problem(name):
            yield Check(check=f"format {name}", status="failure", detail=why, hint="install it again, or remove it")
            continue
        found = formats.find(name)
        can = ", ".join(sorted(found.can)) if found else "missing"
        yield Check(check=f"format {name}", detail=can or "neither read nor write")


def _runtimes() -> Iterator[Check]:
    for name in runtimes.names():
        yield Check(check=f"runtime {name}", detail=", ".join(sorted(runtimes.get(name).can)))
    for problem in runtimes.problems():
        why = f"{problem.package}: {problem.reason}"
        yield Check(
            check=f"runtime {problem.name}", status="failure", detail=why, hint="install it again, or remove it"
        )


def _store(where: str | os.PathLike[str]) -> Iterator[Check]:
    try:
        path = locate(where)
    except HarkenError as problem:
        yield Check(check="store", status="failure", detail=str(problem), hint=problem.hint or "")
        return
    if path is None:
        yield Check(check="store", detail="in memory, gone with the program")
    elif not path.exists():
        yield Check(check="store", detail=f"{path} is not there yet; the first command that writes makes it")
    else:
        yield Check(check="store", detail=str(path))
        yield from _modes(path)
        yield from _space(path)
        yield from _opens(path)


def _modes(path: Path) -> Iterator[Check]:
    odd = odd_spools(path)
    for each in odd:
        detail = f"{each} is no file, so it holds nothing of a run"
        hint = "the next command that writes gives it another name; or remove it"
        yield Check(check="spool", status="warning", detail=detail, hint=hint)
    files = sorted({*path.parent.glob(glob.escape(path.name) + "*")} - {path.parent / each.name for each in odd})
    for each in (path.parent, *files):
        try:
            facts = each.stat()
        except FileNotFoundError:  # gone meanwhile, or a link to nothing
            continue
        mode, wanted = stat.S_IMODE(facts.st_mode), 0o700 if stat.S_ISDIR(facts.st_mode) else 0o600
        if each == path.parent and not _is_ours(each, path):
            # Others need it as it is, and the files' own modes keep them out.
            yield Check(check="permissions", detail=f"{each} has mode {mode:04o} and is not the store's alone")
            continue
        if mode & ~wanted:
            detail = f"{each} has mode {mode:04o}: others on this machine may read what agents knew"
            yield Check(check="permissions", status="warning", detail=detail, hint=f"chmod {wanted:o} {each}")
        else:
            yield Check(check="permissions", detail=f"{each} has mode {mode:04o}")


def _is_ours(folder: Path, store: Path) -> bool:
    """Whether a folder is there for the store: its owner's, without the sticky bit of /tmp, with nothing else in it."""
    facts = folder.stat()
    if facts.st_uid != store.stat().st_uid or facts.st_mode & stat.S_ISVTX:
        return False
    return all(each.name.startswith(store.name) for each in folder.iterdir())


def _space(path: Path) -> Iterator[Check]:
    free = shutil.disk_usage(path.parent).free
    status = "ok" if free > LOW_SPACE else "warning"
    yield Check(check="disk", status=status, detail=f"{free / 1e9:.1f} GB free")


def _opens(path: Path) -> Iterator[Check]:
    try:
        with open(path, create=False) as repo:
            newest = repo.store.commits(limit=1)
            sessions = len(repo.sessions())
    except HarkenError as problem:
        hint = problem.hint or "`harken fsck` says more"
        yield Check(check="opens", status="failure", detail=str(problem), hint=hint)
        return
    last = f", the last commit {newest[0].short} of {newest[0].created_at}" if newest else ""
    yield Check(check="opens", detail=f"{sessions} sessions{last}")
