"""A session document from the events of a session, whichever runtime it was held in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import msgspec

from harken.clock import format_instant
from harken.events import AgentCreated, Event, Metric, PieceOfText, Prompt, Response, ToolCall
from harken.events.base import clean, excerpt
from harken.events.tally import SYNTHETIC
from harken.formats.base import Loss
from harken.formats.std.beside import agent_beside, annotations_in
from harken.formats.std.checking.rules import is_valid, validate
from harken.formats.std.checking.schema import check
from harken.formats.std.document import Document, Json, Kind, dumps, kind_of
from harken.formats.std.findings import OLD
from harken.formats.std.json_text import loads_kept
from harken.formats.std.models import AgentIdentifier, Status
from harken.formats.std.naming import date_in, file_name, next_free
from harken.formats.std.parts import inner, values
from harken.formats.std.spellings import session_status
from harken.formats.std.summary import computed_summary, unknown_durations

from .as_said import AsSaid, Unsaid
from .conversation import entries
from .derived_paths import summed_up
from .endings import completed_at, is_status_told, status_of
from .export_losses import losses_of, losses_of_words
from .exported_calls import ExportedCall, ExportedCalls, made_by_nobody, subagent_info
from .given_task import TasksOfAgent
from .laid_beside import with_beside
from .moments import Moments
from .outputs import AgentOutputs
from .reviews import is_reviewer
from .spawning import SessionTree, SpawnedAgent, session_tree
from .sub_sessions import apart
from .telling import messages_of

VERSION = 1
"""Of the fields that begin with `x_harken`."""
LONGEST_TITLE = 100
NO_TASK = "no task is recorded"


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session beside its events."""

    session: str = ""
    runtime: str = ""
    title: str = ""
    name: str = ""
    """What the document is called; empty for a name by the rule of the standard."""
    taken: tuple[str, ...] = ()
    """The names of files among which that name is to be new."""
    time: int = 0
    """An instant for a session that tells no time at all."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """A document, and what there is to say about it."""

    document: Document
    derived: list[str]
    """The paths of values that the session does not tell; `[*]` where there are many."""
    losses: list[Loss]
    """What is in the session and not in the document."""
    agents: int
    """How many agents were started in the session."""


def document_of(events: Iterable[Event], facts: SessionFacts, kind: Kind | None = None) -> Exported:
    """The document of a session. Without a `kind`, STD-001 where at most one agent was started, by one call, and
    nothing reviewed."""
    tree = session_tree(events)
    made = _document(tree, facts, kind)
    return made if not tree.said or is_valid(made.document) else _mended(tree, facts, kind)


def _mended(tree: SessionTree, facts: SessionFacts, kind: Kind | None) -> Exported:
    """The document of a session whose own document breaks the standard: in its words as a repair writes them. Of a
    message that no repair mends the words are written, of an output all as the data of a generic one; where that does
    not help, the events tell all messages, or everything."""
    unsaid: Unsaid | None = Unsaid()
    while unsaid is not None:
        made = _document(tree, facts, kind, unsaid)
        errors = [one.path for one in validate(made.document) if one.level == "error"]
        if not errors:
            return msgspec.structs.replace(made, losses=[*made.losses, *losses_of_words(tree.said, unsaid)])
        unsaid = unsaid.with_these(errors, made.document.data)
    made = _document(session_tree(tree.events, as_said=False), facts, kind)
    lost = losses_of_words(tree.said, Unsaid(is_without_messages=True))
    return msgspec.structs.replace(made, losses=[*made.losses, *lost])


def _document(tree: SessionTree, facts: SessionFacts, kind: Kind | None, unsaid: Unsaid | None = None) -> Exported:
    """The document; with `unsaid` in words that are mended, without these."""
    has_messages = unsaid is None or not unsaid.is_without_messages
    if kind != "std-001" and (listed := listed_only(tree, has_messages=has_messages)):
        working = session_tree(
            (event for event in tree.events if event.agent_id not in listed), as_said=bool(tree.said)
        )
        return _Export(working, facts, "std-008", listed.values(), unsaid).made()
    return _Export(tree, facts, kind, unsaid=unsaid).made()


def listed_only(tree: SessionTree, *, has_messages: bool = True) -> dict[str, Json]:
    """Agents of which the session has no more than that they took part, as a document has listed them: nobody made
    them, and they did nothing at any time. Where it `has_messages` of its own, and sub-sessions of others, what they
    told each other stands there alone."""
    makers = {agent.parent for agent in tree.agents.values()}
    is_told = has_messages and bool(values(tree.said.get("sub_sessions")) and values(tree.said.get("messages")))
    found = (one for name, one in tree.agents.items() if name not in makers and _is_listed(one, tree, is_told=is_told))
    return {agent.agent_id: _listed(agent) for agent in found}


def _is_listed(agent: SpawnedAgent, tree: SessionTree, *, is_told: bool) -> bool:
    made, more = agent.created, agent.events[1:]
    if made is None or agent.call or agent.notices or agent.is_hook or agent.told:
        return False
    if more and not (is_told and all(isinstance(event, Prompt | PieceOfText) for event in more)):
        return False
    return made.time is None and not made.causes() and not made.language_model and agent.parent == tree.main


def _listed(agent: SpawnedAgent) -> Json:
    """The agent with all that is told of it; what the standard has another value for is set aside, as a repair does."""
    told: Json = {**agent.identifier}
    for key, value in (loads_kept(agent.created.attributes) if agent.created is not None else {}).items():
        if key not in told:
            fits = not any(one.level == "error" for one in check({**agent.identifier, key: value}, AgentIdentifier, ""))
            told[key if fits else OLD + key] = value
    return told | ({"name": clean(agent.name)} if agent.name != agent.agent_id else {})


def kind_for(tree: SessionTree, tasks: dict[str, TasksOfAgent]) -> Kind:
    """The standard that a session is written in: with several `Task` calls, be they all for one agent, STD-008."""
    has_review = any(is_reviewer(agent) for agent in tree.agents.values())
    is_again = any(_is_called_again(agent, tasks[name]) for name, agent in tree.agents.items())
    return "std-008" if len(tree.agents) > 1 or has_review or is_again else "std-001"


def _is_called_again(agent: SpawnedAgent, given: TasksOfAgent) -> bool:
    made = agent.call
    return made is not None and any(
        task.call is not None and task.call is not made and task.call.name == made.name for task in given.tasks
    )


class _Export:
    def __init__(
        self,
        tree: SessionTree,
        facts: SessionFacts,
        kind: Kind | None,
        listed: Iterable[Json] = (),
        unsaid: Unsaid | None = None,
    ) -> None:
        self.tree, self.facts, self.listed, self.mends = tree, facts, listed, unsaid is not None
        self.times = [event.time for event in tree.events if event.time is not None]
        self.moments = Moments(tree.events, facts.time)
        self.told = messages_of(tree, self.moments)
        self.with_agents = (kind or kind_for(tree, self.told.tasks)) == "std-008"
        self.said = AsSaid(tree.said, tree.beside.get("derived"), unsaid)
        is_told = is_status_told(tree.main_events)
        self.status = self.said.status(status_of(tree.main_events), is_told=is_told)
        self.tree, self.parts = apart(tree)
        self.outputs = AgentOutputs(tree, self.told.tasks, self.parts)
        self.homes = {id(event): part.sub_session_id for part in self.parts for event in part.events}
        """Of each event of a sub-agent the sub-session that it is in, by the identity of the event."""
        at_work = {part.sub_session_id for part in self.parts if self._status_of(part) == "in_progress"}
        self.calls = ExportedCalls(
            self.tree,
            self.moments,
            is_open=self.status == "in_progress",
            goes_on=lambda call: self.homes.get(id(call)) in at_work,
            went_well=self._went_well if is_told else lambda call: False,
        )
        self.asked = user_prompt(self.tree.main_events, {event.message_id for event in self._of_others()})
        self.derived: list[str] = ["status"]
        self.lost: Counter[str] = Counter()

    def made(self) -> Exported:
        tree = self.tree
        data = self._head()
        if self.with_agents:
            data["collaboration"] = self._collaboration()
        data["tool_calls"] = self._main_calls()
        if self.with_agents:
            data["sub_sessions"] = [
                self._sub_session(part, place, data["session_id"]) for place, part in enumerate(self.parts)
            ]
            data["messages"] = self._messages()
        data["summary"] = computed_summary(data)
        data, filled_in = self._mended(data) if self.mends else (data, [])
        self.derived += unknown_durations(data)
        if self.with_agents:
            annotations = annotations_in(tree.beside)
            own = [event for event in tree.main_events if event.message_id not in annotations]
            data["x_harken_conversation"] = entries(own, self.calls, self.lost)
        derived = summed_up([*self.said.derived(self.derived), *filled_in])
        data["x_harken"] = {
            "version": VERSION,
            "session": clean(self.facts.session),
            "runtime": clean(self.facts.runtime),
            "derived": derived,
        }
        records = {self.calls.name(event): event.message_id for event in tree.events if isinstance(event, ToolCall)}
        data, filled_in = with_beside(data, tree.beside, records)
        if filled_in:
            derived = data["x_harken"]["derived"] = summed_up([*derived, *filled_in])
        return Exported(
            document=Document(data=data, kind=kind_of(data)),
            derived=derived,
            losses=losses_of(tree, self.lost, self.asked.event, with_agents=self.with_agents),
            agents=len(tree.agents),
        )

    def _mended(self, data: Json) -> tuple[Json, list[str]]:
        """The document as a repair writes it, and the paths of what that had to fill in."""
        from harken.formats.std.repairing.repair import mended  # most documents need none

        data = loads_kept(dumps(data))  # it has parts in common with what the document said
        document, changes = mended(Document(data=data, kind=kind_of(data)))
        made = document.data | {"summary": computed_summary(document.data)}
        changed = (change.path for change in changes if change.derived and not change.path.startswith("summary"))
        return made, [*changed, *(self.said.filled_in(made) if self.with_agents else ())]

    # -- the head ------------------------------------------------------------------------------------------------------

    def _of_others(self) -> Iterator[Event]:
        """What the agents said that are below the main one."""
        return (event for agent in self.tree.agents.values() for event in agent.events)

    def _head(self) -> Json:
        facts, asked = self.facts, self.asked.words
        title = excerpt(clean(facts.title), LONGEST_TITLE)
        if not title:
            title = excerpt(clean(asked), LONGEST_TITLE) or clean(facts.session) or "session"
            self.derived.append("task_title")
        begun = min(self.times, default=facts.time)
        created = format_instant(begun)
        head: Json = {"session_id": clean(facts.name) or self._name(title, created), "task_title": title}
        if asked:
            head["user_prompt"] = clean(asked)
        head["created_at"] = created
        if self.status != "in_progress":
            ended = completed_at(self.tree.main_events)
            ended = max(self.times, default=facts.time) if ended is None or ended < begun else ended
            head["completed_at"] = format_instant(ended)
        if not self.times:
            self.derived += [key for key in ("created_at", "completed_at") if key in head]
        head["status"] = self.status
        if model := model_of(self.tree.main_events, self.tree.main_created):
            head["agent"] = {"model_id": clean(model)}
        return self.said.head(head)

    def _name(self, title: str, created: str) -> str:
        date, multi = date_in(created) or "", self.with_agents and bool(self.tree.agents)
        return file_name(title, date=date, number=next_free(self.facts.taken, date), multi=multi).session_id

    def _collaboration(self) -> Json:
        """A session of one agent has the mode that the standard's migration writes."""
        tree = self.tree
        self.derived += ["collaboration.pattern"]
        self.derived += [] if tree.main_type else ["collaboration.orchestrator.agent_type"]
        for place, agent in enumerate(tree.agents.values()):
            if not agent.agent_type:
                self.derived.append(f"collaboration.participants[{place}].agent_type")
        return self.said.collaboration(
            {
                "mode": "multi_agent" if tree.agents else "single",
                "pattern": self.told.pattern,
                "orchestrator": tree.identifier(tree.main),
                "participants": [*(tree.identifier(agent) for agent in tree.agents), *self.listed],
            }
        )

    def _went_well(self, call: ToolCall) -> bool:
        """Whether a call went well of which nobody says how it went, as a repair of the document takes it: as the agent
        did that it made, else as what it is part of."""
        home = self.homes.get(id(call))
        asked = [*self.tree.made_by(call)[:1], *(part for part in self.parts if part.sub_session_id == home)]
        known = [self._status_of(agent) for agent in asked] + [self.status]
        return next((status for status in known if status != "in_progress"), "") == "success"

    def _status_of(self, agent: SpawnedAgent) -> Status:
        said = session_status(agent.told[-1].get("status")) if agent.told else None
        return said or self.told.tasks[agent.agent_id].status_of(agent)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _main_calls(self) -> list[Json]:
        """The main agent's calls; among several agents also every other call that a sub-session has to name."""
        tree, found = self.tree, list[tuple[int, ToolCall | SpawnedAgent]]()
        called_by_nobody = {id(one.events[0]): one for one in self.parts if one.events and not self._is_first(one)}
        for event in tree.events:
            is_own = event.agent_id not in tree.agents
            if isinstance(event, ToolCall) and (is_own or (self.with_agents and tree.made_by(event))):
                found.append((self.moments.of(event), event))
            if self.with_agents and (agent := called_by_nobody.get(id(event))):
                found.append((self._started(agent), agent))
        found.sort(key=lambda one: one[0])  # a document has its calls in the order of time, whatever the log has
        return [self._main_call(place, one) for place, (_, one) in enumerate(found)]

    def _main_call(self, place: int, made: ToolCall | SpawnedAgent) -> Json:
        if isinstance(made, SpawnedAgent):
            self.derived.append(f"tool_calls[{place}]")
            return self._made_by_nobody(made)
        call = self._call(made, "tool_calls", place)
        return call | {"x_harken_owner": made.agent_id} if made.agent_id in self.tree.agents else call

    def _call(self, event: ToolCall, list_path: str, place: int) -> Json:
        written: ExportedCall = self.calls.written(event)
        self.derived += [f"{list_path}[{place}].{field}" for field in written.derived]
        made, data = self.tree.made_by(event), self.said.category(written.data, event.message_id)
        if not made:
            return data
        info = subagent_info(made[0])
        if not made[0].is_recorded and "tool_uses" not in agent_beside(self.tree.beside, event.message_id):
            self.derived.append(f"{list_path}[{place}].subagent_info.tool_uses")
        if not made[0].agent_type and not self.with_agents:  # with agents, it is told of the participant
            self.derived.append(f"{list_path}[{place}].subagent_info.subagent_type")
        info.pop("tools_breakdown" if self.with_agents else "sub_session_id", None)
        return data | {"subagent_info": info}

    def _is_first(self, agent: SpawnedAgent) -> bool:
        """Whether its call names this agent: a call that made several names the first."""
        return agent.call is not None and self.tree.made_by(agent.call)[0] is agent

    def _made_by_nobody(self, agent: SpawnedAgent) -> Json:
        started = self._started(agent)
        ended = self._ended(agent)
        is_open = "in_progress" == self.status == self.told.tasks[agent.agent_id].status_of(agent)
        times = (started, None if is_open else ended)
        data = made_by_nobody(agent, self.calls.made_up(agent), times, self._task_words(agent))
        data["subagent_info"].pop("tools_breakdown", None)
        return data

    # -- sub-sessions --------------------------------------------------------------------------------------------------

    def _sub_session(self, agent: SpawnedAgent, place: int, session_id: str) -> Json:
        parent, path = self.tree.agents.get(agent.parent), f"sub_sessions[{place}]"
        above = parent.sub_session_id if parent else session_id
        words = self._task_words(agent)
        self.derived += [f"{path}.task.priority"] + ([] if words else [f"{path}.task.description"])
        self.derived += [f"{path}.started_at"] if agent.started is None else []
        self.derived += [] if agent.is_call_told else [f"{path}.triggered_by_call_id"]
        calls = sorted((event for event in agent.events if isinstance(event, ToolCall)), key=self.moments.of)
        trigger = self.calls.name(agent.call) if agent.call and self._is_first(agent) else self.calls.made_up(agent)
        found: Json = {
            "sub_session_id": agent.sub_session_id,
            "parent_session_id": self.homes.get(id(agent.call), above) if parent else above,
            "agent": self.tree.identifier(agent.agent_id),
            "triggered_by_call_id": trigger,
            "task": {"task_id": agent.task_id, "description": words or NO_TASK, "priority": "medium"},
            "started_at": format_instant(self._started(agent)),
        }
        status = self.told.tasks[agent.agent_id].status_of(agent)
        if status != "in_progress":
            found["completed_at"] = format_instant(self._ended(agent))
            self.derived += [f"{path}.completed_at"] if agent.ended is None else []
        found["status"] = status
        found["tool_calls"] = [self._call(call, f"{path}.tool_calls", at) for at, call in enumerate(calls)]
        if status != "in_progress":
            found["output"] = self.outputs.of(agent)
        found = self.said.sub_session(found, agent, path)
        if agent.name != agent.agent_id:
            found["x_harken_name"] = clean(agent.name)
        handed_in = inner(agent.told[0], "output") if len(agent.told) == 1 else found.get("output")
        found["x_harken_conversation"] = entries(agent.events, self.calls, self.lost, handed_in)
        return found

    def _started(self, agent: SpawnedAgent) -> int:
        if agent.started is not None:
            return agent.started
        first = agent.events[0] if agent.events else agent.call
        assert first is not None  # of whom nothing is kept, the call is
        return self.moments.of(first)

    def _ended(self, agent: SpawnedAgent) -> int:
        """When its answer came; of one that was given several tasks, the last answer."""
        given = self.told.tasks[agent.agent_id]
        is_untold = agent.is_part and agent.ended is None
        answered = given.answered_of(agent) if is_untold or (len(given.tasks) > 1 and not agent.told) else None
        came = answered.answer.time if answered is not None and answered.answer is not None else None
        did = [event.time for event in (*agent.events, agent.result) if event is not None] if is_untold else []
        return max(time for time in (self._started(agent), agent.ended, came, *did) if time is not None)

    def _task_words(self, agent: SpawnedAgent) -> str:
        """What an agent was to do; empty where nobody says."""
        return clean(self.told.tasks[agent.agent_id].tasks[0].words).strip()

    def _messages(self) -> list[Json]:
        self.derived += self.told.derived
        return self.said.messages(self.told.messages)


