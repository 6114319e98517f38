"""`harken summarize`: a line about each commit that has none."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import click

from . import completing, ui
from .options import REF, change_repo, json_option
from .secret_rules import own_rules

if TYPE_CHECKING:
    from harken.api.summarize import SummariesReport, SummaryAnswer
    from harken.repo import Repo

    from .watch import StopRequest


@click.command("summarize")
@click.argument("refs", nargs=-1, metavar="[REF]...", type=REF, shell_complete=completing.refs)
@click.option("--model", metavar="M", help="Ask this model (default: put together from the commit's own words)")
@click.option("--per-minute", type=click.IntRange(min=1), metavar="N", help="Ask the model at most N times a minute")
@click.option("-n", "--limit", type=click.IntRange(min=0), metavar="N", help="At most N commits, the newest first")
@click.option("--watch", is_flag=True, help="Go on as commits come; Ctrl-C stops")
@json_option
@change_repo
def summarize_command(
    repo: Repo,
    refs: tuple[str, ...],
    model: str | None,
    per_minute: int | None,
    limit: int | None,
    watch: bool,
    as_json: bool,
) -> None:
    """Write a line about each commit that has none

    With REFs, about the commits behind them; else about all in the store. The lines stand in `harken log`. A model
    never sees a secret that a rule knows; lines that were put together without one it writes anew. Each line is kept
    as soon as it is there, so stopping loses nothing, and the same command goes on with the rest. For example:

        harken summarize

        harken summarize review --model anthropic/claude-haiku-4-5 --per-minute 30
    """
    from harken.api.summarize import SummarizeRequest, SummaryAnswer, summarize

    request = SummarizeRequest(
        refs=refs, model=model or "", per_minute=per_minute, limit=limit, own_rules=own_rules(), watch=watch
    )
    if watch and not as_json:
        ui.note("watching; Ctrl-C stops")
    with _stopping(watch) as stop, ui.progress("summarizing", disable=as_json or watch) as bar:
        for one in summarize(repo, request, stop=stop, on_total=bar.begin):
            if isinstance(one, SummaryAnswer):
                bar.advance()
            _show(one, as_json=as_json)
            ui.flush()


def _stopping(watch: bool) -> AbstractContextManager[StopRequest | None]:
    """What a signal sets, while one watches; else a signal ends the command as it ends every other."""
    if not watch:
        return nullcontext()
    from .watch import stop_by_signals

    return stop_by_signals()


def _show(one: SummaryAnswer | SummariesReport, *, as_json: bool) -> None:
    from harken.api.summarize import SummaryAnswer

    if as_json:
        ui.json_line(one)
    elif not isinstance(one, SummaryAnswer):
        failed = f", {one.report.failed} could not be" if one.report.failed else ""
        ui.note(f"{ui.count(one.report.commits, 'commit')} summarized{failed}")
    elif one.summary:
        ui.row(one.short, one.summary)
    else:
        ui.warn(f"{one.short}: {one.problem}")
