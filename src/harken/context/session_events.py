"""A session of the store as one stream of events: its own chain and those of its agents, in the order of time.

A file or a chain tells one agent's story, and often does not say whose. Here each event gets its agent, and each agent
an `agent_created` whose cause is the record that asked for it, so that every view of a session log works on any
session, wherever it came from. A chain that tells of its agents itself, as Harken's own log does, is taken as it is.

No runtime writes down which call sent an agent back to work. It is the last one before that names the agent and has the
words that it was told.

No runtime writes down that a result is a sub-agent's answer. It is one where the result answers such a call or the one
that made the agent, or names the agent (a background agent's answer comes later, in another result or a notice), and
holds the agent's last words of a turn. A result that is nothing but these words repeats them; any other is caused by
them.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from typing import NamedTuple

from msgspec.structs import replace

from harken import formats
from harken.errors import Corrupt, Evicted
from harken.events import AgentCreated, Event, Prompt, Response, ToolCall, ToolResult
from harken.events.base import holds
from harken.events.embedded import note_model, with_model
from harken.events.messages import is_asked
from harken.events.tool_kinds import AGENT, tool_kind
from harken.formats import Loss
from harken.store.base import SessionRow, Store

from .lineage import agent_name, agents_below, handed_down
from .materialize import Materialized, everything, everything_on_disk, materialize
from .refs import CREATED, whole_session
from .walk import ROOT, named

Hold = Callable[[Iterable[Event]], Sequence[Event]]
"""How a stream is held until it is told: `list`, or on the disk."""


def session_events(
    store: Store, row: SessionRow, *, agents: bool = True, losses: list[Loss] | None = None, earlier: bool = False
) -> list[Event]:
    """Everything the session's agents said, heard and did; without `agents`, what its own chain tells. What the store
    could not give is added to `losses`. `earlier` says that the row stands at a commit before its last: of agents below
    it then only what they did until that time."""
    return list(iter_session(store, row, agents=agents, losses=losses, earlier=earlier))


def iter_session(
    store: Store,
    row: SessionRow,
    *,
    agents: bool = True,
    losses: list[Loss] | None = None,
    earlier: bool = False,
    hold: Hold = list,
) -> Iterator[Event]:
    """The same one by one; `hold` keeps what has to be known before the first is told."""
    main = everything_on_disk(store, store.get_commit(whole_session(store, row).stand))
    lost = [] if losses is None else losses
    lost += main.losses
    if (known := formats.find(main.format)) is not None and known.tells_agents:
        yield from _all_named(main)
        return
    end = _End()
    own = end.noted(chain(_handed_down(store, row, lost), _all_named(main)))
    below = sorted((other for other in agents_below(store, row) if other.tip), key=lambda r: r.session)
    elsewhere = {each.agent for each in below if each.agent}
    models: dict[str, str] = {}
    streams = {row.session: _Stream(_events(own, row, elsewhere - {row.agent}, models), hold)}
    for each in below if agents else ():
        read = _read(store, each, lost, raising=losses is None)
        if read is not None:
            told = _events(_placed(read, each.session), each, elsewhere - {each.agent}, models)
            streams[each.session] = _Stream(told, hold)
    below = [each for each in below if each.session in streams]
    if earlier:
        calls = {each.session: spawning_call(store, each) for each in below}
        streams = _until(end.time, streams, calls, hold)
        below = [each for each in below if each.session in streams]
    for event in _in_time(_stories(store, row, below, streams)):
        yield with_model(event, models) if models else event


class _End:
    """The latest time of events that go by."""

    time: int | None = None

    def noted(self, events: Iterable[Event]) -> Iterator[Event]:
        """The same events."""
        for event in events:
            if event.time is not None:
                self.time = event.time if self.time is None else max(self.time, event.time)
            yield event


class _Stream:
    """The events of a chain, and what has to be known of them before the first is told."""

    def __init__(self, events: Iterable[Event], hold: Hold) -> None:
        self.tellers: dict[str, None] = {}
        """The agents whose events they are."""
        self.begun: int | None = None
        """The first time that is told."""
        self.events = hold(self._noted(events))

    def _noted(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            self.tellers[event.agent_id] = None
            self.begun = event.time if self.begun is None else self.begun
            yield event


def _stories(
    store: Store, row: SessionRow, below: Sequence[SessionRow], streams: Mapping[str, _Stream]
) -> list[Iterator[Event]]:
    """What each agent tells, linked to what the others say."""
    family = {each.session: each for each in (row, *below)}
    calls = _Calls(family, streams, {spawning_call(store, each) for each in below})
    made_by = {each.session: calls.making.get(spawning_call(store, each)) for each in below}
    made: dict[str, list[_SubAgent]] = {}
    again = {each.session: calls.speaking_to(each) for each in below}
    for each in below:
        above, call = made_by[each.session] or ("", None)
        known = _sub_agent(each, streams[each.session].events, [*([call] if call else ()), *again[each.session]])
        # Where the call is not known, any of the others may have made it.
        for session in [above] if call else family.keys() - {each.session}:
            made.setdefault(session, []).append(known)
    stories = []
    for each in family.values():
        _, call = made_by.get(each.session) or ("", None)
        parent = call.agent_id if call else "" if each is row else maker_name(store, each, family)
        stream = streams[each.session]
        created, task = _beginning(each, stream, call, parent)
        tasks = {} if task is None or call is None else {task: call.message_id}
        tasks |= _later_tasks(stream.events, again.get(each.session, ()), after=-1 if task is None else task)
        answers = [agent for agent in made.get(each.session, ()) if agent.answers]
        stories.append(_story(created, tasks, stream.events, answers, calls.names))
    return stories


class _Calls:
    """The calls of a family, where it has more than one agent."""

    def __init__(self, family: Iterable[str], streams: Mapping[str, _Stream], making: set[str]) -> None:
        self.names: dict[str, str] = {}
        """The records of calls by the calls' ids."""
        self.making: dict[str, tuple[str, ToolCall]] = {}
        """Those that made an agent, each with the session in whose chain it stands."""
        self._speaking: list[tuple[str, ToolCall, str]] = []
        """Others with which an agent may speak to one that is there, each with what it says."""
        for session in family if making else ():
            for event in streams[session].events:
                if isinstance(event, ToolCall) and event.id:
                    self.names[event.id] = event.message_id
                    if event.id in making:
                        self.making[event.id] = (session, event)
                    elif tool_kind(event.name) == AGENT:
                        self._speaking.append((session, event, event.input.decode("utf-8", "replace")))

    def speaking_to(self, row: SessionRow) -> list[ToolCall]:
        """Calls of others that name an agent: whoever has made it may send it back to work."""
        names = [name for name in (row.agent, row.session) if name]
        return [
            call
            for session, call, said in self._speaking
            if session != row.session and any(names_one(said, name) for name in names)
        ]


