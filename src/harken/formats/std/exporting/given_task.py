"""A task that an agent was given, and what it came to."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import msgspec

from harken.events import Event, Prompt, Response, ToolCall
from harken.formats.std.models import Status

from .session_links import Delivery
from .spawning import SpawnedAgent, is_failure


class GivenTask(msgspec.Struct, kw_only=True):
    """Something that an agent was to do."""

    task_id: str = ""
    agent_id: str
    giver: str
    """The agent that gave it."""
    is_told: bool = True
    """Whether an agent gave it; else a person or the program did, or nobody."""
    is_giver_known: bool = True
    """Whether the session says who gave it."""
    call: ToolCall | None = None
    prompt: Prompt | None = None
    words: str = ""
    place: int
    """Where in the order of the log it was given."""
    first: int = -1
    last: int = -1
    """Where the agent did something for it the first and the last time."""
    replies: list[Response] = []
    """What the agent said while it was at it."""
    places: list[int] = []
    """Where each of the replies stands."""
    answer: Delivery | None = None
    """What brought the giver the answer, or the news that there is none."""
    answer_place: int = -1
    answer_words: str = ""
    answered_by: list[Response] = []
    """The replies that the answer brought."""
    is_failed: bool = False
    broken_off: Prompt | None = None
    """What the agent heard when it was interrupted."""
    is_review: bool = False
    reviewed: str = ""
    """Of a review: the task that is reviewed."""
    is_reviewed_known: bool = False
    """Whether the request names it."""
    verdict: str = ""
    """Of a review: what it came to; empty where nobody says."""

    @property
    def is_at_rest(self) -> bool:
        """Whether the last thing the agent did for it was to say something."""
        return bool(self.places) and self.last == self.places[-1]

    def add_reply(self, said: Response, place: int) -> None:
        """The agent said something."""
        self.replies.append(said)
        self.places.append(place)
        self.last = place

    def end(self, event: Delivery, place: int, words: str) -> None:
        """The giver got the answer, or heard that there is none."""
        self.answer, self.answer_place, self.answer_words = event, place, words
        self.is_failed = is_failure(event)

    def is_open(self, place: int) -> bool:
        """Whether it was given and not yet answered at some place in the log."""
        return self.place <= place and (self.answer is None or self.answer_place > place)

    def last_words(self, before: int) -> list[Response]:
        """What the agent had said last by then; one message may stand in several records."""
        end = bisect_left(self.places, before)
        start = end - 1
        while start > 0 and self.replies[start].api_id and self.replies[start - 1].api_id == self.replies[start].api_id:
            start -= 1
        return self.replies[max(start, 0) : end]

    @property
    def event(self) -> Event:
        """What gave it, where an agent did."""
        given = self.call or self.prompt
        assert given is not None
        return given


class TasksOfAgent(msgspec.Struct, kw_only=True):
    """What one agent was given to do, and what it merely heard."""

    tasks: list[GivenTask]
    heard: list[GivenTask]
    """Words of somebody who might give it tasks, which it did not act upon or which came in the middle of one."""

    def at(self, place: int) -> GivenTask | None:
        """The task that the agent had at some place in the log."""
        before = bisect_right(self.tasks, place, key=lambda task: task.place)
        task = self.tasks[before - 1] if before else None
        return task if task is not None and task.is_told else None

    @property
    def last_answered(self) -> GivenTask | None:
        """The last task whose giver got an answer."""
        return next((task for task in reversed(self.tasks) if task.answer is not None), None)

    def answered_of(self, agent: SpawnedAgent) -> GivenTask | None:
        """The last task whose giver got an answer; of one of the agent's sub-sessions, what that was about."""
        if not agent.is_part:
            return self.last_answered
        return next((task for task in self.tasks if task.call is agent.call and task.answer is not None), None)

    def status_of(self, agent: SpawnedAgent) -> Status:
        """How the agent stands: as its call says, or the last of several tasks; of one of its sub-sessions, how that
        went."""
        if agent.is_part:
            own = self.answered_of(agent)
            has_failed = agent.failed if own is None else own.is_failed
            return "failed" if has_failed else "success" if own or agent.finished else "in_progress"
        last, answered = self.tasks[-1], self.last_answered
        is_again = len(self.tasks) > 1
        if is_again and last.answer is None and last.last >= 0 and not last.is_at_rest and last.broken_off is None:
            return "in_progress"
        has_failed = agent.failed
        if is_again and answered is not None and agent.notice is None:
            has_failed = answered.is_failed
        if has_failed:
            return "failed"
        return "success" if agent.finished else "in_progress"
