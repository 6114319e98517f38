"""The index every view reads: one pass over the events of a session, then no scan per message.

A record is what one line of a session log says: an event, or an assistant's thinking, words and calls. Records are in
the order in which they happened, and one is meant by its position. Nothing in them is trusted: ids may repeat, links
may lead nowhere or in circles. Tool arguments are never looked into. Who made whom is the registry's to say, the same
fold that a session has of its agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

import harken.events as ev
from harken.clock import Timestamps
from harken.events.edits import INSTRUCTIONS
from harken.formats.session_log.lines import LogLine
from harken.log import Registry

from .base import (
    ACTION,
    CREATED,
    EDITED,
    HEARD,
    OTHER,
    PERSON,
    RECEIVED,
    SAID,
    SYSTEM,
    TERMINATED,
    TEXT,
    THOUGHT,
    RecordEvents,
    ViewedAgent,
    close_circle,
)
from .verdicts import Verdicts, hook_hearings, verdicts


class Index(msgspec.Struct, kw_only=True):
    """The records of one session, and where to find what."""

    records: list[RecordEvents]
    line: Callable[[int], LogLine]
    """The line of a record: as it was logged, or as a session log would have it."""
    ids: list[str]
    by_id: dict[str, int]
    """The first record with the id."""
    kinds: list[str]
    texts: list[str]
    holders: list[str | None]
    """Whose record it is: the agent in whose transcript it stands, or that made or is it."""
    authors: list[str | None]
    """Who said or made it; None where that is somebody outside the session."""
    links: dict[int, tuple[str, ...]]
    """The ids it names as what it repeats or what triggered it, where it names any."""
    answers: dict[int, int]
    """Tool results: the message with the call they answer. Agents made without a cause: the call that was open."""
    source: list[int]
    root: list[int]
    hops: list[int]
    outside: dict[str, int]
    """Ids that substance names but the session has not, with their negative positions."""
    outside_ids: list[str]
    """The same by number: position -1 is the first of them."""
    copies: dict[int, list[int]]
    """Root of a content: every record that repeats it, in order."""
    effects: dict[int, list[int]]
    """A record: those that name it as their cause."""
    transcripts: dict[str, list[int]]
    pieces: dict[str, list[int]]
    """The texts that an agent made for others, which are in no transcript of its own."""
    edits: dict[str, list[int]]
    """Where an agent's transcript was cut back or folded."""
    agents: dict[str, ViewedAgent]
    main: str | None
    """The root of the tree: the first agent without a parent."""
    hook_hearings: dict[int, list[int]] = {}
    """Root of a content: where hooks were shown it or asked about it, in order."""
    verdicts: Verdicts = msgspec.field(default_factory=Verdicts)
    """What hooks ruled."""
    stamp: Timestamps = msgspec.field(default_factory=Timestamps)

    def name(self, agent_id: str | None) -> str:
        """What to call an agent: its name, else its id; what came from outside has none."""
        if agent_id is None:
            return ""
        found = self.agents.get(agent_id)
        return (found and found.name) or agent_id

    def id_of(self, position: int) -> str:
        """The id at a position, also of one that is only named."""
        return self.ids[position] if position >= 0 else self.outside_ids[-position - 1]

    def time(self, position: int) -> int | None:
        """When the record was made, where it says."""
        return self.records[position][0].time if position >= 0 else None

    def time_text(self, position: int) -> str | None:
        """The same as RFC 3339 text."""
        try:
            return None if (instant := self.time(position)) is None else self.stamp(instant)
        except OverflowError:  # a hostile log may claim an instant that has no date
            return None

    def find(self, message_id: str) -> int | None:
        """The position of an id, negative for one that is only named; None where nothing knows it."""
        found = self.by_id.get(message_id)
        return self.outside.get(message_id) if found is None else found

    def parent_ids(self, at: int) -> tuple[str, ...]:
        """What a record came from, by id: what it names, else the call it answers."""
        named = self.links.get(at)
        if named:
            return named
        found = self.answers.get(at)
        return () if found is None else (self.ids[found],)

    def parents(self, at: int) -> tuple[int, ...]:
        """All that a record came from and that is in the session: what it names, and the call it answers as well."""
        named = _positions(self.by_id, self.links.get(at, ()))
        # By position, not by name: where ids repeat, the answered call is the one before the answer.
        found = self.answers.get(at)
        return named if found is None or found in named else (*named, found)

    def content_root(self, position: int) -> int:
        """The root of the content at a position."""
        return self.root[position] if position >= 0 else position

    def group(self, root: int) -> Iterator[int]:
        """Every record of one content: the original, if it is there, and what repeats it."""
        if root >= 0:
            yield root
        for at in self.copies.get(root, ()):
            if at != root:
                yield at


