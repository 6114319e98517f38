"""`harken run`: a runtime under observation."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from . import completing, ui
from .options import REF, make_repo_for_run, report_spools
from .resume import show_losses
from .runtimes import RuntimeName, environment, working_folder

if TYPE_CHECKING:
    from harken.repo import Repo


class RunCommand(click.Command):
    """A command that says where the options of another program go."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as problem:
            if problem.option_name == "--store":
                raise
            text = f"{problem.format_message()} What is for the runtime goes behind `--`: `harken run RUNTIME -- ARGS`"
            raise click.UsageError(text, ctx) from None


@click.command("run", cls=RunCommand)
@click.argument("runtime", type=RuntimeName("run"))
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- ARGS...")
@click.option(
    "--from",
    "ref",
    metavar="REF",
    type=REF,
    shell_complete=completing.refs,
    help="Continue from this commit, session, branch or tag",
)
@click.option("--ticket", default="", help="The ticket being worked on; goes onto every commit")
@click.option("--thread", default="", help="The thread this conversation belongs to; goes onto every commit")
@click.option("--principal", default="", help="Who runs it (default: the runtime and the session)")
@click.option("--template", "template_name", default="", help="A named TOML file that says what kind of agent this is")
@click.option(
    "--every", default="turn", metavar="WHEN", help="When to commit: turn (default), tool, end, or a number of turns"
)
@make_repo_for_run
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
    """Run Claude Code, Codex or another runtime and keep what it knows as it goes

    The runtime is started with the arguments behind `--` and shows what it would have shown. Meanwhile every turn
    becomes a commit on the branch `live/SESSION`, and the tools the agent calls can ask `harken current-context`
    which commit holds what the agent knows at that moment. The exit status is the runtime's.

    A template lies in the folder `templates` of Harken's configuration: runtime, model, system_prompt,
    append_system_prompt and arguments.

        harken run claude-code --ticket 17 -- -p "Fix the failing test"

    Any other program is run as `generic`: its command line is the prompt, and each line that it prints is kept.

        harken run generic -- ./agent.sh "Fix the failing test"
    """
    import harken
    from harken.api.running import RunRequest, run

    request = RunRequest(
        runtime=runtime,
        words=words,
        cwd=str(working_folder()),
        environ=_environment(),
        ref=ref or "",
        principal=principal,
        ticket_id=ticket,
        thread_id=thread,
        frequency=f"every={every}" if every.isdigit() else every,
        template=template_name,
    )
    said: list[str] = []

    def warn(text: str) -> None:
        said.append(text)
        ui.warn(text)

    output = harken.RunOutput(
        show=_show,
        note=ui.note,
        warn=warn,
        resumed=lambda done: show_losses(done.losses),
        stdin=None if sys.stdin is None or sys.stdin.isatty() else sys.stdin.fileno(),
    )
    ended = run(repo, request, output=output)
    if not (ended.is_stored and ended.is_over):
        ui.leave_at_once(ended.status)
    if ended.index:
        ui.warn(f"the index is behind: {ended.index}")
    report_spools(repo, said)
    sys.exit(ended.status)


def _environment() -> dict[str, str]:
    """What the runtime is started with: a `harken` that its agent calls finds the store that this run writes to."""
    from .config import store_of

    location = store_of(click.get_current_context())
    if not location:
        return environment()
    from harken.repo import absolute_location

    return environment() | {"HARKEN_STORE": absolute_location(location)}


def _show(data: bytes) -> None:
    try:
        ui.raw(data)
    except BrokenPipeError:
        ui.detach_stdout()
        raise
