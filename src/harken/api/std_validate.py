"""Session documents held against their standards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from harken.errors import NotFound
from harken.formats.std.checking.rules import Checked, validate_bytes
from harken.formats.std.findings import DocumentFinding

from .base import ApiAnswer, ApiRequest
from .crossing import crosses


class StdValidateRequest(ApiRequest, frozen=True, kw_only=True):
    """What to check."""

    paths: tuple[str, ...] = ()
    """Files, and folders: every `*.json` in these and in what is below them."""
    body: bytes | None = None
    """A document itself, in place of files."""


class FindingAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Something in a document that is not as its standard has it."""

    rule: str
    """The rule that it breaks."""
    level: str
    """`error`, `warning` or `note`."""
    path: str
    """Where: `sub_sessions[0].tool_calls[3].started_at`; empty for the document as a whole."""
    message: str
    """What is wrong, as a sentence."""
    repairable: bool
    """Whether `harken std repair` mends it."""
    line: int | None
    """The line, from 1, in a file that is no JSON."""
    column: int | None
    """The column, from 1, in a file that is no JSON."""


class StdValidateAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What was found in one file."""

    file: str
    """The file; `-` for a document that was given itself."""
    valid: bool
    """Whether it is a session document without errors."""
    kind: str
    """`std-001` or `std-008`; empty where it is neither."""
    generation: str
    """What it was written as: `v1`, `early-v2`, `v2` or `v3`; empty where it is no session document."""
    errors: int
    """How many errors there are."""
    warnings: int
    """How many warnings."""
    notes: int
    """How many notes."""
    findings: list[FindingAnswer]
    """All of them, errors first."""
    problem: str
    """Why the file could not be read; empty where it could."""


@crosses
def std_validate(
    repo: object, request: StdValidateRequest, *, moved: Callable[[int, int], None] = lambda done, total: None
) -> Iterator[StdValidateAnswer]:
    """Hold session documents against STD-001 and STD-008, whichever each is. `moved` is told how many files are done,
    and of how many."""
    if request.body is not None:
        yield checked_answer("-", validate_bytes(request.body))
    files = [one for path in request.paths for one in document_files(path)]
    for done, (file, problem) in enumerate(files):
        moved(done, len(files))
        yield _unreadable(file, problem) if problem else _answer(file)


def document_files(path: str) -> list[tuple[str, str]]:
    """The files that a path names, each with what is wrong with it, if that is known already."""
    if not Path(path).is_dir():
        return [(path, "")]
    found: list[tuple[str, str]] = []

    def refused(problem: OSError) -> None:
        found.append((str(problem.filename), problem.strerror or str(problem)))

    for folder, folders, names in os.walk(path, onerror=refused):
        folders.sort()
        paths = [Path(folder, name) for name in sorted(names) if name.endswith(".json")]
        found += [(str(one), _why_unread(one)) for one in paths]
    return found or [(path, "there is no *.json in this folder")]


def _why_unread(path: Path) -> str:
    """Why what lies in a folder is not read: a pipe would be waited for without end."""
    return "it is a pipe or a device" if path.exists() and not path.is_file() else ""


def read_document(file: str) -> bytes | str:
    """The bytes of a file, or why it cannot be read."""
    try:
        return Path(file).read_bytes()
    except OSError as problem:
        return problem.strerror or str(problem)
    except ValueError as problem:  # a name that no file can have
        return str(problem)


def _answer(file: str) -> StdValidateAnswer:
    data = read_document(file)
    return (
        _unreadable(file, data)
        if isinstance(data, str)
        else checked_answer(file, validate_bytes(data, Path(file).name))
    )


def checked_answer(file: str, checked: Checked) -> StdValidateAnswer:
    """What was found, as an answer."""
    levels = [finding.level for finding in checked.findings]
    return StdValidateAnswer(
        file=file,
        valid=checked.is_valid,
        kind=checked.kind,
        generation=checked.generation,
        errors=levels.count("error"),
        warnings=levels.count("warning"),
        notes=levels.count("note"),
        findings=[finding_answer(finding) for finding in checked.findings],
        problem="",
    )


def finding_answer(finding: DocumentFinding) -> FindingAnswer:
    """A finding, as an answer."""
    return FindingAnswer(**{name: getattr(finding, name) for name in FindingAnswer.__struct_fields__})


def _unreadable(file: str, problem: str) -> StdValidateAnswer:
    return StdValidateAnswer(
        file=file,
        valid=False,
        kind="",
        generation="",
        errors=0,
        warnings=0,
        notes=0,
        findings=[],
        problem=problem,
    )


def unreadable_error(file: str, problem: str) -> NotFound:
    """The error for a file that could not be read."""
    return NotFound(f"cannot read {file}: {problem}", hint="name session documents, folders of them, or `-` for stdin")
