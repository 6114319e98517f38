"""What agents told each other beside tasks and answers: words between them, and what hooks refused."""

from __future__ import annotations

from collections.abc import Iterator

from harken.events import Event, PieceOfText, Prompt, Response, ToolResult
from harken.events.base import excerpt
from harken.events.tools import doing
from harken.events.verdicts import Deny, read_verdict, settle_verdict
from harken.formats.std.document import Json

from .given_task import GivenTask, TasksOfAgent
from .pending import PendingMessage, without_empty
from .session_links import Delivery, SessionLinks, Utterance
from .task_answers import heard_words


class Exchanges:
    """The words that went from agent to agent."""

    def __init__(self, tasks: dict[str, TasksOfAgent], links: SessionLinks) -> None:
        self._tasks, self._links = tasks, links
        told = [task for given in tasks.values() for task in given.tasks if task.is_told]
        self._given = {id(task.prompt) for task in told if task.prompt is not None}
        self._noted = {id(heard.prompt) for given in tasks.values() for heard in given.heard}
        self._said_in = {reply.message_id: task for task in told for reply in task.replies}
        self.reported: set[str] = set()
        """Replies that their task's giver heard."""
        self.found: list[PendingMessage] = []
        seen: set[tuple[str, str]] = set()
        for event in links.tree.events:
            if isinstance(event, Prompt | ToolResult) and not links.is_hook(links.agent(event)):
                self._look(event, seen)
        for given in tasks.values():
            self.found += [self._remark(heard) for heard in given.heard if heard.prompt and not heard.prompt.substance]

    def _look(self, event: Delivery, seen: set[tuple[str, str]]) -> None:
        links, hearer = self._links, self._links.agent(event)
        if id(event) in self._given or links.is_repeated(event):
            return
        brought = list(links.brought(event))
        if not brought and id(event) not in self._noted and (told := links.teammate(event)) is not None:
            self.found.append(self._spoken(links.place(event), event, told[0], hearer, told[1]))
        for said in brought:
            if (said.message_id, hearer) in seen or (links.is_hook(links.agent(said)) and _is_refusal(said, links)):
                continue
            seen.add((said.message_id, hearer))
            task = self._said_in.get(said.message_id)
            if task is not None and task.giver == hearer:
                self.reported.add(said.message_id)
            else:
                self.found.append(self._heard(event, said))

    def _heard(self, event: Delivery, said: Utterance) -> PendingMessage:
        """An agent heard what another had said."""
        links = self._links
        words = heard_words(event, [said], links)
        return self._spoken(links.place(said), event, links.agent(said), links.agent(event), words)

    def _spoken(self, said: int, event: Delivery, speaker: str, hearer: str, words: str) -> PendingMessage:
        """A report, where the speaker works for the hearer, else mere words."""
        place = self._links.place(event)
        task = self._tasks[speaker].at(said) if speaker in self._tasks else None
        if task is not None and task.giver == hearer and task.is_open(said):
            payload: Json = {"task_id": task.task_id, "current_step": words}
            return _message(place, event, speaker, hearer, "task_progress", payload, task.task_id)
        return self._words(place, event, speaker, hearer, words)

    def _remark(self, heard: GivenTask) -> PendingMessage:
        """What an agent was told in the middle of its work, or what it did not act upon."""
        assert heard.prompt is not None
        found = self._words(heard.place, heard.event, heard.giver, heard.agent_id, heard.words)
        found.derived += () if heard.is_giver_known else ("from_agent",)
        return found

    def _words(self, place: int, event: Event, speaker: str, hearer: str, words: str) -> PendingMessage:
        """The standard has no type for mere speech."""
        task = self._task_of(speaker, hearer, place)
        payload = {"feedback_type": "guidance", "content": words, "related_task_id": task}
        found = _message(place, event, speaker, hearer, "feedback", payload, task)
        found.derived = ("message_type", "payload.feedback_type")
        return found

    def _task_of(self, speaker: str, hearer: str, place: int) -> str:
        """The task that the speaker is at, else the one that the hearer is at."""
        for name in (speaker, hearer):
            task = self._tasks[name].at(place) if name in self._tasks else None
            if task is not None and task.is_open(place):
                return task.task_id
        return ""

    def refusals(self) -> Iterator[PendingMessage]:
        """What hooks refused: for the agent whose act it was."""
        for agent in self._links.tree.agents.values():
            question: Prompt | None = None
            for event in agent.events if agent.is_hook else ():
                if isinstance(event, Prompt):
                    question = event
                elif isinstance(event, Response) and question is not None:
                    if refused := self._refusal(question, event):
                        yield refused
                    question = None

    def _refusal(self, question: Prompt, answer: Response) -> PendingMessage | None:
        links = self._links
        asked = next((one for cause in question.causes() if (one := links.record(cause)) is not None), None)
        verdict = _verdict(question, answer)
        if asked is None or not isinstance(verdict, Deny):
            return None
        place, hearer = links.place(answer), links.agent(asked)
        task = self._task_of("", hearer, place)
        payload = {
            "feedback_type": "correction",
            "subject": self._subject(question, asked),
            "content": verdict.reason,
            "related_task_id": task,
        }
        found = _message(place, answer, links.agent(answer), hearer, "feedback", payload, task)
        found.is_unheard = question.point == "delivery"  # it goes no further, and nobody is told why
        return found

    def _subject(self, question: Prompt, asked: Event) -> str:
        """What was refused, in a few words."""
        calls = self._links.calls(asked.message_id)
        call = next((one for one in calls if one.id == question.call_id), calls[0] if calls else None)
        if call is not None and question.point in ("", "tool"):
            return doing(call)
        return excerpt(asked.content) if isinstance(asked, Response | PieceOfText | Prompt) else ""


def _verdict(question: Prompt, answer: Response) -> object:
    verdict = read_verdict(answer.content)
    return settle_verdict(verdict, question.point) if question.point else verdict


def _is_refusal(said: Utterance, links: SessionLinks) -> bool:
    """Whether a hook's words are its verdict itself, or repeat the reason of a refusal."""
    if isinstance(said, Response):
        return True
    ruled = [links.record(cause) for cause in said.causes()]
    return any(isinstance(one, Response) and isinstance(read_verdict(one.content), Deny) for one in ruled)


def _message(place: int, event: Event, sender: str, hearer: str, kind: str, payload: Json, task: str) -> PendingMessage:
    return PendingMessage(
        place=place,
        event=event,
        sender=sender,
        hearer=hearer,
        kind=kind,
        payload=without_empty(payload),
        correlation=task,
    )
