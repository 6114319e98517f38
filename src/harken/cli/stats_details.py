"""How everything that is counted about one session is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import ui
from .stats_window import short, sparkline

if TYPE_CHECKING:
    from harken.api.report import ReportAnswer

_STATES = ("prompt", "response", "thinking", "tool", "compaction", "idle")
TOP = 8
_BARS = 54


def draw_details(one: ReportAnswer) -> None:
    """One session, its sub-agents included."""
    ui.row(one.session)
    ui.row(f"  outcome   {one.outcome or 'unknown'}, {one.turns:,} turns, {_time(one.duration_seconds)}")
    ui.row(f"  time      {_times(one.profile['whole'])}")
    for agent, spent in one.profile["agents"].items():
        if len(one.profile["agents"]) > 1:
            ui.row(f"    {agent or '(its own)'}  {_times(spent)}")
    names = ("responses_per_prompt", "calls_per_prompt", "characters_ratio")
    responses, calls, characters = (_ratio(one.amplification[name]) for name in names)
    ui.row(f"  for each prompt  {responses} responses, {calls} calls, {characters} characters for one")
    _draw_compactions(one.compactions)
    own, others = one.delegation["own"], one.delegation["delegated"]
    ui.row(f"  itself    {_share(own)}")
    if others["agents"]:
        ui.row(f"  others    {_share(others)}, {ui.count(others['agents'], 'agent')}")
    for name, use in list(one.tools.items())[:TOP]:
        median = "?" if use["median"] is None else _time(use["median"] / 1e6)
        ui.row(
            f"  tool      {name} {use['calls']:,}, {use['failed']:,} failed, {use['retries']:,} again, {median} each"
        )
    ranked = sorted(one.files.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    for path, done in ranked[:TOP]:
        ui.row(f"  file      {', '.join(f'{count} {op}' for op, count in done.items() if count)}", path)
    if len(ranked) > TOP:
        ui.row(f"  and {len(ranked) - TOP:,} more files")
    for edge in one.flow[:TOP]:
        ui.row(f"  told      {edge['source'] or '(nobody)'} to {edge['target'] or '(its own)'}: {edge['messages']:,}")


def _draw_compactions(found: Mapping[str, Any]) -> None:
    curve = [point["tokens"] for point in found["curve"]]
    if curve:
        step = -(-len(curve) // _BARS)
        points = [max(curve[at : at + step]) for at in range(0, len(curve), step)]
        ui.row(f"  context   {sparkline(points)}  up to {short(max(curve))} tokens")
    for one in found["compactions"]:
        after = "?" if one["took"] is None else _time(one["took"] / 1e6)
        ui.row(f"  compacted {one['trigger'] or '?'} at {short(one['before'])} tokens, after {after}")


def _share(share: Mapping[str, Any]) -> str:
    tokens = share["tokens"]
    return f"{share['requests']:,} requests, {share['calls']:,} calls, {short(tokens['output'])} tokens out"


def _times(spent: Mapping[str, Any]) -> str:
    told = [f"{state} {_time(spent[state] / 1e6)}" for state in _STATES if spent[state]]
    return ", ".join(told) or "unknown"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    if seconds < 60:
        return f"{seconds:.1f}s"
    return f"{seconds / 60:.0f}m" if seconds < 5400 else f"{seconds / 3600:.1f}h"


def _ratio(value: float | None) -> str:
    return "?" if value is None else f"{value:.1f}"
