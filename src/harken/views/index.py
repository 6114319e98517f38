"""The index every view reads: one pass over the events of a session, then no scan per message.

Events are the plain dicts of a session log with the newest dialect's keys, in file order, and an event is meant by
its position. Nothing in them is trusted: a field of the wrong type counts as absent, ids may repeat, links may lead
nowhere or in circles. Tool arguments are never looked into. Who made whom is the registry's to say, the same fold that
a session has of its agents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from harken.clock import SECOND, in_calendar, parse_instant
from harken.log import Registry

from .links import roots
from .wording import text_of

Entry = dict[str, Any]
Link = str | list[str]

SAID = "said"
HEARD = "heard"
ACTION = "action"
RECEIVED = "received"
SYSTEM = "system"
THOUGHT = "thought"
TEXT = "text"
CREATED = "created"
TERMINATED = "terminated"
EDITED = "edited"
OTHER = "other"

PERSON = "user"
"""What one dialect calls the person at the keyboard where others name an agent."""

_ROLES = {"user": HEARD, "tool": RECEIVED, "system": SYSTEM, "developer": SYSTEM}
_TYPES = {"piece_of_text": TEXT, "agent_created": CREATED, "agent_terminated": TERMINATED, "transcript_edit": EDITED}


class AgentInfo(msgspec.Struct, kw_only=True):
    """What the log says of one agent; an agent that is used but never created has only its id."""

    agent_id: str
    name: str = ""
    role: str = ""
    parent: str | None = None
    language_model: str = ""
    created: int | None = None
    terminated: int | None = None


class Index(msgspec.Struct, kw_only=True):
    """The events of one session, and where to find what."""

    events: list[Entry]
    ids: list[str]
    by_id: dict[str, int]
    """The first event with the id."""
    kinds: list[str]
    texts: list[str]
    holders: list[str | None]
    """Whose record it is: the agent in whose transcript it stands, or that made or is it."""
    authors: list[str | None]
    """Who said or made it; None where that is somebody outside the session."""
    times: list[int | None]
    links: dict[int, tuple[str, ...]]
    """The ids it names as what it repeats or what triggered it, where it names any."""
    answers: dict[int, int]
    """Tool results: the message with the call they answer. Agents made without a cause: the call that was open."""
    source: list[int]
    root: list[int]
    hops: list[int]
    outside: dict[str, int]
    """Ids that substance names but the file has not, with their negative positions."""
    outside_ids: list[str]
    """The same by number: position -1 is the first of them."""
    copies: dict[int, list[int]]
    """Root of a content: every event that repeats it, in file order."""
    effects: dict[int, list[int]]
    """An event: those that name it as their cause."""
    hook_hearings: dict[int, list[int]]
    """Root of a content: where hooks were shown it or asked about it, in file order."""
    transcripts: dict[str, list[int]]
    edits: dict[str, list[int]]
    """Where an agent's transcript was cut back or folded."""
    agents: dict[str, AgentInfo]
    main: str | None
    """The root of the tree: the first agent without a parent."""

    def name(self, agent_id: str | None) -> str:
        """What to call an agent: its name, else its id; what came from outside has none."""
        if agent_id is None:
            return ""
        found = self.agents.get(agent_id)
        return (found and found.name) or agent_id

    def id_of(self, position: int) -> str:
        """The id at a position, also of one that is only named."""
        return self.ids[position] if position >= 0 else self.outside_ids[-position - 1]

    def find(self, message_id: str) -> int | None:
        """The position of an id, negative for one that is only named; None where nothing knows it."""
        found = self.by_id.get(message_id)
        return self.outside.get(message_id) if found is None else found

    def parent_ids(self, at: int) -> tuple[str, ...]:
        """What an event came from, by id: what it names, else the call it answers."""
        named = self.links.get(at)
        if named:
            return named
        found = self.answers.get(at)
        return () if found is None else (self.ids[found],)

    def parents(self, at: int) -> tuple[int, ...]:
        """All that an event came from and that is in the file: what it names, and the call it answers as well."""
        named = _positions(self.by_id, self.links.get(at, ()))
        # By position, not by name: where ids repeat, the answered call is the one before the answer.
        found = self.answers.get(at)
        return named if found is None or found in named else (*named, found)

    def content_root(self, position: int) -> int:
        """The root of the content at a position."""
        return self.root[position] if position >= 0 else position

    def group(self, root: int) -> Iterator[int]:
        """Every event of one content in the file: the original, if it is there, and what repeats it."""
        if root >= 0:
            yield root
        for at in self.copies.get(root, ()):
            if at != root:
                yield at


