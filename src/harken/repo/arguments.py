"""What the annotations of `Repo` mean for its arguments, each of which is looked at (`harken.store.arguments`)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime
from types import NoneType
from typing import TypedDict

import msgspec

from harken.errors import BadRequest
from harken.events import Event
from harken.store import Commit, Name
from harken.store.arguments import PATH, PLAIN, TEXT
from harken.store.values import ArgumentKind

SessionOrFile = str | os.PathLike[str]
"""Text is a session of the store, a path object is a file."""

_REF = ArgumentKind("give a REF as text, or a Commit or Name that a method returned", (str, Commit, Name))
_FUNCTION = ArgumentKind("give a function, or None", (Callable, NoneType))
_SESSION = ArgumentKind("give a session's id as text, or a file as a path object", (str, os.PathLike), (os.PathLike,))
_PATH = ArgumentKind("give a path", (str, bytes, os.PathLike), (str, bytes, os.PathLike))
_RULE = ArgumentKind("give rules of `harken.secrets`", (Hashable,))  # to load them for this would take too long
_EVENT = ArgumentKind("give events", (Event,))

REPO = PLAIN | {
    "Ref": _REF,
    "Ref | None": ArgumentKind(f"{_REF.hint}, or None", (*_REF.types, NoneType)),
    "Time": ArgumentKind("give a text such as 2026-11-15T10:30:00Z, or a datetime", (str, int, datetime, NoneType)),
    "bytes | Sequence[Event] | None": ArgumentKind(
        "give bytes, or a list of events", (bytes, Iterable, NoneType), each=_EVENT
    ),
    "bytes | None": ArgumentKind("give bytes, or None", (bytes, NoneType)),
    "Iterable[Ref]": ArgumentKind("give a list of REFs", (Iterable,), each=_REF),
    "Iterable[str]": ArgumentKind("give a list of text", (Iterable,), each=TEXT),
    "Sequence[str]": ArgumentKind("give a list of names", (str, Iterable), each=TEXT),
    "str | os.PathLike[str] | None": ArgumentKind("give a path, or None", (*PATH.types, NoneType), PATH.paths),
    "Sequence[str | os.PathLike[str]]": ArgumentKind(
        "give a list of paths", (str, bytes, os.PathLike, Iterable), _PATH.paths, each=_PATH
    ),
    "SessionOrFile": _SESSION,
    "Session": ArgumentKind("give a session that is open", (Hashable,)),  # to load what one is would take too long
    "Sequence[Rule]": ArgumentKind("give a list of rules of `harken.secrets`", (list, tuple), each=_RULE),
    "Sequence[Rule] | None": ArgumentKind("give a list of rules, or None", (list, tuple, NoneType), each=_RULE),
    "Sequence[SessionOrFile]": ArgumentKind("give a list of sessions and files", (Iterable,), each=_SESSION),
    "Callable[[int], None] | None": _FUNCTION,
    "Callable[[IndexProgress], None] | None": _FUNCTION,
    "Environment": ArgumentKind("give the environment, a mapping of text", (Mapping,)),
    "Environment | None": ArgumentKind("give the environment, a mapping of text", (Mapping, NoneType)),
    "threading.Event | None": ArgumentKind("give a `threading.Event`", (threading.Event, NoneType)),
    "OnProgress | None": _FUNCTION,
    "RunOutput | None": ArgumentKind("give a `RunOutput`, or None", (msgspec.Struct, NoneType)),
}

_TEXT_OR_NONE, _NUMBER, _ORIGIN = PLAIN["str | None"], PLAIN["int | None"], PLAIN["dict[str, Any] | None"]
FACTS = {
    "commit_type": TEXT,
    "checkpoint": TEXT,
    **dict.fromkeys(("template", "principal", "machine", "session_id", "ticket_id", "thread_id"), _TEXT_OR_NONE),
    "message_count": _NUMBER,
    "token_count": _NUMBER,
    "spawned_from": _ORIGIN,
    "forked_from": REPO["Ref | None"],
}
"""The keywords of `CommitFacts`."""


class LessOptions(TypedDict, total=False):
    """How less than all of a conversation goes along. What is left out stays in the store."""

    budget: int | None
    """Tokens at most, about: the older part becomes a summary."""
    last: int | None
    """The last turns alone as they are: the older ones become a summary."""
    narrative: bool
    """All of it told as one message, within the budget where there is one."""
    model: str
    """The model that writes the summary; without one it is put together from the conversation's own words."""


LESS = {"budget": _NUMBER, "last": _NUMBER, "narrative": PLAIN["bool"], "model": TEXT}
"""The keywords of `LessOptions`."""


class ImportOptions(TypedDict, total=False):
    """How an import goes about it."""

    verify: bool
    """Read every file from its beginning, whatever its size and time say."""
    dry_run: bool
    details: bool
    """Whether the figures of sources that have not changed are wanted, too; they are unless this is False."""
    jobs: int
    """How many processes read at the same time; one unless this says more."""
    machine: str
    """Where the sessions ran, where that is known."""
    on_files: Callable[[int], None] | None
    """Is told how many files there are."""


IMPORTING = {
    **dict.fromkeys(("verify", "dry_run", "details"), PLAIN["bool"]),
    "jobs": PLAIN["int"],
    "machine": TEXT,
    "on_files": _FUNCTION,
}
"""The keywords of `ImportOptions`."""
RUN = {
    **dict.fromkeys(("principal", "ticket_id", "thread_id", "frequency", "template"), TEXT),
    **dict.fromkeys(("template_folder", "socket_folder"), REPO["str | os.PathLike[str] | None"]),
}
"""The keywords of `RunSettings`."""
SESSION = {
    **dict.fromkeys(("session_id", "language_model", "frequency", "principal", "ack"), _TEXT_OR_NONE),
    **dict.fromkeys(("on_warning", "clock"), _FUNCTION),
    "readonly": PLAIN["bool"],
}
TRACK = {
    **dict.fromkeys(("session_id", "principal", "template", "machine", "ticket_id", "thread_id", "frequency"), TEXT),
    **dict.fromkeys(("parent", "forked_from", "branch"), TEXT),
    "on_warning": _FUNCTION,
    "spawned_from": _ORIGIN,
}


def check_limit(limit: int | None) -> None:
    """Refuse a limit that is none."""
    if limit is not None and limit < 0:
        raise BadRequest("a limit cannot be negative", hint="leave it out to get everything")
