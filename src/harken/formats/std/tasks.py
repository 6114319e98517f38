"""Which tasks the agents of a session were given: by whom, in which words, and what each came to.

A task begins with what another agent has an agent hear, and does: the prompt of the call that made it, what it is
sent later, a question in a discussion, or a mere turn to speak. What is heard in the middle of a task belongs to it;
what is heard and never acted upon is no task. A task is over when its giver gets the agent's last words, or hears that
it failed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import msgspec

from harken.events import Event, Prompt, Response, System, ToolCall, ToolResult
from harken.events.base import holds

from .arguments import params_of
from .call_targets import CallTargets
from .endings import is_interruption
from .reviews import is_reviewer
from .session_links import Delivery, SessionLinks, Utterance
from .spawning import SpawnedAgent, is_failure

_GIVING = frozenset({"agent", "coordinator"})
"""Origins of prompts by which the agent above speaks."""
_NOTICES = ("<task-notification", "<subagent_notification", "<system-reminder", "<teammate-message", "<command-")
"""How notices begin that a sub-agent's file does not tell from what the agent was given."""
_RESULT = re.compile(r"<result>(.*)</result>", re.S)
"""The answer in a notice."""
_LONGEST_LAUNCH = 2000
_TASK_WORDS = ("prompt", "message", "task", "instructions", "system_prompt", "description", "input", "name")
"""Arguments of a call that say what its agent is for; the first that there is does."""


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


def tasks_of(links: SessionLinks, targets: CallTargets) -> dict[str, TasksOfAgent]:
    """The tasks of every spawned agent. Each has at least one, that of its sub-session."""
    found = {}
    for agent in links.tree.agents.values():
        given = _Given(agent, links, targets)
        if not agent.is_hook:
            for event in agent.events:
                given.take(event)
        found[agent.agent_id] = given.end()
    _add_answers(found, links)
    return found


class _Given:
    """The fold over the events of one agent."""

    def __init__(self, agent: SpawnedAgent, links: SessionLinks, targets: CallTargets) -> None:
        self._agent, self._links, self._targets = agent, links, targets
        self._tasks: list[GivenTask] = []
        self._heard: list[GivenTask] = []
        self._now: GivenTask | None = None

    def take(self, event: Event) -> None:
        if self._links.is_repeated(event):
            return
        if isinstance(event, Prompt):
            self._hear(event)
        elif isinstance(event, ToolCall) or (isinstance(event, Response) and event.content.strip()):
            self._act(event)

    def _hear(self, prompt: Prompt) -> None:
        if is_interruption(prompt):
            if self._now is not None:
                self._now.broken_off = prompt
                self._now = None
            return
        given = self._given_by(prompt)
        if given is None:
            return
        now = self._now
        if now is not None and not now.is_at_rest and (now.last >= 0 or self._is_purpose(now)):
            self._heard.append(given)  # in the middle of the work, or before it
            return
        self._drop_idle()
        self._begin(given)

    def _begin(self, given: GivenTask) -> None:
        self._tasks.append(given)
        self._now = given

    def _drop_idle(self) -> None:
        """What was heard last was not acted upon: it was no task, unless the agent was made for it."""
        if self._now is not None and self._now.last < 0 and not self._is_purpose(self._now):
            self._heard.append(self._tasks.pop())
            self._now = None

    def _is_purpose(self, task: GivenTask) -> bool:
        """Whether the call that made the agent gave it the task."""
        return task.call is not None and task.call is self._agent.call

    def _act(self, event: ToolCall | Response) -> None:
        call = self._links.asking(event)
        if call is not None and (self._now is None or not _is_same(self._now.call, call)):
            self._drop_idle()
            self._begin(self._taken_up(call) or self._task(call.agent_id, call, None, ""))
        now = self._now
        if now is None:
            return
        place = self._links.place(event)
        now.first = place if now.first < 0 else now.first
        if isinstance(event, ToolCall):
            now.last = place
        else:
            now.add_reply(event, place)

    def _taken_up(self, call: ToolCall) -> GivenTask | None:
        """What the agent had heard by that call, and acts upon only now."""
        for at in range(len(self._heard) - 1, max(-1, len(self._heard) - 8), -1):
            if _is_same(self._heard[at].call, call):
                return self._heard.pop(at)
        return None

    def _given_by(self, prompt: Prompt) -> GivenTask | None:
        """What a prompt would give the agent to do; None where no agent above it asks for something."""
        agent, links = self._agent, self._links
        if call := links.asking(prompt, prompt.content):
            return self._task(links.agent(call), call, prompt, prompt.content) if self._may_give(call, prompt) else None
        for said in links.brought(prompt) if prompt.substance else ():
            if not self._may_give(said, prompt):
                return None
            call = links.told_by(said, prompt.content)
            return self._task(links.agent(said), call, prompt, without_label(prompt, links))
        if (told := links.teammate(prompt)) is not None:
            call = self._targets.sent(agent, told[1], links.place(prompt))
            return self._task(told[0], call, prompt, told[1]) if links.is_above(told[0], agent.agent_id) else None
        is_first = prompt is agent.task
        if prompt.cause or prompt.substance or not _is_given(prompt, is_first=is_first):
            return None
        call = agent.call if is_first else self._targets.sent(agent, prompt.content, links.place(prompt))
        giver = links.agent(call) if call is not None else agent.parent
        return self._task(giver, call, prompt, prompt.content, is_giver_known=call is not None)

    def _may_give(self, event: Event, prompt: Prompt) -> bool:
        """Whether the agent whose event it is has a say: one above, or whoever gave it what it was made for."""
        speaker = self._links.agent(event)
        if self._links.is_hook(speaker):
            return False
        return prompt is self._agent.task or self._links.is_above(speaker, self._agent.agent_id)

    def _task(
        self, giver: str, call: ToolCall | None, prompt: Prompt | None, words: str, *, is_giver_known: bool = True
    ) -> GivenTask:
        event = call or prompt
        return GivenTask(
            agent_id=self._agent.agent_id,
            giver=giver,
            is_told=giver != self._agent.agent_id,  # a record may name itself
            call=call,
            prompt=prompt,
            words=words,
            place=self._links.place(event) if event is not None else 0,
            is_giver_known=is_giver_known,
            replies=[],
            places=[],
            answered_by=[],
        )

    def end(self) -> TasksOfAgent:
        """What there was, with names."""
        agent = self._agent
        if self._tasks and self._tasks[-1].last < 0 and _is_for_others(self._tasks[-1], self._links):
            self._heard.append(self._tasks.pop())
        if not self._tasks:
            self._tasks.append(self._made_for())
        for number, task in enumerate(self._tasks, 1):
            task.task_id = agent.task_id if number == 1 else f"{agent.task_id}-{number}"
            task.is_review = is_reviewer(agent) and not agent.is_hook
        return TasksOfAgent(tasks=self._tasks, heard=self._heard)

    def _made_for(self) -> GivenTask:
        """What an agent was made for that was never given anything: the call that made it says."""
        agent = self._agent
        if agent.call is not None and not agent.is_hook:
            return self._task(self._links.agent(agent.call), agent.call, None, _purpose(agent))
        task = self._task(agent.parent, None, agent.task, agent.task.content if agent.task else _purpose(agent))
        task.is_told = False
        return task


