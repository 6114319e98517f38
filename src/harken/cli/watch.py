"""`harken watch`: import, and go on importing."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from . import completing, ui
from .import_ import show, show_report
from .options import PATH, json_option, make_repo
from .runtimes import RuntimeName, environment, warn_of_plugins

if TYPE_CHECKING:
    from harken.repo import Repo


class StopRequest(threading.Event):
    """An event that a signal handler may set. That of `threading` takes a lock, which the very `wait` that the signal
    interrupted may hold: both would then wait for ever."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = False
        self._reader, self._writer = os.pipe()

    def set(self) -> None:
        """Ask to stop."""
        if not self._asked:
            self._asked = True
            os.write(self._writer, b"!")

    def is_set(self) -> bool:
        """Whether somebody has asked."""
        return self._asked

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until somebody asks, or for so many seconds."""
        select.select([self._reader], [], [], timeout)
        return self._asked

    def close(self) -> None:
        """Give back what it holds; afterwards nobody may ask any more."""
        os.close(self._reader)
        os.close(self._writer)


@contextmanager
def stop_by_signals() -> Iterator[StopRequest]:
    """What Ctrl-C and SIGTERM set, instead of ending the command, while it runs."""
    stop = StopRequest()

    def ask_to_stop(*_: Any) -> None:
        stop.set()

    before = {number: signal.signal(number, ask_to_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop.close()


@click.command("watch")
@click.argument("paths", nargs=-1, type=PATH, shell_complete=completing.files)
@click.option(
    "--runtime", "runtimes", multiple=True, type=RuntimeName("import"), metavar="R", help="Only this runtime's sessions"
)
@click.option(
    "--interval", type=click.FloatRange(min=0.05), default=0.5, show_default=True, help="Seconds between looks"
)
@click.option("--poll", is_flag=True, help="Look at every file each time, as a file system over a network may need it")
@click.option("-v", "--verbose", is_flag=True, help="Name the files that were passed over, and why")
@click.option("--principal", default="", metavar="WHO", help="Whose sessions they are (default: <runtime>:<session>)")
@click.option(
    "--install", "service", flag_value="install", help="Have the system watch from now on, whenever you log in"
)
@click.option("--uninstall", "service", flag_value="uninstall", help="Undo --install")
@click.option("--print", "service", flag_value="print", help="Show what --install would write, and write nothing")
@click.option("--yes", is_flag=True, help="With --install and --uninstall: do it without asking")
@json_option
@click.pass_context
def watch_command(ctx: click.Context, /, service: str | None, yes: bool, **settings: Any) -> None:
    """Go on importing as sessions grow

    Imports what is there, then keeps looking until it is stopped with Ctrl-C, which loses nothing. Runtimes delete
    their sessions after a while (Claude Code after 30 days); with --install the system itself watches, so that none is
    lost: with systemd on Linux, launchd on macOS. What is written for that is shown first.

        harken watch
        harken watch ~/.claude/projects --interval 2
        harken watch --install

    With `watchfiles` (pip install 'harken[watch]') the system tells what has changed, and waiting costs nothing.
    """
    if service is None and yes:
        raise click.UsageError("--yes goes with --install or --uninstall", ctx)
    if service is None:
        ctx.invoke(_watch, **settings)
        return
    from .watch_service import act

    act(ctx, service, yes=yes, **settings)


@make_repo
def _watch(
    repo: Repo,
    paths: tuple[str, ...],
    runtimes: tuple[str, ...],
    interval: float,
    poll: bool,
    verbose: bool,
    principal: str,
    as_json: bool,
) -> None:
    from harken.api.runtimes import ImportReport, WatchRequest, watch

    warn_of_plugins()
    if not as_json:
        ui.note("watching; Ctrl-C stops")
    request = WatchRequest(
        paths=paths,
        runtimes=runtimes,
        environ=environment(),
        interval=interval,
        poll=poll,
        principal=principal,
    )
    with stop_by_signals() as stop:
        for one in watch(repo, request, stop=stop):
            if isinstance(one, ImportReport):
                show_report(one, as_json=as_json, verbose=verbose)
            else:
                show(one, as_json=as_json)
            ui.flush()
