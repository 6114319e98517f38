"""Rules about messages: who speaks to whom, in which order, and about which tasks and reviews."""

from __future__ import annotations

from collections.abc import Iterator

from .document import Json
from .findings import DocumentFinding
from .parts import inner, objects, requested_reviews, text, values
from .rule_table import found
from .schema import shown


def message_findings(data: Json) -> Iterator[DocumentFinding]:
    """What is wrong with messages, and with what reviews and outputs say of tasks and findings."""
    yield from _speakers(data)
    yield from _order(data)
    yield from _assignments(data)
    yield from _reviews(data)
    yield from _tasks(data)
    yield from _outputs(data)


def _speakers(data: Json) -> Iterator[DocumentFinding]:
    """§6.2: both agents of a message took part, and are of the type that they are listed with."""
    collaboration = inner(data, "collaboration")
    listed = [inner(collaboration, "orchestrator"), *values(collaboration.get("participants"))]
    if not isinstance(collaboration.get("participants"), list):
        return
    types: dict[str, str] = {}
    for agent in listed:
        types.setdefault(text(agent, "agent_id"), text(agent, "agent_type"))
    for place, message in objects(data.get("messages")):
        for key in ("from_agent", "to_agent"):
            agent = inner(message, key)
            name, kind = text(agent, "agent_id"), text(agent, "agent_type")
            path = f"messages[{place}].{key}"
            if name and name not in types:
                yield found("unknown-agent", f"{path}.agent_id", f"`{key}` is {shown(name)}, which did not take part")
            elif name and kind and types[name] and kind != types[name]:
                said = f"{shown(name)} is of type {shown(kind)} here, but {shown(types[name])} in `collaboration`"
                yield found("agent-type", f"{path}.agent_type", said)


def _order(data: Json) -> Iterator[DocumentFinding]:
    """Numbers increase, and an answer is the answer to another message."""
    last: float | None = None
    known = {text(message, "message_id") for message in values(data.get("messages"))}
    for place, message in objects(data.get("messages")):
        number, path = message.get("sequence_number"), f"messages[{place}]"
        if isinstance(number, int) and not isinstance(number, bool):
            if last is not None and number <= last:
                said = f"`sequence_number` is {shown(number)} after {shown(last)}; it must increase"
                yield found("sequence", f"{path}.sequence_number", said)
            last = number
        if not (answered := text(message, "reply_to")):
            continue
        if answered not in known or answered == text(message, "message_id"):
            said = f"`reply_to` is {shown(answered)}; no other message has that id"
            yield found("reply", f"{path}.reply_to", said)


def _assignments(data: Json) -> Iterator[DocumentFinding]:
    """A task is assigned once, and only then completed."""
    assigned: dict[str, int] = {}
    for place, message in objects(data.get("messages")):
        kind, payload = message.get("message_type"), inner(message, "payload")
        if kind == "task_assignment" and (name := text(inner(payload, "task"), "task_id")):
            if (first := assigned.setdefault(name, place)) != place:
                path = f"messages[{place}].payload.task.task_id"
                yield found("repeated-assignment", path, f"{shown(name)} was assigned before, by messages[{first}]")
        elif kind == "task_completion" and (name := text(payload, "task_id")) and name not in assigned:
            path = f"messages[{place}].payload.task_id"
            yield found("completion", path, f"{shown(name)} is completed, but no message before it assigns it")


def _reviews(data: Json) -> Iterator[DocumentFinding]:
    """A review's result answers a request: that of the same review, or where one side names no review, of the task."""
    reviews, tasks = set[str](), dict[str, str]()
    for place, message in objects(data.get("messages")):
        kind, payload = message.get("message_type"), inner(message, "payload")
        review, task = text(payload, "review_id"), text(payload, "task_id")
        if kind == "review_request":
            reviews.add(review)
            tasks[task] = review
        elif kind == "review_result" and (review or task):
            by_task = task in tasks and not (review and tasks[task])
            if not ((review and review in reviews) or by_task):
                path = f"messages[{place}].payload.{'review_id' if review else 'task_id'}"
                said = f"the result of {shown(review or task)} is given, but no message before it asks for it"
                yield found("review", path, said)


def _tasks(data: Json) -> Iterator[DocumentFinding]:
    """Whatever names a task names one that is there."""
    known = requested_reviews(data)
    known |= {text(inner(sub, "task"), "task_id") for sub in values(data.get("sub_sessions"))}
    for message in values(data.get("messages")):
        if message.get("message_type") == "task_assignment":
            known.add(text(inner(inner(message, "payload"), "task"), "task_id"))
    for place, message in objects(data.get("messages")):
        if message.get("message_type") in ("task_progress", "review_request", "review_result"):
            name = text(inner(message, "payload"), "task_id")
            if name and name not in known:
                path = f"messages[{place}].payload.task_id"
                yield found(
                    "unknown-task", path, f"`task_id` is {shown(name)}; no sub-session and no message has that task"
                )


def _outputs(data: Json) -> Iterator[DocumentFinding]:
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
