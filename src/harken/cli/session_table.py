"""Sessions as the lines of a table: every column as wide as it has to be, and the title takes the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from . import ui
from .commits import age, cents, excerpt

if TYPE_CHECKING:
    from harken.api.sessions import SessionAnswer

NARROW, WIDE = 80, 100
"""Columns under which space is saved, and from which a continuation is told in words."""
SHORT_ID = 8
IDS = 0.3
"""The part of a window that ids may take, so that the columns behind them stand below each other. One that is longer
still is not cut: its own title makes way."""
ID = 36
"""Columns of an id in a pipe, where it is whole."""
TITLE = 60
"""Characters of a title in a pipe."""
LEAST_TITLE = 8
PROJECT = (8, 14, 20)
"""Columns of a project in a narrow window, in one of 80 columns and in a wide one."""
LEAST_PROJECT = 4
NUMBERS = ("messages", "cost")
"""What is written to the right."""
STYLES = {"session": "name", "age": "dim", "project": "mark", "origin": "dim"}


class SessionLine(NamedTuple):
    """The cells of a line; the origin stands behind the title, whole or not at all."""

    session: str
    age: str
    runtime: str
    project: str
    title: str
    origin: str
    messages: str
    cost: str


HEAD = SessionLine("session", "age", "runtime", "project", "title", "", "msgs", "cost")


def gap(wide: int) -> str:
    """What stands between two cells."""
    return " " if 0 < wide < NARROW else "  "


def table(rows: Sequence[SessionAnswer], wide: int, *, head: bool = False) -> list[list[ui.Words]]:
    """The lines for a window of so many columns, with a line that names the columns where somebody is watching; for a
    pipe (0) ids are whole."""
    names = project_names([row.project or "" for row in rows])
    lines = [_line(row, names[row.project or ""], wide) for row in rows]
    widths = _widths([HEAD, *lines] if head else lines, wide)
    shown = [_fitted(line, widths, wide) for line in lines]
    if head and lines:
        shown.insert(0, [ui.Styled(_text(cell), "dim") for cell in _fitted(HEAD, widths, wide)])
    return shown


def _line(row: SessionAnswer, project: str, wide: int) -> SessionLine:
    session, title = row.short if wide else row.session, row.title
    if wide and row.parent:
        session, title = "└" if ui.speaks_unicode() else "`", f"{row.agent or row.session}: {row.title}"
    narrow = 0 < wide < NARROW
    cells = SessionLine(
        session=session,
        age=age(row.active),
        runtime=row.runtime.partition("-")[0] if narrow else row.runtime,
        project=project,
        title=excerpt(title, wide or TITLE),
        origin=_origin(row, in_words=not wide or wide >= WIDE),
        messages=str(row.messages),
        cost=_cost(row),
    )
    return SessionLine(*map(ui.one_line, cells))


def _cost(row: SessionAnswer) -> str:
    """What it costs at list price, `+` where some of it has none; else what the runtime said."""
    if row.price_usd_micros is None:
        return cents(row.cost_usd_micros)
    return cents(row.price_usd_micros) + ("+" if row.unpriced else "")


def _origin(row: SessionAnswer, *, in_words: bool) -> str:
    """Where it comes from and where it went on, behind the title."""
    to, by = ("→ ", "← ") if ui.speaks_unicode() else ("-> ", "<- ")
    found = ["lost in part"] if row.lost else []
    if row.continues_at:
        found.append(("continues " if in_words else by) + (row.continues or row.continues_at)[:SHORT_ID])
    if row.continued_by:
        first, *more = row.continued_by
        found.append(("continued in " if in_words else to) + first[:SHORT_ID] + (f" +{len(more)}" if more else ""))
    return f" ({', '.join(found)})" if found else ""


def _widths(lines: Sequence[SessionLine], wide: int) -> dict[str, int]:
    """The columns of each cell; the title and what stands behind it share what is left."""
    found = {
        name: max((ui.columns(line[at]) for line in lines), default=0)
        for at, name in enumerate(SessionLine._fields)
        if name != "origin"
    }
    if wide:
        found["session"] = min(found["session"], max(SHORT_ID, int(wide * IDS)))
        found["project"] = min(found["project"], PROJECT[(wide >= NARROW) + (wide >= WIDE)])
        rest = sum(found.values()) - found["title"] + len(gap(wide)) * (len(found) - 1)
        if (short := LEAST_TITLE - (wide - rest)) > 0:  # then the folder makes way
            cut = min(short, max(0, found["project"] - LEAST_PROJECT))
            found["project"], rest = found["project"] - cut, rest - cut
        found["title"] = max(LEAST_TITLE, wide - rest)
    else:  # nothing is cut, and one long name does not set the others apart
        found["title"] = max((ui.columns(line.title + line.origin) for line in lines), default=0)
        found["project"] = min(found["project"], PROJECT[-1])
        found["session"] = min(found["session"], ID)
    return found


def _fitted(line: SessionLine, widths: dict[str, int], wide: int) -> list[ui.Words]:
    cells: list[ui.Words] = []
    longer = max(0, ui.columns(line.session) - widths["session"])
    for name, most in widths.items():
        text = getattr(line, name)
        if name == "session":
            most += longer
        elif name == "project" and ui.columns(text) > most and wide:
            text = ui.fit(text.rpartition("/")[2], most)
        elif name == "title" and not wide:
            text += line.origin
        elif name == "title":
            most -= longer
            left = most - ui.columns(line.origin)  # where there is no room, the numbers behind it stay
            text = ui.fit(text, left) + line.origin if left > 0 else ui.fit(text, max(1, most))
        space = " " * (most - ui.columns(text))
        padded = space + text if name in NUMBERS else text + space
        cells.append(ui.Styled(padded, STYLES[name]) if name in STYLES else padded)
    return cells


def _text(cell: ui.Words) -> str:
    return cell.text if isinstance(cell, ui.Styled) else cell


def project_names(folders: Sequence[str]) -> dict[str, str]:
    """For each folder its name, with as many of those around it as tell it from the others."""
    found, waiting, depth = {"": ""}, {folder for folder in folders if folder.strip("/")}, 1
    found |= {folder: folder for folder in folders if not folder.strip("/")}
    while waiting:
        names: dict[str, list[str]] = {}
        for folder in sorted(waiting):
            names.setdefault("/".join(folder.rstrip("/").split("/")[-depth:]), []).append(folder)
        for name, alike in names.items():
            if len(alike) == 1 or all(folder.count("/") < depth for folder in alike):
                found |= dict.fromkeys(alike, name)
        waiting -= found.keys()
        depth += 1
    return found
