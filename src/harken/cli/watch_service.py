"""`harken watch --install`: a file that has the system watch, shown before it is written, and what takes it away again.

On Linux it is a unit of the user's systemd, on macOS an agent of launchd. Both start the Python that runs now with the
options that were given, restart it when it fails, and say nothing to anybody else.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from harken.errors import BadRequest, HarkenError
from harken.files import write_whole

from . import ui
from .config import store_of
from .options import refuse_service
from .runtimes import environment

UNIT, AGENT = "harken-watch.service", "dev.harken.watch"
PLACES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME")


class ServiceFile(msgspec.Struct, frozen=True, kw_only=True):
    """What is written, and the commands around it."""

    path: str
    text: str
    start: tuple[tuple[str, ...], ...]
    """The commands that make it count."""
    end: tuple[tuple[str, ...], ...]
    """The commands that stop it, before the file is taken away."""
    after: tuple[tuple[str, ...], ...] = ()
    """The commands that have it forgotten, after that."""


class ServiceLine(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, for `--json`."""

    status: str
    """`shown`, `installed`, `removed` or `absent`."""
    path: str
    text: str


def act(ctx: click.Context, action: str, *, yes: bool, as_json: bool, **settings: Any) -> None:
    """Show, install or take away what has the system watch."""
    file = service_file(sys.platform, _command(ctx, **settings), environment(), _places(), os.getuid())
    if action == "uninstall":
        status = _take_away(file, yes, as_json)
    else:
        if not as_json:
            ui.note(f"{file.path}:")
            ui.block(file.text.rstrip("\n"))
        status = "shown" if action == "print" else _write(file, yes, as_json)
    if as_json:
        ui.json_line(ServiceLine(status=status, path=file.path, text=file.text))
    elif status != "shown":
        ui.note(_SAID[status].format(path=file.path))


_SAID = {
    "installed": "installed: the system watches from now on; `harken watch --uninstall` ends that",
    "removed": "removed {path}; nobody watches any more",
    "absent": "there is nothing at {path}",
}


def _places() -> list[str]:
    """Variables that say where things lie: the system starts programs without those of a shell."""
    from harken.api.runtimes import RuntimesRequest, runtimes

    named = [name for one in runtimes(None, RuntimesRequest(home="/")) for name in one.environment]
    return [*PLACES, *named]


def _command(
    ctx: click.Context,
    paths: tuple[str, ...],
    runtimes: tuple[str, ...],
    interval: float,
    poll: bool,
    verbose: bool,
    principal: str,
) -> list[str]:
    """The words that watch as this command would; paths are those that were meant here."""
    given = ctx.find_root().params.get("location")
    words = [sys.executable, "-m", "harken"]
    if given is not None and (location := store_of(ctx)):
        from harken.repo import absolute_location

        refuse_service(location, "a watch")
        words += ["--store", absolute_location(location)]
    words += ["watch", "--interval", f"{interval:g}", *(word for one in runtimes for word in ("--runtime", one))]
    words += ["--poll"] if poll else []
    words += ["--verbose"] if verbose else []
    words += ["--principal", principal] if principal else []
    return [*words, *(["--", *(str(Path(path).absolute()) for path in paths)] if paths else [])]


# -- what is written ---------------------------------------------------------------------------------------------------


def service_file(
    system: str, command: Sequence[str], environ: Mapping[str, str], names: Sequence[str], user: int
) -> ServiceFile:
    """What a system needs to be told, with the variables of these names; `BadRequest` for one that has neither systemd
    nor launchd."""
    kept = {name: environ[name] for name in names if environ.get(name)}
    home = Path(environ.get("HOME") or "/")
    if strange := [word for word in (*command, *kept.values()) if not word.isprintable()]:
        raise BadRequest(f"{strange[0]!r} cannot stand in a service", hint="give a path without control characters")
    if system == "darwin":
        return _launchd(home / "Library" / "LaunchAgents" / f"{AGENT}.plist", command, kept, f"gui/{user}")
    if system.startswith("linux"):
        base = environ.get("XDG_CONFIG_HOME", "")
        folder = Path(base) if Path(base).is_absolute() else home / ".config"
        return _systemd(folder / "systemd" / "user" / UNIT, command, kept)
    raise BadRequest(
        f"it is not known how {system} starts programs", hint="have `harken watch` started when you log in"
    )