# -- what a document says of its main agent ----------------------------------------------------------------------------


_STAND_FOR = frozenset({"meta", "skill"})
"""What follows a command that stands for a prompt; what follows one that the program carries out is its output."""


class FirstPrompt(NamedTuple):
    """What was asked for, and the prompt that says so."""

    words: str
    event: Prompt | None


def user_prompt(events: Iterable[Event], inside: Container[str] = ()) -> FirstPrompt:
    """The first thing that a person asked for, in words or by a command with words; where none did, what another agent
    or the program did, else a command that stands for a prompt. What the agents `inside` the session said is none: they
    answer, or tell how they are."""
    prompts = [event for event in events if isinstance(event, Prompt) and event.content.strip()]
    prompts = [event for event in prompts if event.substance not in inside]
    commands = {
        id(event): _typed(event.content)
        for event, after in pairwise(prompts)
        if event.origin == "command" and after.origin in _STAND_FOR
    }
    asked = [event for event in prompts if event.source != "injected" or " " in commands.get(id(event), "")]
    asked += [event for event in prompts if event.origin in ("", "agent")]
    asked += [event for event in prompts if commands.get(id(event))]
    return FirstPrompt(commands.get(id(asked[0])) or asked[0].content, asked[0]) if asked else FirstPrompt("", None)


def _typed(command: str) -> str:
    """A command as a person types it: `/review the last commit`."""
    return " ".join(filter(None, (_element(command, "command-name"), _element(command, "command-args"))))


def _element(text: str, name: str) -> str:
    words, end, _ = text.partition(f"<{name}>")[2].partition(f"</{name}>")
    return words.strip() if end else ""


def model_of(events: list[Event], created: AgentCreated | None) -> str:
    """The model of an agent's last answer that names one; else the one that it was made with."""
    for event in reversed(events):
        # A metric with a scope may be of another agent.
        tells = isinstance(event, Response) or (isinstance(event, Metric) and not event.scope)
        if tells and (model := getattr(event, "model", "")) and model != SYNTHETIC:
            return str(model)
    return created.language_model if created else ""
