"""`harken run`: a runtime under observation."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harken import clock
from harken.errors import BadRequest, NotFound

from . import ui
from .options import make_repo
from .places import runtime_home, socket_folder, template_folder

if TYPE_CHECKING:
    from harken.context import Tracker
    from harken.repo import Repo
    from harken.runtimes.recorder import Opening, Reader


@click.command("run")
@click.argument("runtime", type=click.Choice(["claude-code", "codex"]))
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- ARGS...")
@click.option("--from", "ref", metavar="REF", help="Continue from this commit, session, branch or tag")
@click.option("--ticket", default="", help="The ticket being worked on; goes onto every commit")
@click.option("--thread", default="", help="The thread this conversation belongs to; goes onto every commit")
@click.option("--principal", default="", help="Who runs it (default: the runtime and the session)")
@click.option("--template", "template_name", default="", help="A named TOML file that says what kind of agent this is")
@click.option(
    "--every", default="turn", metavar="WHEN", help="When to commit: turn (default), tool, end, or a number of turns"
)
@make_repo
def run_command(
    repo: Repo,
    runtime: str,
    words: tuple[str, ...],
    ref: str | None,
    ticket: str,
    thread: str,
    principal: str,
    template_name: str,
    every: str,
) -> None:
    """Run Claude Code or Codex and keep what it knows as it goes

    The runtime is started with the arguments behind `--` and shows what it would have shown. Meanwhile every turn
    becomes a commit on the branch `live/SESSION`, and the tools the agent calls can ask `harken current-context`
    which commit holds what the agent knows at that moment. The exit status is the runtime's.

    A template lies in the folder `templates` of Harken's configuration: runtime, model, system_prompt,
    append_system_prompt and arguments.

        harken run claude-code --ticket 17 -- -p "Fix the failing test"
    """
    from harken.context import turns
    from harken.runtimes.arguments import plan_run
    from harken.runtimes.live import track
    from harken.runtimes.recorder import Recorder
    from harken.runtimes.run import Run
    from harken.runtimes.templates import find_template, template_arguments

    arguments = list(words)
    if template_name:
        template = find_template(template_name, template_folder())
        if template.runtime != runtime:
            raise BadRequest(f"template {template.name!r} is for {template.runtime}, not for {runtime}")
        arguments = _with_template(runtime, template_arguments(template), arguments)
        template_name = template.name
    frequency = f"every={every}" if every.isdigit() else every
    turns.frequency(frequency)
    # The words are looked at before anything is written for a resume.
    plan_run(runtime, arguments, resume="x" if ref else "")
    program = _find_program(runtime)
    session = source = ""
    if ref:
        from harken.runtimes.resume import resume

        home, usual = runtime_home(runtime, None)
        resumed = resume(repo, ref, runtime=runtime, home=home, cwd=Path.cwd(), usual=usual)
        session, source = resumed.session, resumed.source
        for loss in resumed.losses:
            ui.note(f"left out: {loss.count} × {loss.what} ({loss.why})")

    def open_tracker(opening: Opening) -> Tracker:
        return track(
            repo,
            opening,
            runtime=runtime,
            principal=principal,
            template=template_name or runtime,
            ticket_id=ticket,
            thread_id=thread,
            frequency=frequency,
            source=source,
            on_warning=ui.warn,
        )

    recorder = Recorder(_reader(runtime), open_tracker, ui.warn)
    stdin = None if sys.stdin is None or sys.stdin.isatty() else sys.stdin.fileno()
    wrapped = Run(plan_run(runtime, arguments, resume=session), recorder, out=_show, note=ui.note, stdin=stdin)
    ended = wrapped.go(program, environment=_environment(), socket_folder=socket_folder())
    sys.exit(ended.status)


def _environment() -> dict[str, str]:
    """What the runtime is started with: a `harken` that its agent calls finds the store that this run writes to."""
    location = click.get_current_context().find_root().obj
    if not location:
        return dict(os.environ)
    return dict(os.environ) | {"HARKEN_STORE": location if "://" in location else str(Path(location).absolute())}


def _show(data: bytes) -> None:
    try:
        ui.raw(data)
    except BrokenPipeError:
        ui.detach_stdout()
        raise


def _with_template(runtime: str, said: list[str], words: list[str]) -> list[str]:
    """The template's words where the runtime's own options go; what the user typed comes later and wins."""
    if runtime == "codex" and words:
        return [words[0], *said, *words[1:]]
    return [*said, *words]


def _reader(runtime: str) -> Reader:
    if runtime == "claude-code":
        import harken.formats.claude_stream as claude_stream

        return claude_stream.ClaudeStreamReader()
    import harken.formats.codex_stream as codex_stream

    # Codex numbers its items anew in every run of a thread.
    return codex_stream.CodexStreamReader(f"{clock.now():x}")


def _find_program(runtime: str) -> str:
    name = {"claude-code": "claude", "codex": "codex"}[runtime]
    if (found := shutil.which(name)) is None:
        raise NotFound(f"{name!r} is not on PATH", hint=f"install {runtime} first, or put it on PATH")
    return found
