"""What a program hands to a recorder, checked before anything is written: a mistake is cheap to tell now, and could not
be mended in a log."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from harken.clock import from_datetime, in_calendar, parse_instant
from harken.errors import BadRequest
from harken.formats.std.checking.outputs import output_errors
from harken.formats.std.checking.schema import check
from harken.formats.std.document import Json
from harken.formats.std.findings import DocumentFinding
from harken.formats.std.models import AgentIdentifier, GenericAgentOutput, ReviewerOutput, StdObject, output_model
from harken.formats.std.parts import type_in

GivenAgent = AgentIdentifier | str | tuple[str, str]
"""Who: an `AgentIdentifier`, `"id"`, or `("id", "type")`."""
GivenTime = datetime | str | None
"""When: a datetime (without a zone it is UTC), a text of RFC 3339, or None for now."""

GivenPath = str | os.PathLike[str]
"""Where: the path of a document, or a folder."""

MAX_DEPTH = 100
"""How deep lists and objects may stand inside each other; a document is read by programs of all kinds."""
_LARGEST = 1 << 64


def text(value: object, what: str) -> str:
    """A text that says something."""
    if not isinstance(value, str) or not value.strip():
        said = "empty" if isinstance(value, str) else type(value).__name__
        raise BadRequest(f"{what} must be a text, not {said}", hint=f"say the {what} in words")
    return str(value)


def words(value: object, what: str) -> str:
    """A text, which may be empty."""
    if not isinstance(value, str):
        raise BadRequest(f"{what} must be a text, not {type(value).__name__}", hint=f"pass {what} as a str")
    return str(value)


def path(value: object) -> str:
    """A path that a file can have, as text: a slash at its end says that a folder is meant."""
    named = os.fspath(value) if isinstance(value, str | os.PathLike) else value
    if not isinstance(named, str) or not named:
        said = "empty" if isinstance(named, str) else type(value).__name__
        raise BadRequest(f"path must be the path of a file, not {said}", hint="pass a str or a pathlib.Path")
    try:
        is_name = b"\0" not in os.fsencode(named)
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        hint = "NUL and lone surrogates can be in no file's name: leave them out"
        raise BadRequest(f"{named!r:.80} can be the path of no file", hint=hint)
    return named


def one_of(value: object, known: tuple[str, ...], what: str) -> str:
    """One of these words."""
    if not isinstance(value, str) or value not in known:
        raise BadRequest(f"there is no {what} {value!r:.80}", hint="there are " + ", ".join(known))
    return value


def plain(value: Any, what: str, depth: int = 0) -> Any:
    """The value as JSON has it, in a copy; `BadRequest` for what JSON cannot hold."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        if not -_LARGEST < value < _LARGEST:
            raise BadRequest(f"{what} has more digits than most programs can read", hint="record it as text")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadRequest(f"{what} is {value}, which JSON does not have", hint="record it as text, or leave it out")
        return float(value)
    if depth >= MAX_DEPTH:
        raise BadRequest(f"{what} is nested more than {MAX_DEPTH} deep", hint="record the inner part as text")
    if isinstance(value, StdObject):
        value = {name: given for name in value.__struct_fields__ if (given := getattr(value, name)) is not None}
    if isinstance(value, dict):
        if odd := [key for key in value if not isinstance(key, str)]:
            raise BadRequest(f"{what} has the key {odd[0]!r:.80}, which is no text", hint="the keys of JSON are texts")
        return {str(key): plain(inner, f"{what}.{key:.80}", depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner, f"{what}[{at}]", depth + 1) for at, inner in enumerate(value)]
    hint = "record texts, numbers, true, false, and lists and objects of them; `str(value)` makes a text of it"
    raise BadRequest(f"{what} is a {type(value).__name__}, which JSON does not have", hint=hint)


