"""`harken stats`: what sessions cost and what happened in them, each thing counted once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from harken.errors import Corrupt, Evicted

from . import completing, ui
from .options import SESSION, is_there, json_option, pass_repo_or_file

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

    A SESSION is the id of a session in the store, or a unique beginning of one, at least four characters, or the
    file of a session (sub-agents whose files lie beside it are counted along); without one, all sessions in the store
    are counted, newest first. A session's figures are its own, of every version of it, each record once; those with
    its sub-agents stand beside them. Of several sessions there is a total, in which what a fork copied counts once.
    For example:

        harken stats 5b6258c8
        harken stats --json
    """
    from harken.api.stats import StatsRequest, stats

    files = tuple(word for word in sessions if is_there(word) and Path(word).is_file())
    known = tuple(word for word in sessions if word not in files)
    found: list[StatsAnswer | StatsTotal] = []
    try:
        for one in stats(repo, StatsRequest(sessions=known, files=files, agents=not no_agents)):
            if as_json:
                ui.json_line(one)
            found.append(one)
    except (Corrupt, Evicted):  # told when the others have been
        if not as_json:
            _draw(found)
        raise
    if not as_json:
        _draw(found)
    if not found:
        ui.note("no sessions; `harken import` imports some")


class StatsLine(NamedTuple):
    """What is drawn: a session, an agent or several together."""

    name: str
    figures: FiguresAnswer
    counted: int = 1
    """How many sessions and agents are in it."""
    unknown: int = 0
    """Of how many of these nobody knows the cost."""

    @property
    def cost(self) -> str:
        """What it cost; where parts are unknown, the least it can be."""
        cost = self.figures.cost_usd_micros
        return (">= " if self.unknown and cost is not None else "") + _money(cost)


def _draw(found: Sequence[StatsAnswer | StatsTotal]) -> None:
    lines = [line for one in found for line in _lines(one)]
    if len(lines) > 1 and ui.console().width >= WIDE:
        _draw_table(lines)
    else:
        for line in lines:
            _draw_block(line)
    for line in lines[-1:]:
        if line.unknown and line.counted > 1:
            least = (
                "unknown"
                if line.figures.cost_usd_micros is None
                else f"at least {_money(line.figures.cost_usd_micros)}"
            )
            ui.row(f"cost {least}, unknown for {line.unknown} of {line.counted}")


def _lines(one: StatsAnswer | StatsTotal) -> Iterator[StatsLine]:
    from harken.api.stats import StatsTotal

    if isinstance(one, StatsTotal):
        total = one.total
        agents = f", {ui.count(total.agents, 'sub-agent')}" if total.agents else ""
        name = f"total of {ui.count(total.sessions, 'session')}{agents}"
        yield StatsLine(name, total, total.sessions + total.agents, total.unknown_costs)
        return
    yield StatsLine(one.session, one)
    if one.carried is not None:
        yield StatsLine("  of these carried over", one.carried)
    for agent in one.agents:
        yield StatsLine("  └ " + agent.session.removeprefix(one.session + "/"), agent)
    if one.with_agents is not None:
        yield StatsLine("  with its agents", one.with_agents, 1 + len(one.agents), one.unknown_costs)


def _cells(line: StatsLine) -> list[str]:
    row = line.figures
    tokens, prompts = row.usage, row.prompts
    numbers = [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write]
    numbers += [prompts.human, prompts.injected, prompts.tool_result, sum(row.tools.values()), row.compactions]
    return [*map(_number, numbers), line.cost]


def _draw_table(drawn: Sequence[StatsLine]) -> None:
    rows = [_cells(line) for line in drawn]
    widths = [max(len(head), *(len(row[place]) for row in rows)) for place, head in enumerate(HEADS)]
    first = max(12, min(40, ui.console().width - sum(widths) - 2 * len(widths)))
    ui.line(" " * first + "".join(f"  {head:>{width}}" for head, width in zip(HEADS, widths, strict=True)))
    for line, cells in zip(drawn, rows, strict=True):
        # Of an id the beginning tells most; of a path the end.
        name = ui.one_line(line.name)
        short = name if len(name) <= first else "…" + name[1 - first :] if "/" in name else name[: first - 1] + "…"
        ui.line(f"{short:<{first}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True)))


def _draw_block(line: StatsLine) -> None:
    name, row = line.name, line.figures
    inset = "    " if name.startswith(" ") else "  "
    tokens, prompts = row.usage, row.prompts
    ui.row(name, getattr(row, "title", ""))
    ui.row(f"{inset}tokens   {_number(tokens.input)} in, {_number(tokens.output)} out")
    ui.row(f"{inset}cache    {_number(tokens.cache_read)} read, {_number(tokens.cache_write)} written")
    ui.row(f"{inset}prompts  {prompts.human:,} human, {prompts.injected:,} injected")
    ui.row(f"{inset}results  {prompts.tool_result:,} of tools; {row.compactions:,} compactions")
    for tool, count in row.tools.items():
        ui.row(f"{inset}tool     {tool} {count:,}")
    ui.row(f"{inset}cost     {line.cost}")


def _number(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count:,}"


def _money(micros: int | None) -> str:
    return UNKNOWN if micros is None else f"${micros / 1e6:,.4f}"
