"""Sub-sessions that do not say how they went: as their output says it, or the message that tells of their end. A repair
asks these first, and then the call."""

from __future__ import annotations

from .document import Json
from .meant_tasks import meant_tasks
from .models import STATUSES, Status
from .parts import agent_at, call_outcome, inner, task_id_of, text, values
from .spellings import known_status, known_word

OTHER_NAMES = ("state", "outcome", "result")
"""Other names of `status`."""
_ENDS = ("task_completion", "review_result")


def with_meant_statuses(data: Json) -> Json:
    """The document, those sub-sessions with how they went; itself where nothing tells."""
    if not (meant := meant_statuses(data)):
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
