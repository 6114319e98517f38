"""What a document shows at a look: who took part, who did which task, what they told each other and how it ended.

The values come from what is recorded, not from the summary that the document gives of itself. A document may be
damaged; what cannot be drawn is told.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from .as_meant import as_meant
from .document import Document, Json
from .hearers import EVERYBODY
from .models import CATEGORIES, VERDICTS
from .parts import (
    agent_at,
    inner,
    instant,
    is_review,
    objects,
    orchestrator,
    own_calls,
    participants,
    range_ends,
    requested_reviews,
    tells_agent,
    text,
    values,
)
from .summary import call_span, failed_calls, has_failed, milliseconds, sub_span, total_duration
from .verdicts import ReviewVerdicts, final_verdict

TELLING = (
    *("task_description", "description", "summary", "content", "current_step", "reason", "subject", "prompt"),
    *("verdict", "status"),
)
"""Fields of a payload that say what a message is about; the first that there is does."""


_NAMES = frozenset({"task_id", "review_id", "related_task_id", "priority"})
"""Fields that only name what a message is about."""


class DrawnAgent(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who took part."""

    agent_id: str
    agent_type: str
    role: str
    status: str
    tasks: int
    calls: int
    failed: int
    categories: dict[str, int]
    duration_ms: int | None


class DrawnTask(msgspec.Struct, frozen=True, kw_only=True):
    """What a sub-agent was to do."""

    task_id: str
    sub_session_id: str
    call_id: str
    description: str
    priority: str
    agent_id: str
    given_by: str
    status: str
    review: bool
    verdict: str
    outcome: str
    calls: int
    duration_ms: int | None


class DrawnMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent told another."""

    message_id: str
    sequence_number: int | None
    timestamp: str
    from_agent: str
    to_agent: str
    message_type: str
    task_id: str
    verdict: str
    said: str


class DrawnPhase(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the main agent's calls, as somebody saw it."""

    phase_type: str
    first_call: str
    last_call: str
    description: str


class DocumentDrawing(msgspec.Struct, frozen=True, kw_only=True):
    """A document at a look."""

    session_id: str
    title: str
    prompt: str
    kind: str
    generation: str
    status: str
    pattern: str
    model: str
    created_at: str
    completed_at: str
    duration_ms: int | None
    calls: int
    failed_calls: int
    verdict: str
    agents: list[DrawnAgent]
    tasks: list[DrawnTask]
    messages: list[DrawnMessage]
    phases: list[DrawnPhase]
    left_out: list[str]


def drawing(document: Document) -> DocumentDrawing:
    """A document at a look, whatever state it is in."""
    data = as_meant(document.data)
    agents = _agents(data)
    return DocumentDrawing(
        session_id=text(data, "session_id"),
        title=text(data, "task_title") or text(data, "title"),
        prompt=text(data, "user_prompt"),
        kind=document.kind,
        generation=document.generation,
        status=text(data, "status"),
        pattern=text(inner(data, "collaboration"), "pattern") if document.kind == "std-008" else "",
        model=text(inner(data, "agent"), "model_id"),
        created_at=text(data, "created_at") or text(data, "started_at"),
        completed_at=text(data, "completed_at"),
        duration_ms=total_duration(data),
        calls=sum(agent.calls for agent in agents),
        failed_calls=failed_calls(data),
        verdict=final_verdict(data),
        agents=agents,
        tasks=_tasks(data),
        messages=[_message(message) for message in values(data.get("messages"))],
        phases=[_phase(one) for one in values(data.get("phase_annotations"))],
        left_out=list(_left_out(data)),
    )


# -- agents ------------------------------------------------------------------------------------------------------------


def name_of(agent: Json) -> str:
    """What an agent is called: by its id, else by its type."""
    return text(agent, "agent_id") or text(agent, "agent_type")


