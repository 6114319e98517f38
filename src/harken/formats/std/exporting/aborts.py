"""Tasks that were broken off: by whom, and where in the log."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from harken.events import AgentTerminated, Event, Prompt, Response, ToolCall

from .call_targets import CallTargets
from .endings import is_interruption
from .given_task import GivenTask, TasksOfAgent
from .pending import PendingMessage, without_empty
from .session_links import SessionLinks

_STOPS = frozenset({"close_agent", "interrupt_agent", "stop_agent", "TaskStop", "KillTask"})
"""Tools by which an agent stops another."""


class Aborts:
    """What stopped the tasks of a session."""

    def __init__(self, links: SessionLinks, targets: CallTargets) -> None:
        self._links, self._targets = links, targets
        self._interruptions: dict[str, list[int]] = {}
        self._acts: dict[str, list[int]] = {}
        """Where agents that were interrupted did something."""
        for place, event in enumerate(links.tree.events):
            if is_interruption(event) and not event.substance:
                self._interruptions.setdefault(links.agent(event), []).append(place)
        for place, event in enumerate(links.tree.events if self._interruptions else ()):
            if isinstance(event, Response | ToolCall) and (agent := links.agent(event)) in self._interruptions:
                self._acts.setdefault(agent, []).append(place)

    def of(self, task: GivenTask, following: GivenTask | None) -> PendingMessage | None:
        """What says that a task was broken off, if it was: the first that does."""
        until = following.place if following is not None else len(self._links.tree.events)
        found = [*self._heard(task), *self._stopped(task, until), *self._with_its_giver(task, until)]
        if not found:
            return None
        place, event, sender, is_known = min(found, key=lambda one: one[0])
        if task.answer is not None:
            place = min(place, task.answer_place)  # the answer says that there will be none
        return PendingMessage(
            place=max(place, task.place),
            event=event,
            sender=sender,
            hearer=task.agent_id,
            kind="abort",
            payload=without_empty(
                {
                    "scope": "task",
                    "target_id": task.task_id,
                    "reason": event.content if isinstance(event, Prompt) else "",
                }
            ),
            correlation=task.task_id,
            derived=() if is_known else ("from_agent",),
        )

    def _heard(self, task: GivenTask) -> Iterator[tuple[int, Event, str, bool]]:
        """The agent itself was interrupted: by a person, whom the document knows as the giver of the task."""
        if task.broken_off is not None:
            yield self._links.place(task.broken_off), task.broken_off, task.giver, False

    def _stopped(self, task: GivenTask, until: int) -> Iterator[tuple[int, Event, str, bool]]:
        """Another agent stopped it, or ended the agent, before it had come to rest."""
        links = self._links
        calls = self._targets.of(task.agent_id)
        for place, call in calls[bisect_right(calls, task.place, key=lambda one: one[0]) :]:
            if place >= until:
                break
            if call.name in _STOPS and self._is_open(task, place):
                yield place, call, links.agent(call), True
                return
        for event in reversed(links.tree.agents[task.agent_id].events[-8:]):
            place = links.place(event)
            if isinstance(event, AgentTerminated) and task.place < place < until and self._is_open(task, place):
                by = links.asking(event)
                yield place, event, links.agent(by) if by else task.giver, by is not None

    def _is_open(self, task: GivenTask, place: int) -> bool:
        return task.is_open(place) and not (task.is_at_rest and task.last < place)

    def _with_its_giver(self, task: GivenTask, until: int) -> Iterator[tuple[int, Event, str, bool]]:
        """The giver was interrupted while it waited. An agent in the background works on."""
        places = self._interruptions.get(task.giver, [])
        at = bisect_left(places, task.place)
        if at == len(places) or places[at] >= until:
            return
        place, result = places[at], self._links.result(task.call)
        if result is None:
            is_waiting = task.answer is None and not task.is_at_rest and task.last < place
        else:
            ended = self._links.place(result)
            acts = self._acts.get(task.giver, [])
            # The call is answered with an error just before the giver hears why.
            went_on = bisect_left(acts, place) - bisect_left(acts, ended) if ended < place else 0
            is_waiting = (ended > place or result.is_error) and not went_on
        if is_waiting:
            yield place, self._links.tree.events[place], task.giver, True


def following(given: TasksOfAgent) -> Iterator[tuple[GivenTask, GivenTask | None]]:
    """Each task of an agent with the one after it."""
    yield from zip(given.tasks, [*given.tasks[1:], None], strict=True)
