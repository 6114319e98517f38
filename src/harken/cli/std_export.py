"""`harken std export`: any session as a session document."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harken.files import names_in

from . import completing, ui
from .options import CORRUPT, SESSION, is_file, json_option, pass_repo_unless_file, store_file
from .secret_rules import note_masked, own_rules
from .targets import check_target, note_file, target_folder, write_target

if TYPE_CHECKING:
    from harken.api.std_export import StdExportAnswer
    from harken.repo import Repo

SUFFIX = ".json"
FEW = 12
"""Derived values that are named one by one."""


@click.command("export")
@click.argument("session", metavar="REF|SESSION|FILE", type=SESSION, shell_complete=completing.session_or_file)
@click.option(
    "-o",
    "--output",
    metavar="FILE|DIR",
    shell_complete=completing.files,
    help="Where to write (default: stdout, also `-`); in a folder it is named by date, number and title",
)
@click.option(
    "--as",
    "kind",
    type=click.Choice(("std-001", "std-008")),
    help="Which standard (default: std-001 for at most one sub-agent, called once, and no review)",
)
@click.option("--force", is_flag=True, help="Replace a FILE that is there already")
@click.option("--reveal", is_flag=True, help="Keep secrets; without this they are masked")
@json_option
@pass_repo_unless_file
def export_command(
    repo: Repo, session: str, output: str | None, kind: str | None, force: bool, reveal: bool, as_json: bool
) -> int:
    """Write a session as a session document (STD-001 or STD-008)

    Every agent that was started is a sub-session, linked to the call that started it; what the standard has no place
    for stands in fields that begin with x_harken. What the session does not tell and had to be filled in, and what the
    document cannot hold, is said on stderr. Keys and passwords that a rule knows (`harken secrets`) are masked. With
    --json the report, and not the document, goes to stdout. For example:

        harken std export 3f2a -o data/sessions

        harken std export 3f2a --as std-008 | jq .messages

        harken std export review -o review-multi.json
    """
    from harken.api.std_export import StdExportRequest, std_export

    path = None if output in (None, "-") else Path(str(output))
    folder = None if path is None else target_folder(str(output))
    force = force and folder is None  # a name that was free belongs to whoever took it meanwhile
    if path is not None and folder is None:
        check_target(path, store_file(repo), force=force)
    place = {"file": session} if is_file(session) else {"ref": session}
    request = StdExportRequest(
        **place,
        kind=kind or "",
        reveal=reveal,
        own_rules=own_rules(),
        name=_stem(path) if path is not None and folder is None else "",
        taken=names_in(folder) if folder is not None else (),
    )
    # On a screen that shows the document a bar would stand in the middle of it.
    with ui.progress("exporting", disable=as_json or (path is None and sys.stdout.isatty())) as bar:
        answer = std_export(repo, request, moved=bar.begin)
    if folder is not None:
        path = folder / (answer.session_id + SUFFIX)
        check_target(path, store_file(repo), force=force)
    if path is not None:
        write_target(path, answer.body, force=force)
    elif not as_json:
        ui.raw(answer.body)
    if as_json:
        ui.json_line(answer)
    else:
        _remark(answer, path)
    return CORRUPT if answer.unread else 0


def _stem(path: Path) -> str:
    return path.name.removesuffix(SUFFIX)


def _remark(answer: StdExportAnswer, path: Path | None) -> None:
    if path is not None:
        ui.note(f"wrote {path}: {answer.kind}, {ui.count(answer.agents, 'sub-agent')}, {answer.status}")
        note_file(path)
    note_masked(answer.masked)
    if answer.derived:
        named = ", ".join(answer.derived[:FEW])
        more = len(answer.derived) - FEW
        ui.note(f"filled in, since the session does not tell: {named}" + (f" and {more} more" if more > 0 else ""))
    for loss in answer.losses:
        ui.note(f"lost: {loss.what} ×{loss.count}: {loss.why}")
