"""`harken sql`: a question to the index, and its rows as a table, as JSON or as CSV."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from . import ui
from .options import json_option, pass_repo
from .wholeness import tell_what_is_missing

if TYPE_CHECKING:
    from harken.api.sql import SqlAnswer
    from harken.repo import Repo

NARROWEST = 8
"""Columns of the window that a column of the table keeps when the window is too narrow for all of them."""
GAP = "  "


def _views(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """With --schema, the views."""
    from harken.api.sql import SqlSchemaRequest, sql_schema

    found = sql_schema(None, SqlSchemaRequest()) if ctx.params.get("schema") else ()
    return [CompletionItem(view.name, help=view.meaning) for view in found if view.name.startswith(incomplete)]


@click.command("sql")
@click.argument("query", default="", shell_complete=_views)
@click.option("--schema", is_flag=True, help="List the views and their columns, or those of the view QUERY")
@click.option("--csv", "as_csv", is_flag=True, help="Print rows as comma-separated values, with a line of names")
@click.option("-n", "rows", type=click.IntRange(min=1), default=1000, show_default=True, help="Give at most N rows")
@click.option(
    "--seconds", type=click.FloatRange(min=0.001), default=10.0, show_default=True, help="Stop it after so long"
)
@click.option(
    "--memory",
    "megabytes",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    help="Stop it beyond so many MB",
)
@json_option
@click.pass_context
def sql_command(ctx: click.Context, /, query: str, schema: bool, **settings: Any) -> None:
    """Ask the index a question in SQL

    A query reads documented views (--schema lists them) and can change nothing. `-` reads it from stdin. SQL is that of
    SQLite; times are text in UTC, which its date functions take; docs/guides/sql.md has examples.

        harken sql 'SELECT project, sum(cost) FROM daily GROUP BY project ORDER BY 2 DESC'
        harken sql --schema calls
        harken sql --csv 'SELECT * FROM sessions' > sessions.csv
    """
    if schema:
        _show_schema(query, as_json=settings["as_json"])
    else:
        ctx.invoke(_ask, query=sys.stdin.read() if query == "-" else query, **settings)


@pass_repo
def _ask(repo: Repo, query: str, as_csv: bool, rows: int, seconds: float, megabytes: int, as_json: bool) -> None:
    from harken.api.sql import SqlRequest, sql

    from .config import prices

    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")
    request = SqlRequest(query=query, seconds=seconds, rows=rows, megabytes=megabytes, prices=prices() or "")
    answer = sql(repo, request)
    if as_json:
        for row in answer.rows:
            ui.json_line(dict(zip(answer.columns, row, strict=True)))
    elif as_csv:
        _show_csv(answer)
    else:
        _show_table(answer)
    if answer.more:
        ui.note(f"these are the first {rows:,} rows; -n gives more")
    tell_what_is_missing(
        behind=answer.behind, stale=answer.stale, missing=answer.missing, damaged=answer.damaged, problem=answer.problem
    )


def _show_csv(answer: SqlAnswer) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows(answer.rows)
    if ui.is_terminal():
        ui.block(text.getvalue().removesuffix("\n"))
    else:
        ui.raw(text.getvalue().encode())


def _show_table(answer: SqlAnswer) -> None:
    """The rows under the names of their columns; numbers are set to the right."""
    cells = [[_cell(value) for value in row] for row in answer.rows]
    names = [ui.one_line(name) for name in answer.columns]
    numeric = [
        any(value is not None for value in values)
        and all(value is None or isinstance(value, (int, float)) for value in values)
        for values in (tuple(row[at] for row in answer.rows) for at in range(len(names)))
    ]
    widths = _fitting([max(map(ui.columns, column)) for column in zip(names, *cells, strict=True)], ui.width())
    for row in [names, *cells]:
        parts = [ui.padded(text, wide, right=right) for text, wide, right in zip(row, widths, numeric, strict=True)]
        ui.line(GAP.join(parts).rstrip())
    if not cells:
        ui.note("no rows")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return ui.one_line(f"{value:.6g}" if isinstance(value, float) else str(value))


def _fitting(widths: Sequence[int], window: int) -> list[int]:
    """The widths of columns, the widest made narrower until all of them fit into the window (0 for none)."""
    fitted = list(widths)
    over = sum(fitted) + len(GAP) * (len(fitted) - 1) - window if window else 0
    while over > 0 and max(fitted) > NARROWEST:
        widest = fitted.index(max(fitted))
        second = max([one for at, one in enumerate(fitted) if at != widest], default=0)
        cut = min(over, max(1, fitted[widest] - max(second, NARROWEST)))
        fitted[widest] -= cut
        over -= cut
    return fitted


def _show_schema(name: str, *, as_json: bool) -> None:
    from harken.api.sql import SqlSchemaRequest, sql_schema

    for number, view in enumerate(sql_schema(None, SqlSchemaRequest(name=name))):
        if as_json:
            ui.json_line(view)
            continue
        if number:
            ui.line()
        ui.block(f"{view.name}: {view.meaning}")
        wide = max(len(column.name) for column in view.columns)
        for column in view.columns:
            ui.row(f"  {column.name:<{wide}}", f"{column.type:<7}", column.meaning)
