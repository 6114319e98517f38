"""Session documents repaired, each with what was changed in it and what is left to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from harken import clock
from harken.formats.std.checking.rules import check_bytes
from harken.formats.std.document import Document
from harken.formats.std.naming import date_in, file_name, next_free, parse_name
from harken.formats.std.repairing.repair import Repaired, repair

from .base import ApiAnswer, ApiRequest
from .crossing import crosses
from .std_validate import FindingAnswer, document_files, finding_answer, read_document


class StdRepairRequest(ApiRequest, frozen=True, kw_only=True):
    """What to repair."""

    paths: tuple[str, ...] = ()
    """Files, and folders: every `*.json` in these and in what is below them."""
    body: bytes | None = None
    """A document itself, in place of files."""
    name: str = ""
    """What the file will be called; empty: as it is called now."""
    taken: tuple[str, ...] | None = None
    """Names in a folder: each document gets a new one beside them, by its date, a number and its title, and its
    `session_id` follows. One that is valid and well named keeps its own, where that is free."""


class DocumentChangeAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Something that was changed in a document."""

    rule: str
    """The rule that was broken."""
    path: str
    """Where, in the repaired document; empty for its text."""
    message: str
    """What was there, what is there now, and why: a sentence."""
    derived: bool
    """Whether the new value did not stand in the document in other words, but was made from the rest of it."""


class StdRepairAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A document after its repair."""

    file: str
    """The file; `-` for a document that was given itself."""
    name: str
    """What the file of the repaired document is called; empty where nobody said, or where it is no session document."""
    output: str
    """Where it was written; empty where it was not."""
    valid: bool
    """Whether no error is left."""
    kind: str
    """`std-001` or `std-008`; empty where it is no session document, and could not be made one."""
    changes: list[DocumentChangeAnswer]
    """What was changed, in the order in which it was."""
    findings: list[FindingAnswer]
    """What is still to be said of it, errors first."""
    problem: str
    """Why the file could not be read; empty where it could."""
    body: bytes
    """The repaired document; byte for byte the one that was given where nothing was changed."""


@crosses
def std_repair(
    repo: object, request: StdRepairRequest, *, moved: Callable[[int, int], None] = lambda done, total: None
) -> Iterator[StdRepairAnswer]:
    """Repair session documents. `moved` is told how many files are done, and of how many."""
    names = _Names(request)
    if request.body is not None:
        yield _answer("-", request.body, "", names)
    files = [one for path in request.paths for one in document_files(path)]
    for done, (file, problem) in enumerate(files):
        moved(done, len(files))
        data = problem or read_document(file)
        yield _unread(file, data) if isinstance(data, str) else _answer(file, data, Path(file).name, names)


class _Names:
    """The names that documents get."""

    def __init__(self, request: StdRepairRequest) -> None:
        self._given = request.name
        self._taken = None if request.taken is None else set(request.taken)

    def of(self, document: Document, name: str, *, keep: bool) -> tuple[str, str]:
        """The name of the file, and the id that the session gets; no id where it keeps its own. Where it may `keep` its
        name, it does so unless that is taken."""
        if self._taken is None:
            return self._given or name, ""
        if keep and name not in self._taken:
            self._taken.add(name)
            return name, ""
        data = document.data
        date = date_in(data.get("created_at")) or _date_of(data.get("session_id")) or _date_of(name)
        date = date or clock.format_seconds(clock.now())[:10]
        title = data.get("task_title")
        made = file_name(
            title if isinstance(title, str) else "",
            date=date,
            number=next_free(self._taken, date),
            multi=document.kind == "std-008",
        )
        self._taken.add(made.text)
        return made.text, made.session_id


def _is_well_named(repaired: Repaired, name: str) -> bool:
    """Whether a document was valid, and there is nothing to say of its name."""
    is_complained_of = any(finding.level == "error" or finding.rule in _OF_NAMES for finding in repaired.findings)
    return bool(name) and not repaired.changes and not is_complained_of


_OF_NAMES = ("file-name", "file-suffix", "session-id-form")


def _date_of(name: object) -> str | None:
    found = parse_name(name) if isinstance(name, str) else None
    return found.date if found else None


def _answer(file: str, data: bytes, name: str, names: _Names) -> StdRepairAnswer:
    repaired, called = repair(data, name), ""
    if repaired.document is not None:
        called, session_id = names.of(repaired.document, name, keep=_is_well_named(repaired, name))
        repaired = repair(data, name, session_id=session_id) if session_id else repaired
        repaired = _named(repaired, called) if called != name else repaired
    return StdRepairAnswer(
        file=file,
        name=called,
        output="",
        valid=repaired.is_valid,
        kind=repaired.document.kind if repaired.document else "",
        changes=[
            DocumentChangeAnswer(**{key: getattr(one, key) for key in DocumentChangeAnswer.__struct_fields__})
            for one in repaired.changes
        ],
        findings=[finding_answer(finding) for finding in repaired.findings],
        problem="",
        body=repaired.data,
    )


def _named(repaired: Repaired, name: str) -> Repaired:
    """The document, held against the name that its file will have."""
    checked = check_bytes(repaired.data, name)
    return Repaired(data=repaired.data, document=checked.document, changes=repaired.changes, findings=checked.findings)


def _unread(file: str, problem: str) -> StdRepairAnswer:
    return StdRepairAnswer(
        file=file, name="", output="", valid=False, kind="", changes=[], findings=[], problem=problem, body=b""
    )
