"""What the rules say of a document."""

from __future__ import annotations

from harken.formats.std.checking.rules import validate
from harken.formats.std.document import Json, parse_session
from harken.formats.std.findings import DocumentFinding


def errors_of(data: Json, name: str = "") -> list[DocumentFinding]:
    """The findings that make a document invalid."""
    return [finding for finding in validate(parse_session(data), name) if finding.level == "error"]


def findings_of(data: Json, name: str = "") -> list[DocumentFinding]:
    """Every finding but notes."""
    return [finding for finding in validate(parse_session(data), name) if finding.level != "note"]
