"""A whole document as events: its agents, what each of them did, and what they told each other, as one stream."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from harken import clock
from harken.events import AgentCreated, Event, Output, Prompt, Response, System, ToolResult
from harken.formats.std.as_meant import as_meant
from harken.formats.std.beside import beside_of
from harken.formats.std.document import Json
from harken.formats.std.findings import OLD
from harken.formats.std.hearers import Hearers
from harken.formats.std.parts import agents, begun, inner, instant, orchestrator, over, participants, values, words_in
from harken.formats.std.skeleton import skeleton_of
from harken.formats.std.spellings import session_status

from .agent_part import AgentPart, SubSession
from .ends import SubSessionEnd, sizes_of, told_ends
from .in_order import Story, ToldRecord, in_order, records_of, side_by_side, with_heard
from .message_events import agents_named, is_end, message_records, sort_messages
from .pieces import MadeUpNames, compact, id_of, kind_word, session_name, text_of, unread

MAIN = "main"
"""The agent of a document that names none, as the standard's own migration calls it."""
CREATED = ":created"
COMPLETED = "completed"
"""The notice that says when a session ended, and how."""
_OF_NO_CALL = frozenset({"x_harken_derived", "x_harken_owner"})
"""Marks of what is listed as a call of its agent and is none."""
_SAID_ELSEWHERE = frozenset({"agent_id", "name", "model_id"})
"""What an event has a field of its own for."""


_READ_AT_TOP = (
    "session_id", "user_prompt", "task_title", "task_description", "created_at", "completed_at", "status", "agent",
    "summary",
)  # fmt: skip


def _is_readable(key: str, value: Any) -> bool:
    """Whether a field at the top of a document is of a type that events are made from."""
    match key:
        case "session_id":
            return bool(session_name(value))
        case "created_at" | "completed_at":
            return clock.parse_instant(value) is not None
        case "status":
            return session_status(value) is not None
        case "agent":
            return isinstance(value, dict | str)
        case "summary":
            return isinstance(value, dict) or bool(words_in(value))
    return isinstance(value, str)


