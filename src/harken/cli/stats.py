"""`harken stats`: what sessions cost and what happened in them, each thing counted once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import completing, ui
from .options import SESSION, json_option, pass_repo_or_file

if TYPE_CHECKING:
    from harken.api.base import FiguresAnswer
    from harken.api.stats import StatsAnswer, StatsTotal
    from harken.repo import Repo

UNKNOWN = "?"
"""What a person is shown where nobody counted; nothing is not zero."""
WIDE = 112
"""Columns a table needs; a narrower window gets a few lines per session."""
HEADS = ("input", "output", "cache read", "written", "human", "injected", "results", "calls", "compacted", "cost")


@click.command("stats")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...", type=SESSION, shell_complete=completing.session_or_file)
@click.option("--no-agents", is_flag=True, help="Leave out the sub-agents")
@json_option
@pass_repo_or_file
def stats_command(repo: Repo, sessions: tuple[str, ...], no_agents: bool, as_json: bool) -> None:
    """Count tokens, prompts and tools, each once

    A SESSION is the id of a session in the store, or a unique beginning of one, or the file of a session; without one,
    all sessions in the store are counted, newest first. A session's figures are its own; those with its sub-agents
    stand beside them. Of several sessions there is a total, in which what a fork copied counts once. For example:

        harken stats 5b6258c8
        harken stats --json
    """
    from harken.api.stats import StatsRequest, stats

    files = tuple(word for word in sessions if Path(word).is_file())
    known = tuple(word for word in sessions if word not in files)
    found: list[StatsAnswer | StatsTotal] = []
    for one in stats(repo, StatsRequest(sessions=known, files=files, agents=not no_agents)):
        if as_json:
            ui.json_line(one)
        found.append(one)
    if not as_json:
        _draw(found)
    if not found:
        ui.note("no sessions; `harken import` imports some")


def _draw(found: Sequence[StatsAnswer | StatsTotal]) -> None:
    from harken.api.stats import StatsTotal

    rows: list[tuple[str, FiguresAnswer]] = []
    for one in found:
        if isinstance(one, StatsTotal):
            agents = f", {ui.count(one.total.agents, 'sub-agent')}" if one.total.agents else ""
            rows.append((f"total of {ui.count(one.total.sessions, 'session')}{agents}", one.total))
            continue
        rows.append((one.session, one))
        if one.carried is not None:
            rows.append(("  of these carried over", one.carried))
        rows += [("  └ " + agent.session.removeprefix(one.session + "/"), agent) for agent in one.agents]
        if one.with_agents is not None:
            rows.append(("  with its agents", one.with_agents))
    if len(rows) > 1 and ui.console().width >= WIDE:
        _draw_table(rows)
    else:
        for name, figures in rows:
            _draw_block(name, figures)
    for one in found:
        if isinstance(one, StatsTotal) and one.total.unknown_costs:
            counted = one.total.sessions + one.total.agents
            cost = one.total.cost_usd_micros
            least = f"cost at least {_money(cost)}, unknown" if cost is not None else "cost unknown"
            ui.note(f"{least} for {one.total.unknown_costs} of {counted}")


def _cells(row: FiguresAnswer) -> list[str]:
    tokens, prompts = row.usage, row.prompts
    numbers = [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write]
    numbers += [prompts.human, prompts.injected, prompts.tool_result, sum(row.tools.values()), row.compactions]
    return [*map(_number, numbers), _cost(row)]


def _draw_table(drawn: Sequence[tuple[str, FiguresAnswer]]) -> None:
    rows = [_cells(row) for _, row in drawn]
    widths = [max(len(head), *(len(row[place]) for row in rows)) for place, head in enumerate(HEADS)]
    first = max(12, min(40, ui.console().width - sum(widths) - 2 * len(widths)))
    ui.line(" " * first + "".join(f"  {head:>{width}}" for head, width in zip(HEADS, widths, strict=True)))
    for (name, _), cells in zip(drawn, rows, strict=True):
        # Of an id the beginning tells most; of a path the end.
        name = ui.one_line(name)
        short = name if len(name) <= first else "…" + name[1 - first :] if "/" in name else name[: first - 1] + "…"
        ui.line(f"{short:<{first}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True)))


def _draw_block(name: str, row: FiguresAnswer) -> None:
    inset = "    " if name.startswith(" ") else "  "
    tokens, prompts = row.usage, row.prompts
    ui.row(name, getattr(row, "title", ""))
    ui.row(f"{inset}tokens   {_number(tokens.input)} in, {_number(tokens.output)} out")
    ui.row(f"{inset}cache    {_number(tokens.cache_read)} read, {_number(tokens.cache_write)} written")
    ui.row(f"{inset}prompts  {prompts.human:,} human, {prompts.injected:,} injected")
    ui.row(f"{inset}results  {prompts.tool_result:,} of tools; {row.compactions:,} compactions")
    for tool, count in row.tools.items():
        ui.row(f"{inset}tool     {tool} {count:,}")
    ui.row(f"{inset}cost     {_cost(row)}")


def _number(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count:,}"


def _cost(row: FiguresAnswer) -> str:
    """What it cost; a total with parts that nobody knows is the least it can be."""
    partial = row.cost_usd_micros is not None and bool(getattr(row, "unknown_costs", 0))
    return ("≥ " if partial else "") + _money(row.cost_usd_micros)


def _money(micros: int | None) -> str:
    return UNKNOWN if micros is None else f"${micros / 1e6:,.4f}"
