"""What a SESSION on the command line means: the one place that turns the word into a session or a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import ui
from .options import is_there

if TYPE_CHECKING:
    import harken
    from harken.api.views import ViewRequest
    from harken.repo import Repo


def place_of(repo: Repo, word: str) -> dict[str, Any]:
    """The word as requests take it: a file that lies there, else a session in the store."""
    path = Path(word)
    # A folder is no session, but one may be called like a folder.
    if is_there(word) and not (path.is_dir() and repo.sessions(word)):
        return {"file": word}
    return {"session": word}


def open_view(repo: Repo, word: str) -> tuple[dict[str, Any], harken.SessionViewer]:
    """The session that the word names, as requests take it, and its views; what is odd about a log is a remark."""
    from harken.api.views import ViewRequest

    place = place_of(repo, word)
    viewer = repo.view(ViewRequest(**place).place())
    # What is odd about an imported session, its import has told.
    _report(repo, ViewRequest(**place), viewer, word, most=3 if "file" in place else 0)
    return place, viewer


def _report(repo: Repo, request: ViewRequest, viewer: harken.SessionViewer, word: str, *, most: int) -> None:
    """Say which lines are wrong; the views show the rest."""
    from harken.api.view_answers import ProblemAnswer
    from harken.api.views import view_problems

    for number, one in enumerate(view_problems(repo, request, viewer=viewer)):
        if isinstance(one, ProblemAnswer):
            if number < most:
                ui.warn(f"{word}, line {one.line}: {one.problem}")
            continue
        counts = one.report
        if most and counts.problems > most:
            ui.warn(f"{word}: {counts.problems - most:,} more lines with problems")
        if not counts.records:
            ui.note(f"{word} is empty: nothing has happened in this session yet")
        elif not counts.agents:
            ui.warn(f"{word} names no agents; is it a session log?")
