"""How the agents of a session worked together, as the standard names it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from harken.events.base import holds

from .given_task import GivenTask, TasksOfAgent
from .pending import PendingMessage
from .spawning import SessionTree

_FEWEST = 5
"""Characters of an answer that say something when they stand in a task again."""
_LINE = 30
"""Characters of a line that stand for the answer they are from."""


def pattern_of(tasks: dict[str, TasksOfAgent], words: Iterable[PendingMessage], tree: SessionTree) -> str:
    """`pipeline` where the answer to each task stands in the next one, `peer_to_peer` where agents that one agent made
    hear each other, else `master_worker`."""
    given = [task for each in tasks.values() for task in each.tasks if task.is_told]
    given.sort(key=lambda task: task.place)
    if len({task.agent_id for task in given}) > 1 and all(_feeds(one, other) for one, other in pairwise(given)):
        return "pipeline"
    if any(_are_siblings(message.sender, message.hearer, tree) for message in words):
        return "peer_to_peer"
    return "master_worker"


def _feeds(one: GivenTask, other: GivenTask) -> bool:
    """Whether the answer to a task, or a line that is long enough to be no accident, stands in another task."""
    answer = one.answer_words.strip()
    if one.answer is None or one.answer_place > other.place or len(answer) < _FEWEST:
        return False
    line = max(answer.splitlines(), key=len).strip()
    return holds(other.words, answer) or (len(line) >= _LINE and holds(other.words, line))


def _are_siblings(one: str, other: str, tree: SessionTree) -> bool:
    first, second = tree.agents.get(one), tree.agents.get(other)
    if first is None or second is None or first.is_hook or second.is_hook:
        return False
    return one != other and first.parent == second.parent
