"""Options and arguments that several commands share."""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from harken import clock

from . import completing, ui

if TYPE_CHECKING:
    from harken.repo import Repo

P = ParamSpec("P")
T = TypeVar("T")

CORRUPT = 9  # the exit code of a command that could only tell of what is left
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line")


class NotEmpty(click.ParamType):  # type: ignore[type-arg]
    """A word that has to name something: to a request an empty one may mean that none was given."""

    def __init__(self, name: str, hint: str) -> None:
        self.name = name
        self.hint = hint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from harken.errors import BadRequest

        if not value:
            raise BadRequest(f"an empty {self.name.upper()} names nothing", hint=self.hint)
        return str(value)


class ProjectName(click.ParamType):  # type: ignore[type-arg]
    """A project: the name of a folder as it was typed, or a path as records name it, from the root."""

    name = "project"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, or the path."""
        return os.path.abspath(value) if "/" in value or value in (".", "..") else value  # noqa: PTH100 (no links)


class TimeSpan(click.ParamType):  # type: ignore[type-arg]
    """A length of time as people say it; the answer is in seconds."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """`30s`, `10m`, `1h` or `1d`."""
        count, unit = str(value)[:-1], {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(str(value)[-1:])
        if unit is None or not count.isascii() or not count.isdigit() or not 0 < int(count[:7]) * unit <= 10**9:
            self.fail(f"{value!r} is no length of time; `30s`, `10m`, `1h` and `1d` are", param, ctx)
        return int(count) * unit


class Instant(click.ParamType):  # type: ignore[type-arg]
    """A time as people say it; the answer is the instant, of a day its first or its last."""

    name = "when"

    def __init__(self, *, end: bool = False) -> None:
        self.end = end

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        """The instant that `today`, `yesterday`, `7d`, `12h`, a day (local time) or an RFC 3339 text means; None for an
        empty word."""
        if not value:
            return None
        found = clock.parse_when(value, clock.now(), end=self.end)
        if found is None or not clock.in_calendar(found):
            self.fail(
                f"{value!r} is no time; `yesterday`, `7d`, `12h`, 2026-01-31 or 2026-01-31T12:00:00Z are", param, ctx
            )
        return found


def project_option(help: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """The option that names a project."""
    return click.option(
        "--project", type=ProjectName(), default="", metavar="P", shell_complete=completing.projects, help=help
    )


REF = NotEmpty("ref", "a commit, a branch, a tag or a session id; `harken log` and `harken sessions` list them")
SESSION = NotEmpty("session", "the file of a session, a session id or a REF; `harken sessions` lists them")
NAME = NotEmpty("name", "a branch or a tag; `harken branch` and `harken tag` list them")
AGENT = NotEmpty("agent", "an agent's id or name; `harken agents SESSION` lists them")
MESSAGE = NotEmpty("message", "a message's id; `harken view timeline SESSION` lists them")
FILE = NotEmpty("file", "the path of a file")
PATH = NotEmpty("path", "a file or a folder")


def pass_repo(function: Callable[Concatenate[Repo, P], T]) -> Callable[P, T | None]:
    """Give the command its store, which has to be there: looking for something never makes one."""
    return _passing(to_the_readers_end(function), _open_to_look)


def to_the_readers_end(function: Callable[Concatenate[Repo, P], T]) -> Callable[Concatenate[Repo, P], T | None]:
    """The command, which has done its work when whoever reads its output wants no more (`| head -1`); of one that also
    changes something, the rest would be left undone, and that is a failure."""

    @functools.wraps(function)
    def wrapper(repo: Repo, /, *args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return function(repo, *args, **kwargs)
        except BrokenPipeError:
            ui.detach_stdout()
            return None

    return wrapper


def make_repo(function: Callable[Concatenate[Repo, P], T]) -> Callable[P, T]:
    """Give the command its store, made where it is not there: for commands that put something into it."""
    return _passing(function, lambda ctx: _open_to_write(ctx, create=True))


def make_repo_for_run(function: Callable[Concatenate[Repo, P], T]) -> Callable[P, T]:
    """The same for a run, which does not wait until spools are stored before it begins."""
    return _passing(function, _open_to_run)


def serve_repo(function: Callable[Concatenate[Repo, P], T]) -> Callable[P, T]:
    """Give the command its store to serve: made where it is not there, unless it is only to be looked at."""

    def open_repo(ctx: click.Context) -> Repo:
        return _open_to_look(ctx) if ctx.params["read_only"] else _open_to_write(ctx, create=True)

    return _passing(function, open_repo)


def change_repo(function: Callable[Concatenate[Repo, P], T]) -> Callable[P, T]:
    """Give the command its store, which has to be there, to change something in it."""
    return _passing(function, lambda ctx: _open_to_write(ctx, create=False))


def change_repo_if_named(function: Callable[Concatenate[Repo, P], T]) -> Callable[P, T]:
    """Give the command its store, which has to be there: with a NAME to change something, without one to look."""

    def open_repo(ctx: click.Context) -> Repo:
        return _open_to_write(ctx, create=False) if ctx.params.get("name") else _open_to_look(ctx)

    return _passing(function, open_repo)


def pass_repo_or_file(function: Callable[Concatenate[Repo, P], T]) -> Callable[P, T | None]:
    """Give the command its store; where the user named a file that lies on the disk, none is needed."""
    return _passing(to_the_readers_end(function), _open_beside_files)


def is_there(word: str) -> bool:
    """Whether a file or a folder is called like this; a session may have a longer name than any file."""
    try:
        return Path(word).exists()
    except OSError as problem:
        if problem.errno != errno.ENAMETOOLONG:
            raise
        return False


def is_file(word: str) -> bool:
    """Whether a file is called like this."""
    return is_there(word) and Path(word).is_file()


def is_folder(word: str) -> bool:
    """Whether a folder is called like this."""
    return is_there(word) and Path(word).is_dir()


def pass_repo_unless_file(function: Callable[Concatenate[Repo, P], T]) -> Callable[P, T | None]:
    """Give the command its store; for a SESSION that is a file it is not even looked at, since it may be damaged."""
    return _passing(to_the_readers_end(function), _open_unless_file)


def _open_unless_file(ctx: click.Context) -> Repo:
    import harken

    session = ctx.params.get("session") or ctx.params["words"][0]
    if is_there(session) and not Path(session).is_dir():
        return harken.open("memory:")
    return _open_beside_files(ctx)


def _open(ctx: click.Context, *, create: bool) -> Repo:
    """The store that `--store`, HARKEN_STORE, the configuration or the default names."""
    from .config import open_at, store_of

    if (location := store_of(ctx)) == "":
        raise click.BadParameter("'' names no file", ctx.find_root(), param_hint="'--store'")
    return open_at(location, create=create, damaged=not create)


def refuse_service(location: str | None, what: str) -> None:
    """`BadRequest` where a service is named, and the store itself is needed."""
    from harken.repo import is_service

    if is_service(location):
        from harken.errors import BadRequest

        hint = "run it where the store lies, with `harken --store PATH`"
        raise BadRequest(f"{what} needs the store itself, not a service", hint=hint)


def is_remote(repo: Repo) -> bool:
    """Whether the store lies behind a service, which looks after it."""
    return hasattr(repo, "ask_service")


def store_file(repo: Repo) -> str:
    """The file of the store, which nothing is written over; empty where it lies behind a service."""
    return "" if is_remote(repo) else repo.store.location


def open_store(ctx: click.Context) -> Repo:
    """The store, which has to be there, for a look at it."""
    return _open(ctx, create=False)


def _open_to_run(ctx: click.Context) -> Repo:
    from .config import store_of

    refuse_service(store_of(ctx), "a run")
    repo = _open(ctx, create=True)
    finish_forgetting(repo)
    return repo


def _open_to_look(ctx: click.Context) -> Repo:
    repo = _open(ctx, create=False)
    if _is_forgetting(repo):
        ui.note("something is being forgotten, and is not shown; the next command that writes finishes that")
    _mention_spools(repo)
    return repo


def _mention_spools(repo: Repo) -> None:
    """Say that the store does not have all of what was run; looking stores nothing."""
    if not _has_spools(repo) or not (waiting := repo.waiting_spools()):
        return
    if len(waiting) == 1:
        ui.note(f"a run is not stored yet ({waiting[0]}); the next command that writes stores it, or says why not")
    else:
        ui.note(
            f"{len(waiting)} runs are not stored yet ({waiting[0]} and others); the next command that writes stores "
            "them, or says why not"
        )


def _has_spools(repo: Repo) -> bool:
    from harken.files import SPOOL, find_beside

    return not is_remote(repo) and bool(find_beside(Path(repo.store.location), SPOOL))


def _is_forgetting(repo: Repo) -> bool:
    """Whether somebody began to forget something, and was killed."""
    from harken.errors import HarkenError

    try:
        return not is_remote(repo) and repo.store.has_forgotten and bool(repo.unfinished_forgetting())
    except HarkenError:  # a damaged store is for the command itself to tell of
        return False


def finish_forgetting(repo: Repo) -> None:
    """Finish what somebody began to forget, and say so; where that cannot be now, it stops nothing."""
    from harken.errors import HarkenError

    try:
        for erasure in repo.finish_forgetting() if _is_forgetting(repo) else ():
            ui.note(f"finished forgetting what was begun by {erasure.who or 'somebody'} (erasure {erasure.number})")
    except HarkenError as problem:
        ui.warn(f"what was begun to be forgotten is still in the file: {problem}")


def _open_to_write(ctx: click.Context, *, create: bool) -> Repo:
    repo = _open(ctx, create=create)
    finish_forgetting(repo)
    report_spools(repo)
    return repo


def report_spools(repo: Repo, said: Collection[str] = ()) -> None:
    """Store what earlier runs could not, and say so, unless it was said; what is wrong with a spool stops nothing."""
    for spool in repo.store_spools() if _has_spools(repo) else ():
        if spool.problem:
            why = f"{spool.problem}; {spool.hint}" if spool.hint else spool.problem
            if why not in said:
                ui.warn(why)
        else:
            ui.note(f"stored what a run had left in {spool.path}")


def _open_beside_files(ctx: click.Context) -> Repo:
    import harken
    from harken.errors import NotFound

    from .config import store_of

    try:
        return _open_to_look(ctx)
    except NotFound as problem:
        named = [ctx.params[param.name or ""] for param in ctx.command.params if isinstance(param, click.Argument)]
        words = [word for value in named for word in (value if isinstance(value, tuple) else (value,)) if word]
        if any(isinstance(word, str) and is_there(word) for word in words):
            return harken.open("memory:")
        if words and store_of(ctx) is None:  # nobody spoke of a store; it may well be a file that is missing
            hint = "a SESSION is a file, or a session in the store; `harken import` makes one"
            raise NotFound(f"no such file, and {problem}", hint=hint) from problem
        raise


def _passing(function: Callable[Concatenate[Repo, P], T], open_repo: Callable[[click.Context], Repo]) -> Callable[P, T]:
    @click.pass_context
    @functools.wraps(function)
    def wrapper(ctx: click.Context, /, *args: Any, **kwargs: Any) -> Any:
        repo = open_repo(ctx)
        ctx.call_on_close(repo.close)
        if repo.damage:
            ui.warn(f"{repo.damage}; this is what is left of it (`harken fsck --repair` saves that)")
        answer = ctx.invoke(function, repo, *args, **kwargs)
        return answer or CORRUPT if repo.damage else answer

    return wrapper
