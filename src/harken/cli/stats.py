"""`harken stats`: what sessions cost and what happened in them, each thing counted once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import ui
from .commits import figures_line
from .options import json_option, pass_repo_or_file

if TYPE_CHECKING:
    from harken.analytics import SessionTotals
    from harken.events import Event
    from harken.repo import Repo
    from harken.store import SessionRow

UNKNOWN = "?"
"""What a person is shown where nobody counted; nothing is not zero."""
WIDE = 112
"""Columns a table needs; a narrower window gets a few lines per session."""


@click.command("stats")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@click.option("--no-agents", is_flag=True, help="Leave out the sub-agents")
@json_option
@pass_repo_or_file
def stats_command(repo: Repo, sessions: tuple[str, ...], no_agents: bool, as_json: bool) -> None:
    """Count tokens, prompts and tools, each once

    A SESSION is the id of a session in the store, or a unique beginning of one, or the file of a session; without one,
    all sessions in the store are counted. A session's figures are its own; those with its sub-agents stand beside
    them. Of several sessions there is a total, in which what a fork copied counts once. For example:

        harken stats 5b6258c8
        harken stats --json
    """
    from harken.analytics import SessionTotals

    everything, rows = SessionTotals(), []
    for top, agents in _chosen(repo, sessions, with_agents=not no_agents):
        family = SessionTotals()
        totals = (everything, family) if agents else (everything,)
        row = _line(repo, top, *totals)
        if agents:
            row["agents"] = [_line(repo, agent, *totals) for agent in agents]
            row["with_agents"] = figures_line(family.figures())
        rows.append(row)
        if as_json:
            ui.json_line(row)
    total = {"total": figures_line(everything.figures()) | {"sessions": len(rows)}} if len(rows) > 1 else None
    if as_json and total:
        ui.json_line(total)
    elif not as_json:
        _draw(rows, total)
    if not rows:
        ui.note("no sessions; `harken import` takes some in")


# -- which sessions ----------------------------------------------------------------------------------------------------


def _chosen(
    repo: Repo, sessions: Sequence[str], *, with_agents: bool
) -> Iterable[tuple[SessionRow | Path, list[SessionRow]]]:
    """The sessions asked for, each once, with their sub-agents."""
    from harken.context import get_session

    known = repo.sessions()
    children: dict[str, list[SessionRow]] = {}
    for row in known:
        if row.parent:
            children.setdefault(row.parent, []).append(row)
    if not sessions:
        names = {row.session for row in known}
        tops: list[SessionRow | Path] = [row for row in known if row.parent not in names]
        tops.sort(key=lambda row: (getattr(row, "started", None) or 0, getattr(row, "session", "")))
    else:
        tops = [Path(text) if Path(text).is_file() else get_session(repo.store, text) for text in sessions]
    seen: set[str] = set()
    for top in tops:
        name = str(top.resolve()) if isinstance(top, Path) else top.session
        if name not in seen:
            seen.add(name)
            yield top, [] if isinstance(top, Path) or not with_agents else _below(top.session, children)


def _below(session: str, children: dict[str, list[SessionRow]]) -> list[SessionRow]:
    """The sub-agents of a session and theirs; a row that names itself or an ancestor comes once."""
    found: dict[str, SessionRow] = {}
    waiting = list(children.get(session, ()))
    while waiting:
        row = waiting.pop(0)
        if row.session not in found and row.session != session:
            found[row.session] = row
            waiting += children.get(row.session, ())
    return list(found.values())


def _events(repo: Repo, what: SessionRow | Path) -> list[Event]:
    from harken import formats

    if isinstance(what, Path):
        return _read_file(what)
    if not what.stand:
        return []
    made = repo.materialize(what.stand, stop="root")
    return formats.get(made.format).read(made.bytes)


def _read_file(path: Path) -> list[Event]:
    from harken import formats
    from harken.errors import BadRequest
    from harken.runtimes.files import UNPACKED_LIMIT, OpenFile

    with OpenFile(path) as file:
        data = file.read(0, UNPACKED_LIMIT)
    found = formats.detect(data[: 64 << 10])
    if found is None:
        raise BadRequest(f"{path} is in no format that Harken reads", hint="name a session's file or its id")
    return found.read(data)


# -- counting ----------------------------------------------------------------------------------------------------------


def _line(repo: Repo, what: SessionRow | Path, *totals: SessionTotals) -> dict[str, Any]:
    events = _events(repo, what)
    figures = [figures_line(total.add(events)) for total in totals]
    if isinstance(what, Path):
        return {"session": str(what), "source": str(what)} | figures[0]
    named = {"session": what.session, "runtime": what.runtime, "title": what.title}
    return named | ({"parent": what.parent} if what.parent else {}) | figures[0]


# -- showing -----------------------------------------------------------------------------------------------------------


def _draw(rows: Sequence[dict[str, Any]], total: dict[str, Any] | None) -> None:
    drawn: list[tuple[str, dict[str, Any]]] = []
    for row in rows:
        drawn.append((row["session"], row))
        drawn += [
            ("  └ " + agent["session"].removeprefix(row["session"] + "/"), agent) for agent in row.get("agents", ())
        ]
        if "with_agents" in row:
            drawn.append(("  with its agents", row["with_agents"]))
    if total:
        drawn.append((f"total of {total['total']['sessions']}", total["total"]))
    if len(drawn) > 1 and ui.console().width >= WIDE:
        _draw_table(drawn)
        return
    for name, row in drawn:
        _draw_block(name, row)


def _cells(row: dict[str, Any]) -> list[str]:
    numbers = [*row["usage"].values(), *row["prompts"].values(), sum(row["tools"].values()), row["compactions"]]
    return [*map(_number, numbers), _money(row["cost_usd_micros"])]


def _draw_table(drawn: Sequence[tuple[str, dict[str, Any]]]) -> None:
    heads = ["input", "output", "cache read", "written", "human", "injected", "results", "calls", "compacted", "cost"]
    rows = [_cells(row) for _, row in drawn]
    widths = [max(len(head), *(len(row[place]) for row in rows)) for place, head in enumerate(heads)]
    first = max(12, min(40, ui.console().width - sum(widths) - 2 * len(widths)))
    ui.line(" " * first + "".join(f"  {head:>{width}}" for head, width in zip(heads, widths, strict=True)))
    for (name, _), cells in zip(drawn, rows, strict=True):
        # Of an id the beginning tells most; of a path the end.
        short = name if len(name) <= first else "…" + name[1 - first :] if "/" in name else name[: first - 1] + "…"
        ui.line(f"{short:<{first}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True)))


def _draw_block(name: str, row: dict[str, Any]) -> None:
    inset = "    " if name.startswith(" ") else "  "
    tokens, prompts = row["usage"], row["prompts"]
    ui.line(name + (f"  {row['title']}" if row.get("title") else ""))
    ui.line(f"{inset}tokens   {_number(tokens['input'])} in, {_number(tokens['output'])} out")
    ui.line(f"{inset}cache    {_number(tokens['cache_read'])} read, {_number(tokens['cache_write'])} written")
    ui.line(f"{inset}prompts  {prompts['human']:,} human, {prompts['injected']:,} injected")
    ui.line(f"{inset}results  {prompts['tool_result']:,} of tools; {row['compactions']:,} compactions")
    for tool, count in row["tools"].items():
        ui.line(f"{inset}tool     {tool} {count:,}")
    if row["cost_usd_micros"] is not None:
        ui.line(f"{inset}cost     {_money(row['cost_usd_micros'])}")


def _number(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count:,}"


def _money(micros: int | None) -> str:
    return UNKNOWN if micros is None else f"${micros / 1e6:,.4f}"
