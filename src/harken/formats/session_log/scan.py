"""Cut rule `log-cut-2`: where a session log falls into commits, and what an import has to know of it.

Frozen: a better rule gets another name. A decision looks at this line and at earlier ones, never further; so a log
that grows keeps every cut it had. The rule, with its vectors, is in FORMAT.md; in short:

    the main agent   the first one that is created or has an entry: the root, or the agent whose own lines these are
    before a line    the main agent is told or says something, or its transcript is edited, after it has said
                     something; any line once the open delta has 256 KiB;
                     both refused while any agent's call waits for its result, unless something is cut off
    after a line     a compaction of the main agent's transcript (the compaction commit repeats the line),
                     and its termination
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec
import orjson

from harken import ids
from harken.events import Event, Output
from harken.events.base import clean, excerpt
from harken.events.messages import asked_first
from harken.events.places import NOTHING, RecordSoFar
from harken.events.records import goes_on
from harken.events.tally import Tally
from harken.formats.base import Delta
from harken.formats.facts import ORIGIN, FileFacts, Origin, read_origin

from .lines import BLANK, LogLine, LogRecord, read_records
from .reading import ENTRY, as_id, events_of, instant_of, is_call

RUNTIME = "harken"
SOFT = 256 * 1024
"""A delta that is this long is cut at the next line where nothing forbids it."""
HARD = 16 * 1024 * 1024
"""A call that has waited this long is not waited for any more."""
REFUSALS = 4
"""How many cuts an unanswered call may refuse before it is given up."""
DIGITS = 8
"""How many digits of its first line's hash are part of a session's name."""


class LogState(msgspec.Struct, omit_defaults=True):
    """All that is carried across a cut; JSON text through `msgspec.json`."""

    offset: int = 0
    main: str | None = None
    """The main agent; None before the first line that names one. Where there is only one, its id may be empty."""
    first: str = ""
    """The beginning of the hash of the first line."""
    title: str = ""
    records: int = 0
    opaque: int = 0
    agents: list[str] = []
    """Agents other than the main one that have lines."""
    calls: dict[str, str] = {}
    """Agent to the call that made it."""
    makers: dict[str, str] = {}
    """Agent to the agent that made it, where that is not the main one."""
    inside: int = 0
    """Messages of agents other than the main one."""
    origin: Origin | None = None
    """What the log says that it goes on from."""
    tally: Tally = msgspec.field(default_factory=Tally)
    last: dict[str, tuple[str, RecordSoFar]] = {}
    """By agent the last record it began, whose further lines may follow: its name, and what is counted of it."""
    latest: str = ""
    """The agent that began the last one of all."""

    def copy(self) -> LogState:
        """A state that goes its own way."""
        tally = self.tally.without_requests()
        return msgspec.structs.replace(
            self,
            agents=list(self.agents),
            calls=dict(self.calls),
            makers=dict(self.makers),
            last=dict(self.last),
            tally=tally,
        )


class LogScanner:
    """Takes a log's records one by one and cuts it. `state` is the memory at the last closed cut, from which a scanner
    of what follows goes on to the same deltas."""

    def __init__(self, state: bytes = b"") -> None:
        self.state = msgspec.json.decode(state, type=LogState) if state else LogState()
        self.now = self.state.copy()  # requests are counted from here on; earlier ones are in the row
        self.closed: list[Delta] = []
        """What closed and nobody has taken yet."""
        self._begin()

    def _begin(self) -> None:
        self._start = self.now.offset
        self._waiting: dict[tuple[str, str], None] = {}
        self._made: dict[str, list[LogLine]] = {}
        """The calls in each message of the open delta."""
        self._said_by: dict[str, str] = {}
        """The agents of those messages."""
        self._given: set[tuple[str, int]] = set()
        """Which of them have made an agent: the message, and the place of the call in it."""
        self._refused = 0
        self._spoken = False
        self._message = ""
        self._time: int | None = None
        self._records = 0
        self._said = self.now.tally.messages
        """Messages before the open delta."""

    @property
    def at_rest(self) -> bool:
        """Whether the main agent has spoken in the open delta and nobody waits for a result."""
        return self._spoken and not self._waiting

    def take(self, record: LogRecord, size: int, *, ended: bool = True) -> None:
        """The next record. `size` is how many bytes further the log then goes; a record that no newline ends, or that
        is not the only object on its line, never cuts."""
        now, data = self.now, record.data
        if data is not None and is_cut_back(data):
            self._give_up_calls(agent_of(data))
        whole = data if ended and record.problem is None else None
        if whole is not None and now.offset > self._start and self._cuts_before(whole):
            self._close("turn_boundary")
            now = self.now
        start = now.offset
        now.offset += size
        if record.problem == BLANK:
            return
        now.first = now.first or _digits(record)
        now.records += 1
        self._records += 1
        events = events_of(data, record.raw) if data is not None else []
        before = now.tally.messages
        self._count(events)
        now.opaque += data is None or any(isinstance(event, Output) and event.why for event in events)
        if data is None:
            return
        if (instant := instant_of(data.get("timestamp"))) is not None:
            self._time = instant
        if now.records == 1:
            now.origin = origin_of(data, size)
        self._note(data, events)
        if now.main is not None and agent_of(data) not in ("", now.main) and is_told(data):
            now.inside += now.tally.messages - before
        if whole is not None and not self._waiting:
            self._cut_behind(whole, start)

    def _count(self, events: list[Event]) -> None:
        """Count what a line says, as of the record that it is of (`by_record`)."""
        now = self.now
        agent, name, so_far = (events[0].agent_id, events[0].message_id, NOTHING) if events else ("", "", NOTHING)
        if events and events[0].index and now.last:
            known = now.last.get(agent)
            if known is None or not goes_on(events[0], known[0]):
                agent = now.latest
            name, so_far = now.last[agent]
        else:
            now.latest = agent
        now.last[agent] = name, now.tally.record(events, so_far)

    def tail(self) -> Delta | None:
        """What follows the last cut; the delta that a grown log would continue."""
        return None if self.now.offset == self._start else self._delta("turn_boundary", closed=False)

    # -- the rule ---

    def _cuts_before(self, line: LogLine) -> bool:
        length = self.now.offset - self._start
        opens = self._opens(line)
        if not opens and length < SOFT:
            return False
        if not self._waiting or length >= HARD or (opens and is_cut_back(line)):
            return True
        self._refused += opens
        return self._refused > REFUSALS

    def _opens(self, line: LogLine) -> bool:
        """Whether the main agent begins something new."""
        if agent_of(line) != self.now.main or not self._spoken:
            return False
        if line.get("event_type") != ENTRY:
            # What is cut off or folded was there when the agent had spoken, and what stands again was not.
            return is_edit(line, "truncate", "compact", "restore")
        role = line.get("role")
        return role in ("user", "system") or (role == "assistant" and as_id(line.get("message_id")) != self._message)

    def _cut_behind(self, line: LogLine, start: int) -> None:
        if agent_of(line) != self.now.main:
            return
        kind = line.get("event_type")
        if kind == "agent_terminated":
            self._close("session_end")
        elif is_edit(line, "compact"):
            self._close("compaction")
            closed = self.closed[-1]
            repeated = msgspec.structs.replace(closed, start=start, commit_type="compaction", records=1, messages=1)
            self.closed.append(repeated)

    # -- what is remembered ---

    def _note(self, line: LogLine, events: list[Event]) -> None:
        now = self.now
        kind, agent = line.get("event_type"), agent_of(line)
        now.main = main_agent(line) if now.main is None else now.main
        if agent and agent != now.main and is_told(line) and agent not in now.agents:
            now.agents.append(agent)
        if kind == "agent_created":
            self._note_agent(line, agent)
        elif kind == ENTRY:
            self._note_entry(line, agent, events)

    def _note_agent(self, line: LogLine, agent: str) -> None:
        name = line.get("name")
        if agent == self.now.main and isinstance(name, str) and name != agent and not self.now.title:
            self.now.title = excerpt(clean(name))
        if agent not in self.now.calls and (place := self._call_that_made(line)) is not None:
            self._given.add(place)
            self.now.calls[agent] = as_id(self._made[place[0]][place[1]].get("id")) or ""
            maker = as_id(line.get("parent")) or self._said_by[place[0]]
            if maker in self.now.agents and maker != agent:
                self.now.makers[agent] = maker

    def _call_that_made(self, line: LogLine) -> tuple[str, int] | None:
        """Among the calls of the messages that caused an agent: the one that its creation names, one that names it
        rather than one that does not, one that has made no other agent rather than one that has, and the first of
        those."""
        cause, name, attributes = line.get("cause"), line.get("name"), line.get("attributes")
        named = as_id(attributes.get("call_id")) if isinstance(attributes, dict) else None
        messages = [as_id(item) or "" for item in (cause if isinstance(cause, list) else [cause])]
        places = [(message, at) for message in messages for at in range(len(self._made.get(message, ())))]
        return min(
            places,
            key=lambda place: (
                as_id((call := self._made[place[0]][place[1]]).get("id")) != named,
                _argument(call, "name") != name,
                place in self._given,
            ),
            default=None,
        )

    def _note_entry(self, line: LogLine, agent: str, events: list[Event]) -> None:
        role, main = line.get("role"), agent == self.now.main
        message_id = as_id(line.get("message_id")) or ""
        if main and not self.now.title:
            self.now.title = excerpt(clean(asked_first(events)))
        if role == "assistant":
            calls = line.get("tool_calls")
            made = [call for call in calls if is_call(call)] if isinstance(calls, list) else []
            self._made.setdefault(message_id, []).extend(made)
            self._said_by.setdefault(message_id, agent)
            self._waiting.update(((agent, as_id(call.get("id")) or ""), None) for call in made)
            if main:
                self._spoken, self._message = True, message_id
        elif role == "tool":
            self._waiting.pop((agent, as_id(line.get("tool_call_id")) or ""), None)
            if not self._waiting:
                self._refused = 0

    def _give_up_calls(self, agent: str) -> None:
        """Calls of this agent may never be answered: whoever made them goes on in another way."""
        self._waiting = {call: None for call in self._waiting if call[0] != agent}
        if not self._waiting:
            self._refused = 0

    def _close(self, checkpoint: str) -> None:
        self.closed.append(self._delta(checkpoint, closed=True))
        self.state = self.now.copy()
        self._begin()

    def _delta(self, checkpoint: str, *, closed: bool) -> Delta:
        return Delta(
            start=self._start,
            end=self.now.offset,
            checkpoint=checkpoint,
            time=self._time,
            closed=closed,
            records=self._records,
            # What was counted before the cut may turn out to be the words of a tool, which count nowhere.
            messages=max(self.now.tally.messages - self._said, 0),
        )

    def facts(self) -> FileFacts:
        """What there is to know, the tail included; the state is that of the last closed cut."""
        total, tail = self.now, self.tail()
        return FileFacts(
            runtime=RUNTIME,
            agents=tuple(total.agents),
            title=total.title,
            records=total.records,
            opaque=total.opaque,
            messages=total.tally.messages,
            inside=total.inside,
            tally=total.tally,
            calls=total.calls,
            makers=total.makers,
            origin=total.origin,
            side_chains=bool(total.agents),
            fingerprint=(total.first,) if total.first else (),
            deltas=(*self.closed, *([tail] if tail else [])),
            offset=self.state.offset,
            state=msgspec.json.encode(self.state),
        )


def _argument(call: LogLine, key: str) -> Any:
    try:
        value = orjson.loads(call["function"].get("arguments") or b"")
    except (orjson.JSONDecodeError, TypeError):
        return None
    return value.get(key) if isinstance(value, dict) else None


def origin_of(line: LogLine, size: int) -> Origin | None:
    """What a log that Harken began says in its first line: the creation of the agent that goes on."""
    attributes = line.get("attributes") if line.get("event_type") == "agent_created" else None
    return read_origin(attributes.get(ORIGIN), size) if isinstance(attributes, dict) and ORIGIN in attributes else None


def agent_of(line: LogLine) -> str:
    """Whose line it is; empty where it names nobody."""
    return as_id(line.get("agent_id")) or ""


def is_edit(line: LogLine, *actions: str) -> bool:
    """Whether a line edits a transcript in one of these ways."""
    return line.get("event_type") == "transcript_edit" and line.get("action") in actions


def is_cut_back(line: LogLine) -> bool:
    """Whether a line cuts off the end of a transcript."""
    return is_edit(line, "truncate")


def main_agent(line: LogLine) -> str | None:
    """The agent a line makes the main one, where there is none yet."""
    return agent_of(line) if line.get("event_type") in ("agent_created", ENTRY) else None


def is_told(line: LogLine) -> bool:
    """Whether a line belongs to its agent's own chain: everything but text that is in nobody's transcript."""
    kind = line.get("event_type")
    return isinstance(kind, str) and kind not in ("piece_of_text", "recovery")


def scan(data: bytes, state: bytes = b"") -> FileFacts:
    """The facts of a log, or of what was added since `state`: `data` then begins at the last closed cut."""
    scanner = LogScanner(state)
    feed(scanner, data)
    return scanner.facts()


def feed(scanner: LogScanner, data: bytes) -> None:
    """Give a scanner the lines of some bytes."""
    for record, text, ended in told_records(data):
        scanner.take(record, len(text), ended=ended)


def told_records(data: bytes) -> Iterator[tuple[LogRecord, bytes, bool]]:
    """The records in the bytes, the bytes from the end of the one before to the end of its line, and whether a newline
    ends it."""
    found = list(read_records((data,)))
    # A record that begins its line begins where the line does: a byte order mark before it belongs to it.
    starts = [
        record.offset if record.line == before.line else data.rfind(b"\n", 0, record.offset) + 1
        for before, record in pairwise(found)
    ]
    ends = [*starts, len(data)] if found else []
    at = 0
    for record, end in zip(found, ends, strict=True):
        yield record, data[at:end], end < len(data) or data.endswith(b"\n")
        at = end


def first_digits(data: bytes) -> str:
    """What a session's name takes from the first line of its log that is not blank; empty while there is none."""
    return next((_digits(record) for record in read_records((data,)) if record.problem != BLANK), "")


def _digits(record: LogRecord) -> str:
    return ids.artifact_id(record.raw)[:DIGITS]
