"""`harken import`: sessions in, a line for each, and a report."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harken import clock
from harken.errors import HarkenError

from . import ui
from .commits import figures_line
from .options import json_option, make_repo
from .runtimes import RuntimeName, all_runtimes, environment

if TYPE_CHECKING:
    from harken.repo import Repo
    from harken.runtimes import Runtime
    from harken.runtimes.files import Unreadable
    from harken.runtimes.memory import ImportResult


def starting_points(paths: tuple[str, ...], chosen: list[Runtime]) -> list[Path]:
    """The paths given, else the home of each runtime, as far as it is there."""
    if paths:
        return [Path(path).absolute() for path in paths]
    roots = (root for runtime in chosen for root in runtime.roots(runtime.home(environment())))
    return [root for root in dict.fromkeys(roots) if _is_there(root)]


def _is_there(root: Path) -> bool:
    """Whether there is a folder or a file to look at; that it cannot be looked at is told when it is tried."""
    try:
        mode = root.stat().st_mode
        return stat.S_ISDIR(mode) or stat.S_ISREG(mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def session_files(points: list[Path], chosen: list[Any]) -> Iterator[Path | Unreadable]:
    """Every session file at or below the starting points, those of a folder before those of the folders in it."""
    from harken.runtimes.files import walk

    suffixes = tuple(sorted({suffix for runtime in chosen for suffix in runtime.read.suffixes}))
    for point in points:
        yield from walk(point, suffixes)


def line_of(outcome: ImportResult) -> dict[str, Any]:
    """The JSON line other programs rely on."""
    from harken.ids import commit_ref

    keys = ("session", "runtime", "source", "status", "agents", "commits", "records", "opaque", "bytes")
    totals = ("total_commits", "total_records", "total_opaque", "total_bytes")
    line = {key: getattr(outcome, key) for key in keys + totals} | figures_line(outcome.figures)
    if outcome.status == "rewritten":
        # To a program that waits for changes it grew; the old end is still there as SESSION~1.
        line |= {"status": "grown", "rewritten": True}
    line["tip"] = commit_ref(outcome.tip) if outcome.tip else ""
    for key in ("parent", "error"):
        if value := getattr(outcome, key):
            line[key] = value
    if outcome.forked_from:
        line["forked_from"] = commit_ref(outcome.forked_from)
    return line


class Report:
    """The closing figures."""

    def __init__(self) -> None:
        self.started = clock.monotonic()
        self.sessions = self.commits = self.records = self.opaque = self.bytes = self.failed = self.skipped = 0
        self.changed = 0
        self.passed_over: list[tuple[str, str]] = []

    def add(self, outcome: ImportResult) -> None:
        """Count one file."""
        if outcome.status == "failed":
            self.failed += 1
        elif outcome.status == "skipped":
            self.skipped += 1
            self.passed_over.append((outcome.source, outcome.error))
        else:
            self.sessions += 1
            self.changed += outcome.status != "unchanged"
        self.commits += outcome.commits
        self.records += outcome.records
        self.opaque += outcome.opaque
        self.bytes += outcome.bytes

    def values(self) -> dict[str, Any]:
        """As a plain value."""
        keys = ("sessions", "changed", "commits", "records", "opaque", "bytes", "failed", "skipped")
        return {
            **{key: getattr(self, key) for key in keys},
            "seconds": round(clock.monotonic() - self.started, 3),
            "passed_over": [{"source": source, "why": why} for source, why in self.passed_over],
        }

    def sentence(self) -> str:
        """For a person."""
        seconds = clock.monotonic() - self.started
        text = (
            f"{self.sessions} sessions ({self.changed} new or changed): {self.commits} commits, "
            f"{self.records} records ({self.opaque} opaque), {self.bytes / 1e6:.1f} MB in {seconds:.1f} s"
        )
        text += f"; {self.failed} failed" if self.failed else ""
        return text + (f"; {self.skipped} files passed over (-v names them)" if self.skipped else "")


@click.command("import")
@click.argument("paths", nargs=-1, type=click.Path())
@click.option(
    "--runtime", "runtimes", multiple=True, type=RuntimeName("import"), metavar="R", help="Only this runtime's sessions"
)
@click.option("--verify", is_flag=True, help="Read every file from its beginning, whatever its size and time say")
@click.option("-v", "--verbose", is_flag=True, help="Name the files that were passed over, and why")
@click.option("--dry-run", is_flag=True, help="Say what would be imported, and keep nothing")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="How many processes read at the same time (default: all cores)"
)
@click.option("--principal", metavar="WHO", help="Whose sessions they are (default: <runtime>:<session>)")
@json_option
@make_repo
def import_command(
    repo: Repo,
    paths: tuple[str, ...],
    runtimes: tuple[Runtime, ...],
    verify: bool,
    verbose: bool,
    dry_run: bool,
    jobs: int | None,
    principal: str | None,
    as_json: bool,
) -> int:
    """Take in the sessions of Claude Code, Codex and other runtimes

    Without PATHS, the homes of the runtimes are looked through. What was imported before costs a look at the file's
    size and time; a file that has grown costs what was added. Bytes are kept as they are, and come back as they were:

        harken import
        harken import ~/.claude/projects/-work-demo --json
        harken materialize SESSION --stop root --format claude-code-v1
    """
    from harken.runtimes.importer import Importer

    chosen = list(runtimes) or all_runtimes()
    points = starting_points(paths, chosen)
    if not points:
        raise HarkenError("no runtime has left sessions here", hint="name a file or a folder: `harken import PATH`")
    report = Report()
    importer = Importer(
        repo.store,
        chosen,
        verify=verify,
        dry_run=dry_run,
        details=as_json,
        jobs=jobs or os.cpu_count() or 1,
        principal=principal or "",
        now=repo.clock,
    )
    files = list(session_files(points, chosen))
    with ui.progress("importing", len(files), disable=as_json) as advance:
        named = bool(paths) and all(Path(path).is_file() for path in paths)
        for outcome in importer.run(files, named=named):
            report.add(outcome)
            advance()
            show(outcome, as_json=as_json, verbose=verbose)
    if as_json:
        ui.json_line({"report": report.values()})
    else:
        ui.note(report.sentence())
    return 1 if report.failed else 0


def show(outcome: ImportResult, *, as_json: bool, verbose: bool = False) -> None:
    """A line for a file: all of them in JSON, those that matter for a person."""
    if as_json:
        if outcome.status != "skipped":
            ui.json_line(line_of(outcome))
    elif outcome.status == "failed" or (outcome.status == "skipped" and verbose):
        ui.warn(f"{outcome.source}: {outcome.error}" if outcome.source not in outcome.error else outcome.error)
    elif outcome.status not in ("unchanged", "skipped"):
        ui.line(f"{outcome.status:9} {outcome.session}  {outcome.commits} commits, {outcome.records} records")