def session_bytes(store: Store, row: SessionRow, format: str) -> bytes | None:
    """Everything the session's own chain holds, verbatim, where it is in that format alone."""
    own = everything(store, store.get_commit(whole_session(store, row).stand))
    if own.format != format or own.tier != "1":
        return None
    return own.bytes if own.artifact else materialize(store, store.get_commit(row.stand), stop=ROOT).bytes


class UnreadAgent(Loss, frozen=True, kw_only=True):
    """A sub-agent whose bytes are not here any more, or are damaged."""


def _read(store: Store, row: SessionRow, losses: list[Loss], *, raising: bool) -> Iterator[Event] | None:
    """What a sub-agent's chain tells; where that cannot be had, nobody else is to suffer who asked for losses."""
    try:
        made = everything_on_disk(store, store.get_commit(whole_session(store, row).stand))
    except (Corrupt, Evicted) as problem:
        if raising:
            raise
        losses.append(UnreadAgent(what=f"sub-agent {agent_name(row)}", count=1, why=str(problem)))
        return None
    losses += made.losses
    return _all_named(made)


def _handed_down(store: Store, row: SessionRow, losses: list[Loss]) -> list[Event]:
    """What the session goes on from and another file holds: it went back, or was forked. Agents that were asked for
    there are told of there."""
    found: list[Event] = []
    given_to_it = handed_down(store, row.stand)
    losses += [given_to_it.missing] if given_to_it.missing else []
    for name, given in given_to_it.found.items():
        events = _all_named(everything_on_disk(store, given))
        found[:0] = [event for event in _placed(events, name) if not event.agent_id]
    return found


def _all_named(made: Materialized) -> Iterator[Event]:
    """What a whole chain says; it begins at its own beginning, so that places need no change."""
    format = formats.get(made.format)
    read = format.reader or format.read  # one by one, where it can be read
    return named(format, read(made.bytes), 0)