class DocumentReading:
    """A document on its way to events."""

    def __init__(self, data: Json, names: MadeUpNames) -> None:
        data = as_meant(data)
        self.data, self._names = data, names
        self.main = id_of(orchestrator(data).get("agent_id")) or MAIN
        self.own = AgentPart(data, "", self.main, names)
        messages = sort_messages(data.get("messages"), values(data.get("sub_sessions")))
        self.messages, self.repeats = messages.told, messages.repeats
        self._bad: Story = []
        self.subs: list[SubSession] = []
        given = data.get("sub_sessions")
        for place, value in enumerate(given if isinstance(given, list) else []):
            sub = (
                SubSession(value, names, messages.answers.get(id_of(value.get("sub_session_id")), ""))
                if isinstance(value, dict)
                else None
            )
            if sub is None or not sub.agent:
                self._refuse(value, place)
            else:
                self.subs.append(sub)
        self.subs = _as_begun(self.subs)
        self._find_makers()

    def _refuse(self, value: Any, place: int) -> None:
        is_object = isinstance(value, dict)
        why = (
            "a sub-session names neither itself nor its agent"
            if is_object
            else (f"a sub-session is {kind_word(value)}, not an object")
        )
        name = self._names.give(f"sub-session-{place + 1}")
        self._bad.append(ToldRecord(events=(unread(value, why, name, self.main),)))

    # -- who made whom ------------------------------------------------------------------------------------------------

    def _find_makers(self) -> None:
        self.makers: dict[int, tuple[str, str | None, str]] = {}
        """Place of a sub-session to the agent that made it, the record of the call, and the call."""
        self._made: dict[str, list[SubSession]] = {}
        """Record of a call to the sub-sessions that it made."""
        self._named = {sub.name: sub for sub in reversed(self.subs) if sub.name}
        with_call: dict[str, SubSession] = {}
        for sub in reversed(self.subs):
            with_call |= dict.fromkeys(sub.records, sub)
        self._naming = self._calls_that_name()
        listed = {name: call for call in reversed(values(self.own.calls)) if (name := id_of(call.get("call_id")))}
        for place, sub in enumerate(self.subs):
            call = id_of(sub.data.get("triggered_by_call_id"))
            above = self._above(sub)
            maker, record = self._maker(sub, call, above, listed.get(call), with_call.get(call))
            self.makers[place] = (maker, record, call if record else "")
            if record:
                self._made.setdefault(record, []).append(sub)

    def _calls_that_name(self) -> dict[str, tuple[AgentPart, str]]:
        """Sub-session to the only call that names it as the one which it began: who made it, and its record."""
        found: dict[str, list[tuple[AgentPart, str]]] = {}
        for part in (self.own, *self.subs):
            for record, call in zip(part.call_names, part.calls, strict=True):
                name = id_of(inner(call, "subagent_info").get("sub_session_id")) if isinstance(call, dict) else ""
                if name and call.keys().isdisjoint(_OF_NO_CALL):
                    found.setdefault(name, []).append((part, record))
        return {name: calls[0] for name, calls in found.items() if len(calls) == 1}

    def _above(self, sub: SubSession) -> SubSession | None:
        return self._named.get(id_of(sub.data.get("parent_session_id")))

    def _is_around(self, sub: SubSession, above: SubSession | None) -> bool:
        """Whether one comes to the agent of a sub-session again on the way up from here."""
        seen: set[int] = set()
        while above is not None and id(above) not in seen:
            if above.agent == sub.agent:
                return True
            seen.add(id(above))
            above = self._above(above)
        return False

    def _maker(
        self, sub: SubSession, call: str, above: SubSession | None, listed: Json | None, other: SubSession | None
    ) -> tuple[str, str | None]:
        """The agent that made a sub-session's, and the record of its call. `listed` is the call among the main ones,
        `other` a sub-session that has it."""
        above = None if above is sub else above
        if above is not None and call in above.records:
            return above.agent, above.records[call]
        owner = id_of(listed.get("x_harken_owner")) if listed else ""
        if listed is not None and listed.get("x_harken_derived") is True:
            return owner or (above.agent if above else self.main), None  # nobody called
        if listed is not None and not owner:  # the standard looks for it there, whoever is above
            return self._caller(sub, above), self.own.records[call]
        if other is not None and other is not sub:
            return other.agent, other.records[call]
        part, record = self._naming.get(sub.name, (sub, "")) if listed is None else (sub, "")
        if part is not sub:
            return (self._caller(sub, above) if part is self.own else part.agent), record
        return owner or (above.agent if above else self.main), None

    def _caller(self, sub: SubSession, above: SubSession | None) -> str:
        """The agent of whom a call among the main ones is."""
        return above.agent if above and not self._is_around(sub, above) else self.main

    # -- the stories --------------------------------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        """Everything, in order."""
        created = self._created()
        hearers = self.hearers
        told = [
            record for message in self.messages for record in message_records(message, self._names, self.main, hearers)
        ]
        told += told_ends(self.ends, hearers, self._names, self.main)
        parts: dict[str, list[AgentPart]] = {self.main: [self.own]}
        for sub in self.subs:
            parts.setdefault(sub.agent, []).append(sub)
        heard: dict[str, Story] = {}
        for record in told:
            agent = record.events[0].agent_id
            if not any(part.is_told for part in parts.get(agent, ())) or isinstance(record.events[0], Output):
                heard.setdefault(agent, []).append(record)
        stories = [self._main_story(created.pop(self.main), heard.pop(self.main, []))]
        places = {id(sub): place for place, sub in enumerate(self.subs)}
        for agent, made in created.items():
            subs = [part for part in parts.get(agent, []) if isinstance(part, SubSession)]
            story = side_by_side([sub.story(self.makers[places[id(sub)]][1], self._linked) for sub in subs])
            first = stories[0][0].name  # whoever is not known to be made by a call comes behind the main agent
            stories.append(_begun(made, with_heard(story, heard.get(agent, [])), first))
        for place, sub in enumerate(self.subs):
            if sub.agent == self.main:
                stories.append(sub.story(self.makers[place][1], self._linked))
        return in_order(stories)

    def _main_story(self, created: AgentCreated, heard: Story) -> Story:
        told: list[Event] = []
        ended: list[Event] = []
        if not self.own.is_told:
            told = self._asked()
            ended = self._ending()
        story = with_heard([*records_of(told), *self.own.work(self._linked)], heard)
        remarks = self._annotations()
        kept = self._skeleton([event.message_id for event in remarks])
        unread_fields = self._unread_fields(has_end=any(isinstance(event, System) for event in ended))
        return _begun(created, [*story, *self._bad, *records_of([*unread_fields, *remarks, *kept, *ended])])

    def _unread_fields(self, *, has_end: bool) -> list[Event]:
        """What stands at the top of the document and is told by nothing else, since it is of another type."""
        found: list[Event] = []
        for key in _READ_AT_TOP:
            value = self.data.get(key)
            is_ending = key == "status" and has_end and isinstance(value, str)
            if value not in (None, "", [], {}) and not is_ending and not _is_readable(key, value):
                why = f"`{key}` is {kind_word(value)} that cannot be read there"
                found.append(unread(value, why, self._names.give(key), self.main))
        return found

    def _asked(self) -> list[Event]:
        """What was to be done. Where nobody wrote down what the user said, the title of the task tells, without which
        there would be nothing to go on from; it is nobody's word."""
        for key in ("user_prompt", "task_description", "task_title"):
            if words := text_of(self.data.get(key)):
                name = self._names.give(key)
                said = Prompt(message_id=name, agent_id=self.main, time=begun(self.data), content=words)
                return [said if key == "user_prompt" else said.replace(source="injected", origin=key)]
        return []

    def _ending(self) -> list[Event]:
        """How it ended: a summary that is a text is what the agent says of it in the end, also where a repair has put
        it aside. Where the session goes on behind such words, that is told, too."""
        found: list[Event] = []
        time, status, summary = over(self.data), self.data.get("status"), self.data.get("summary")
        if isinstance(summary, dict):
            summary = self.data.get(OLD + "summary")
        if (words := words_in(summary)).strip():
            name = self._names.give("summary")
            found.append(Response(message_id=name, agent_id=self.main, time=time, content=text_of(words)))
        known = session_status(status)
        if time is not None or known in ("success", "failed") or (found and known):
            name = self._names.give("completed")
            found.append(
                System(message_id=name, agent_id=self.main, time=time, subtype=COMPLETED, message=text_of(status))
            )
        return found

    def _annotations(self) -> list[Event]:
        """What was remarked about phases: kept, and no part of any conversation."""
        given = self.data.get("phase_annotations")
        return [
            Output(
                message_id=self._names.give(
                    (id_of(value.get("annotation_id")) if isinstance(value, dict) else "") or "annotation"
                ),
                agent_id=self.main,
                raw=compact(value),
            )
            for value in (given if isinstance(given, list) else [])
        ]

    def _skeleton(self, remarks: list[str]) -> list[Event]:
        """What a document says beside all this, for whoever writes it again: of tasks and messages, and in fields that
        no event tells."""
        parts = (self.own, *self.subs)
        calls = {name: call for part in parts for name, call in zip(part.call_names, part.calls, strict=True)}
        beside = beside_of(self.data, calls, remarks)
        records = {"document": skeleton_of(self.data, calls), "fields": beside}
        return [
            Output(message_id=self._names.give(name), agent_id=self.main, raw=compact(kept))
            for name, kept in records.items()
            if kept
        ]

    def _linked(self, result: ToolResult) -> ToldRecord:
        """A result, linked to the answers of the agents that its call made, unless it came before they had any."""
        made = self._made.get(str(result.cause), []) if isinstance(result.cause, str) else []
        answers = [sub for sub in made if sub.answer and not _is_before(result.time, sub.answered)]
        if not answers:
            return ToldRecord(events=(result,))
        first = answers[0]
        if len(answers) == 1 and result.output.strip() in ("", first.words.strip()):
            said = result.replace(output=result.output or first.words, cause=None, substance=first.answer)
            return ToldRecord(events=(said,))
        causes = (str(result.cause), *(sub.answer for sub in answers))
        return ToldRecord(events=(result.replace(cause=causes),))

    @cached_property
    def ends(self) -> list[SubSessionEnd]:
        """The messages that say what came of a sub-session, each with who called for it."""
        parts = (self.own, *self.subs)
        calls = {name: call for part in parts for name, call in zip(part.call_names, part.calls, strict=True)}
        known = {id(sub.data): place for place, sub in enumerate(self.subs)}
        found = []
        for message, data in self.repeats:
            if (place := known.get(id(data))) is not None and is_end(message):
                maker, record, _ = self.makers[place]
                call = calls.get(record or "")
                found.append(
                    SubSessionEnd(
                        message=message,
                        sub=self.subs[place],
                        maker=maker,
                        call=call if isinstance(call, dict) else None,
                    )
                )
        return found

    # -- agents -------------------------------------------------------------------------------------------------------

    def _created(self) -> dict[str, AgentCreated]:
        """The creation of each agent, the main one's first."""
        known: dict[str, Json] = {}
        listed = (orchestrator(self.data), *participants(self.data))
        spoken = agents_named([*self.messages, *(message for message, _ in self.repeats)])
        for agent in (*listed, *agents(self.data).values(), *spoken):
            if name := id_of(agent.get("agent_id")):
                known.setdefault(name, agent)
        first: dict[str, int] = {}
        for place, sub in enumerate(self.subs):
            first.setdefault(sub.agent, place)
        model = text_of(inner(self.data, "agent").get("model_id")) or text_of(self.data.get("agent"))
        main = known.pop(self.main, {})
        made = {self.main: created(self.main, main, {}, "", None, begun(self.data), model)}
        for name in dict.fromkeys([*known, *first]):
            if name == self.main:
                continue
            maker, cause, time, data = self.main, None, None, Json()
            if name in first:
                sub = self.subs[first[name]]
                maker, cause, _ = self.makers[first[name]]
                time, data = instant(sub.data, "started_at"), sub.data
            made[name] = created(name, known.get(name, {}), data, maker, cause, time)
        return made

    @cached_property
    def hearers(self) -> Hearers:
        """Who hears the messages that say something new, and those that say what came of a sub-session."""
        messages = [*self.messages, *(end.message for end in self.ends)]
        return Hearers(list(self._created()), messages, sizes_of(self.ends))

    @property
    def inside(self) -> dict[str, list[SubSession]]:
        """The agents with sub-sessions, other than the main one, and their sub-sessions."""
        found: dict[str, list[SubSession]] = {}
        for sub in self.subs:
            if sub.agent != self.main:
                found.setdefault(sub.agent, []).append(sub)
        return found


