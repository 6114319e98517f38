"""Session documents (STD-001, STD-008) that are sessions of the store: a list of them, and each at a look."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harken.context.chains import readable_sessions
from harken.errors import BadRequest, HarkenError
from harken.repo import Repo
from harken.store import SessionRow

from .base import ApiAnswer, ApiRequest, stamp
from .crossing import crosses
from .following import check_range
from .remembering import remembered
from .std_show import StdShowAnswer, StdShowRequest, std_show
from .std_validate import FindingAnswer, StdValidateAnswer, checked_answer

MOST_DOCUMENTS = 100
KINDS = ("std-001", "std-008")
_HELD = 500
"""Of how many documents the looks are held in memory."""


class DocumentsRequest(ApiRequest, frozen=True, kw_only=True):
    """Which documents to list."""

    kind: str = ""
    """`std-001` or `std-008`; empty for both."""
    start: int = 0
    """The first that is wanted; 0 is the newest."""
    count: int = 50
    """How many, up to 100."""


class DocumentRow(ApiAnswer, frozen=True, kw_only=True):
    """A document in a list."""

    n: int
    """Its number in the list."""
    session: str
    """The session of the store."""
    title: str
    """What it was about."""
    kind: str
    """`std-001` or `std-008`."""
    status: str
    """`success`, `failed` or `in_progress`, or what else the document says; empty where it cannot be read."""
    time: str | None
    """When it began; null where nobody knows."""
    agents: int
    """How many took part."""
    tasks: int
    """What the sub-agents were to do."""
    messages: int
    """What agents told each other."""
    calls: int
    """How many calls all agents made."""
    failed_calls: int
    """How many of them failed."""
    verdict: str
    """What the last review came to; empty where there was none."""
    errors: int
    """What is not as the standard has it."""
    warnings: int
    """What is doubtful."""
    problem: str
    """Why it cannot be read; empty where it can."""


class DocumentsAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Documents of the store, the newest first."""

    total: int
    """How many there are."""
    start: int
    """The number of the first one here."""
    documents: list[DocumentRow]
    """The documents."""


class DocumentRequest(ApiRequest, frozen=True, kw_only=True):
    """Which document to show."""

    session: str
    """The id of its session in the store, or a unique beginning of one."""


class DocumentAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A document at a look, and what the validator says of it."""

    session: str
    """The session of the store."""
    shown: StdShowAnswer
    """What stands in it."""
    checked: StdValidateAnswer
    """What is not as its standard has it; at most 1,000 findings."""


@crosses
def documents(repo: Repo, request: DocumentsRequest) -> DocumentsAnswer:
    """The session documents of the store, each with how it ended and whether it is as its standard has it."""
    check_range(request.start, request.count, MOST_DOCUMENTS)
    if request.kind not in ("", *KINDS):
        raise BadRequest(f"{request.kind!r:.80} is no kind of document", hint=f"one of {', '.join(KINDS)}")
    wanted = (request.kind,) if request.kind else KINDS
    rows = [row for row in readable_sessions(repo) if row.runtime in wanted and not row.parent]
    rows.sort(key=lambda row: (-(row.started or row.ended or 0), row.session))
    chosen = rows[request.start : request.start + request.count]
    found = [_listed(repo, request.start + at, row) for at, row in enumerate(chosen)]
    return DocumentsAnswer(total=len(rows), start=request.start, documents=found)


@crosses
def document(repo: Repo, request: DocumentRequest) -> DocumentAnswer:
    """One session document: who took part, what was to be done, what they told each other, what is wrong with it."""
    row = repo.transcripts.open(request.session).row
    if row.runtime not in KINDS:
        raise BadRequest(f"{row.session} is no session document", hint="`documents` lists those of the store")
    looked = _looked(repo, row)
    return DocumentAnswer(session=row.session, shown=looked.shown, checked=looked.checked)


class _DocumentLook(NamedTuple):
    shown: StdShowAnswer
    checked: StdValidateAnswer


_FINDINGS = 1000


def _looked(repo: Repo, row: SessionRow) -> _DocumentLook:
    return remembered(repo, "documents", (row.session, row.stand, row.source), lambda: _look(repo, row), most=_HELD)


def _look(repo: Repo, row: SessionRow) -> _DocumentLook:
    from harken.formats.std.checking.rules import validate_bytes

    data = repo.materialize(row.stand, stop="root").bytes
    shown = msgspec.structs.replace(std_show(repo, StdShowRequest(body=data)), file=row.source)
    checked = checked_answer(row.source, validate_bytes(data, Path(row.source).name))
    findings: list[FindingAnswer] = checked.findings[:_FINDINGS]
    return _DocumentLook(shown, msgspec.structs.replace(checked, findings=findings))


def _listed(repo: Repo, number: int, row: SessionRow) -> DocumentRow:
    about: dict[str, Any] = {"n": number, "session": row.session, "kind": row.runtime, "time": stamp(row.started)}
    try:
        shown, checked = _looked(repo, row)
    except HarkenError as problem:
        counts: dict[str, Any] = dict.fromkeys(
            ("agents", "tasks", "messages", "calls", "failed_calls", "errors", "warnings"), 0
        )
        return DocumentRow(**about, title=row.title, status="", verdict="", problem=str(problem), **counts)
    return DocumentRow(
        **about,
        title=shown.title or row.title,
        status=shown.status,
        agents=len(shown.agents),
        tasks=len(shown.tasks),
        messages=len(shown.messages),
        calls=shown.calls,
        failed_calls=shown.failed_calls,
        verdict=shown.verdict,
        errors=checked.errors,
        warnings=checked.warnings,
        problem="",
    )
