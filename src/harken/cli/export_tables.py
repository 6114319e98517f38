"""`harken export --to parquet`: the views of the index, as files for larger engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import ui
from .options import pass_repo
from .secret_rules import note_masked, own_rules
from .wholeness import tell_what_is_missing

if TYPE_CHECKING:
    from harken.repo import Repo


@pass_repo
def export_tables(
    repo: Repo, folder: str, output: str | None, force: bool, with_agents: bool, reveal: bool, as_json: bool
) -> None:
    """Write the files, and a line for each."""
    from harken.api.parquet import ExportParquetRequest, ParquetReport, export_parquet

    from .config import prices

    if output is not None:
        raise click.UsageError("the folder is named without -o: `harken export --to parquet DIR`")
    if not with_agents:
        raise click.UsageError("--no-agents is for a session; a table has all of them")
    request = ExportParquetRequest(
        folder=folder, reveal=reveal, own_rules=own_rules(), replace=force, prices=prices() or ""
    )
    for one in export_parquet(repo, request):
        if as_json:
            ui.json_line(one)
        elif isinstance(one, ParquetReport):
            note_masked(one.report.masked)
        if isinstance(one, ParquetReport):
            told = one.report
            tell_what_is_missing(behind=0, missing=told.missing, damaged=told.damaged, quiet=as_json)
        elif not as_json:
            ui.row(f"{one.rows:>10,} {'row' if one.rows == 1 else 'rows'}", one.path)