def _position(by_id: dict[str, int], message_id: str) -> int | None:
    """The record a link names. One dialect writes `MESSAGE.CALL` for a call within a message."""
    found = by_id.get(message_id)
    if found is None and "." in message_id:
        found = by_id.get(message_id.partition(".")[0])
    return found


def _positions(by_id: dict[str, int], message_ids: Iterable[str]) -> tuple[int, ...]:
    positions = (_position(by_id, one) for one in message_ids)
    return tuple(dict.fromkeys(one for one in positions if one is not None))


def _said(record: RecordEvents) -> tuple[str, str]:
    """An assistant's record: acting, saying something, or only thinking."""
    kind, text = "", ""
    for event in record:
        if isinstance(event, ev.Response):
            text += event.content
        elif isinstance(event, (ev.ToolCall, ev.Output)):
            kind = ACTION
        elif isinstance(event, ev.Thinking):
            kind = kind or THOUGHT
    if kind == ACTION:
        return ACTION, text
    return (SAID if text else kind or OTHER), text


def _described(record: RecordEvents) -> tuple[str, str]:
    """What kind of record it is, and its words."""
    event = record[0]
    if isinstance(event, ev.Prompt):
        return HEARD, event.content
    if isinstance(event, (ev.Response, ev.Thinking, ev.ToolCall)):
        return _said(record)
    if isinstance(event, ev.ToolResult):
        return RECEIVED, event.output
    if isinstance(event, ev.System):
        return (SYSTEM, event.message) if event.subtype == INSTRUCTIONS else (OTHER, "")
    if isinstance(event, ev.PieceOfText):
        return TEXT, event.content
    if isinstance(event, ev.TranscriptEdit):
        return EDITED, event.content
    return (CREATED if isinstance(event, ev.AgentCreated) else _REST.get(event.kind, OTHER)), ""


_REST = {ev.AgentTerminated.kind: TERMINATED}
_OF_A_TRANSCRIPT = frozenset({SAID, HEARD, ACTION, RECEIVED, SYSTEM, THOUGHT})