def _position(by_id: dict[str, int], message_id: str) -> int | None:
    """The event a link names. One dialect writes `MESSAGE.CALL` for a call within a message."""
    found = by_id.get(message_id)
    if found is None and "." in message_id:
        found = by_id.get(message_id.partition(".")[0])
    return found


def _positions(by_id: dict[str, int], message_ids: Iterable[str]) -> tuple[int, ...]:
    positions = (_position(by_id, one) for one in message_ids)
    return tuple(dict.fromkeys(one for one in positions if one is not None))


def build_index(events: Iterable[Entry], registry: Registry | None = None) -> Index:
    """Read the events once, then resolve their links. A registry that is given has taken them in by the end."""
    if registry is None:
        registry = Registry()
        events = registry.fold_lines(events)
    reader = _Reader()
    for event in events:
        reader.take(event)
    return reader.finish(registry)


def _name(value: object) -> str | None:
    """An id or a name: text, or a whole number that some writer left unquoted."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def _instant(stamp: object) -> int | None:
    """When it happened: RFC 3339 text, or a number of seconds."""
    if isinstance(stamp, str):
        return parse_instant(stamp)
    if isinstance(stamp, (int, float)) and not isinstance(stamp, bool) and abs(stamp) < 1 << 40:
        instant = round(stamp * SECOND)
        return instant if in_calendar(instant) else None
    return None


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(found for one in value if (found := _name(one)))
    found = _name(value)
    return (found,) if found else ()


def _kind(event: Entry) -> str:
    event_type = event.get("event_type")
    if event_type != "transcript_entry":
        return _TYPES.get(event_type, OTHER) if isinstance(event_type, str) else OTHER
    role = event.get("role")
    if role == "assistant":
        if event.get("tool_calls"):
            return ACTION
        if event.get("thinking") and not event.get("content"):
            return THOUGHT
        return SAID if event.get("content") else OTHER
    return _ROLES.get(role, OTHER) if isinstance(role, str) else OTHER


class _Reader:
    """The state of the one pass."""

    def __init__(self) -> None:
        self.events: list[Entry] = []
        self.ids: list[str] = []
        self.by_id: dict[str, int] = {}
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.holders: list[str | None] = []
        self.authors: list[str | None] = []
        self.times: list[int | None] = []
        self.substances: dict[int, str] = {}
        self.causes: dict[int, tuple[str, ...]] = {}
        self.answers: dict[int, int] = {}
        self.transcripts: dict[str, list[int]] = {}
        self.edits: dict[str, list[int]] = {}
        self.agents: dict[str, AgentInfo] = {}
        self._called: dict[tuple[str | None, str], int] = {}
        self._makers: list[str] = []

    def take(self, event: Entry) -> None:
        """Add the next event of the file."""
        position = len(self.events)
        kind = _kind(event)
        # Almost every field is the text it should be; only the others are looked at more closely.
        agent = event.get("agent_id")
        if type(agent) is not str or not agent:
            agent = _name(agent)
        message_id = event.get("message_id")
        if type(message_id) is not str or not message_id:
            message_id = _name(message_id) or f"@{position}"
        text = event.get("content")
        if type(text) is not str:
            text = text_of(text)
        self.events.append(event)
        self.ids.append(message_id)
        first = self.by_id.setdefault(message_id, position)
        if first != position and event.get("index") and text and not self.texts[first]:
            self.by_id[message_id] = position  # a message on several lines is known by the one with its words
        self.kinds.append(kind)
        self.texts.append(text)
        self.times.append(_instant(event.get("timestamp")))
        if (named := event.get("substance")) is not None and (substance := _name(named)) is not None:
            self.substances[position] = substance  # where a line has both links, this one stands
        elif (named := event.get("cause")) is not None and (causes := _names(named)):
            self.causes[position] = causes
        self.holders.append(agent)
        # What an agent heard came from elsewhere; the substance, if there is one, will say from whom.
        self.authors.append(None if kind in (HEARD, SYSTEM) else agent)
        if event.get("event_type") == "transcript_entry" and agent is not None:
            self._entry(position, kind, agent, event)
        elif kind == CREATED and agent is not None:
            self._created(position, agent, event)
        elif kind == TERMINATED and agent is not None:
            self._agent(agent).terminated = position
        elif kind == TEXT and agent is not None:
            self._makers.append(agent)
        elif kind == EDITED and agent is not None:
            self.edits.setdefault(agent, []).append(position)

    def _agent(self, agent_id: str) -> AgentInfo:
        found = self.agents.get(agent_id)
        if found is None:
            found = self.agents[agent_id] = AgentInfo(agent_id=agent_id)
        return found

    def _entry(self, position: int, kind: str, agent: str, event: Entry) -> None:
        own = self.transcripts.get(agent)
        if own is None:
            own = self.transcripts[agent] = []
            self._agent(agent)
        own.append(position)
        if kind == ACTION:
            for call_id in call_ids(event):
                self._called[agent, call_id] = self._called[None, call_id] = position
        elif kind == RECEIVED:
            self._answered(position, agent, event)

    def _answered(self, position: int, agent: str, event: Entry) -> None:
        call_id = _name(event.get("tool_call_id"))
        message = _name(event.get("tool_call"))
        found = self.by_id.get(message) if message is not None else None
        if call_id is not None and found is None:
            found = self._called.get((agent, call_id), self._called.get((None, call_id)))
        if found is not None:
            self.answers[position] = found

    def _created(self, position: int, agent: str, event: Entry) -> None:
        info = self._agent(agent)
        if info.created is not None:
            return  # the first creation stands; an id is never given twice
        info.created = position
        info.name = _word(event.get("name"))
        info.role = _word(event.get("role"))
        info.language_model = _word(event.get("language_model"))

    def _adopt(self, registry: Registry) -> None:
        """Take over who made whom; where that was inferred, from which call."""
        for info in self.agents.values():
            known = registry.agents.get(info.agent_id)
            if known is None or (known.parent == PERSON and PERSON not in self.agents):
                continue
            info.parent = known.parent
            call = self.by_id.get(known.cause) if known.inferred and known.cause else None
            if call is not None and info.created is not None and info.created not in self.causes:
                self.answers[info.created] = call

    def finish(self, registry: Registry) -> Index:
        """Resolve what could not be known before the whole file was read."""
        for maker in self._makers:
            if maker != PERSON:
                self._agent(maker)
        self._adopt(registry)
        outside: dict[str, int] = {}
        source = self._sources(outside)
        root, hops = roots(source)
        copies: dict[int, list[int]] = {}
        for at in self.substances:
            copies.setdefault(root[at], []).append(at)
        effects: dict[int, list[int]] = {}
        for at, causes in self.causes.items():
            for cause in _positions(self.by_id, causes):
                effects.setdefault(cause, []).append(at)
        index = Index(
            events=self.events,
            ids=self.ids,
            by_id=self.by_id,
            kinds=self.kinds,
            texts=self.texts,
            holders=self.holders,
            authors=self.authors,
            times=self.times,
            links=self._links(),
            answers=self.answers,
            source=source,
            root=root,
            hops=hops,
            outside=outside,
            outside_ids=list(outside),
            copies=copies,
            effects=effects,
            hook_hearings=self._hook_hearings(root),
            transcripts=self.transcripts,
            edits=self.edits,
            agents=self.agents,
            main=registry.root,
        )
        _settle_authors(index)
        return index

    def _sources(self, outside: dict[str, int]) -> list[int]:
        source = list(range(len(self.events)))
        for at, substance in self.substances.items():
            found = _position(self.by_id, substance)
            source[at] = found if found is not None else outside.setdefault(substance, -len(outside) - 1)
        return source

    def _links(self) -> dict[int, tuple[str, ...]]:
        return self.causes | {at: (substance,) for at, substance in self.substances.items()}

    def _hook_hearings(self, root: list[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for info in self.agents.values():
            for at in self.transcripts.get(info.agent_id, ()) if info.role == "hook" else ():
                causes = _positions(self.by_id, self.causes.get(at, ()))
                for origin in {root[at]} if at in self.substances else {root[one] for one in causes}:
                    found.setdefault(origin, []).append(at)
        return {origin: sorted(places) for origin, places in found.items()}


def _settle_authors(index: Index) -> None:
    """Text without a maker was made by the agent whose call caused it."""
    for at, kind in enumerate(index.kinds):
        if kind == TEXT and index.authors[at] is None and (makers := index.parents(at)):
            index.authors[at] = index.holders[makers[0]]


def call_ids(event: Entry) -> Iterator[str]:
    """The ids of the calls in a message."""
    calls = event.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and (found := _name(call.get("id"))):
            yield found
