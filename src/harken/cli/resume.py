"""`harken resume`: go on with a conversation, in the runtime it came from or in another."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harken.errors import NotFound

from . import ui
from .options import json_option, pass_repo
from .places import runtime_home

if TYPE_CHECKING:
    from harken.repo import Repo
    from harken.runtimes.resume import Resumed


@click.command("resume")
@click.argument("ref")
@click.option("--in", "runtime", required=True, type=click.Choice(["claude-code", "codex"]), help="Where to go on")
@click.option(
    "--home", type=click.Path(path_type=Path, file_okay=False), help="The runtime's home, if not the usual one"
)
@click.option(
    "--cwd",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Where the runtime should think it is (default: the current folder)",
)
@click.option("--exec", "execute", is_flag=True, help="Start the runtime at once")
@json_option
@pass_repo
def resume_command(
    repo: Repo, ref: str, runtime: str, home: Path | None, cwd: Path | None, execute: bool, as_json: bool
) -> None:
    """Continue a conversation in Claude Code or Codex

    Writes the conversation into the runtime's own place under a new session id and prints the command that goes on
    with it; the original stays as it is. REF may be any commit, so a conversation can be continued from just before
    it went wrong. Where the runtime is not the one the conversation was held in, what could not be carried over is
    listed.

        harken resume ctx-1a2b3c4d --in codex
    """
    from harken.runtimes.resume import resume

    place, usual = runtime_home(runtime, home)
    done = resume(repo, ref, runtime=runtime, home=place, cwd=cwd or Path.cwd(), usual=usual)
    if as_json:
        ui.json_line(done)
    else:
        for loss in done.losses:
            ui.note(f"left out: {loss.count} × {loss.what} ({loss.why})")
    if execute:
        repo.close()
        _become(done)
    elif not as_json:
        ui.line(_spelled(done))


def _spelled(done: Resumed) -> str:
    """The command as one would type it."""
    said = shlex.join(done.command)
    for name, value in done.environment.items():
        said = f"{name}={shlex.quote(value)} {said}"
    return said if done.cwd == str(Path.cwd()) else f"cd {shlex.quote(done.cwd)} && {said}"


def _become(done: Resumed) -> None:
    """Turn into the runtime, in the folder it should think it is in."""
    os.chdir(done.cwd)
    try:
        os.execvpe(done.command[0], done.command, dict(os.environ) | done.environment)  # noqa: S606 (named above)
    except FileNotFoundError:
        raise NotFound(f"{done.command[0]!r} is not on PATH", hint=f"when it is: {_spelled(done)}") from None
