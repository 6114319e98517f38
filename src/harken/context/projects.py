"""Which project a session belongs to, as its stored records tell."""

from __future__ import annotations

from collections.abc import Sequence

from harken.formats.projects import project_of
from harken.store.base import Commit, SessionRow, Store

_MOST = 16
"""How many commits from the beginning on are looked at; a program names its folder in one of its first records."""


def session_project(store: Store, row: SessionRow) -> str:
    """The folder of the session's first record that names one; empty where none does.

    A chain may hang from another session's commits. What stands in those was said in that session's folder."""
    if not row.stand:
        return ""
    steps = [step.id for step in reversed(store.walk(row.stand))]
    first = _project(store, store.get_commits(steps[:_MOST]), row)
    own = (store.get_commits(steps[at : at + _MOST]) for at in range(_MOST, len(steps), _MOST)) if first is None else ()
    return first or next((found for commits in own if (found := _project(store, commits, row)) is not None), "")


def _project(store: Store, commits: Sequence[Commit], row: SessionRow) -> str | None:
    """The folder that these commits name; None where none of them is the session's own."""
    own = [commit for commit in commits if commit.session_id.partition("/")[0] in ("", row.session.partition("/")[0])]
    found = (project_of(store.get(commit.artifact)) for commit in own)
    return next(filter(None, found), "" if own else None)