def json_object(value: Any, what: str, shape: str = "a dict") -> Json:
    """An object of JSON; nothing is an empty one."""
    found = plain({} if value is None else value, what)
    if not isinstance(found, dict):
        raise BadRequest(
            f"{what} must be an object, not {type(value).__name__}",
            hint=f"pass {what} as {shape}",
        )
    return found


def agent(value: object, *, otherwise: str = "") -> Json:
    """An agent as a document names it. One that is given by its id alone has the type that its id begins with
    (`developer-01`), else `otherwise`, else its id."""
    if isinstance(value, AgentIdentifier):
        found = json_object(value, "agent")
        _refuse(check(found, AgentIdentifier, "agent"), "AgentIdentifier")
    elif isinstance(value, str):
        found = {"agent_id": str(value), "agent_type": type_in(value) or otherwise or str(value)}
    elif isinstance(value, tuple) and len(value) == 2 and all(isinstance(part, str) for part in value):
        found = {"agent_id": str(value[0]), "agent_type": str(value[1])}
    else:
        hint = 'pass "id", ("id", "type") or an AgentIdentifier'
        raise BadRequest(f"{value!r:.80} is no agent", hint=hint)
    text(found["agent_id"], "agent_id")
    text(found["agent_type"], "agent_type")
    return found


def others(values: Iterable[GivenAgent], leader: Json) -> list[Json]:
    """The participants, each once."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        said = "a text" if isinstance(values, str) else type(values).__name__
        raise BadRequest(f"participants must be several agents, not {said}", hint="pass a list")
    found = [agent(value) for value in values]
    names = [leader["agent_id"], *(one["agent_id"] for one in found)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadRequest(f"agent {twice!r:.80} is named twice", hint="give each agent an id of its own")
    return found


def has_type(value: object) -> bool:
    """Whether an agent was given with its type, so that a new one may be meant."""
    return not isinstance(value, str)


def instant(value: GivenTime, what: str) -> int | None:
    """The instant that was given; None where it is to be asked of the clock."""
    if value is None:
        return None
    found = from_datetime(value) if isinstance(value, datetime) else parse_instant(value)
    if found is None or not in_calendar(found):
        raise BadRequest(
            f"{value!r:.80} is no time for {what}", hint="pass a datetime, or text like 2026-01-31T10:00:00Z"
        )
    return found


def call_output(result: Any, error: object) -> Json:
    """What a tool answered; a text is what people are shown."""
    found: Json = {"status": "success" if error is None else "failed"}
    if result is not None:
        found["result"] = (
            {"display": str(result)} if isinstance(result, str) else json_object(result, "result", "a text or a dict")
        )
    if error is not None:
        found["error"] = words(
            str(error) or type(error).__name__ if isinstance(error, BaseException) else error, "error"
        )
    return found


def sub_output(value: Any, agent_type: str, task_id: str, status: str) -> Json | None:
    """What a sub-agent handed in; a text is the summary of an output of no special kind. Its task is filled in."""
    if value is None:
        return None
    ended = "completed" if status == "success" else "failed"
    if isinstance(value, str):
        return {"output_type": "generic", "task_id": task_id, "status": ended, "summary": str(value), "data": {}}
    found = json_object(value, "output", "a text, a dict or an output of the standard")
    model = output_model(found, agent_type)
    missing: Json = {"task_id": task_id}
    if model is not ReviewerOutput:
        missing["status"] = ended
    if model is GenericAgentOutput:
        missing = {"output_type": "generic", **missing, "data": {}}
    found = {**{key: given for key, given in missing.items() if key not in found}, **found}
    _refuse(output_errors(found, agent_type, task_id), model.__name__)
    return found


def _refuse(findings: Iterable[DocumentFinding], model: str) -> None:
    """Refuse what is not as the standard has it."""
    for finding in findings:
        if finding.level == "error":
            hint = f"see {model} in harken.formats.std.models"
            raise BadRequest(f"{finding.path}: {finding.message}", hint=hint)
