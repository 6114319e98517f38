"""Runtimes that run under Harken: start one, and ask which commit the agent that is running stands on."""

from __future__ import annotations

import msgspec

from harken.repo import Repo
from harken.runtimes.run import RunOutput
from harken.runtimes.socket import NO_ANSWER, ask

from .base import ApiAnswer, ApiRequest
from .crossing import crosses


class RunRequest(ApiRequest, frozen=True, kw_only=True):
    """What to run, and what is said of it."""

    runtime: str
    """The runtime."""
    words: tuple[str, ...] = ()
    """The runtime's own arguments, as one would type them."""
    cwd: str
    """The folder it works in."""
    environ: dict[str, str]
    """The environment it is started with."""
    ref: str = ""
    """The commit to go on from; empty for a fresh start."""
    principal: str = ""
    """Who runs it; empty: the runtime and the session."""
    ticket_id: str = ""
    """The ticket being worked on; goes onto every commit."""
    thread_id: str = ""
    """The thread the conversation belongs to; goes onto every commit."""
    frequency: str = "turn"
    """When to commit: `turn`, `tool`, `end` or `every=N` turns."""
    template: str = ""
    """What kind of agent it is: the name of a template, or the path of a `.toml` file."""
    template_folder: str | None = None
    """Where named templates lie; None: in the user's configuration folder, as `environ` tells."""
    socket_folder: str | None = None
    """A folder of the user's own for the context socket; None: as `environ` tells."""


class RunAnswer(ApiAnswer, frozen=True, kw_only=True):
    """How a run ended."""

    status: int
    """The runtime's exit status, or 128 and the number of the signal that ended it."""
    session: str
    """The session it held; empty where it never said."""
    context_id: str
    """The short name of the commit that holds what it knew at the end; empty where there is none."""
    is_stored: bool = True
    """Whether everything that was heard of the run is in the store."""
    is_over: bool = True
    """Whether nothing is being done any longer: a thread may still wait for the store, or read the run's files."""
    spool: str = ""
    """The file that holds what could not be stored yet; the next command that writes stores it."""
    index: str = ""
    """Why the index could not be brought up to date; empty where it was, or where the run is not all stored."""


@crosses
def run(repo: Repo, request: RunRequest, *, output: RunOutput | None = None) -> RunAnswer:
    """Start a runtime, stay with it to its end, and keep what it knows while it works. `output` takes what it shows."""
    ended = repo.run(
        request.runtime,
        request.words,
        cwd=request.cwd,
        environ=request.environ,
        start=request.ref or None,
        output=output,
        principal=request.principal,
        ticket_id=request.ticket_id,
        thread_id=request.thread_id,
        frequency=request.frequency,
        template=request.template,
        template_folder=request.template_folder,
        socket_folder=request.socket_folder,
    )
    index = repo.keep_index(numbers=False) if ended.is_stored else ""
    return RunAnswer(**msgspec.structs.asdict(ended), index=index)


class CurrentContextRequest(ApiRequest, frozen=True, kw_only=True):
    """Which run to ask."""

    socket: str = ""
    """The context socket that the run has put into the environment; empty outside a run."""


class CurrentContextAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Where the running agent stands."""

    context_id: str
    """The short name of the commit that holds what it knows; empty outside a run, or where nothing is kept yet."""
    reason: str = ""
    """Why no commit can be named: it cannot be told which of several agents asks, or the store cannot be written."""


def current_context(repo: None, request: CurrentContextRequest) -> CurrentContextAnswer:
    """The commit that the running agent stands on. Asks the run and not a store: `repo` is None. Never fails."""
    found = ask(request.socket) if request.socket else NO_ANSWER
    return CurrentContextAnswer(context_id=found.context_id, reason=found.reason)
