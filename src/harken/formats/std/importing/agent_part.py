"""The part of a document that one agent's work is in: the document itself for the main agent, a sub-session for every
other. Its calls, its conversation where Harken wrote one, its task and its answer."""

from __future__ import annotations

from typing import Any

from harken.events import Event, Output, Prompt, Response, ToolCall
from harken.formats.std.document import Json
from harken.formats.std.parts import inner, instant, over, tells_task

from .call_events import LinkResult, call_id_of, call_story, own_id
from .conversation_events import conversation_of, names_of_calls, told_conversation
from .in_order import Story, ToldRecord, records_of
from .pieces import MadeUpNames, agent_named, compact, id_of, kind_word, text_of, unread


class AgentPart:
    """Calls and conversation of one agent, with the names of the records that they make."""

    def __init__(self, data: Json, scope: str, agent: str, names: MadeUpNames) -> None:
        """`scope` stands before the ids of calls: those of other parts may be the same."""
        self.data, self.scope, self.agent = data, scope, agent
        given = data.get("tool_calls")
        self.calls: list[Any] = given if isinstance(given, list) else []
        self.entries = conversation_of(data)
        known = names_of_calls(self.entries or [])
        self.call_names: list[str] = []
        self.records: dict[str, str] = {}
        """Call id to the record in which the call is made."""
        for place, call in enumerate(self.calls):
            call_id = call_id_of(call, place)
            said = known.get(call_id)
            name = (said.pop(0) if said else "") or names.give(scope + call_id)
            self.call_names.append(name)
            self.records.setdefault(call_id, name)

    @property
    def is_told(self) -> bool:
        """Whether there is a conversation, which then is the story."""
        return self.entries is not None

    def work(self, link: LinkResult) -> Story:
        """What it did, and where there is a conversation all that it said and heard. Calls that the conversation does
        not tell come behind it."""
        if self.entries is None:
            return [*self._unread(), *call_story(self.calls, self.call_names, self.agent, link)]
        told = told_conversation(self.entries, self.calls, self.call_names, self.scope, self.agent)
        made = {(e.message_id, e.id) for record in told for e in record.events if isinstance(e, ToolCall)}
        left = [
            place
            for place, (call, name) in enumerate(zip(self.calls, self.call_names, strict=True))
            if not isinstance(call, dict) or (name, own_id(call, call_id_of(call, place))) not in made
        ]
        more = call_story([self.calls[n] for n in left], [self.call_names[n] for n in left], self.agent, link)
        return [*told, *self._unread(), *more]

    def _unread(self) -> Story:
        found = []
        for key in ("tool_calls", "phase_annotations", "sub_sessions"):
            value = self.data.get(key)
            if value is not None and not isinstance(value, list):
                why = f"`{key}` is {kind_word(value)}, not a list"
                found.append(ToldRecord(events=(unread(value, why, f"{self.scope}{key}", self.agent),)))
        return found


class SubSession(AgentPart):
    """A sub-session: what an agent was given to do, did and answered."""

    def __init__(self, data: Json, names: MadeUpNames, completion: str = "") -> None:
        """`completion` are the words of the message that says it is done."""
        self.name = id_of(data.get("sub_session_id"))
        agent = agent_named(data, "agent") or self.name
        super().__init__(data, f"{names.give(self.name or agent)}/", agent, names)
        self.words = text_of(inner(data, "output").get("summary")) or completion
        self.answered = over(data)
        self._answer = f"{self.scope}answer"
        if self.entries is not None:
            self._answer, self.words, self.answered = _last_words(self._told())

    @property
    def answer(self) -> str:
        """The record of its answer; empty where it gave none."""
        return self._answer if self.words else ""

    def story(self, cause: str | None, link: LinkResult) -> Story:
        """The whole of it; the task is caused by the call."""
        if self.is_told:
            return self.work(link)
        begun = instant(self.data, "started_at")
        told: list[Event] = []
        if (task := self._task()) is not None:
            told.append(task.replace(time=begun, cause=cause))
        ended: list[Event] = []
        if self.words:
            ended.append(Response(message_id=self._answer, agent_id=self.agent, time=self.answered, content=self.words))
        if (output := self.data.get("output")) is not None:
            why = "" if isinstance(output, dict) else f"`output` is {kind_word(output)}, not an object"
            name = f"{self.scope}output"
            ended.append(Output(message_id=name, agent_id=self.agent, time=self.answered, raw=compact(output), why=why))
        return [*records_of(told), *self.work(link), *records_of(ended)]

    def _task(self) -> Prompt | Output | None:
        task, name = self.data.get("task"), f"{self.scope}task"
        if tells_task(self.data):
            words = text_of(task) if isinstance(task, str) else text_of(inner(self.data, "task")["description"])
            return Prompt(message_id=name, agent_id=self.agent, content=words, source="injected", origin="agent")
        if task is None:
            return None
        return unread(task, "a task without a description", name, self.agent)

    def _told(self) -> list[Event]:
        entries = self.entries or []
        story = told_conversation(entries, self.calls, self.call_names, self.scope, self.agent)
        return [event for record in story for event in record.events]


def _last_words(events: list[Event]) -> tuple[str, str, int | None]:
    """The record, the words and the time of the last answer."""
    said = [event for event in events if isinstance(event, Response) and event.content.strip()]
    return (said[-1].message_id, said[-1].content, said[-1].time) if said else ("", "", None)