class IndexBuilder:
    """The one pass: `take` each record, then `finish`."""

    def __init__(self) -> None:
        self.records: list[RecordEvents] = []
        self.ids: list[str] = []
        self.by_id: dict[str, int] = {}
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.holders: list[str | None] = []
        self.authors: list[str | None] = []
        self.substances: dict[int, str] = {}
        self._more: dict[tuple[str, str, str], int] = {}
        """What an id says beyond its first record, by id, kind and words: the first that says it."""
        self.causes: dict[int, tuple[str, ...]] = {}
        self.answers: dict[int, int] = {}
        self.transcripts: dict[str, list[int]] = {}
        self.edits: dict[str, list[int]] = {}
        self.agents: dict[str, ViewedAgent] = {}
        self._called: dict[tuple[str | None, str], int] = {}
        self.pieces: dict[str, list[int]] = {}

    def take(self, record: RecordEvents, place: int | None = None) -> None:
        """Add the next record; one without a name is called after its place, or its number where none is given."""
        position = len(self.records)
        first = record[0]
        kind, text = _described(record)
        agent = first.agent_id or None
        message_id = first.message_id or f"@{position if place is None else place}"
        self.records.append(record)
        self.ids.append(message_id)
        before = self.by_id.setdefault(message_id, position)
        if before != position and text:
            self._more.setdefault((message_id, kind, text), position)
        if before != position and first.index and text and not self.texts[before] and kind != RECEIVED:
            # A message on several lines is known by the one with its words; those of a result are the tool's.
            self.by_id[message_id] = position
        self.kinds.append(kind)
        self.texts.append(text)
        if first.substance:
            self.substances[position] = first.substance
        elif first.cause and (causes := tuple(filter(None, first.causes()))):
            self.causes[position] = causes
        self.holders.append(agent)
        # What an agent heard came from elsewhere; the substance, if there is one, will say from whom.
        self.authors.append(None if kind in (HEARD, SYSTEM) else agent)
        if agent is None:
            return
        if kind in _OF_A_TRANSCRIPT or isinstance(first, ev.Response):
            own = self.transcripts.get(agent)
            if own is None:
                own = self.transcripts[agent] = []
                self._agent(agent)
            own.append(position)
            if kind in (ACTION, RECEIVED):
                self._act(position, agent, record)
        else:
            self._sort_in(position, kind, agent, first)

    def _sort_in(self, position: int, kind: str, agent: str, first: ev.Event) -> None:
        if isinstance(first, ev.AgentCreated):
            self._created(position, first)
        elif kind == TERMINATED:
            self._agent(agent).terminated = position
        elif kind == TEXT:
            self.pieces.setdefault(agent, []).append(position)
        elif kind == EDITED:
            self.edits.setdefault(agent, []).append(position)

    def _agent(self, agent_id: str) -> ViewedAgent:
        found = self.agents.get(agent_id)
        if found is None:
            found = self.agents[agent_id] = ViewedAgent(agent_id=agent_id)
        return found

    def _act(self, position: int, agent: str, record: RecordEvents) -> None:
        """Join calls and results."""
        for event in record:
            if isinstance(event, ev.ToolCall) and event.id:
                self._called[agent, event.id] = self._called[None, event.id] = position
            elif isinstance(event, ev.ToolResult) and event.id:
                found = self._called.get((agent, event.id), self._called.get((None, event.id)))
                if found is not None:
                    self.answers[position] = found

    def _created(self, position: int, event: ev.AgentCreated) -> None:
        info = self._agent(event.agent_id)
        if info.created is not None:
            return  # the first creation stands; an id is never given twice
        info.created = position
        info.name = event.name
        info.role = event.role
        info.keeps_verdicts = event.role == "hook" and b'"points"' in event.attributes

    def _adopt(self, registry: Registry) -> None:
        """Take over who made whom; where that was inferred, from which call."""
        for info in self.agents.values():
            known = registry.agents.get(info.agent_id)
            if known is None or (known.parent == PERSON and PERSON not in self.agents):
                continue
            info.parent, info.language_model = known.parent, known.language_model
            call = self.by_id.get(known.cause) if known.inferred and known.cause else None
            if call is not None and info.created is not None and info.created not in self.causes:
                self.answers[info.created] = call

    def finish(self, registry: Registry, line: Callable[[int], LogLine]) -> Index:
        """Resolve what could not be known before all was read. The registry has taken in the same records."""
        for maker in self.pieces:
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
            records=self.records,
            line=line,
            ids=self.ids,
            by_id=self.by_id,
            kinds=self.kinds,
            texts=self.texts,
            holders=self.holders,
            authors=self.authors,
            links=self.causes | {at: (substance,) for at, substance in self.substances.items()},
            answers=self.answers,
            source=source,
            root=root,
            hops=hops,
            outside=outside,
            outside_ids=list(outside),
            copies=copies,
            effects=effects,
            transcripts=self.transcripts,
            pieces=self.pieces,
            edits=self.edits,
            agents=self.agents,
            main=registry.root,
        )
        _settle_authors(index)
        if any(info.role == "hook" for info in self.agents.values()):
            index.hook_hearings, index.verdicts = hook_hearings(index), verdicts(index)
        return index

    def _sources(self, outside: dict[str, int]) -> list[int]:
        source = list(range(len(self.records)))
        for at, substance in self.substances.items():
            found = self._original(at, substance)
            source[at] = found if found is not None else outside.setdefault(substance, -len(outside) - 1)
        return source

    def _original(self, at: int, substance: str) -> int | None:
        """What a record repeats. A message may say several things, a prompt and the files that it names: of these the
        one in the same words."""
        found = _position(self.by_id, substance)
        if found is None or self.texts[found] == self.texts[at]:
            return found
        return self._more.get((self.ids[found], self.kinds[at], self.texts[at]), found)


def _settle_authors(index: Index) -> None:
    """Text without a maker was made by the agent whose call caused it, and a sub-agent's own prompt likewise."""
    for at, kind in enumerate(index.kinds):
        if kind in (TEXT, HEARD) and index.authors[at] is None and (makers := index.parents(at)):
            maker, is_prompt = index.holders[makers[0]], index.source[at] == at and index.kinds[makers[0]] == ACTION
            index.authors[at] = maker if kind == TEXT or (is_prompt and maker != index.holders[at]) else None


_UNSEEN, _OPEN = -(1 << 62), 1 - (1 << 62)


def roots(source: list[int]) -> tuple[list[int], list[int]]:
    """For each position: the root of its content, and how many deliveries lie between.

    `source[i]` is the position that i repeats, i itself where it is new, or a negative number for one outside.
    """
    root = [_UNSEEN] * len(source)
    hops = [0] * len(source)
    for start, before in enumerate(source):
        if before == start:
            root[start] = start
        elif root[start] == _UNSEEN:
            _resolve(start, source, root, hops)
    return root, hops


def _resolve(start: int, source: list[int], root: list[int], hops: list[int]) -> None:
    path: list[int] = []
    at = start
    while at >= 0 and root[at] == _UNSEEN:
        root[at] = _OPEN
        path.append(at)
        if source[at] == at:
            break
        at = source[at]
    if at < 0:
        origin, distance = at, 0
    elif root[at] != _OPEN:
        origin, distance = root[at], hops[at]
    else:
        origin, distance = close_circle(path, path.index(at), root, hops)
        del path[path.index(at) :]
    for here in reversed(path):
        distance += 1
        root[here], hops[here] = origin, distance
