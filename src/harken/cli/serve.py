"""`harken serve`: the store as a page, and behind HTTP and a Unix socket."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from . import ui
from .config import prices
from .options import json_option, serve_repo
from .runtimes import environment, warn_of_plugins
from .secret_rules import own_rules
from .watch import stop_by_signals

if TYPE_CHECKING:
    from harken.repo import Repo

PORT = 8037
_LOOK = 0.5


@click.command("serve")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help=f"The port on this machine; 0 takes a free one (default: {PORT}, or none with --socket)",
)
@click.option(
    "--socket", type=click.Path(dir_okay=False, path_type=Path), metavar="PATH", help="Listen on a Unix socket, too"
)
@click.option("--watch/--no-watch", default=True, help="Import what is there, and go on as sessions grow (default)")
@click.option("--read-only", is_flag=True, help="Refuse whatever would change the store")
@click.option("--open/--no-open", "wants_browser", default=None, help="Open the browser (default: on a desktop)")
@click.option(
    "--log",
    "log_file",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Add a line of JSON for each request, without contents; `-` is stderr",
)
@json_option
@serve_repo
def serve_command(
    repo: Repo,
    port: int | None,
    socket: Path | None,
    watch: bool,
    read_only: bool,
    wants_browser: bool | None,
    log_file: Path | None,
    as_json: bool,
) -> int:
    """Show the store as a page, and answer programs over HTTP or a socket

    Prints an address that signs a browser in: it works once, within ten minutes. Programs need a token (`harken token
    create`), or come over the socket, where the owner may do everything. Only this machine can ask. Sessions are
    imported as they grow, unless --no-watch or --read-only says otherwise. Ctrl-C stops it. For example:

        harken serve
        harken serve --port 0 --no-watch --no-open
        harken serve --socket ~/.harken/socket
        harken serve --read-only --log access.jsonl

    It needs more than the rest of Harken: pip install 'harken[serve]'
    """
    _check_extra()
    from harken.service.running import Listening, RunningService
    from harken.service.settings import ServiceSettings

    os.umask(0o077)
    warn_of_plugins()
    if port is None and socket is None:
        port = PORT
    where = Listening(
        port=port, socket=None if socket is None else socket.expanduser().absolute(), watch=watch and not read_only
    )
    usual = {"environ": environment(), "prices": prices() or "", "own_rules": own_rules()}
    settings = ServiceSettings(read_only=read_only, usual=usual)
    with _log_stream(log_file) as log, stop_by_signals() as stop:
        service = RunningService(repo, where, settings=settings, log=log)
        with service:
            url = service.login_url()
            _tell(url, service.port, service.socket, as_json=as_json)
            if url and (_is_desktop() if wants_browser is None else wants_browser):
                _open_browser(url)
            while not stop.wait(_LOOK):
                if service.problem is not None:
                    from harken.errors import HarkenError

                    raise HarkenError(f"the service has ended: {service.problem}", hint="start it again")
    return 0


def _check_extra() -> None:
    """Say what to install, where the service cannot be loaded."""
    try:
        import harken.service.running  # noqa: F401
    except ModuleNotFoundError as problem:
        from harken.errors import NotFound

        if (problem.name or "").partition(".")[0] not in ("starlette", "uvicorn", "anyio", "h11"):
            raise
        hint = "pip install 'harken[serve]'"
        raise NotFound(f"`harken serve` needs {problem.name}, which is not installed", hint=hint) from None


def _tell(url: str, port: int | None, socket: Path | None, *, as_json: bool) -> None:
    if as_json:
        ui.json_line({"url": url or None, "port": port, "socket": None if socket is None else str(socket)})
    else:
        if url:
            ui.line(url)
            ui.note("open this address within ten minutes; it signs one browser in, once. Ctrl-C stops")
        if socket is not None:
            ui.note(f"listening on {socket}")
    ui.flush()


def _is_desktop() -> bool:
    """Whether a browser would open where the user can see it."""
    known = os.environ
    if not ui.is_terminal() or known.get("CI") or known.get("SSH_CONNECTION"):
        return False
    return sys.platform == "darwin" or bool(known.get("DISPLAY") or known.get("WAYLAND_DISPLAY"))


def _open_browser(url: str) -> None:
    import webbrowser

    try:
        opened = webbrowser.open(url)
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        ui.note("no browser could be opened; open the address yourself")


@contextlib.contextmanager
def _log_stream(file: Path | None) -> Iterator[IO[str] | None]:
    if file is None or str(file) == "-":
        yield None if file is None else sys.stderr
        return
    handle = os.open(file.expanduser(), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "a", encoding="utf-8") as stream:
        yield stream