def _agents(data: Json) -> list[DrawnAgent]:
    """The orchestrator, the participants, and whoever else did or said something."""
    leader = orchestrator(data)
    main = name_of(leader) or "main"
    found: dict[str, tuple[Json, str]] = {main: (leader, "orchestrator")}
    for agent in participants(data):
        found.setdefault(name_of(agent) or "?", (agent, "participant"))
    subs: dict[str, list[Json]] = {}
    for sub in values(data.get("sub_sessions")):
        subs.setdefault(name_of(agent_at(sub, "agent")) or "?", []).append(sub)
        found.setdefault(name_of(agent_at(sub, "agent")) or "?", (agent_at(sub, "agent"), "unlisted"))
    for message in values(data.get("messages")):
        for key in ("from_agent", "to_agent"):
            name = name_of(agent_at(message, key))  # whoever it does not name is nobody
            if name and (key == "from_agent" or name not in EVERYBODY):
                found.setdefault(name, (agent_at(message, key), "unlisted"))
    return [_agent(name, *found[name], subs.get(name, []), data if name == main else {}) for name in found]


def _agent(name: str, agent: Json, role: str, subs: list[Json], data: Json) -> DrawnAgent:
    """An agent; `data` is the document for the main one, whose calls are those of the document itself."""
    calls = own_calls(data)
    spans = [span for call in calls if (span := call_span(call))] + [span for sub in subs if (span := sub_span(sub))]
    calls = [*calls, *(call for sub in subs for call in values(sub.get("tool_calls")))]
    kinds = Counter(text(call, "tool_category") or "unknown" for call in calls)
    return DrawnAgent(
        agent_id=name,
        agent_type=text(agent, "agent_type"),
        role=role,
        status=text(data, "status") or (text(subs[-1], "status") if subs else ""),
        tasks=len(subs),
        calls=len(calls),
        failed=sum(map(has_failed, calls)),
        categories={
            kind: kinds[kind] for kind in (*CATEGORIES, *sorted(kinds.keys() - set(CATEGORIES))) if kinds[kind]
        },
        duration_ms=milliseconds(spans) if spans else None,
    )


# -- tasks -------------------------------------------------------------------------------------------------------------


def _tasks(data: Json) -> list[DrawnTask]:
    """The sub-sessions, and the Task calls that started an agent of which the document has nothing more."""
    requested, verdicts = requested_reviews(data), ReviewVerdicts(data)
    main = name_of(orchestrator(data)) or "main"
    names = {text(sub, "sub_session_id"): name_of(agent_at(sub, "agent")) for sub in values(data.get("sub_sessions"))}
    tasks = [
        _task(sub, names.get(text(sub, "parent_session_id"), main), verdicts, is_review=is_review(sub, requested))
        for sub in values(data.get("sub_sessions"))
    ]
    triggers = {task.call_id for task in tasks}
    return tasks + [
        _called(call, main)
        for call in own_calls(data)
        if tells_agent(call)
        and text(call, "call_id") not in triggers
        and text(inner(call, "subagent_info"), "sub_session_id") not in names
    ]


def _task(sub: Json, given_by: str, verdicts: ReviewVerdicts, *, is_review: bool) -> DrawnTask:
    task, output, span = inner(sub, "task"), inner(sub, "output"), sub_span(sub)
    return DrawnTask(
        task_id=text(task, "task_id"),
        sub_session_id=text(sub, "sub_session_id"),
        call_id=text(sub, "triggered_by_call_id"),
        description=text(task, "description"),
        priority=text(task, "priority"),
        agent_id=name_of(agent_at(sub, "agent")) or "?",
        given_by=given_by,
        status=text(sub, "status"),
        review=is_review,
        verdict=text(output, "verdict") or (verdicts.of(sub) if is_review else ""),
        outcome=text(output, "summary"),
        calls=len(values(sub.get("tool_calls"))),
        duration_ms=milliseconds([span]) if span else None,
    )


