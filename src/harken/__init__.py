"""Harken keeps what agents did, what each of them heard and what each of them knew.

The packages, in the order data meets them. A package may import those after its arrow, and the floor
(`errors`, `ids`, `clock`, `files`, `text`), which belongs to everybody:

    events                                                         what happened, as frozen values
    secrets                                                        what looks like a key: rules, spans, masked text
    formats    <- events                                           one file per format: bytes to events and back
    log        <- events formats                                   the session log, appended and never edited
    capture    <- events secrets formats log                       what SDKs send and hear, and session documents
    agents     <- events secrets log                               the native runtime: agents, tools, hooks, models
    store                                                          bytes by hash, commits, names; knows no event
    context    <- events formats store                             checkpoint, materialize, fork, compact, translate
    runtimes   <- events formats store context                     where sessions lie; import, watch, run, resume
    analytics  <- events                                           folds for numbers
    views      <- events formats log analytics                     folds for people
    index      <- events formats store context analytics           words, rows and numbers in a file beside the store
    repo       <- events secrets formats log agents store context runtimes views analytics index   operations
    api        <- events secrets formats log agents store context runtimes views analytics index repo   typed operations
    service    <- events api repo views                            the operations behind HTTP and a Unix socket
    client     <- events secrets formats store context runtimes views analytics index repo api   `Repo` over a wire
    cli        <- formats views repo api service                   one file per command
    testing    <- events formats store context runtimes repo       contract suites and builders for others

A test compares this map with the imports: what nobody uses is not on it.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as `typing` has it, whose loading would be a good part of ours
if TYPE_CHECKING:
    import os
    from typing import Any

    from . import capture as capture
    from .agents import Agent as Agent
    from .agents import load_session as load_session
    from .clock import Clock
    from .context import Diff as Diff
    from .context import Materialized as Materialized
    from .context import Shown as Shown
    from .context import Tracker as Tracker
    from .errors import Ambiguous as Ambiguous
    from .errors import BadRecord as BadRecord
    from .errors import BadRequest as BadRequest
    from .errors import Closed as Closed
    from .errors import Conflict as Conflict
    from .errors import Corrupt as Corrupt
    from .errors import Evicted as Evicted
    from .errors import Forgotten as Forgotten
    from .errors import HarkenError as HarkenError
    from .errors import LimitReached as LimitReached
    from .errors import Locked as Locked
    from .errors import ModelFailed as ModelFailed
    from .errors import NotAllowed as NotAllowed
    from .errors import NotFound as NotFound
    from .errors import Poisoned as Poisoned
    from .errors import Unreachable as Unreachable
    from .errors import Waiting as Waiting
    from .events import Event as Event
    from .events import Prompt as Prompt
    from .events import Response as Response
    from .events import Thinking as Thinking
    from .events import ToolCall as ToolCall
    from .events import ToolResult as ToolResult
    from .log import LoggedString as LoggedString
    from .log import Session as Session
    from .repo import Repo as Repo
    from .repo import default_location as default_location
    from .runtimes.run import RunOutput as RunOutput
    from .store import Change as Change
    from .store import Commit as Commit
    from .store import Name as Name
    from .views import SessionViewer as SessionViewer

__version__ = "0.1.0"

# Promised names and the module each lives in. They are looked up when first asked for, so that `import harken`
# costs next to nothing and never pulls in an extra.
_HOME = {
    "Repo": "repo",
    "default_location": "repo",
    "RunOutput": "runtimes.run",
    "Tracker": "context",
    "Diff": "context",
    "Materialized": "context",
    "Shown": "context",
    "Change": "store",
    "Commit": "store",
    "Name": "store",
    "Event": "events",
    "Prompt": "events",
    "Response": "events",
    "Thinking": "events",
    "ToolCall": "events",
    "ToolResult": "events",
    "HarkenError": "errors",
    "BadRequest": "errors",
    "Ambiguous": "errors",
    "Closed": "errors",
    "NotFound": "errors",
    "Evicted": "errors",
    "Forgotten": "errors",
    "Conflict": "errors",
    "LimitReached": "errors",
    "Locked": "errors",
    "BadRecord": "errors",
    "Poisoned": "errors",
    "ModelFailed": "errors",
    "Corrupt": "errors",
    "NotAllowed": "errors",
    "Unreachable": "errors",
    "Waiting": "errors",
    "Agent": "agents",
    "load_session": "agents",
    "LoggedString": "log",
    "Session": "log",
    "SessionViewer": "views",
}

__all__ = ["__version__", "capture", "open", *sorted(_HOME)]


def open(
    path_or_url: str | os.PathLike[str] | None = None,
    *,
    create: bool = True,
    damaged: bool = False,
    clock: Clock | None = None,
    token: str = "",
) -> Repo:
    """Open the store at a path or URL; without one, the user's own.

    One that is not there is made, or with `create=False` is `NotFound`. One that cannot be read through is `Corrupt`;
    with `damaged=True` what is left of it can be looked at, and `repo.damage` says what is wrong.

    `http://HOST:PORT`, `https://…` and `unix:PATH` name a service (`harken serve`), which answers like the store; over
    HTTP it wants a `token` (`harken token create`)."""
    from . import clock as clocks
    from .repo import is_service
    from .repo import open as open_store

    now = clock or clocks.now
    if isinstance(path_or_url, str) and is_service(path_or_url):
        from .client import RemoteRepo

        return RemoteRepo(path_or_url, token=token, clock=now)
    return open_store(path_or_url, create=create, damaged=damaged, clock=now)


def __getattr__(name: str) -> Any:
    if name == "capture":  # a package that users name as it is: `harken.capture.openai(client, session)`
        return importlib.import_module(".capture", __name__)
    try:
        package = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'harken' has no attribute {name!r}") from None
    value = getattr(importlib.import_module(f".{package}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
