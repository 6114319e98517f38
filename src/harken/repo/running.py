"""A runtime that runs under Harken: what a caller says of a run, made into what `runtimes.run` takes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

from harken import clock as clocks
from harken import ids, runtimes
from harken.errors import BadRequest
from harken.runtimes import Environment, user_home
from harken.runtimes.live import RunFacts
from harken.runtimes.run import Ended, RunOutput, RunPlan, run
from harken.runtimes.templates import find_template
from harken.store import Commit, Store


class RunSettings(TypedDict, total=False):
    """The keywords that `Repo.run` takes besides its own."""

    principal: str
    """Who runs it; the runtime and the session where nobody says."""
    ticket_id: str
    """The ticket being worked on; goes onto every commit."""
    thread_id: str
    """The thread the conversation belongs to; goes onto every commit."""
    frequency: str
    """When to commit: `turn` (the default), `tool`, `end` or `every=N` turns."""
    template: str
    """What kind of agent it is: the name of a template, or the path of a `.toml` file."""
    template_folder: str | os.PathLike[str] | None
    """Where named templates lie; None: in the user's configuration folder, as the environment tells."""
    socket_folder: str | os.PathLike[str] | None
    """A folder of the user's own for the context socket; None: as the environment tells."""


class RunStart(NamedTuple):
    """What is started, and where."""

    runtime: str
    words: Sequence[str]
    environ: Environment
    cwd: Path
    source: Commit | None
    machine: str


def run_runtime(
    store: Store, start: RunStart, settings: RunSettings, output: RunOutput | None, *, now: clocks.Clock
) -> Ended:
    """Run a runtime to its end; what it knew on the way is in the store."""
    runtime = runtimes.get(start.runtime)
    for name in ("principal", "ticket_id", "thread_id"):
        if not ids.is_text(str(settings.get(name, ""))):
            raise BadRequest(f"the {name.removesuffix('_id')} of a run is no text", hint="write it as UTF-8")
    sockets, templates = settings.get("socket_folder"), settings.get("template_folder")
    template = settings.get("template", "")
    plan = RunPlan(
        runtime=runtime,
        words=(start.words,) if isinstance(start.words, str) else tuple(start.words),
        environ=start.environ,
        cwd=start.cwd,
        socket_folder=socket_folder(start.environ) if sockets is None else Path(sockets),
        facts=RunFacts(
            runtime=runtime.name,
            principal=settings.get("principal", ""),
            machine=start.machine,
            ticket_id=settings.get("ticket_id", ""),
            thread_id=settings.get("thread_id", ""),
            frequency=settings.get("frequency", "turn"),
        ),
        source=start.source,
        template=_template(template, templates, start.environ) if template else None,
    )
    return run(store, plan, output or RunOutput(), now=now)


def _template(name: str, folder: str | os.PathLike[str] | None, environ: Environment) -> runtimes.Template:
    return find_template(name, template_folder(environ) if folder is None else Path(folder))


def socket_folder(environ: Environment) -> Path:
    """Where sockets go: the user's runtime folder, else the folder for temporary files."""
    given = environ.get("XDG_RUNTIME_DIR")
    return Path(given) if given and Path(given).is_dir() else Path(tempfile.gettempdir())


def template_folder(environ: Environment) -> Path:
    """Where templates lie: `harken/templates` in the user's configuration folder."""
    given = environ.get("XDG_CONFIG_HOME")
    return (Path(given) if given else user_home(environ) / ".config") / "harken" / "templates"
