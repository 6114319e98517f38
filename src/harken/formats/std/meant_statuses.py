"""Sub-sessions that do not say how they went: as their output says it, or the message that tells of their end, else as
the call went that began them. A repair asks these in the same order."""

from __future__ import annotations

from collections.abc import Mapping

from .document import Json
from .meant_tasks import meant_tasks
from .models import STATUSES, Status
from .parts import agent_at, call_outcome, inner, over, own_outcome, task_id_of, text, values
from .spellings import known_status, known_word

OTHER_NAMES = ("state", "outcome", "result")
"""Other names of `status`."""
_ENDS = ("task_completion", "review_result")


def with_meant_statuses(data: Json) -> Json:
    """The document, those sub-sessions with how they went; itself where nothing tells."""
    meant = meant_statuses(data)
    if not (meant := meant | _by_call(data, meant)):
        return data
    subs = [
        {**sub, "status": meant[place]} if place in meant else sub for place, sub in enumerate(data["sub_sessions"])
    ]
    return {**data, "sub_sessions": subs}


def meant_statuses(data: Json) -> dict[int, Status]:
    """The place of a sub-session without a status to how it went, as far as that is told elsewhere."""
    listed = data.get("sub_sessions")
    subs = {place: sub for place, sub in enumerate(listed if isinstance(listed, list) else []) if isinstance(sub, dict)}
    if not (silent := {place: sub for place, sub in subs.items() if sub.get("status") is None}):
        return {}
    told, meant = _told_ends(data), meant_tasks(data)
    found = {
        place: _by_itself(sub) or _by_message(sub, task_id_of(sub) or meant.get(place, ""), told)
        for place, sub in silent.items()
    }
    return {place: status for place, status in found.items() if status is not None}


def meant_outcome(call: Json, started: Json, part: Json) -> str:
    """How a call went that may not say so itself: as the sub-session did that it started, else as the session or the
    sub-session did that it is part of. One that failed was at its last call then. Empty where nothing tells."""
    if said := own_outcome(call) or _outcome_of(started):
        return said
    status, calls = _outcome_of(part), values(part.get("tool_calls"))
    is_last = bool(calls) and text(calls[-1], "call_id") == text(call, "call_id")
    return status if status == "success" or is_last else ""


def calls_with_homes(data: Json) -> dict[str, tuple[Json, Json]]:
    """The id of a call to the call, and to the session or the sub-session that it is part of: that of its agent, where
    it is listed among the main calls as well."""
    found: dict[str, tuple[Json, Json]] = {}
    for part in (data, *values(data.get("sub_sessions"))):
        for call in values(part.get("tool_calls")):
            if part is not data or not call.get("x_harken_owner"):
                found.setdefault(text(call, "call_id"), (call, part))
    return found


def _outcome_of(part: Json) -> str:
    word = known_status(part.get("status"))
    return word if word in ("success", "failed") else ""


def _by_call(data: Json, meant: Mapping[int, Status]) -> dict[int, Status]:
    """The same of the others that are over: by what became of the call that began each. Where that does not say it
    either, the sub-session that it is part of may be one of those that are `meant`, or found here."""
    listed, is_over = data.get("sub_sessions"), bool(_outcome_of(data))
    subs = {place: sub for place, sub in enumerate(listed if isinstance(listed, list) else []) if isinstance(sub, dict)}
    silent = {
        place: sub
        for place, sub in subs.items()
        if sub.get("status") is None and place not in meant and (is_over or over(sub) is not None)
    }
    if not silent:
        return {}
    calls, known = calls_with_homes(data), {id(subs[place]): status for place, status in meant.items()}
    found: dict[int, Status] = {}
    for _ in range(_DEEPEST):
        told = {place: _as_called(sub, calls, known) for place, sub in silent.items() if place not in found}
        if not (more := {place: word for place, word in told.items() if word is not None}):
            break
        found |= more
        known |= {id(subs[place]): word for place, word in more.items()}
    return found


_DEEPEST = 20
"""How many sub-sessions, each begun in the one above, may leave it to that how they went."""


def _as_called(sub: Json, calls: Mapping[str, tuple[Json, Json]], known: Mapping[int, Status]) -> Status | None:
    call, part = calls.get(text(sub, "triggered_by_call_id") or "-", ({}, {}))
    above = {**part, "status": known[id(part)]} if id(part) in known else part
    return known_status(meant_outcome(call, {}, above))


def _by_itself(sub: Json) -> Status | None:
    """By a field of another name, or by its output: a verdict is the end of a review."""
    for key in OTHER_NAMES:
        if (word := known_word(sub.get(key), STATUSES)) is not None:
            return known_status(word)
    output = inner(sub, "output")
    said = output.get("status")
    return "success" if said is None and text(output, "verdict") else known_status(said)


def _by_message(sub: Json, task: str, told: dict[tuple[str, str], Status]) -> Status | None:
    doer = text(agent_at(sub, "agent"), "agent_id")
    names = (text(inner(sub, "output"), "review_id"), task)
    return next((told[doer, name] for name in names if name and (doer, name) in told), None)


def _told_ends(data: Json) -> dict[tuple[str, str], Status]:
    """How a task, or a review, of an agent went, as its last message about that says."""
    found: dict[tuple[str, str], Status] = {}
    for message in values(data.get("messages")):
        if known_word(message.get("message_type"), _ENDS) is None:
            continue
        payload, agent = inner(message, "payload"), text(agent_at(message, "from_agent"), "agent_id")
        told = known_status(payload.get("status")) or known_status(call_outcome(payload))
        told = told or ("success" if text(payload, "verdict") else None)
        if told is None:
            continue
        names = {text(payload, "review_id"), text(inner(payload, "task"), "task_id")}
        # What a review is about has the id of another's task.
        names |= {text(payload, "task_id")} if not text(payload, "review_id") else set()
        found |= {(agent, name): told for name in names - {""}}
    return found
