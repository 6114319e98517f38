"""How commits, moves and times are shown, for the commands that list them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import ui

if TYPE_CHECKING:
    from harken.context import Shown
    from harken.events.tally import Figures
    from harken.repo import Repo
    from harken.store import Commit, Name


SUMMARY = 200
"""Characters of a summary that a line has room for; `harken show` has all of it."""


def me() -> str:
    """Who is at the keyboard, for the record of moves."""
    return os.environ.get("USER") or os.environ.get("LOGNAME") or ""


def when(instant: int | None) -> str:
    """An instant for people: UTC, to the second."""
    from harken import clock

    if instant is None or not clock.in_calendar(instant):
        return ""
    return clock.format_seconds(instant).replace("T", " ").removesuffix("Z")


def stamp(instant: int | None) -> str | None:
    """An instant for programs."""
    from harken import clock

    return None if instant is None or not clock.in_calendar(instant) else clock.format_instant(instant)


def figures_line(figures: Figures) -> dict[str, Any]:
    """The figures of a session for `--json`: the same from `import` and from `stats`."""
    import msgspec

    data: dict[str, Any] = msgspec.to_builtins(figures)
    return data | {"started": stamp(figures.started), "ended": stamp(figures.ended)}


def as_data(shown: Shown) -> dict[str, Any]:
    """A commit for `--json`: its fields, and what was said about it."""
    import msgspec

    from harken import ids

    fields = msgspec.structs.asdict(shown)
    return fields | {
        "time": stamp(shown.time),
        "artifact_ref": ids.artifact_ref(shown.artifact),
        "names": list(shown.names),
        "annotations": [
            {"key": note.key, "value": note.value, "time": stamp(note.time), "who": note.who}
            for note in shown.annotations
        ],
    }


def one_line(shown: Shown) -> str:
    """A commit on one line, however much somebody wrote about it."""
    from harken.context.summary import excerpt

    facts = [shown.short, when(shown.time)]
    if shown.commit_type != "delta":
        facts.append(f"[{shown.commit_type}]")
    if shown.names:
        facts.append("(" + ", ".join(shown.names) + ")")
    if shown.superseded:
        facts.append("[superseded]")
    return "  ".join([*facts, excerpt(shown.summary, SUMMARY)])


def print_made(commit: Commit, *, as_json: bool, **more: Any) -> None:
    """A commit that was just made: its short name alone, so that a script can use it."""
    if as_json:
        import msgspec

        fields = msgspec.structs.asdict(commit)
        ui.json_line(fields | {"time": stamp(commit.time)} | more)
    else:
        ui.line(commit.short)


def short_of(repo: Repo, commit: str) -> str:
    """The name of a commit as people see it: as many digits as tell it from all others."""
    from harken import ids
    from harken.errors import NotFound

    try:
        return repo.store.get_commit(commit).short
    except NotFound:
        return ids.commit_ref(commit)


def print_names(repo: Repo, names: Iterable[Name], *, as_json: bool) -> None:
    """Branches or tags, one per line."""
    for name in names:
        if as_json:
            ui.json_line({"name": name.name, "kind": name.kind, "target": name.target})
        else:
            ui.line(f"{short_of(repo, name.target)}  {name.name}")
