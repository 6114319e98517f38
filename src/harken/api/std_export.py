"""Any session as a session document, STD-001 or STD-008."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harken.errors import BadRequest
from harken.formats.std.document import write
from harken.repo import Repo
from harken.text import safe_json

from .base import ApiAnswer
from .crossing import crosses
from .secret_rules import MaskedSecrets, RulesRequest, compiled, masked_secrets
from .writing import LossAnswer


class StdExportRequest(RulesRequest, frozen=True, kw_only=True):
    """Which session to write as a document, and how."""

    ref: str = ""
    """A session, which is written whole, or a commit, branch or tag: the session as it stood there."""
    file: str = ""
    """The path of a session's file, in place of a REF."""
    kind: str = ""
    """`std-001` or `std-008`; empty: STD-001 where at most one agent was started, by one call, and nothing reviewed."""
    reveal: bool = False
    """Whether secrets stay as they are; else they are masked."""
    name: str = ""
    """What the session is called in the document; empty: by its date, a number and its title."""
    taken: tuple[str, ...] = ()
    """Names of files among which that number is new."""


class StdExportAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A session document, and what there is to say about it."""

    session_id: str
    """What the session is called in the document: the name of a file, without `.json`."""
    kind: str
    """`std-001` or `std-008`; a session of one agent that is written as `std-008` is `std-001` with more fields."""
    status: str
    """`success`, `failed` or `in_progress`."""
    agents: int
    """Sub-agents of the session."""
    unread: int
    """More of them that could not be read; `losses` says why."""
    size: int
    """Bytes of the document."""
    masked: list[MaskedSecrets]
    """The secrets that were masked, by rule."""
    derived: list[str]
    """Paths into the document of values that the session does not tell; `[*]` where there are many."""
    losses: list[LossAnswer]
    """What is in the session and not in the document."""
    body: bytes
    """The document."""


@crosses
def std_export(repo: Repo, request: StdExportRequest, *, moved: Callable[[int], None] | None = None) -> StdExportAnswer:
    """Write a session as a session document. `moved` is told now and then how many events were read."""
    if bool(request.ref) == bool(request.file):
        raise BadRequest("name a REF or a file", hint="give exactly one of the two")
    made = repo.document(
        Path(request.file) if request.file else request.ref,
        kind=request.kind,
        reveal=request.reveal,
        own_rules=compiled(request.own_rules),
        name=request.name,
        taken=request.taken,
        moved=moved,
    )
    # JSON may hold a lone DEL or C1 control, which a terminal would obey.
    body = safe_json(write(made.document).decode()).encode()
    return StdExportAnswer(
        session_id=made.document.data["session_id"],
        kind=made.document.kind,
        status=made.document.data["status"],
        agents=made.agents,
        unread=made.unread,
        size=len(body),
        masked=masked_secrets(made.masked),
        derived=made.derived,
        losses=[LossAnswer(what=loss.what, count=loss.count, why=loss.why) for loss in made.losses],
        body=body,
    )