def _until(end: int | None, streams: Mapping[str, _Stream], calls: Mapping[str, str], hold: Hold) -> dict[str, _Stream]:
    """The session's own story, and what its agents had done by the time it ends; `calls` names the call that made each,
    where that is known. One whose call is in none of the stories was made later, whatever its clock says."""
    then = {
        name: _Stream(_done_by(end, stream.events, is_called=bool(calls[name])), hold) if name in calls else stream
        for name, stream in streams.items()
    }
    while True:
        made = {"", *(event.id for told in then.values() for event in told.events if isinstance(event, ToolCall))}
        gone = [name for name, call in calls.items() if name in then and (not then[name].events or call not in made)]
        if not gone:
            return then
        for name in gone:
            del then[name]


def _done_by(end: int | None, events: Sequence[Event], *, is_called: bool) -> Iterable[Event]:
    """What an agent had done by then: what comes after something later is later, whatever its clock says. Where no time
    is told, all of it if a call made it, else nothing."""
    if end is None or all(event.time is None for event in events):
        return events if is_called else ()
    return takewhile(lambda event: (event.time or 0) <= end, events)


def _events(events: Iterable[Event], row: SessionRow, elsewhere: set[str], models: dict[str, str]) -> Iterator[Event]:
    """The chain's events, each with its agent; records of an agent that has a chain of its own are told there, and of
    them only the models are noted. A sub-agent's chain is all its own: what records without a name were called after
    does not name another."""
    for event in events:
        if event.agent_id in elsewhere:
            note_model(event, models)  # its own records may not name it
        else:
            yield event if event.agent_id and not row.agent else event.replace(agent_id=agent_name(row))


def _placed(events: Iterable[Event], session: str) -> Iterator[Event]:
    """The events of another chain, where records are called after their places with its session before the place: other
    files have records in the same places."""
    for event in events:
        if event.message_id.startswith("@"):
            event = event.replace(message_id=session + event.message_id)
        if isinstance(event.cause, str) and event.cause.startswith("@"):
            event = event.replace(cause=session + event.cause)
        yield event


def spawning_call(store: Store, row: SessionRow) -> str:
    """The call that made a sub-agent; empty where its chain does not say."""
    spawned = store.chain(row.tip)[-1].spawned_from or {}
    return str(spawned.get("call_id", ""))


def maker_name(store: Store, row: SessionRow, family: Mapping[str, SessionRow]) -> str:
    """The agent that made a sub-agent, as its chain says; that of the session it belongs to where the chain does not.
    One outside the family is looked up."""
    origin = (store.chain(row.tip)[-1].spawned_from if row.tip else None) or {}
    made_by = str(origin.get("session", ""))
    above = family.get(made_by) or family.get(row.parent) or store.find_session(made_by or row.parent)
    return agent_name(above) if above else row.parent


def _beginning(row: SessionRow, stream: _Stream, call: ToolCall | None, parent: str) -> tuple[AgentCreated, int | None]:
    """How the story of an agent begins, and which of its events is the task that it was given."""
    agent = agent_name(row)
    agent = agent if not stream.tellers or agent in stream.tellers else next(iter(stream.tellers))
    created = AgentCreated(
        message_id=row.session + CREATED,
        agent_id=agent,
        name=agent,
        role="child" if row.parent else "root",
        parent=parent,
        time=stream.begun,
        cause=call.message_id if call else None,
    )
    return created, _task(stream.events, call) if call else None


def _later_tasks(events: Iterable[Event], calls: Sequence[ToolCall], *, after: int) -> dict[int, str]:
    """What an agent was told behind its first task, by the places of these prompts the records of the calls that told
    it: the last call before that has the words."""
    found: dict[int, str] = {}
    for place, event in enumerate(events if calls else ()):
        if place <= after or not isinstance(event, Prompt) or not event.content.strip():
            continue
        for call in reversed(calls):
            is_later = None not in (call.time, event.time) and (call.time or 0) > (event.time or 0)
            if not is_later and holds(call.input.decode("utf-8", "replace"), event.content.strip()):
                found[place] = call.message_id
                break
    return found


