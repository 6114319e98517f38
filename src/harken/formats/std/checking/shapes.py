"""Which type each part of a document is held against, where the types themselves leave it open."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from harken.formats.std.document import Document, Json
from harken.formats.std.findings import DocumentFinding, at
from harken.formats.std.models import (
    PAYLOADS,
    AgentMessage,
    AgentsByRole,
    AgentSession,
    AgentSummary,
    Collaboration,
    FileChange,
    MultiAgentSession,
    OldPhase,
    ReviewerOutput,
    SubAgentSession,
    output_model,
)
from harken.formats.std.parts import inner, objects, text, values

from .rule_table import found
from .schema import check, shown

_OPEN = frozenset({"ended_at", "duration_ms", "output"})
"""What a call may lack while it goes on."""
_LACKS = ("missing-field", "wrong-type")
_CALL = re.compile(r"(?:sub_sessions\[(\d+)\]\.)?tool_calls\[(\d+)\]")
_OLD: dict[str, tuple[str, ...]] = {"v1": ("session_id", "created_at"), "early-v2": ()}
"""Generations that had neither all fields nor times, with those required ones that they did have."""


def shape_findings(document: Document) -> Iterator[DocumentFinding]:
    """What is missing, of the wrong type or not known, in the order of the types."""
    is_old = document.generation in _OLD
    for finding in _findings(document.data, document.kind == "std-008"):
        is_newer = is_old and finding.rule == "missing-field" and finding.path not in _OLD[document.generation]
        yield _softened(finding) if is_newer else finding
    if not is_old:
        yield from _phases(document.data)


def _softened(finding: DocumentFinding) -> DocumentFinding:
    return found("not-in-generation", finding.path, f"{finding.message}: its generation did not have it")


def _findings(data: Json, is_multi: bool) -> Iterator[DocumentFinding]:
    optional = frozenset({"completed_at"}) if data.get("status") == "in_progress" else frozenset[str]()
    for finding in check(data, MultiAgentSession if is_multi else AgentSession, optional=optional):
        if not _may_lack(data, finding):
            yield finding
    if not is_multi:
        yield from _added_parts(data)
    yield from _empty_fields(data)
    for place, sub in objects(data.get("sub_sessions")):
        yield from output_findings(sub, at(at("sub_sessions", place), "output"))
    for place, message in objects(data.get("messages")):
        yield from _payload(message, at(at("messages", place), "payload"))
    if is_multi:
        yield from _agents(inner(data, "summary"))


def _may_lack(data: Json, finding: DocumentFinding) -> bool:
    """Whether it is about something that a call which is not over does not say, or says as null, in a session or
    sub-session that is not over."""
    owner, _, field = finding.path.rpartition(".")
    if finding.rule not in _LACKS or field not in _OPEN or not (at_call := _CALL.fullmatch(owner)):
        return False
    sub = data["sub_sessions"][int(at_call[1])] if at_call[1] else data
    goes_on = "in_progress" in (data.get("status"), sub.get("status"))
    return goes_on and sub["tool_calls"][int(at_call[2])].get(field) is None


def _added_parts(data: Json) -> Iterator[DocumentFinding]:
    """The parts of a multi-agent session in a single-agent one: the migration of the standard adds them, and programs
    that write all of their fields have nothing in them."""
    if data.get("collaboration") is not None:
        yield from check(data["collaboration"], Collaboration, "collaboration")
    for name, model in (("sub_sessions", SubAgentSession), ("messages", AgentMessage)):
        if data.get(name) is None:
            continue
        if not isinstance(data[name], list):
            yield found("wrong-type", name, f"`{name}` is {shown(data[name])}; it must be a list")
        for place, item in enumerate(data[name] if isinstance(data[name], list) else ()):
            yield from check(item, model, at(name, place))


def _empty_fields(data: Json) -> Iterator[DocumentFinding]:
    """Ids and the title that are there and say nothing; those in outputs are told with these."""
    return _empty(_with_ids(data))


def _empty(held: _WithIds) -> Iterator[DocumentFinding]:
    for path, holder, keys in held:
        for key in keys:
            if holder.get(key) == "":
                yield found("empty-field", at(path, key), f"`{key}` is empty")


_SUB_IDS = ("sub_session_id", "parent_session_id", "triggered_by_call_id")
_OUTPUT_IDS = ("review_id", "task_id")

_WithIds = Iterator[tuple[str, Json, tuple[str, ...]]]
"""A path, what is there, and those of its fields that are ids."""


def _with_ids(data: Json) -> _WithIds:
    """Whatever has an id that must be there, or names something else by one."""
    yield "", data, ("session_id", "task_title")
    yield from _each(data, "", "tool_calls", "call_id")
    for place, note in objects(data.get("phase_annotations")):
        path = at("phase_annotations", place)
        yield path, note, ("annotation_id",)
        yield f"{path}.tool_call_range", inner(note, "tool_call_range"), ("start_call_id", "end_call_id")
    collaboration = inner(data, "collaboration")
    yield "collaboration.orchestrator", inner(collaboration, "orchestrator"), ("agent_id",)
    yield from _each(collaboration, "collaboration", "participants", "agent_id")
    for place, sub in objects(data.get("sub_sessions")):
        yield from _ids_of_sub(sub, at("sub_sessions", place))
    for place, message in objects(data.get("messages")):
        yield at("messages", place), message, ("message_id",)
        for key in ("from_agent", "to_agent"):
            yield f"messages[{place}].{key}", inner(message, key), ("agent_id",)
    summary = inner(data, "summary")
    by_role = inner(summary, "agents")
    yield from _each(summary, "summary", "agents", "agent_id")
    yield from _each(by_role, "summary.agents", "developers", "agent_id")
    for role in ("architect", "reviewer"):
        yield f"summary.agents.{role}", inner(by_role, role), ("agent_id",)


def _ids_of_sub(sub: Json, path: str) -> _WithIds:
    yield path, sub, _SUB_IDS
    yield f"{path}.agent", inner(sub, "agent"), ("agent_id",)
    yield f"{path}.task", inner(sub, "task"), ("task_id",)
    yield from _each(sub, path, "tool_calls", "call_id")


def _ids_of_output(output: Json, path: str) -> _WithIds:
    yield path, output, _OUTPUT_IDS
    yield from _each(output, path, "findings", "finding_id")
    yield from _each(output, path, "required_changes", "change_id")


def _each(holder: Json, path: str, name: str, key: str) -> _WithIds:
    for place, item in objects(holder.get(name)):
        if item.get(key) == "":  # the path is made for these alone: there may be many calls
            yield at(at(path, name), place), item, (key,)


# -- what a sub-agent hands in -----------------------------------------------------------------------------------------


def output_findings(sub: Json, path: str) -> Iterator[DocumentFinding]:
    """What is wrong with the output of a sub-session."""
    output = sub.get("output")
    if output is None:
        return
    if not isinstance(output, dict):
        yield found("wrong-type", path, f"`output` is {shown(output)}; it must be an object")
        return
    model = output_model(output, text(inner(sub, "agent"), "agent_type"))
    yield from check(output, model, path)
    yield from _empty(_ids_of_output(output, path))
    for name in ("files_created", "files_modified"):
        for place, change in enumerate(_list(inner(output, "changes").get(name))):
            if not isinstance(change, str):
                yield from check(change, FileChange, f"{path}.changes.{name}[{place}]")
    for place, change in enumerate(_list(inner(output, "changes").get("files_deleted"))):
        if not isinstance(change, str):
            yield from check(change, FileChange, f"{path}.changes.files_deleted[{place}]")
    if model is ReviewerOutput:
        yield from _review(output, path)


def _review(output: Json, path: str) -> Iterator[DocumentFinding]:
    for place, finding in objects(output.get("findings")):
        if finding.get("file") is None and finding.get("location") is None:
            yield found("finding-place", f"{path}.findings[{place}]", "the finding names no `file` and no `location`")
    verification = output.get("verification")
    if isinstance(verification, dict):
        for flag, result in (("tests_passed", "tests"), ("type_check_passed", "type_check")):
            if verification.get(flag) is None and verification.get(result) is None:
                yield found("verification", f"{path}.verification.{flag}", f"`{flag}` is missing, and so is `{result}`")


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# -- what a message carries, and the agents of the summary -------------------------------------------------------------


def _payload(message: Json, path: str) -> Iterator[DocumentFinding]:
    """The standard leaves a payload open, so that one without what others expect is worth a warning."""
    kind = message.get("message_type")
    if "payload" not in message or not isinstance(kind, str) or kind not in PAYLOADS:
        return
    for finding in check(message["payload"], PAYLOADS[kind], path):
        yield msgspec.structs.replace(finding, rule="payload-field", level="warning")


def _phases(data: Json) -> Iterator[DocumentFinding]:
    """What older programs ask of a phase; a reader of today does without it."""
    calls = {text(call, "call_id") for call in values(data.get("tool_calls"))}
    phases = data.get("phases")
    for place, phase in enumerate(phases if isinstance(phases, list) else ()):
        path = f"phases[{place}]"
        for finding in check(phase, OldPhase, path):
            yield msgspec.structs.replace(finding, rule="old-phase", level="warning")
        named = phase.get("tool_call_ids") if isinstance(phase, dict) else None
        for number, name in enumerate(named if isinstance(named, list) else ()):
            if isinstance(name, str) and name not in calls:
                said = f"{shown(name)} is the id of no call of `tool_calls`"
                yield found("old-phase", f"{path}.tool_call_ids[{number}]", said)


def _agents(summary: Json) -> Iterator[DocumentFinding]:
    if "agents" not in summary:
        return
    rows = summary["agents"]
    if isinstance(rows, list):
        for place, row in enumerate(rows):
            yield from check(row, AgentSummary, f"summary.agents[{place}]")
    elif isinstance(rows, dict):
        yield from check(rows, AgentsByRole, "summary.agents")
    else:
        yield found("wrong-type", "summary.agents", f"`agents` is {shown(rows)}; it must be an object or a list")
