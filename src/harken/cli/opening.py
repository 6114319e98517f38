"""What a SESSION on the command line means: the one place that turns the word into something to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harken.errors import BadRequest, HarkenError, NotFound

from . import ui

if TYPE_CHECKING:
    from harken.views import SessionViewer


def open_session(text: str) -> SessionViewer:
    """The views of the session that the word names: a log file, or a session in the store by its id."""
    from harken.views import SessionViewer

    path = Path(text)
    try:
        if path.is_dir():
            raise BadRequest(f"{text} is a folder", hint="name the session's log file in it")
        viewer = SessionViewer(path) if path.exists() else _from_store(text)
    except (OSError, ValueError) as problem:
        raise HarkenError(f"cannot read {text}: {problem}", hint="is it a file that you may read?") from problem
    if path.exists():  # what is odd about an imported session, its import has told
        _refuse_others(viewer, text)
        _report(viewer, text)
    if not viewer.index.records:
        ui.note(f"{text} holds no events of a session log")
    elif not viewer.index.agents:
        ui.warn(f"{text} names no agents; is it a session log?")
    return viewer


def _from_store(text: str) -> SessionViewer:
    """The session of that id, if there is a store and it has one; looking never makes a store."""
    import harken
    from harken.repo import default_location

    location = click.get_current_context().find_root().obj
    if location is None and not default_location().exists():
        raise NotFound(
            f"no session {text!r}", hint="a SESSION is the path of a session log (.jsonl), or an imported one"
        )
    with harken.open(location, create=False) as repo:
        return repo.view(text)


def _report(viewer: SessionViewer, text: str, limit: int = 3) -> None:
    """Say on stderr which lines are wrong; the views show the rest."""
    for problem in viewer.problems[:limit]:
        ui.warn(f"{text}, line {problem['line']}: {problem['problem']}")
    if viewer.problem_count > limit:
        ui.warn(f"{text}: {viewer.problem_count - limit:,} more lines with problems")


def _refuse_others(viewer: SessionViewer, text: str) -> None:
    """A file that has lines and not one event of a session log is something else; an empty one is a new session."""
    from harken.events import Output

    if viewer.problem_count and all(isinstance(told[0], Output) for told in viewer.index.records):
        raise NotFound(
            f"{text} holds no event of a session log",
            hint="is it the right file? `harken import` takes in the sessions of other runtimes",
        )
