"""What a SESSION or a REF on the command line means: the one place that turns the word into a session or a file."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from . import ui
from .options import is_file, is_there, open_store, pass_repo, to_the_readers_end

if TYPE_CHECKING:
    import harken
    from harken.api.views import ViewRequest
    from harken.repo import Repo


P = ParamSpec("P")
T = TypeVar("T")
REFS = ("ref", "a", "b")
"""Parameters that name a commit."""


def pass_repo_or_session(function: Callable[Concatenate[Repo, P], T]) -> Callable[P, T | None]:
    """Give the command its store; where a REF names nothing in it but a file that lies there, one in memory which holds
    that file's session."""
    plain, alone = pass_repo(function), to_the_readers_end(function)

    @click.pass_context
    @functools.wraps(function)
    def wrapper(ctx: click.Context, /, *args: Any, **kwargs: Any) -> Any:
        refs = {name: kwargs[name] for name in REFS if kwargs.get(name)}
        files = {word for word in refs.values() if is_file(word)}
        files -= _names(ctx, files) if files else set()
        if not files:
            return plain(*args, **kwargs)
        repo = ctx.with_resource(_holding(files, [word for word in refs.values() if word not in files]))
        sessions = {word: _session_of(repo, word) for word in files}
        return ctx.invoke(alone, repo, *args, **kwargs | {name: sessions[word] for name, word in refs.items()})

    return wrapper


def _names(ctx: click.Context, words: set[str]) -> set[str]:
    """Those of the words that name something in the store, which then is meant."""
    from harken.errors import HarkenError, NotFound

    found = set()
    try:
        with open_store(ctx) as repo:
            for word in words:
                try:
                    repo.commit(word)
                    found.add(word)
                except NotFound:
                    continue
    except HarkenError:  # there is none, or none that can be opened: a file needs none
        return set()
    return found


def _holding(files: set[str], others: list[str]) -> Repo:
    """A store in memory that holds the sessions of the files."""
    import harken
    from harken.errors import BadRequest

    if others:
        raise BadRequest(
            f"{min(files)} is a file, and {others[0]!r} is in the store",
            hint=f"`harken import {min(files)}` brings its session into the store",
        )
    return harken.open("memory:")


def _session_of(repo: Repo, word: str) -> str:
    """Import a file; the answer is the session in it."""
    from harken.errors import BadRequest

    results = list(repo.import_sessions([word]))
    for one in results:
        if one.session and not one.parent and one.status != "failed":
            return one.session
    why = next((one.error for one in results if one.error), "no session was found in it").removeprefix(f"{word}: ")
    raise BadRequest(f"{word} cannot be shown: {why}", hint="name a session's file, a commit, a branch or a session id")


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