def _called(call: Json, given_by: str) -> DrawnTask:
    """A Task call of a document that does not say what the agent did."""
    info, output, span = inner(call, "subagent_info"), inner(call, "output"), call_span(call)
    params = inner(inner(call, "input"), "params")
    uses = info.get("tool_uses")
    return DrawnTask(
        task_id="",
        sub_session_id="",
        call_id=text(call, "call_id"),
        description=text(params, "description") or text(params, "prompt") or text(inner(call, "input"), "description"),
        priority="",
        agent_id=text(info, "subagent_type") or "?",
        given_by=given_by,
        status=text(output, "status"),
        review=False,
        verdict="",
        outcome=text(inner(output, "result"), "display") or text(output, "result") or text(output, "error"),
        calls=uses if isinstance(uses, int) and not isinstance(uses, bool) and 0 <= uses < 1 << 53 else 0,
        duration_ms=milliseconds([span]) if span else None,
    )


# -- messages, phases --------------------------------------------------------------------------------------------------


def _message(message: Json) -> DrawnMessage:
    payload, number = message.get("payload"), message.get("sequence_number")
    task = text(payload, "task_id") or text(inner(payload, "task"), "task_id") or text(payload, "related_task_id")
    verdict = text(payload, "verdict")
    return DrawnMessage(
        message_id=text(message, "message_id"),
        sequence_number=number if type(number) is int and abs(number) < 1 << 53 else None,  # true is no number
        timestamp=text(message, "timestamp"),
        from_agent=name_of(agent_at(message, "from_agent")) or "?",
        to_agent=name_of(agent_at(message, "to_agent")) or "?",
        message_type=text(message, "message_type"),
        task_id=task or text(message, "correlation_id"),
        verdict=verdict if verdict in VERDICTS else "",
        said=said_in(payload) or text(message, "content"),
    )


def said_in(payload: Any) -> str:
    """What a payload says first, in words; as JSON where nothing in it is made to be read; nothing where it has only
    names."""
    if isinstance(payload, str):
        return payload
    for part in (payload, inner(payload, "task")):
        for key in TELLING:
            if (said := text(part, key)).strip():
                return said
    if (said := text(payload, "context")).strip():
        return said
    rest = payload
    if isinstance(payload, dict):
        rest = {key: value for key, value in payload.items() if key not in _NAMES}
        if rest.keys() == {"task"} and inner(rest, "task").keys() <= _NAMES:
            return ""
    return json.dumps(rest, ensure_ascii=False) if rest else ""


def _phase(phase: Json) -> DrawnPhase:
    first, last = range_ends(phase.get("tool_call_range"))
    return DrawnPhase(
        phase_type=text(phase, "phase_type"),
        first_call=first,
        last_call=last,
        description=text(phase, "description"),
    )


# -- what cannot be drawn ----------------------------------------------------------------------------------------------

_LISTS = ("tool_calls", "sub_sessions", "messages", "phase_annotations")


def _left_out(data: Json) -> Iterator[str]:
    """What stands where a list of objects belongs, and is none."""
    for key in _LISTS:
        yield from _not_objects(data, key, key)
    for key in ("collaboration", "agent"):
        if data.get(key) is not None and not isinstance(data[key], dict):
            yield f"`{key}` is no object"
    yield from _not_objects(inner(data, "collaboration"), "participants", "collaboration.participants", (dict, str))
    for place, sub in objects(data.get("sub_sessions")):
        yield from _not_objects(sub, "tool_calls", f"sub_sessions[{place}].tool_calls")
    without = len(values(data.get("phases"))) - len(values(data.get("phase_annotations")))
    if without > 0:
        yield f"{without} of {len(values(data['phases']))} phases {'has' if without == 1 else 'have'} no calls"
    if instant(data, "created_at") is None and data.get("created_at") is not None:
        yield "`created_at` is no time"


def _not_objects(data: Json, key: str, path: str, drawn: tuple[type, ...] = (dict,)) -> Iterator[str]:
    value = data.get(key)
    if value is not None and not isinstance(value, list):
        yield f"`{path}` is no list"
    elif isinstance(value, list) and (odd := sum(not isinstance(item, drawn) for item in value)):
        yield f"{odd} of {len(value)} entries of `{path}` {'is no object' if odd == 1 else 'are no objects'}"
