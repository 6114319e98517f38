"""What the agents of a session told each other, as the messages of a document.

A task that was given is a `task_assignment`, what its agent said while it was at it `task_progress`, what brought the
giver the answer its `task_completion`; of a reviewer's task they are `review_request` and `review_result`. A hook's
refusal is `feedback`, as are words between agents that are none of these. An interruption is an `abort`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from harken.events import Event, Response
from harken.formats.std.document import Json
from harken.formats.std.findings import at

from .aborts import Aborts, following
from .call_targets import CallTargets
from .exchanges import Exchanges
from .given_task import GivenTask, TasksOfAgent
from .moments import Moments
from .pattern import pattern_of
from .pending import PendingMessage, without_empty
from .reviewed import name_reviewed
from .session_links import SessionLinks
from .spawning import SessionTree
from .tasks import tasks_of

UNHEARD = "x_harken_unheard"
"""Marks a message that was said, but that the session does not bring to the agent it is for."""
_ACKNOWLEDGED = re.compile(
    r"\W*(?:acknowledged|understood|got it|will do|on it|roger|okay|ok|very well|yes)(?:\W|$)", re.I
)
_SHORT = 200
"""Characters; what is longer does more than acknowledge."""


class ToldMessages(msgspec.Struct, kw_only=True):
    """The messages of a session, and the tasks that they are about."""

    messages: list[Json]
    derived: list[str]
    """Paths of what the session does not say."""
    tasks: dict[str, TasksOfAgent]
    """Agent id to what it was given to do; every spawned agent has a first task, that of its sub-session."""
    pattern: str
    """How the agents worked together."""


def messages_of(tree: SessionTree, moments: Moments | None = None) -> ToldMessages:
    """Everything that agents told each other, in the order of the log."""
    if not tree.agents:
        return ToldMessages(messages=[], derived=[], tasks={}, pattern="master_worker")
    links = SessionLinks(tree)
    targets = CallTargets(links)
    tasks = tasks_of(links, targets)
    name_reviewed(tasks, links)
    exchanges = Exchanges(tasks, links)
    aborts = Aborts(links, targets)
    found = [*exchanges.found, *exchanges.refusals()]
    for given in tasks.values():
        for task, after in following(given):
            if task.is_told:
                found += _about(task, aborts.of(task, after), exchanges.reported)
    found.sort(key=lambda message: message.place)  # what stands in one place stays in the order it was made in
    _assign_once(found)
    pattern = pattern_of(tasks, exchanges.found, tree)
    messages, derived = _numbered(found, tree, moments or Moments(tree.events))
    return ToldMessages(messages=messages, derived=derived, tasks=tasks, pattern=pattern)


def _about(task: GivenTask, abort: PendingMessage | None, reported: set[str]) -> Iterator[PendingMessage]:
    """The messages about one task, in order."""
    request = _request(task)
    yield request
    answer = {reply.message_id for reply in task.answered_by}
    for place, reply in zip(task.places, task.replies, strict=True):
        if reply.message_id not in answer and task.is_open(place):
            said = _reply(task, reply, place, request)
            said.is_unheard = reply.message_id not in reported
            said.derived = ("to_agent",) if said.is_unheard else ()
            yield said
    if abort is not None:
        yield abort
    if task.answer is not None:
        yield _end(task, request)


def _request(task: GivenTask) -> PendingMessage:
    """That the task was given."""
    payload: Json
    derived: tuple[str, ...] = () if task.is_giver_known else ("from_agent",)
    if task.is_review:
        payload = {"review_id": task.task_id, "task_id": task.reviewed, "context": task.words}
        derived += () if task.is_reviewed_known else ("payload.task_id",)
    else:
        payload = {"task": without_empty({"task_id": task.task_id, "task_description": task.words})}
    kind = "review_request" if task.is_review else "task_assignment"
    return PendingMessage(
        place=task.place,
        event=task.event,
        sender=task.giver,
        hearer=task.agent_id,
        kind=kind,
        payload=without_empty(payload),
        correlation=task.task_id,
        derived=derived,
    )


def _assign_once(found: list[PendingMessage]) -> None:
    """A task is assigned once: a document may have several sub-sessions that are about one, of an agent that tries
    again or of several agents, and what gives it again is words about it."""
    assigned: set[str] = set()
    for message in found:
        if message.kind != "task_assignment":
            continue
        if message.correlation in assigned:
            words = message.payload["task"].get("task_description", "")
            told = {"feedback_type": "guidance", "content": words, "related_task_id": message.correlation}
            message.kind, message.payload = "feedback", without_empty(told)
            message.derived += ("message_type", "payload.feedback_type")
        assigned.add(message.correlation)


def _reply(task: GivenTask, reply: Response, place: int, request: PendingMessage) -> PendingMessage:
    """What the agent said before it had the answer."""
    is_first = place == task.first
    if is_first and len(reply.content) <= _SHORT and _ACKNOWLEDGED.match(reply.content):
        return _from_agent(task, reply, place, "acknowledgment", {"content": reply.content}, request)
    return _from_agent(task, reply, place, "task_progress", {"current_step": reply.content}, request)


def _end(task: GivenTask, request: PendingMessage) -> PendingMessage:
    """What came of the task."""
    assert task.answer is not None
    payload: Json = {"status": "failed" if task.is_failed else "completed", "summary": task.answer_words}
    kind = "task_completion"
    if task.is_review:
        kind = "review_result"
        payload = {"review_id": task.task_id, "task_id": task.reviewed, "verdict": task.verdict, **payload}
    return _from_agent(task, task.answer, task.answer_place, kind, payload, request)


def _from_agent(
    task: GivenTask, event: Event, place: int, kind: str, payload: Json, request: PendingMessage
) -> PendingMessage:
    return PendingMessage(
        place=max(place, task.place),  # clocks may disagree
        event=event,
        sender=task.agent_id,
        hearer=task.giver,
        kind=kind,
        payload=without_empty({"task_id": task.task_id, **payload}),
        correlation=task.task_id,
        answers=request,
    )


def _numbered(found: list[PendingMessage], tree: SessionTree, moments: Moments) -> tuple[list[Json], list[str]]:
    """The messages as a document has them, and what in them the session does not say."""
    ids = {id(message): f"msg-{number:03}" for number, message in enumerate(found, 1)}
    messages: list[Json] = []
    derived: list[str] = []
    for place, message in enumerate(found):
        told: Json = {
            "message_id": ids[id(message)],
            "timestamp": moments.text(message.event),
            "sequence_number": place + 1,
            "from_agent": tree.identifier(message.sender),
            "to_agent": tree.identifier(message.hearer),
            "message_type": message.kind,
            "payload": message.payload,
        }
        if message.correlation:
            told["correlation_id"] = message.correlation
        if message.answers is not None:
            told["reply_to"] = ids[id(message.answers)]
        if message.is_unheard:
            told[UNHEARD] = True
        messages.append(told)
        unsaid = ("timestamp", *message.derived) if message.event.time is None else message.derived
        derived += [f"{at('messages', place)}.{field}" for field in unsaid]
    return messages, derived
