"""A session document at a look."""

from __future__ import annotations

from pathlib import Path

import msgspec

from harken.errors import BadRecord, BadRequest, NotFound
from harken.formats.std.checking.rules import is_session
from harken.formats.std.document import Document, read
from harken.formats.std.drawing import DocumentDrawing, drawing
from harken.formats.std.importing.reshaping import in_shape
from harken.formats.std.repairing.broken_json import explain, mend
from harken.formats.std.repairing.repair import repair

from .base import ApiAnswer, ApiRequest
from .crossing import crosses


class StdShowRequest(ApiRequest, frozen=True, kw_only=True):
    """What to show."""

    path: str = ""
    """A file."""
    body: bytes | None = None
    """A document itself, in place of a file."""
    agent: str = ""
    """The id of an agent: only this one, its tasks, and what it said and was told; empty: everybody."""


class DrawnAgentAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Somebody who took part."""

    agent_id: str
    """Its id; its type where it has none; `main` in a document of one agent."""
    agent_type: str
    """Its type; empty where the document does not say."""
    role: str
    """`orchestrator`, `participant`, or `unlisted` where only a sub-session or a message names it."""
    status: str
    """`success`, `failed` or `in_progress`; empty where it was given no task, or nobody says."""
    tasks: int
    """How many sub-sessions it had."""
    calls: int
    """How many calls it made."""
    failed: int
    """How many of them failed."""
    categories: dict[str, int]
    """How many of them were of each category, the standard's first."""
    duration_ms: int | None
    """How long it worked, as far as times are recorded; None where none are."""


class DrawnTaskAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What a sub-agent was to do."""

    task_id: str
    """Its id; empty where there is none."""
    sub_session_id: str
    """The sub-session; empty for a Task call that has none."""
    call_id: str
    """The call that started it."""
    description: str
    """What was to be done."""
    priority: str
    """`high`, `medium` or `low`; empty where nobody says."""
    agent_id: str
    """Who did it."""
    given_by: str
    """Who started it: the orchestrator, or the agent of the sub-session above; empty where that is not known."""
    status: str
    """How it ended; `in_progress` while it goes on."""
    review: bool
    """Whether it is a review."""
    verdict: str
    """What a review came to; empty for anything else."""
    outcome: str
    """What was handed in, in words."""
    calls: int
    """How many calls it took."""
    duration_ms: int | None
    """How long it took; None where no times are recorded."""


class DrawnMessageAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What one agent told another."""

    message_id: str
    """Its id."""
    sequence_number: int | None
    """Its number; None where it has none."""
    timestamp: str
    """When, as the document says it."""
    from_agent: str
    """Who said it."""
    to_agent: str
    """Who was told."""
    message_type: str
    """What kind of message it is."""
    task_id: str
    """The task that it is about; empty where it names none."""
    verdict: str
    """A review's verdict."""
    said: str
    """What it says, in words."""


class DrawnPhaseAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A stretch of the main agent's calls, as somebody saw it."""

    phase_type: str
    """`understand`, `explore`, `plan`, `execute`, `verify` …"""
    first_call: str
    """The id of its first call."""
    last_call: str
    """The id of its last call."""
    description: str
    """What was said of it."""


class StdShowAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A document at a look. The numbers are those of what is recorded in it, whatever its summary says."""

    file: str
    """The file; `-` for a document that was given itself."""
    mended: bool
    """Whether the file is no JSON, and is shown as `harken std repair` would mend it."""
    session_id: str
    """The id of the session."""
    title: str
    """What it was about."""
    prompt: str
    """What the user asked for."""
    kind: str
    """`std-001` or `std-008`."""
    generation: str
    """What it was written as: `v1`, `early-v2`, `v2` or `v3`."""
    status: str
    """`success`, `failed` or `in_progress`, or what else the document says."""
    pattern: str
    """How the agents worked together; empty in a document of one agent."""
    model: str
    """The main agent's language model; empty where the document does not say."""
    created_at: str
    """When it began, as the document says it."""
    completed_at: str
    """When it ended, as the document says it."""
    duration_ms: int | None
    """How long it took; None where no times are recorded."""
    calls: int
    """How many calls all agents made."""
    failed_calls: int
    """How many of them failed."""
    verdict: str
    """What the last review came to; empty where there was none."""
    agents: list[DrawnAgentAnswer]
    """Who took part, the orchestrator first."""
    tasks: list[DrawnTaskAnswer]
    """What the sub-agents were to do, in the order of the document."""
    messages: list[DrawnMessageAnswer]
    """What agents told each other, in the order of the document."""
    phases: list[DrawnPhaseAnswer]
    """Stretches of the main agent's calls, as somebody saw them later."""
    left_out: list[str]
    """What stands in the document and could not be drawn, a sentence each."""


@crosses
def std_show(repo: object, request: StdShowRequest) -> StdShowAnswer:
    """Show a session document of STD-001 or STD-008, also an old one and a damaged one, at a look."""
    if bool(request.path) == (request.body is not None):
        raise BadRequest("name a file or give a document", hint="give exactly one of `path` and `body`")
    document, mended = _document(_bytes(request.path) if request.body is None else request.body)
    drawn = msgspec.structs.asdict(_about(drawing(document), request.agent))
    told = {"file": request.path or "-", "mended": mended, **drawn}
    return msgspec.convert(told, StdShowAnswer, from_attributes=True)


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except IsADirectoryError:
        raise BadRequest(f"{path} is a folder", hint="name one session document") from None
    except (OSError, ValueError) as problem:  # a name that no file can have is a ValueError
        said = getattr(problem, "strerror", None) or problem
        raise NotFound(f"cannot read {path}: {said}", hint="name a session document, or `-` for stdin") from None


def _document(data: bytes) -> tuple[Document, bool]:
    """The document, and whether its text had to be mended first. Any other JSON is refused: an empty session would be
    drawn for it."""
    document, mended = _read_or_mended(data)
    if not is_session(document.data):
        raise BadRecord("this is no session document: it has none of their fields", hint="is this the right file?")
    return document, mended


def _read_or_mended(data: bytes) -> tuple[Document, bool]:
    try:
        return in_shape(read(data))[0], False
    except BadRecord:
        if (finding := explain(data)) is None:  # it is JSON, and no session document
            raise
    if (mended := mend(data)) is None:
        raise BadRecord(
            f"line {finding.line}, column {finding.column}: {finding.message}",
            hint="`harken std validate` says more about a file that is no JSON",
        )
    return repair(data).document or read(mended.data), True


def _about(drawn: DocumentDrawing, agent: str) -> DocumentDrawing:
    """What is drawn of one agent, where one is asked for."""
    if not agent:
        return drawn
    agents = [one for one in drawn.agents if one.agent_id == agent]
    if not agents:
        known = ", ".join(one.agent_id for one in drawn.agents[:10])
        raise NotFound(f"there is no agent {agent!r:.80} in this document", hint=f"there are {known}")
    return msgspec.structs.replace(
        drawn,
        agents=agents,
        tasks=[task for task in drawn.tasks if agent in (task.agent_id, task.given_by)],
        messages=[message for message in drawn.messages if agent in (message.from_agent, message.to_agent)],
        phases=[],
    )
