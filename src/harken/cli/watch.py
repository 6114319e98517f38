"""`harken watch`: import, and go on importing."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

import click

from harken.errors import HarkenError

from . import ui
from .import_ import Report, session_files, show, starting_points
from .options import json_option, make_repo
from .runtimes import RuntimeName, all_runtimes

if TYPE_CHECKING:
    from harken.repo import Repo
    from harken.runtimes import Runtime


@click.command("watch")
@click.argument("paths", nargs=-1, type=click.Path())
@click.option(
    "--runtime", "runtimes", multiple=True, type=RuntimeName("import"), metavar="R", help="Only this runtime's sessions"
)
@click.option(
    "--interval", type=click.FloatRange(min=0.05), default=0.5, show_default=True, help="Seconds between looks"
)
@click.option("--principal", metavar="WHO", help="Whose sessions they are (default: <runtime>:<session>)")
@json_option
@make_repo
def watch_command(
    repo: Repo,
    paths: tuple[str, ...],
    runtimes: tuple[Runtime, ...],
    interval: float,
    principal: str | None,
    as_json: bool,
) -> None:
    """Go on importing as sessions grow

    Imports what is there, then keeps looking until it is stopped with Ctrl-C, which loses nothing:

        harken watch
        harken watch ~/.claude/projects --interval 2
    """
    from harken.runtimes.watch import watch

    chosen = list(runtimes) or all_runtimes()
    if not starting_points(paths, chosen):
        raise HarkenError("no runtime has left sessions here yet", hint="name a folder: `harken watch PATH`")
    stop = threading.Event()

    def ask_to_stop(*_: Any) -> None:
        stop.set()

    before = {number: signal.signal(number, ask_to_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    report = Report()
    if not as_json:
        ui.note("watching; Ctrl-C stops")
    try:
        outcomes = watch(
            repo.store,
            chosen,
            lambda: session_files(starting_points(paths, chosen), chosen),
            interval=interval,
            stop=stop,
            now=repo.clock,
            principal=principal or "",
        )
        for outcome in outcomes:
            report.add(outcome)
            show(outcome, as_json=as_json)
            ui.flush()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if as_json:
        ui.json_line({"report": report.values()})
    else:
        ui.note(report.sentence())
