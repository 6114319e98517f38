"""Which tasks the agents of a session were given: by whom, in which words, and what each came to.

A task begins with what another agent has an agent hear, and does: the prompt of the call that made it, what it is
sent later, a question in a discussion, or a mere turn to speak. What is heard in the middle of a task belongs to it;
what is heard and never acted upon is no task. A task is over when its giver gets the agent's last words, or hears that
it failed.
"""

from __future__ import annotations

from harken.events import Event, Prompt, Response, System, ToolCall
from harken.formats.std.arguments import params_of
from harken.formats.std.parts import text

from .call_targets import CallTargets
from .endings import is_interruption
from .given_task import GivenTask, TasksOfAgent
from .reviews import is_reviewer
from .session_links import SessionLinks
from .spawning import SpawnedAgent
from .sub_sessions import by_sub_session
from .task_answers import add_answers

_GIVING = frozenset({"agent", "coordinator"})
"""Origins of prompts by which the agent above speaks."""
_NOTICES = ("<task-notification", "<subagent_notification", "<system-reminder", "<teammate-message", "<command-")
"""How notices begin that a sub-agent's file does not tell from what the agent was given."""
_TASK_WORDS = ("prompt", "message", "task", "instructions", "system_prompt", "description", "input", "name")
"""Arguments of a call that say what its agent is for; the first that there is does."""


def tasks_of(links: SessionLinks, targets: CallTargets) -> dict[str, TasksOfAgent]:
    """The tasks of every spawned agent. Each has at least one, that of its sub-session."""
    found = {}
    for agent in links.tree.agents.values():
        given = _Given(agent, links, targets)
        if not agent.is_hook:
            for group in by_sub_session(agent).values():
                given.begin_sub_session()
                for event in group:
                    given.take(event)
        found[agent.agent_id] = given.end()
    add_answers(found, links)
    return found


class _Given:
    """The fold over the events of one agent, of which a document may have several sub-sessions: these may overlap, and
    are gone through one after the other."""

    def __init__(self, agent: SpawnedAgent, links: SessionLinks, targets: CallTargets) -> None:
        self._agent, self._links, self._targets = agent, links, targets
        self._tasks: list[GivenTask] = []
        self._heard: list[GivenTask] = []
        self._now: GivenTask | None = None
        self._begun = _tasks_by_call(agent)
        self._is_before = False  # whether what the agent is at was given in a sub-session before this one

    def begin_sub_session(self) -> None:
        """What comes now is of another sub-session, with a task of its own, also where that before was left open."""
        self._is_before = True

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
        now = None if self._is_before else self._now
        if now is not None and not now.is_at_rest and (now.last >= 0 or self._is_purpose(now)):
            self._heard.append(given)  # in the middle of the work, or before it
            return
        if not self._is_before:
            self._drop_idle()
        self._begin(given)

    def _begin(self, given: GivenTask) -> None:
        self._tasks.append(given)
        self._now, self._is_before = given, False

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
            self._begin(self._taken_up(call) or self._task(self._links.agent(call), call, None, ""))
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
            is_given = call.id in self._begun or self._may_give(call, prompt)
            return self._task(links.agent(call), call, prompt, prompt.content) if is_given else None
        for said in links.brought(prompt) if prompt.substance else ():
            if not self._may_give(said, prompt):
                return None
            call = links.told_by(said, prompt.content)
            return self._task(links.agent(said), call, prompt, links.without_label(prompt))
        if (told := links.teammate(prompt)) is not None:
            call = self._targets.sent(agent, told[1], links.place(prompt))
            return self._task(told[0], call, prompt, told[1]) if links.is_above(told[0], agent.agent_id) else None
        is_first = prompt is agent.task
        if prompt.cause or prompt.substance or not _is_given(prompt, is_first=is_first):
            return None
        call = agent.call if is_first else self._targets.sent(agent, prompt.content, links.place(prompt))
        giver = links.agent(call) if call is not None else agent.parent
        is_known = call is not None and (agent.is_call_told or call is not agent.call)
        return self._task(giver, call, prompt, prompt.content, is_giver_known=is_known)

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
        last = self._tasks[-1] if self._tasks else None
        if last is not None and last.last < 0 and (self._is_remark(last) or _is_for_others(last, self._links)):
            self._heard.append(self._tasks.pop())
        if not self._tasks:
            self._tasks.append(self._made_for())
        self._tasks.sort(key=lambda task: task.place)  # what was taken up late was given before
        named = agent.told_tasks if len(agent.told_tasks) == len(self._tasks) else [agent.task_id]
        for number, task in enumerate(self._tasks, 1):
            told = self._begun.get(task.call.id, "") if task.call is not None else ""
            task.task_id = told or (named[number - 1] if number <= len(named) else f"{agent.task_id}-{number}")
            task.is_review = is_reviewer(agent) and not agent.is_hook
        return TasksOfAgent(tasks=self._tasks, heard=self._heard)

    def _is_remark(self, task: GivenTask) -> bool:
        """Whether it is mere words behind the agent's work, which it did not act upon."""
        is_words = task.call is None and task.prompt is not None and bool(task.prompt.substance)
        return is_words and len(self._tasks) > 1

    def _made_for(self) -> GivenTask:
        """What an agent was made for that was never given anything: the call that made it says."""
        agent = self._agent
        if agent.call is not None and not agent.is_hook:
            giver = self._links.agent(agent.call)
            return self._task(giver, agent.call, None, _purpose(agent), is_giver_known=agent.is_call_told)
        task = self._task(agent.parent, None, agent.task, agent.task.content if agent.task else _purpose(agent))
        task.is_told = False
        return task


def _tasks_by_call(agent: SpawnedAgent) -> dict[str, str]:
    """The id of a call to the task of the sub-session that it began, where a document has several of an agent: whoever
    made that call gave the task, also one that is not above the agent elsewhere."""
    if len(agent.told) < 2 or len(agent.told) != len(agent.told_tasks):
        return {}
    begun = ((text(sub, "triggered_by_call_id"), task) for sub, task in zip(agent.told, agent.told_tasks, strict=True))
    return {call: task for call, task in begun if call}


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