def _is_given(prompt: Prompt, *, is_first: bool) -> bool:
    """Whether a prompt that names nobody is what an agent was given, rather than a notice of the runtime."""
    if prompt.source != "injected" or prompt.content.lstrip().startswith(_NOTICES):
        return False
    return prompt.origin in _GIVING or (is_first and not prompt.origin)


def _is_same(one: ToolCall | None, other: ToolCall) -> bool:
    """Whether both calls are of one record: several calls may stand in it, and a turn names the record."""
    return one is not None and (one is other or bool(one.message_id and one.message_id == other.message_id))


def _is_for_others(task: GivenTask, links: SessionLinks) -> bool:
    """Whether the call that told it has been answered by others: the agent only listened."""
    result = links.result(task.call)
    return result is not None and any(links.agent(said) != task.agent_id for said in links.brought(result))


def _purpose(agent: SpawnedAgent) -> str:
    """What the agent was told that it is, else what its call says."""
    for event in agent.events[:8]:
        if isinstance(event, System) and event.subtype == "instructions" and event.causes() and event.message.strip():
            return event.message
    params = params_of(agent.call.input) if agent.call is not None else {}
    texts = (params.get(name) for name in _TASK_WORDS)
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def without_label(event: Delivery, links: SessionLinks) -> str:
    """What was heard, without the `[Name]: ` that delivery puts before it."""
    if isinstance(event, ToolResult):
        return event.output
    if event.label and event.content.startswith(event.label):
        return event.content[len(event.label) :]
    for said in links.brought(event):
        if event.content.startswith(label := links.label(said)):
            return event.content[len(label) :]
    return event.content


# -- what came of them -------------------------------------------------------------------------------------------------


def _add_answers(found: dict[str, TasksOfAgent], links: SessionLinks) -> None:
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
        return without_label(event, links)
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
    is_answer = not agent.is_recorded and not agent.notices and not _is_launch(task.call, result)
    if result is not None and (result.is_error or is_answer or 0 <= task.last < links.place(result)):
        ends.append(result)
    for notice in agent.notices:
        if links.place(notice) > task.place and (not agent.is_recorded or is_failure(notice)):
            ends.append(notice)
    for event in ends:
        if until is None or links.place(event) < until:
            task.end(event, links.place(event), _told_in(event))
            return


def _is_launch(call: ToolCall | None, result: ToolResult | None) -> bool:
    """Whether a result only says that an agent has been started: an answer is words, and names nobody's id."""
    if call is None or result is None or params_of(call.input).get("run_in_background") is True:
        return True
    return "agent_id" in params_of(result.output[:_LONGEST_LAUNCH].encode("utf-8", "replace"))


def _told_in(event: Delivery) -> str:
    """The words of a result, or of the answer in a notice."""
    if isinstance(event, ToolResult):
        return event.output
    answer = _RESULT.search(event.content)
    return answer[1].strip() if answer is not None else event.content
