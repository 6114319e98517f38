"""Which task a review is about, and what the review came to."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter

from harken.formats.std.document import Json
from harken.formats.std.parts import text

from .given_task import GivenTask, TasksOfAgent
from .handed_in import all_handed_in
from .reviews import stated_verdict
from .session_links import SessionLinks

_NAME = re.compile(r"[\w@-]+(?:\.[\w@-]+)*")
_MOST = 100_000
"""Characters of a request that are looked through for names."""


def name_reviewed(tasks: dict[str, TasksOfAgent], links: SessionLinks) -> None:
    """Say of each review what is reviewed: the task of the agent that the request names, else the one that was
    completed last before it, else nothing but the review itself."""
    work = [task for given in tasks.values() for task in given.tasks if task.is_told and not task.is_review]
    done = sorted((task.answer_place, task.task_id) for task in work if task.answer is not None and not task.is_failed)
    names = _names(work, tasks, links)
    for agent, given in tasks.items():
        for task in given.tasks:
            if task.is_review:
                named = _named(task, names)
                before = bisect_left(done, (task.place, ""))
                task.is_reviewed_known = bool(named)
                task.reviewed = named or (done[before - 1][1] if before else task.task_id)
                task.verdict = "" if task.is_failed else stated_verdict(task.answer_words)
        if any(task.is_review for task in given.tasks):
            _as_handed_in(given.tasks, list(all_handed_in(links.tree.own(agent))))


def _as_handed_in(tasks: list[GivenTask], outputs: list[Json]) -> None:
    """The verdicts that a document says outright: of each review by its name, and the last one of the last review. Of
    one that was held again under its name, each has its own; where there are fewer, those that were answered have."""
    named: dict[str, list[str]] = {}
    for one in outputs:
        if verdict := text(one, "verdict"):
            named.setdefault(text(one, "review_id"), []).append(verdict)
    left = Counter(task.task_id for task in tasks)
    for place, task in enumerate(reversed(tasks)):
        own = named.get(task.task_id, [])
        own = own if task.answer is not None or len(own) >= left[task.task_id] else []
        left[task.task_id] -= 1
        told = own.pop(0) if own else text(outputs[0], "verdict") if outputs and not place else ""
        if told and task.is_review and not task.is_failed:
            task.verdict = told


def _names(work: list[GivenTask], tasks: dict[str, TasksOfAgent], links: SessionLinks) -> dict[str, list[GivenTask]]:
    """What a request may call an agent or its task, to the tasks that are meant, in the order of the log. A name that
    several agents have says nothing."""
    owners: dict[str, set[str]] = {}
    found: dict[str, list[GivenTask]] = {}
    for task in sorted(work, key=lambda one: one.place):
        for name in {task.task_id, task.agent_id, links.tree.agents[task.agent_id].name}:
            owners.setdefault(name, set()).add(task.agent_id)
            found.setdefault(name, []).append(task)
    return {name: meant for name, meant in found.items() if len(owners[name]) == 1 and len(name) > 2}


def _named(review: GivenTask, names: dict[str, list[GivenTask]]) -> str:
    """The last task before the review among those that its words name."""
    meant: GivenTask | None = None
    for word in dict.fromkeys(_NAME.findall(review.words[:_MOST])):
        given = names.get(word, [])
        before = bisect_left(given, review.place, key=lambda task: task.place)
        if before and (meant is None or given[before - 1].place > meant.place):
            meant = given[before - 1]
    return meant.task_id if meant is not None else ""
