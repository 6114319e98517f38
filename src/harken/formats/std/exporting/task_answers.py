"""What came of tasks: what brought their givers the answers, and in which words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harken.events import Prompt, Response, ToolResult
from harken.events.base import holds
from harken.formats.std.arguments import params_of

from .given_task import GivenTask, TasksOfAgent
from .making import is_launch
from .session_links import Delivery, SessionLinks, Utterance
from .spawning import SpawnedAgent, is_failure

_RESULT = re.compile(r"<result>(.*)</result>", re.S)
"""The answer in a notice."""
_NOTICE = re.compile(r"\{.*\}", re.S)
"""The object that another kind of notice is."""


def add_answers(found: dict[str, TasksOfAgent], links: SessionLinks) -> None:
    """Whatever brought the giver of a task the agent's last words ends it; else the result of the call that gave it."""
    said_in = {reply.message_id: task for given in found.values() for task in given.tasks for reply in task.replies}
    for event in links.tree.events:
        if isinstance(event, Prompt | ToolResult) and (event.substance or event.cause):
            _bring(event, said_in, links)
    for name, given in found.items():
        for task, following in zip(given.tasks, [*given.tasks[1:], None], strict=True):
            if task.answer is None and task.is_told:
                _end_without_words(task, links.tree.agents[name], following.place if following else None, links)


def _bring(event: Delivery, said_in: dict[str, GivenTask], links: SessionLinks) -> None:
    hearer, place = links.agent(event), links.place(event)
    brought: dict[int, tuple[GivenTask, list[Response]]] = {}
    for said in links.brought(event):
        task = said_in.get(said.message_id)
        if task is not None and task.giver == hearer and isinstance(said, Response) and said not in task.answered_by:
            brought.setdefault(id(task), (task, []))[1].append(said)
    for task, parts in brought.values():
        last = {one.message_id for one in task.last_words(place)}
        if any(part.message_id in last for part in parts):
            # Words that the giver had before were only on the way to these.
            task.end(event, place, heard_words(event, parts, links))
            task.answered_by = parts


def heard_words(event: Delivery, parts: Sequence[Utterance], links: SessionLinks) -> str:
    """What the hearer got of the words; a hook may have changed them on the way."""
    if event.substance:
        return links.without_label(event)
    text = event.output if isinstance(event, ToolResult) else event.content
    said = [part.content for part in parts]
    if all(holds(text, words.strip()) for words in said):
        return "\n".join(said)
    return _gathered(text, links.label(parts[0]), [links.label(one) for one in links.brought(event)])


def _gathered(text: str, label: str, labels: list[str]) -> str:
    """An agent's part of a text in which several have theirs; all of it where it does not say whose words are whose."""
    if text.startswith(label):
        start = 0
    elif (found := text.find(f"\n\n{label}")) >= 0:
        start = found + 2
    else:
        return text
    ends = [end for other in set(labels) if (end := text.find(f"\n\n{other}", start)) >= 0]
    return text[start + len(label) : min(ends, default=len(text))]


def _end_without_words(task: GivenTask, agent: SpawnedAgent, until: int | None, links: SessionLinks) -> None:
    """The result of its call ends a task where it is an error, or comes after the work; a notice, where it says that
    the agent failed. Of an agent whose own records are gone, these are all that is left."""
    result = links.result(task.call)
    ends: list[Delivery] = []
    is_answer = not agent.is_recorded and not agent.notices and not is_launch(task.call, result)
    if result is not None and (result.is_error or is_answer or 0 <= task.last < links.place(result)):
        ends.append(result)
    for notice in agent.notices:
        if links.place(notice) > task.place and (not agent.is_recorded or is_failure(notice)):
            ends.append(notice)
    for event in ends:
        if until is None or links.place(event) < until:
            task.end(event, links.place(event), _told_in(event))
            return


def _told_in(event: Delivery) -> str:
    """The words of a result, or of the answer in a notice."""
    if isinstance(event, ToolResult):
        return event.output
    if (answer := _RESULT.search(event.content)) is not None:
        return answer[1].strip()
    notice = _NOTICE.search(event.content)
    status = params_of(notice[0].encode("utf-8", "replace")).get("status") if notice is not None else None
    told = [words for words in status.values() if isinstance(words, str)] if isinstance(status, dict) else []
    return told[0] if told else event.content
