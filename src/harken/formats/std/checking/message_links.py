"""Rules about messages: who speaks to whom, in which order, and about which tasks and reviews."""

from __future__ import annotations

from collections.abc import Iterator

from harken.formats.std.document import Json
from harken.formats.std.findings import DocumentFinding
from harken.formats.std.parts import assigned_task, inner, objects, requested_reviews, text, values

from .links import listed_types, other_type
from .rule_table import found
from .schema import shown


def message_findings(data: Json) -> Iterator[DocumentFinding]:
    """What is wrong with messages, and with what reviews and outputs say of tasks and findings."""
    yield from _speakers(data)
    yield from _order(data)
    yield from _threads(data)
    yield from _tasks(data)
    yield from task_findings(data)


def _speakers(data: Json) -> Iterator[DocumentFinding]:
    """§6.2: both agents of a message took part, and are of the type that they are listed with."""
    if not isinstance(inner(data, "collaboration").get("participants"), list):
        return
    types = listed_types(data)
    for place, message in objects(data.get("messages")):
        for key in ("from_agent", "to_agent"):
            agent, path = inner(message, key), f"messages[{place}].{key}"
            name = text(agent, "agent_id")
            if name and name not in types:
                yield found("unknown-agent", f"{path}.agent_id", f"`{key}` is {shown(name)}, which did not take part")
            yield from other_type(agent, types, path)


def _order(data: Json) -> Iterator[DocumentFinding]:
    """Numbers increase, and an answer is the answer to another message."""
    last: float | None = None
    known = {text(message, "message_id") for message in values(data.get("messages"))}
    for place, message in objects(data.get("messages")):
        number, path = message.get("sequence_number"), f"messages[{place}]"
        if isinstance(number, (int, float)) and not isinstance(number, bool):  # 2.0 is a whole number, too
            if last is not None and number <= last:
                said = f"`sequence_number` is {shown(number)} after {shown(last)}; it must increase"
                yield found("sequence", f"{path}.sequence_number", said)
            last = number
        if not (answered := text(message, "reply_to")):
            continue
        if answered not in known or answered == text(message, "message_id"):
            said = f"`reply_to` is {shown(answered)}; no other message has that id"
            yield found("reply", f"{path}.reply_to", said)


def _threads(data: Json) -> Iterator[DocumentFinding]:
    """A task is assigned once, and only then completed; a review's result was asked for."""
    threads = TaskThreads()
    for place, message in objects(data.get("messages")):
        path = f"messages[{place}]"
        if problem := threads.problem(message):
            rule, key, said = problem
            yield found(rule, f"{path}.payload.{key}", said)
        threads.take(message, path)


class TaskThreads:
    """Which tasks were assigned and which reviews were asked for, message by message."""

    def __init__(self) -> None:
        self._assigned: dict[str, str] = {}
        self._reviews: set[str] = set()
        self._reviewed: dict[str, str] = {}

    def problem(self, message: Json) -> tuple[str, str, str] | None:
        """The rule that a message breaks after those before it, the field of its payload, and a sentence."""
        kind, payload = message.get("message_type"), inner(message, "payload")
        review, task = text(payload, "review_id"), text(payload, "task_id")
        if kind == "task_assignment" and (name := assigned_task(message)) in self._assigned:
            key = "task.task_id" if text(inner(payload, "task"), "task_id") else "task_id"
            return "repeated-assignment", key, f"{shown(name)} was assigned before, by {self._assigned[name]}"
        if kind == "task_completion" and task and task not in self._assigned:
            return "completion", "task_id", f"{shown(task)} is completed, but no message before it assigns it"
        if kind == "review_result" and (review or task) and not self._was_asked_for(review, task):
            said = f"the result of {shown(review or task)} is given, but no message before it asks for it"
            return "review", "review_id" if review else "task_id", said
        return None

    def _was_asked_for(self, review: str, task: str) -> bool:
        """A result answers the request of the same review, or where one side names no review, of the task."""
        by_task = task in self._reviewed and not (review and self._reviewed[task])
        return bool(review and review in self._reviews) or by_task

    def take(self, message: Json, where: str) -> None:
        """Take in the next message; `where` is what it is called to people."""
        kind, payload = message.get("message_type"), inner(message, "payload")
        if kind == "task_assignment" and (name := assigned_task(message)):
            self._assigned.setdefault(name, where)
        elif kind == "review_request":
            review = text(payload, "review_id")
            self._reviews.add(review)
            self._reviewed[text(payload, "task_id")] = review


def _tasks(data: Json) -> Iterator[DocumentFinding]:
    """Whatever names a task names one that is there."""
    known = requested_reviews(data)
    known |= {text(inner(sub, "task"), "task_id") for sub in values(data.get("sub_sessions"))}
    for message in values(data.get("messages")):
        if message.get("message_type") == "task_assignment":
            known.add(assigned_task(message))
    for place, message in objects(data.get("messages")):
        kind, payload = text(message, "message_type"), inner(message, "payload")
        key = _TASK_OF.get(kind, "")
        if kind == "abort" and payload.get("scope") != "task":
            continue
        if (name := text(payload, key)) and name not in known:
            yield _unknown_task(f"messages[{place}].payload.{key}", key, name)
    for place, sub in objects(data.get("sub_sessions")):
        output = inner(sub, "output")
        if "verdict" in output and (name := text(output, "task_id")) and name not in known:
            yield _unknown_task(f"sub_sessions[{place}].output.task_id", "task_id", name)


_TASK_OF = {
    "task_progress": "task_id",
    "review_request": "task_id",
    "review_result": "task_id",
    "acknowledgment": "task_id",
    "feedback": "related_task_id",
    "abort": "target_id",
}
"""Which field of its payload names the task that a message is about."""


def _unknown_task(path: str, key: str, name: str) -> DocumentFinding:
    return found("unknown-task", path, f"`{key}` is {shown(name)}; no sub-session and no message has that task")


def task_findings(data: Json) -> Iterator[DocumentFinding]:
    """What a sub-agent hands in is about its task, and a change is about findings that are there."""
    for place, sub in objects(data.get("sub_sessions")):
        path, output = f"sub_sessions[{place}].output", inner(sub, "output")
        task, handed_in = text(inner(sub, "task"), "task_id"), text(output, "task_id")
        if task and handed_in and task != handed_in and "verdict" not in output:  # a reviewer names what it reviewed
            yield found("output-task", f"{path}.task_id", f"`task_id` is {shown(handed_in)}; the task is {shown(task)}")
        known = {text(finding, "finding_id") for finding in values(output.get("findings"))}
        for number, change in objects(output.get("required_changes")):
            related = change.get("related_findings")
            for at, name in enumerate(related if isinstance(related, list) else ()):
                if isinstance(name, str) and name not in known:
                    where = f"{path}.required_changes[{number}].related_findings[{at}]"
                    yield found("unknown-finding", where, f"{shown(name)} is the id of no finding")