def _systemd(path: Path, command: Sequence[str], kept: Mapping[str, str]) -> ServiceFile:
    words = " ".join(_quoted(word).replace("$", "$$") for word in command)
    settings = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in kept.items())
    text = (
        "[Unit]\n"
        "Description=Harken keeps the sessions of Claude Code, Codex and other runtimes\n\n"
        "[Service]\n"
        f"ExecStart={words}\n"
        f"{settings}"
        "Restart=on-failure\n"
        "RestartSec=30\n"
        "Nice=10\n\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )
    control = ("systemctl", "--user")
    return ServiceFile(
        path=str(path),
        text=text,
        start=((*control, "daemon-reload"), (*control, "enable", UNIT), (*control, "restart", UNIT)),
        end=((*control, "disable", "--now", UNIT),),
        after=((*control, "daemon-reload"),),
    )


def _quoted(word: str) -> str:
    """A word as systemd reads it: quoted, with its own signs doubled."""
    inside = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{inside}"'


def _launchd(path: Path, command: Sequence[str], kept: Mapping[str, str], domain: str) -> ServiceFile:
    import plistlib

    settings = {
        "Label": AGENT,
        "ProgramArguments": list(command),
        "EnvironmentVariables": dict(kept),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 30,
        "ProcessType": "Background",
        "StandardErrorPath": str(path.parent.parent / "Logs" / "harken-watch.log"),
    }
    return ServiceFile(
        path=str(path),
        text=plistlib.dumps(settings, sort_keys=False).decode(),
        start=(("launchctl", "bootstrap", domain, str(path)),),
        end=(("launchctl", "bootout", f"{domain}/{AGENT}"),),
    )


# -- doing it ----------------------------------------------------------------------------------------------------------


def _confirm(question: str, yes: bool, as_json: bool) -> None:
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise BadRequest("nothing was done, since nobody is there to be asked", hint="--yes does it without asking")
    if not click.confirm(question, err=True):
        ui.note("nothing was done")
        raise click.exceptions.Exit(1)


def _write(file: ServiceFile, yes: bool, as_json: bool) -> str:
    path = Path(file.path)
    _confirm("Write this, and have the system watch?", yes, as_json)
    if path.is_file():
        _run_all(file.end, strict=False)  # launchd starts nothing that it knows already
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, file.text.encode(), replace=True)
    if problem := _run_all(file.start, strict=True):
        raise HarkenError(f"{path} was written, but {problem}", hint="`harken watch --uninstall` takes it away again")
    return "installed"


def _take_away(file: ServiceFile, yes: bool, as_json: bool) -> str:
    path = Path(file.path)
    if not path.is_file():
        return "absent"
    _confirm(f"Remove {path}, and have nobody watch?", yes, as_json)
    problem = _run_all(file.end, strict=True)
    path.unlink()
    _run_all(file.after, strict=False)
    if problem:
        raise HarkenError(f"{path} was removed, but {problem}", hint="what still watches ends when you log out")
    return "removed"


def _run_all(commands: Sequence[Sequence[str]], *, strict: bool) -> str:
    """Run the commands; what went wrong, and nothing where that does not matter."""
    for words in commands:
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as problem:
            wrong = f"`{' '.join(words)}` failed: {problem}"
        else:
            lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
            wrong = f"`{' '.join(words)}` failed: {lines[-1]}" if done.returncode else ""
        if wrong and strict:
            return wrong
    return ""
