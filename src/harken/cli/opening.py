"""What a SESSION on the command line means: the one place that turns the word into something to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harken.errors import BadRequest, HarkenError, NotFound

from . import ui

if TYPE_CHECKING:
    from harken.views import SessionViewer


def open_session(text: str) -> SessionViewer:
    """The views of the session that the word names: today the path of a log file.

    A session from elsewhere can be looked at as `SessionViewer.of(harken.log.records_of(events))`.
    """
    from harken.views import SessionViewer

    path = Path(text)
    try:
        if path.is_dir():
            raise BadRequest(f"{text} is a folder", hint="name the session's log file in it")
        if not path.exists():
            raise NotFound(f"no session {text!r}", hint="a SESSION is the path of a session log (.jsonl)")
        viewer = SessionViewer(path)
    except (OSError, ValueError) as problem:
        raise HarkenError(f"cannot read {text}: {problem}", hint="is it a file that you may read?") from problem
    _remark(viewer, text)
    return viewer


def _remark(viewer: SessionViewer, text: str, limit: int = 3) -> None:
    """Say on stderr what could not be read; the views show the rest."""
    for problem in viewer.problems[:limit]:
        ui.warn(f"{text}, line {problem['line']}: {problem['problem']}")
    if len(viewer.problems) > limit:
        ui.warn(f"{text}: {len(viewer.problems) - limit:,} more lines with problems")
    if not viewer.index.events:
        ui.note(f"{text} holds no events of a session log")
    elif not viewer.index.agents:
        ui.warn(f"{text} names no agents; is it a session log?")
