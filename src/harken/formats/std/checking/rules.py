"""Every rule that a session document is held against, and holding one against them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from harken.errors import BadRecord
from harken.formats.std.document import Document, parse_session
from harken.formats.std.findings import DocumentFinding
from harken.formats.std.json_text import Json, hidden_values, loads
from harken.formats.std.models import AgentSession
from harken.formats.std.naming import is_multi_name, parse_name
from harken.formats.std.parts import text, values
from harken.formats.std.repairing.broken_json import explain
from harken.formats.std.spellings import plain_key

from .counts import count_findings
from .links import link_findings
from .message_links import message_findings
from .rule_table import RULES as RULES
from .rule_table import DocumentRule as DocumentRule
from .rule_table import found
from .schema import shown
from .shapes import shape_findings
from .times import time_findings

_TELLING = frozenset((*AgentSession.__struct_fields__, "collaboration", "sub_sessions")) - {
    "status", "agent", "summary", "created_at", "updated_at", "completed_at", "phases",
}  # fmt: skip
"""Fields that only a session document has."""
_OF_PHASES = frozenset({"phase_type", "tool_calls", "tool_call_ids", "context_references", "context_used"})
"""Fields that only the phase of a session has."""
_LEVELS = {"error": 0, "warning": 1, "note": 2}


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in the bytes of a file."""

    kind: str
    """`std-001` or `std-008`; empty where they are no session document."""
    generation: str
    findings: list[DocumentFinding]

    @property
    def is_valid(self) -> bool:
        """Whether no finding is an error."""
        return not any(finding.level == "error" for finding in self.findings)


class CheckedDocument(Checked, frozen=True, kw_only=True):
    """The same, with the document."""

    document: Document | None
    """None where the bytes are no session document."""


def validate_bytes(data: bytes, name: str = "") -> Checked:
    """Check the bytes of a file; the name of the file is held against what is in it, where one is given. What can be
    repaired is found out by repairing it."""
    checked = check_bytes(data, name)
    findings = checked.findings
    if checked.document is not None and not checked.is_valid:
        from harken.formats.std.repairing.repair import mark_repairable  # it is held against the rules itself

        findings = mark_repairable(findings, checked.document, name)
    elif checked.document is None:
        from harken.formats.std.repairing.repair import unwrapped

        is_inside = unwrapped(data) is not None
        findings = [msgspec.structs.replace(one, repairable=one.repairable or is_inside) for one in findings]
    return Checked(kind=checked.kind, generation=checked.generation, findings=findings)


def check_bytes(data: bytes, name: str = "") -> CheckedDocument:
    """The same, where nobody asks what can be repaired."""
    try:
        value = loads(data)
    except BadRecord as problem:
        return _no_document(_invalid_json(data, problem))
    if not isinstance(value, dict) or not is_session(value):
        what = "its object has none of their fields" if isinstance(value, dict) else f"it is {shown(value)}"
        return _no_document(found("not-a-session", "", f"the file is no session document: {what}"))
    document = parse_session(value, name)
    findings = _sorted([*validate(document, name), *_hidden(data, value)])
    return CheckedDocument(kind=document.kind, generation=document.generation, findings=findings, document=document)


def is_session(data: Json) -> bool:
    """Whether an object is a session document. Steps and phases are in many a file: in those of older sessions they
    say which step it was, or what was called."""
    if data.keys() & _TELLING or len({plain_key(key) for key in data} & _TELLING) > 1:
        return True
    if any("step_name" in step for step in values(data.get("steps"))):
        return True
    return any(phase.keys() & _OF_PHASES for phase in values(data.get("phases")))


def _no_document(finding: DocumentFinding) -> CheckedDocument:
    return CheckedDocument(kind="", generation="", findings=[finding], document=None)


def validate(document: Document, name: str = "") -> list[DocumentFinding]:
    """What is wrong with a document: errors first, each kind in the order of the document's parts."""
    data = document.data
    findings = [
        *shape_findings(document),
        *link_findings(document),
        *message_findings(data),
        *time_findings(data),
        *count_findings(document),
        *_name_findings(document, name),
    ]
    if document.generation != "v3":
        message = f"the document is of generation {document.generation}; it is read as v3, and so are the paths here"
        findings.append(found("old-generation", "", message))
    return _sorted(_once(findings))


def is_valid(document: Document) -> bool:
    """Whether nothing in a document is an error."""
    return not any(finding.level == "error" for finding in validate(document))


def _sorted(findings: Iterable[DocumentFinding]) -> list[DocumentFinding]:
    return sorted(findings, key=lambda finding: _LEVELS[finding.level])


def _hidden(data: bytes, value: object) -> Iterator[DocumentFinding]:
    """Values that no reader sees, since their key stands once more."""
    for one in hidden_values(data, value):
        message = f"the key stands more than once; {shown(one.value)} is not seen, since the last one counts"
        yield found("duplicate-key", one.path, message)


def _once(findings: Iterable[DocumentFinding]) -> Iterator[DocumentFinding]:
    """The findings, of notes that say the same the first alone: a type of agent stands in every message."""
    seen = set[str]()
    for finding in findings:
        if finding.level != "note" or finding.message not in seen:
            seen.add(finding.message)
            yield finding


def _invalid_json(data: bytes, problem: BadRecord) -> DocumentFinding:
    """Why the bytes are no JSON; what only our reader refuses has its own words."""
    return explain(data) or found("invalid-json", "", str(problem))


# -- names -------------------------------------------------------------------------------------------------------------


def _name_findings(document: Document, name: str) -> Iterator[DocumentFinding]:
    session, stem = text(document.data, "session_id"), name.rpartition("/")[2].removesuffix(".json")
    if session and parse_name(session) is None:
        message = f"`session_id` is {shown(session)}, which is not a date, a number and a few words"
        yield found("session-id-form", "session_id", message)
    if not stem:
        return
    if session and session != stem:
        yield found(
            "file-name", "session_id", f"`session_id` is {shown(session)}, but the file is called {shown(stem)}"
        )
    if document.kind == "std-008" and not is_multi_name(f"{stem}.json"):
        yield found("file-suffix", "", f"the name of a multi-agent document ends in -multi.json; this is {shown(stem)}")
    elif document.kind == "std-001" and is_multi_name(f"{stem}.json") and document.data.get("collaboration") is None:
        yield found("file-suffix", "", f"the file is called {shown(stem)}, but only one agent is in the document")