def _story(
    created: AgentCreated,
    tasks: Mapping[int, str],
    events: Iterable[Event],
    agents: list[_SubAgent],
    calls: Mapping[str, str],
) -> Iterator[Event]:
    """The events of an agent, with its results and notices linked to the answers of the agents it made."""
    yield created
    for place, event in enumerate(events):
        event = _linked(event, agents, calls) if agents else event
        if place in tasks and event.cause is None and event.substance is None:
            event = event.replace(cause=tasks[place])
        yield event


def _task(events: Iterable[Event], call: ToolCall) -> int | None:
    """The prompt that the call gave its agent, where the record itself names no cause: the one whose words stand in the
    call, else the first that is no notice of the runtime (which often come before it)."""
    asked = call.input.decode("utf-8", "replace")
    given: int | None = None
    first: int | None = None
    for place, event in enumerate(events):
        if isinstance(event, Prompt):
            if event.content.strip() and holds(asked, event.content):
                return place
            if given is None and is_asked(event):
                given = place
            first = place if first is None else first
    return first if given is None else given


# -- what comes back from a sub-agent ----------------------------------------------------------------------------------


class _SubAgent(NamedTuple):
    """An agent as the one that made it knows it."""

    calls: frozenset[str]
    """The call that made it, and those that spoke to it later."""
    names: tuple[str, ...]
    """What a notice or a result that speaks of it calls it."""
    answers: list[list[Response]]
    """Its last words of each turn, oldest first; one message may stand in several records."""


def _sub_agent(row: SessionRow, events: Iterable[Event], calls: Sequence[ToolCall]) -> _SubAgent:
    ids = [call.id for call in calls]
    names = dict.fromkeys(filter(None, (row.agent, row.session, *ids)))
    return _SubAgent(frozenset(ids), tuple(names), _last_words(events))


def _last_words(events: Iterable[Event]) -> list[list[Response]]:
    found: list[list[Response]] = []
    now: list[Response] = []
    for event in events:
        if isinstance(event, Response) and event.content.strip():
            is_same = bool(now) and (event.api_id or event.message_id) == (now[-1].api_id or now[-1].message_id)
            now = [*now, event] if is_same else [event]
        elif isinstance(event, ToolCall):
            now = []
        elif isinstance(event, Prompt) and now:
            found.append(now)
            now = []
    return [*found, now] if now else found


def _linked(event: Event, agents: list[_SubAgent], calls: Mapping[str, str]) -> Event:
    if isinstance(event, ToolResult):
        text, call_id = event.output, event.id
    elif isinstance(event, Prompt) and event.source == "injected" and event.cause is None:
        text, call_id = event.content, ""
    else:
        return event
    if event.substance is not None:
        return event
    answers = [
        answer
        for agent in agents
        if call_id in agent.calls or any(names_one(text, name) for name in agent.names)
        for answer in _answer_in(text, event.time, agent)
    ]
    if not answers:
        return event
    if isinstance(event, ToolResult) and len(answers) == 1 and answers[0].content == text:
        return replace(event, cause=None, substance=answers[0].message_id)
    before = event.causes() or ((calls[call_id],) if call_id in calls else ())
    return replace(event, cause=tuple(dict.fromkeys((*before, *(answer.message_id for answer in answers)))))


def names_one(text: str, name: str) -> bool:
    """Whether a name stands in a text, as a word of its own."""
    # A search for the name alone is many times faster, and almost no text has it.
    return name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _answer_in(text: str, time: int | None, agent: _SubAgent) -> list[Response]:
    """The latest of an agent's answers that a text holds; one of a later time only where clocks disagree."""
    later = [time is not None and (answer[-1].time or 0) > time for answer in agent.answers]
    before = [answer for answer, is_later in zip(agent.answers, later, strict=True) if not is_later]
    after = [answer for answer, is_later in zip(agent.answers, later, strict=True) if is_later]
    for answer in (*reversed(before), *after):
        if held := [part for part in answer if holds(text, part.content.strip())]:
            return held
    return []


def _in_time(stories: list[Iterator[Event]]) -> Iterator[Event]:
    """The stories as one. Within a story its own order stands, whatever its clock says."""

    def dated(story: Iterator[Event]) -> Iterator[tuple[int, Event]]:
        latest = 0
        for event in story:
            latest = max(latest, event.time or 0)
            yield latest, event

    for _, event in heapq.merge(*map(dated, stories), key=lambda item: item[0]):
        yield event
