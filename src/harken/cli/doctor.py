"""`harken doctor`: is the installation whole, and does the store lie as it should?"""

from __future__ import annotations

import glob
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from . import ui
from .options import json_option

EXTRAS = {"agents": "litellm"}
SPACE = 1 << 30


class Finding(NamedTuple):
    """One thing that was looked at: `ok`, `warning` or `failure`."""

    check: str
    status: str
    detail: str
    hint: str = ""


@click.command("doctor")
@json_option
@click.pass_context
def doctor_command(ctx: click.Context, as_json: bool) -> int:
    """Look at the installation and the store, and say what is amiss

    Changes nothing. Exits with 1 where something is broken, with 0 where there are only warnings. For example:

        harken doctor
    """
    from harken.repo import default_location

    given = ctx.find_root().obj
    findings = [*_installation(), *_formats(), *_store(default_location() if given is None else given)]
    for finding in findings:
        if as_json:
            ui.json_line(finding._asdict())
        else:
            ui.line(f"{finding.status:<8} {finding.check}: {finding.detail}")
            if finding.hint:
                ui.note(f"         {finding.hint}")
    return 1 if any(finding.status == "failure" for finding in findings) else 0


def _installation() -> Iterator[Finding]:
    import importlib.util
    import platform
    import sqlite3

    from harken import __version__

    yield Finding("harken", "ok", f"{__version__} on Python {platform.python_version()}, {platform.system()}")
    yield Finding("sqlite", "ok", sqlite3.sqlite_version)
    for extra, module in EXTRAS.items():
        there = importlib.util.find_spec(module) is not None
        yield Finding(
            f"extra {extra}", "ok", "installed" if there else f"not installed (pip install 'harken[{extra}]')"
        )


def _formats() -> Iterator[Finding]:
    from harken.formats import find, names

    for name in names():
        try:
            found = find(name)
        except Exception as problem:  # noqa: BLE001  a format of somebody else may break in any way
            yield Finding(f"format {name}", "failure", f"{type(problem).__name__}: {problem}", "is it installed whole?")
            continue
        can = ", ".join(sorted(found.can)) if found else "missing"
        yield Finding(f"format {name}", "ok", can or "neither read nor write")


def _store(where: str | Path) -> Iterator[Finding]:
    from harken.errors import HarkenError
    from harken.store.opening import locate

    try:
        path = locate(where)
    except HarkenError as problem:
        yield Finding("store", "failure", str(problem), problem.hint or "")
        return
    if path is None:
        yield Finding("store", "ok", "in memory, gone with the program")
        return
    if not path.exists():
        yield Finding("store", "ok", f"{path} is not there yet; the first command that puts something in makes it")
        return
    yield Finding("store", "ok", str(path))
    yield from _modes(path)
    yield from _space(path)
    yield from _opens(path)


def _modes(path: Path) -> Iterator[Finding]:
    files = sorted(path.parent.glob(glob.escape(path.name) + "*"))
    for each, wanted in ((path.parent, 0o700), *((file, 0o600) for file in files)):
        mode = stat.S_IMODE(each.stat().st_mode)
        if mode & ~wanted:
            yield Finding(
                "permissions",
                "warning",
                f"{each} is {mode:04o}: others on this machine may get at what agents knew",
                f"chmod {wanted:o} {each}",
            )
        else:
            yield Finding("permissions", "ok", f"{each} is {mode:04o}")


def _space(path: Path) -> Iterator[Finding]:
    import shutil

    free = shutil.disk_usage(path.parent).free
    yield Finding("disk", "ok" if free > SPACE else "warning", f"{free / 1e9:.1f} GB free")


def _opens(path: Path) -> Iterator[Finding]:
    import harken
    from harken.errors import HarkenError

    try:
        with harken.open(path, create=False) as repo:
            newest = repo.store.commits(limit=1)
            sessions = len(repo.sessions())
    except HarkenError as problem:
        yield Finding("opens", "failure", str(problem), problem.hint or "`harken fsck` says more")
        return
    last = f", the last commit {newest[0].short} of {newest[0].created_at}" if newest else ""
    yield Finding("opens", "ok", f"{sessions} sessions{last}")
