"""How everything that is counted about one session is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from harken import clock

from . import ui
from .stats_window import short, sparkline

if TYPE_CHECKING:
    from harken.api.report import ReportAnswer

_STATES = ("prompt", "response", "thinking", "tool", "compaction", "idle")
_LETTERS = {"prompt": "p", "thinking": "h", "response": "r", "tool": "t", "compaction": "c", "idle": "."}
MOST_WINDOWS = 48
_MINUTE = 60 * clock.SECOND
TOP = 8
_BARS = 54


def draw_details(one: ReportAnswer) -> None:
    """One session, its sub-agents included."""
    ui.row(one.session)
    ui.row(
        f"  outcome   {one.outcome or 'unknown'}, {ui.count(one.turns, 'turn')}, {ui.duration(one.duration_seconds)}"
    )
    _draw_parts("  time", _times(one.profile["whole"]))
    for agent, spent in one.profile["agents"].items():
        if len(one.profile["agents"]) > 1:
            _draw_parts(f"    {agent or '(its own)'}", _times(spent))
    _draw_windows(one.profile["windows"])
    names = ("responses_per_prompt", "calls_per_prompt", "characters_ratio")
    responses, calls, characters = (_ratio(one.amplification[name]) for name in names)
    gain = [f"{responses} responses", f"{calls} calls for each prompt", f"{characters} characters for one"]
    _draw_parts("  gain", gain)
    _draw_compactions(one.compactions)
    own, others = one.delegation["own"], one.delegation["delegated"]
    _draw_parts("  itself", _share(own))
    if others["agents"]:
        _draw_parts("  others", [*_share(others), ui.count(others["agents"], "agent")])
    for name, use in list(one.tools.items())[:TOP]:
        median = "?" if use["median"] is None else ui.duration(use["median"] / 1e6)
        ui.row(
            f"  tool      {name} {use['calls']:,}, {use['failed']:,} failed, {use['retries']:,} again, {median} each"
        )
    ranked = sorted(one.files.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    for path, done in ranked[:TOP]:
        head = f"  file      {', '.join(f'{count} {op}' for op, count in done.items() if count)}"
        # Of a path the end tells most.
        room = max(12, ui.width() - len(head) - 2) if ui.width() else len(path)
        ui.row(head, ui.fit_path(path, room))
    if len(ranked) > TOP:
        ui.row(f"  and {len(ranked) - TOP:,} more files")
    for edge in one.flow[:TOP]:
        ui.row(f"  told      {edge['source'] or '(nobody)'} to {edge['target'] or '(its own)'}: {edge['messages']:,}")


def _draw_windows(windows: Sequence[Mapping[str, Any]]) -> None:
    """A strip for each window, with a letter for every share of its time; several in which nothing happened are one."""
    if not windows:
        return
    ui.row(f"  windows   in {clock.local_zone(windows[0]['start'])}; p prompt, h thinking, r response,")
    ui.row("            t tool, c compaction, . idle; how many steps")
    cells = max(10, min(40, (ui.width() or 80) - 34))
    stamp = slice(19 if any(one["start"] % _MINUTE for one in windows) else 16)
    drawn = [
        some
        for busy, found in groupby(windows, _is_busy)
        for some in ([[one] for one in found] if busy else [list(found)])
    ]
    for some in drawn[:MOST_WINDOWS]:
        start, spent = clock.local_text(clock.format_instant(some[0]["start"])), some[0]["spent"]
        what = f"idle for {ui.duration(sum(one['spent']['idle'] for one in some) / 1e6)}"
        if _is_busy(some[0]):
            what = f"{_strip(spent, cells):<{cells}}  {sum(spent['events'].values()):,}"
        ui.row(f"    {start[stamp]}  {what}")
    if len(drawn) > MOST_WINDOWS:
        ui.row(f"    and {len(drawn) - MOST_WINDOWS:,} more; --json has them all")


def _is_busy(window: Mapping[str, Any]) -> bool:
    spent = window["spent"]
    return bool(spent["events"]) or any(spent[state] for state in _LETTERS if state != "idle")


def _strip(spent: Mapping[str, Any], cells: int) -> str:
    """The states in the order of a turn, each as long as its share."""
    whole = sum(spent[state] for state in _LETTERS)
    strip, passed = "", 0
    for state, letter in _LETTERS.items():
        passed += spent[state]
        strip += letter * ((passed * cells + whole // 2) // whole - len(strip) if whole else 0)
    return strip


def _draw_compactions(found: Mapping[str, Any]) -> None:
    curve = [point["tokens"] for point in found["curve"]]
    if curve:
        step = -(-len(curve) // max(10, min(_BARS, (ui.width() or 80) - 36)))
        points = [max(curve[at : at + step]) for at in range(0, len(curve), step)]
        ui.row(f"  context   {sparkline(points)}  up to {short(max(curve))} tokens")
    for one in found["compactions"]:
        after = "?" if one["took"] is None else ui.duration(one["took"] / 1e6)
        ui.row(f"  compacted {one['trigger'] or '?'} at {short(one['before'])} tokens, after {after}")


def _share(share: Mapping[str, Any]) -> list[str]:
    asked, called = (ui.count(share[what], what.removesuffix("s")) for what in ("requests", "calls"))
    return [asked, called, f"{short(share['tokens']['output'])} tokens out"]


def _times(spent: Mapping[str, Any]) -> list[str]:
    return [f"{state} {ui.duration(spent[state] / 1e6)}" for state in _STATES if spent[state]] or ["unknown"]


def _draw_parts(head: str, parts: Sequence[str]) -> None:
    """Several figures under one head, in as many lines as the window needs."""
    rows = [f"{head:<11} "]
    for place, part in enumerate(parts):
        part += "," if place + 1 < len(parts) else ""
        if ui.width() and not rows[-1].isspace() and ui.columns(f"{rows[-1]}{part}") > ui.width():
            rows.append(" " * 12)
        rows[-1] += part + " "
    for row in rows:
        ui.row(row.rstrip())


def _ratio(value: float | None) -> str:
    return "?" if value is None else f"{value:.1f}"
