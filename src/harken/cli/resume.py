"""`harken resume`: go on with a conversation, in the runtime it came from or in another."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harken.errors import HarkenError, NotFound

from . import completing, ui
from .options import REF, change_repo, json_option
from .runtimes import RuntimeName, environment, working_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harken.api.runtimes import ResumeAnswer
    from harken.api.writing import LossAnswer
    from harken.formats import Loss
    from harken.repo import Repo


@click.command("resume")
@click.argument("ref", type=REF, shell_complete=completing.refs)
@click.option("--in", "runtime", required=True, type=RuntimeName("resume"), metavar="RUNTIME", help="Where to go on")
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="The runtime's own folder (such as ~/.claude or CODEX_HOME), if not the usual one",
)
@click.option(
    "--cwd",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Where the runtime should think it is (default: the current folder)",
)
@click.option("--budget", type=click.IntRange(min=1), metavar="TOKENS", help="Take along about so many tokens at most")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Take along the last N turns as they are")
@click.option("--compact", is_flag=True, help="Take along the last turn, and a summary of all before it")
@click.option("--narrative", is_flag=True, help="Take it along as one message that tells what happened")
@click.option("--model", default="", metavar="M", help="Have this model write the summary")
@click.option("--exec", "execute", is_flag=True, help="Start the runtime at once")
@json_option
@change_repo
def resume_command(
    repo: Repo,
    ref: str,
    runtime: str,
    home: Path | None,
    cwd: Path | None,
    budget: int | None,
    last: int | None,
    compact: bool,
    narrative: bool,
    model: str,
    execute: bool,
    as_json: bool,
) -> None:
    """Continue a conversation in Claude Code, Codex or another runtime

    Writes the conversation into the runtime's own place under a new session id and prints the command that goes on
    with it; the original stays as it is. REF may be any commit, so a conversation can be continued from just before
    it went wrong. Where the runtime is not the one the conversation was held in, what could not be carried over is
    listed. Of a conversation that is too long, --budget, --last or --compact take along the newest part and a summary
    of the rest, which is listed too and stays in the store.

        harken resume ctx-1a2b3c4d --in codex

        harken resume review --in claude-code --budget 50000
    """
    from harken.api.runtimes import ResumeRequest, resume

    if compact and last is not None:
        raise click.UsageError("--compact is --last 1; give one of the two")
    request = ResumeRequest(
        ref=ref,
        runtime=runtime,
        cwd=str(cwd or working_folder()),
        home=None if home is None else str(home),
        environ=environment(),
        budget=budget,
        last=1 if compact else last,
        narrative=narrative,
        model=model,
    )
    done = resume(repo, request)
    if as_json:
        ui.json_line(done)
    else:
        show_losses(done.losses)
    if execute:
        repo.close()
        _become(done)
    elif not as_json:
        ui.line(_spelled(done))


def show_losses(losses: Iterable[Loss | LossAnswer]) -> None:
    """Say what could not be carried over."""
    for loss in losses:
        ui.note(f"left out: {loss.count} × {loss.what} ({loss.why})")


def _spelled(done: ResumeAnswer) -> str:
    """The commands as one would type them."""
    setting = "".join(f"{name}={shlex.quote(value)} " for name, value in done.environment.items())
    said = " && ".join(setting + shlex.join(command) for command in (*done.prepare, done.command))
    try:
        here = str(Path.cwd())
    except FileNotFoundError:  # it was removed, and the program goes elsewhere
        here = ""
    return said if done.cwd == here else f"cd {shlex.quote(done.cwd)} && {said}"


def _become(done: ResumeAnswer) -> None:
    """Turn into the runtime, in the folder it should think it is in."""
    import subprocess

    spelled = _spelled(done)  # from here; afterwards we are there
    os.chdir(done.cwd)
    env = dict(os.environ) | done.environment
    program = done.command[0]
    try:
        for command in done.prepare:
            program = command[0]
            if status := subprocess.run(command, env=env).returncode:
                raise HarkenError(
                    f"`{shlex.join(command)}` failed with exit status {status}",
                    hint="what it printed says why; nothing else was started",
                )
        program = done.command[0]
        os.execvpe(program, done.command, env)  # noqa: S606 (named above)
    except FileNotFoundError:
        raise NotFound(f"{program!r} is not on PATH", hint=f"when it is: {spelled}") from None
