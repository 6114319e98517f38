"""`harken import`: sessions in, a line for each, and a report."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from harken.errors import BadRequest, HarkenError

from . import completing, ui
from .options import PATH, json_option, make_repo
from .runtimes import RuntimeName, environment, warn_of_plugins

if TYPE_CHECKING:
    from harken.api.runtimes import ImportAnswer, ImportReport
    from harken.repo import Repo


@click.command("import")
@click.argument("paths", nargs=-1, type=PATH, shell_complete=completing.files)
@click.option(
    "--runtime", "runtimes", multiple=True, type=RuntimeName("import"), metavar="R", help="Only this runtime's sessions"
)
@click.option("--verify", is_flag=True, help="Read every file from its beginning, whatever its size and time say")
@click.option("--restore", is_flag=True, help="Ask, then bring back what was forgotten of these files")
@click.option("-v", "--verbose", is_flag=True, help="Name the files that were passed over, and why")
@click.option("--dry-run", is_flag=True, help="Say what would be imported, and keep nothing")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="How many processes read at the same time (default: all cores)"
)
@click.option("--principal", default="", metavar="WHO", help="Whose sessions they are (default: <runtime>:<session>)")
@click.option("--no-index", is_flag=True, help="Leave the index to whoever searches next")
@json_option
@make_repo
def import_command(
    repo: Repo,
    paths: tuple[str, ...],
    runtimes: tuple[str, ...],
    verify: bool,
    restore: bool,
    verbose: bool,
    dry_run: bool,
    jobs: int | None,
    principal: str,
    no_index: bool,
    as_json: bool,
) -> int:
    """Take in the sessions of Claude Code, Codex and other runtimes

    Without PATHS, the homes of the runtimes are looked through. What was imported before costs a look at the file's
    size and time; one that has grown is read and compared, and what was added is parsed. Bytes come back as they were:

        harken import
        harken import ~/.claude/projects/-work-demo --json
        harken materialize SESSION --stop root --format claude-code-v1
    """
    from harken.api.runtimes import ImportReport, ImportRequest, import_sessions

    warn_of_plugins()
    request = ImportRequest(
        paths=paths,
        runtimes=runtimes,
        environ=environment(),
        verify=verify or (restore and _let_in(repo, paths)),
        dry_run=dry_run,
        details=as_json,
        jobs=jobs or os.cpu_count() or 1,
        principal=principal,
        index=not no_index,
    )
    forgotten = 0
    with ui.progress("importing", disable=as_json) as bar:
        for one in import_sessions(repo, request, on_files=bar.begin):
            if isinstance(one, ImportReport):
                report = one
            else:
                bar.advance()
                forgotten += one.status == "forgotten"
                show(one, as_json=as_json)
    warn_of_plugins()  # one may have failed meanwhile
    show_report(report, as_json=as_json, verbose=verbose)
    if forgotten and not as_json:
        ui.note(f"left forgotten: {ui.count(forgotten, 'session')} (--restore brings back)")
    return 1 if report.report.failed else 0


def _let_in(repo: Repo, paths: tuple[str, ...]) -> bool:
    """Whether there is something forgotten to bring back, and the user wants it."""
    from harken.api.forgetting import RestoreRequest, restore

    found = restore(repo, RestoreRequest(paths=paths))
    if not found.sessions:
        ui.note("nothing was forgotten of these")
        return False
    for session in found.sessions:
        ui.note(f"of session {session} something was forgotten on purpose")
    for session in found.along:
        ui.warn(f"with it, the same in session {session} is no longer kept out: its next import brings that back")
    try:
        agreed = click.confirm("Bring it back?", err=True)
    except click.Abort:  # also where nobody is there to answer
        if sys.stdin.isatty():
            raise
        told = "nothing was brought back, since nobody is there to be asked"
        raise BadRequest(told, hint="`echo y | harken import --restore` answers") from None
    if not agreed:
        ui.note("nothing was brought back")
        raise click.exceptions.Exit(1)
    restore(repo, RestoreRequest(paths=paths, yes=True))
    return True


def show(one: ImportAnswer, *, as_json: bool) -> None:
    """A line for a file: all of them in JSON, those that matter for a person."""
    error = one.error or ""
    error = error if one.source in error else f"{one.source}: {error}"
    if as_json:
        ui.json_line(one)
        if one.error and one.status != "skipped":  # for programs an error is on stderr, whichever command it is of
            ui.json_failure(HarkenError.code, error, one.hint)
    elif one.status == "skipped":
        return  # the report counts them
    elif one.error:
        ui.warn(error)
        if one.hint:
            ui.note(f"hint: {one.hint}")
    elif one.status not in ("unchanged", "forgotten"):
        status = "rewritten" if one.rewritten else one.status
        ui.row(f"{status:9} {one.session}", f"{ui.count(one.commits, 'commit')}, {ui.count(one.records, 'record')}")


def show_report(last: ImportReport, *, as_json: bool, verbose: bool = False) -> None:
    """The closing figures."""
    if as_json:
        ui.json_line(last)
        return
    report = last.report
    for passed in report.passed_over if verbose else ():
        ui.note(f"{passed.source}: {passed.why}")
    sessions, commits, records = (
        ui.count(number, noun)
        for number, noun in ((report.sessions, "session"), (report.commits, "commit"), (report.records, "record"))
    )
    agents = f" with {ui.count(report.agents, 'sub-agent')}" if report.agents else ""
    text = (
        f"{sessions}{agents} ({report.changed} new or changed): {commits}, {records} ({report.opaque} opaque), "
        f"{report.bytes / 1e6:.1f} MB in {report.seconds:.1f} s"
    )
    text += f"; {report.failed} failed" if report.failed else ""
    text += f"; {ui.count(report.skipped, 'file')} passed over" if report.skipped else ""
    ui.note(text + (" (-v names them)" if report.skipped and not verbose else ""))
    if report.unread:
        told = (f"{name} ({ui.count(count, 'file')})" for name, count in report.unread.items())
        ui.note(f"found, and not read yet: {', '.join(told)}")
    if report.index:
        ui.warn(f"the index is behind: {report.index}")
