"""How commits, moves, times and costs are shown, for the commands that list them; and who is at the keyboard."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from harken import clock, ids

from . import ui

if TYPE_CHECKING:
    from harken.api.values import CommitAnswer, NameAnswer, ShownCommit
    from harken.repo import Repo


SHORT_SESSION = 13
"""Of a session's id so much as tells it from others of the same minute."""
SUMMARY = 200
"""Characters of a summary that a line shows; `harken show` has all of it."""


def me(repo: Repo) -> str:
    """Who is at the keyboard, for what is written down; a service knows by the token who asks."""
    if getattr(repo, "speaks_by_token", False):
        return ""
    if told := os.environ.get("USER") or os.environ.get("LOGNAME"):
        return told
    try:
        import getpass  # asks the system, and seldom has to

        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # some systems know nobody
        return ""


def when(time: str | None) -> str:
    """A time for people: in the local time zone, which is named, to the second; empty where nobody knows it."""
    return clock.local_text(time) if time else ""


SPEAKERS = {
    "user": "strong",
    "assistant": "good",
    "call": "mark",
    "failed": "bad",
    "error": "bad",
    "unread": "bad",
    **dict.fromkeys(("thinking", "result", "injected", "system", "usage", "other", "edit"), "dim"),
}
"""How the word for who speaks is shown."""
_WHO = 9


def event_cells(line: str, before: str = "") -> list[ui.Words]:
    """The line of an event: who speaks, in colour, and what is said."""
    who = line[:_WHO]
    return [ui.Styled(before + who, SPEAKERS.get(who.strip(), "")), line[_WHO:].strip()]


def age(time: str | None) -> str:
    """How long ago something was, in one word; `?` where nobody knows."""
    instant = clock.parse_instant(time) if time else None
    if instant is None:
        return "?"
    seconds = max(0, clock.now() - instant) // 1_000_000
    return next(f"{seconds // size}{unit}" for size, least, unit in _AGES if seconds >= least * size)


_AGES = ((365 * 86400, 2, "y"), (30 * 86400, 2, "mo"), (86400, 1, "d"), (3600, 1, "h"), (60, 1, "m"), (1, 0, "s"))
"""Seconds of a unit, from how many of it on it is used, and its sign."""


def cents(micros: int | None) -> str:
    """Millionths of a dollar for people: to the cent, and what is less than one told as such; `-` where nobody knows,
    which is not zero."""
    if micros is None:
        return "-"
    return "<$0.01" if 0 < micros < 5_000 else f"${(micros + 5_000) // 10_000 / 100:,.2f}"


def size_line(messages: int | None, tokens: int | None, *, approximate: bool) -> str:
    """How much a conversation holds, in words; what nobody counted is said to be unknown."""
    counted = "an unknown number of messages" if messages is None else ui.count(messages, "message")
    about = "about " if approximate else ""
    return counted + (", tokens unknown" if tokens is None else f", {about}{ui.count(tokens, 'token')}")


def excerpt(text: str, limit: int = SUMMARY) -> str:
    """The beginning of a text with its white space made single, for a line of a list."""
    from harken.api.base import excerpt as shortened  # `--help` needs none of it

    return shortened(text, limit)


NARROW = 100
"""Columns under which a line of a list says how long ago something was, and not when."""
WHEN = len("2026-01-31 12:00:00 UTC")
"""Columns that a time takes in most time zones."""


def commit_cells(shown: ShownCommit, wide: int = 0) -> list[ui.Words]:
    """A commit on one line, however much somebody wrote about it; how wide the window is decides how its time is
    told."""
    time = f"{age(shown.time):>4}" if 0 < wide < NARROW else when(shown.time) or f"{'?':<{WHEN}}"
    facts: list[ui.Words] = [ui.Styled(shown.short, "name"), ui.Styled(time, "dim")]
    if shown.commit_type != "delta":
        facts.append(ui.Styled(f"[{shown.commit_type}]", "mark"))
    if shown.names:
        facts.append(ui.Styled("(" + ", ".join(shown.names) + ")", "good"))
    if shown.superseded:
        facts.append(ui.Styled("[superseded]", "dim"))
    if shown.forked_from:
        facts.append(ui.Styled(f"[continues {ids.commit_ref(shown.forked_from)}]", "mark"))
    if shown.continued_by:
        facts.append(ui.Styled(f"[continued in {_sessions(shown.continued_by)}]", "mark"))
    return [*facts, excerpt(shown.summary)]


def _sessions(names: list[str]) -> str:
    """One session by a beginning of its name that a reader can go on with, more than one by their number."""
    return names[0][:SHORT_SESSION] if len(names) == 1 else ui.count(len(names), "session")


def print_made(commit: CommitAnswer, *, as_json: bool) -> None:
    """A commit that was just made: its short name alone, so that a script can use it."""
    if as_json:
        ui.json_line(commit)
    else:
        ui.line(commit.short)


def print_names(names: Iterable[NameAnswer], *, as_json: bool) -> None:
    """Branches or tags, one per line."""
    for name in names:
        if as_json:
            ui.json_line(name)
        else:
            ui.row(ui.Styled(name.short, "name"), name.name)