def created(
    agent: str, identifier: Json, sub: Json, parent: str, cause: str | None, time: int | None, model: str = ""
) -> AgentCreated:
    """The creation of an agent, with what the document says of it."""
    told = {**identifier, **inner(sub, "agent")}
    rest = {key: value for key, value in told.items() if key not in _SAID_ELSEWHERE}
    name = text_of(sub.get("x_harken_name")) or text_of(told.get("x_harken_name")) or text_of(told.get("name"))
    return AgentCreated(
        message_id=agent + CREATED,
        agent_id=agent,
        time=time,
        cause=cause,
        name=name or agent,
        language_model=model or text_of(told.get("model_id")),
        role="child" if parent else "root",
        parent=parent,
        attributes=compact(rest) if rest else b"",
    )


def _begun(made: AgentCreated, story: Story, after: str = "") -> Story:
    """A story with the creation of its agent before it, unless it tells of that itself."""
    if any(isinstance(event, AgentCreated) for record in story for event in record.events):
        return story
    return [ToldRecord(events=(made,), after=(after,)), *story]


def _as_begun(subs: list[SubSession]) -> list[SubSession]:
    """Sub-sessions in the order in which they began: the standard asks for none, and an agent with several did one
    after the other. One without a time stays behind the one that it is listed after."""
    latest = 0
    begun_at: list[int] = []
    for sub in subs:
        time = instant(sub.data, "started_at")
        latest = latest if time is None else time
        begun_at.append(latest)
    return [subs[place] for place in sorted(range(len(subs)), key=begun_at.__getitem__)]


def _is_before(time: int | None, other: int | None) -> bool:
    return time is not None and other is not None and time < other
