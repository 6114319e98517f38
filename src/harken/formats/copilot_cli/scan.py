"""One pass over a session of Copilot CLI for the importer: cuts, counts, usage, links. Each line is parsed once."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from harken.events import Event
from harken.events.base import clean, folder, named
from harken.events.messages import asked_first
from harken.events.tally import Tally
from harken.formats.base import Delta
from harken.formats.facts import ORIGIN, FileFacts, prompt_name, read_origin
from harken.formats.kit.jsonl import Placed, Record
from harken.formats.kit.scanning import LineScanner, remembered

from .cut import BOUNDARY, RULE, CopilotCutter, act_of
from .read import QUIET, FoundRecord, SessionEvents
from .records import AGENT_STARTED, ANSWER, PROMPT, START, agent_of, content_of, iter_lines, kind_of, text_of

RUNTIME = "copilot-cli"
NAMES = 16
"""How many record names are handed out for finding copies."""
TITLE = 200
SPAWN = "task"
"""The tool that starts a sub-agent."""


class SessionState(msgspec.Struct, omit_defaults=True):
    """What is known of a file up to a cut; the next scan goes on from it. JSON text through `msgspec.json`."""

    rule: str = RULE
    offset: int = 0
    session: str = ""
    title: str = ""
    named: bool = False
    project: str = ""
    records: int = 0
    opaque: int = 0
    inside: int = 0
    main: bool = False
    """Whether a line is no sub-agent's; the lines of one alone have none, and are its own."""
    agents: dict[str, bool] = {}
    """Sub-agents with lines in the file: a set that is written down in the same order every time."""
    makers: dict[str, str] = {}
    callers: dict[str, str] = {}
    """Calls that start sub-agents, to the sub-agent that made the call."""
    tally: Tally = msgspec.field(default_factory=Tally)
    names: list[str] = []

    def copy(self) -> SessionState:
        """The same counts, which may then go their own way."""
        return msgspec.structs.replace(
            self,
            agents=dict(self.agents),
            makers=dict(self.makers),
            callers=dict(self.callers),
            tally=self.tally.without_requests(),
            names=list(self.names),
        )


def scan(data: bytes, state: bytes = b"") -> FileFacts:
    """The facts of a file, or of what was added since `state`: `data` begins at that state's offset."""
    return _SessionScanner(remembered(state, SessionState)).run(data)


def split(data: bytes) -> list[Delta]:
    """Every delta of the file, the tail last; compactions stand behind the delta whose last line they repeat."""
    return list(scan(data).deltas)


class _SessionScanner(LineScanner[SessionState, CopilotCutter]):
    def __init__(self, state: SessionState) -> None:
        super().__init__(state, CopilotCutter(state.offset))
        self.reader = SessionEvents()

    def _line(self, line: bytes, record: Record, start: int, end: int) -> None:
        act, whole = act_of(record), line[-1] == 10
        if whole and (delta := self.cutter.before(start, act)):
            self._close((delta,))
        self.cutter.add(start, end, act, record)
        self._note(FoundRecord(start, record, line), end - start)
        if act == BOUNDARY and whole:
            self._close(self.cutter.after(start, end))

    def _broken(self, start: int, end: int, line: bytes, objects: list[Placed], *, unread: bool) -> None:
        self.cutter.unread(end)
        for record, first, last in objects:
            self._note(FoundRecord(start + first, record, line[first:last]), last - first)
        self.now.records += unread
        self.now.opaque += unread

    def _note(self, found: FoundRecord, size: int) -> None:
        now, record = self.now, found.record
        now.records += 1
        kind, data, agent = kind_of(record), content_of(record), clean(agent_of(record))
        events: list[Event] = []
        if kind in QUIET and data:
            self._note_time(record.get("timestamp"))
        else:
            events = self._count(found, inside=bool(agent))
        if agent:
            now.agents[agent] = True
        else:
            now.main = True
        if kind == START and not agent:
            self._begun(data, size)
        elif kind == PROMPT and not (agent and self._has_main):
            self._entitle(events)
        elif kind == "session.title_changed" and (title := text_of(data.get("title"))):
            now.title, now.named = clean(title)[:TITLE], True
        elif kind == AGENT_STARTED and agent:
            self._started(agent, clean(text_of(data.get("toolCallId"))))
        elif kind == ANSWER:
            self._spawning(data, agent)
        if kind in (PROMPT, ANSWER) and len(now.names) < NAMES and isinstance(name := record.get("id"), str):
            now.names.append(name)

    def _count(self, found: FoundRecord, *, inside: bool) -> list[Event]:
        """What a record says is counted; `inside` is what a sub-agent's does."""
        now = self.now
        events, before = self.reader.events(found), now.tally.messages if inside else 0
        now.opaque += any(map(is_opaque, events))
        now.tally.record(events)
        now.inside += now.tally.messages - before if inside else 0
        return events

    @property
    def _has_main(self) -> bool:
        return self.now.main or bool(self.now.session)  # states of before say it by the session alone

    def _begun(self, data: Record, size: int) -> None:
        now = self.now
        around = data.get("context")
        now.project = now.project or folder(around if isinstance(around, dict) else {})
        if not now.session:
            now.session = named(text_of(data.get("sessionId")))
            if now.records == 1 and ORIGIN in data:
                self.origin = read_origin(data[ORIGIN], size)

    def _entitle(self, events: list[Event]) -> None:
        if not self.now.title:
            self.now.title = " ".join(asked_first(events)[:100_000].split())[:TITLE]

    def _spawning(self, data: Record, agent: str) -> None:
        asked = data.get("toolRequests")
        for call in asked if isinstance(asked, list) else ():
            if isinstance(call, dict) and call.get("name") == SPAWN:
                name, given = clean(text_of(call.get("toolCallId"))), call.get("arguments")
                self.asks[name] = prompt_name(text_of(given.get("prompt")) if isinstance(given, dict) else "")
                if agent:
                    self.now.callers[name] = agent

    def _started(self, agent: str, call: str) -> None:
        self.calls.setdefault(agent, call)
        if maker := self.now.callers.get(call):
            self.now.makers[agent] = maker

    def _facts(self) -> FileFacts:
        now = self.now
        return FileFacts(
            runtime=RUNTIME,
            session=now.session,
            agents=tuple(now.agents),
            origin=self._signed(),
            title=now.title,
            named=now.named,
            project=now.project,
            records=now.records,
            opaque=now.opaque,
            messages=now.tally.messages,
            inside=now.inside if self._has_main else 0,
            tally=now.tally,
            calls=self.calls,
            makers=dict(now.makers),
            asks=self.asks,
            side_chains=bool(now.agents),
            fingerprint=tuple(now.names),
            deltas=tuple(self.deltas),
            offset=self.closed.offset,
            state=msgspec.json.encode(self.closed),
        )


def is_opaque(event: Event) -> bool:
    """Whether nobody could read the record."""
    return bool(getattr(event, "why", ""))


def record_names(data: bytes) -> Iterator[str]:
    """The names of the records in a delta that a copy under another session id shares."""
    for line in iter_lines(data):
        if line.record is not None and kind_of(line.record) in (PROMPT, ANSWER):
            name = line.record.get("id")
            if isinstance(name, str):
                yield name


def side_chains(data: bytes) -> dict[str, bytes]:
    """The lines of each sub-agent in the file, verbatim and in order."""
    agents: dict[str, list[bytes]] = {}
    for line in iter_lines(data):
        if line.record is not None and (agent := agent_of(line.record)):
            agents.setdefault(clean(agent), []).append(data[line.start : line.end])
    return {agent: b"".join(found) for agent, found in agents.items()}
