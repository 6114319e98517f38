"""One pass over a file for the importer: cuts, counts, usage, links. No events are made.

Every line is decoded once, by the typed decoder of `records.py`; this is what the speed of an import rests on. What
was counted since the last cut is kept apart until the delta closes, so that a tail, which is read again when the file
has grown, never counts twice.
"""

from __future__ import annotations

import msgspec
import orjson

from harken.clock import parse_instant
from harken.formats.base import Delta
from harken.formats.facts import FileFacts

from .classify import TOOL_RESULT, by_fields, classify
from .cut import CutState, Splitter
from .records import Answer, Line, lines, read_objects, soften, take
from .types import is_known
from .usage import UsageBook, tokens_of

TITLES = {"summary": (1, "summary"), "ai-title": (2, "aiTitle"), "custom-title": (3, "customTitle")}
"""A title somebody chose stands over one that was made up, and that over a summary; the last one wins."""
RUNTIME = "claude-code"
FINGERPRINT = 64
"""How many uuids are handed out for finding copies; a fork shares its first ones with the original."""


class Tally(msgspec.Struct):
    """What a stretch of records adds up to."""

    records: int = 0
    opaque: int = 0
    messages: int = 0
    compactions: int = 0
    session_id: str = ""
    title: str = ""
    title_rank: int = 0
    started: int | None = None
    ended: int | None = None
    side: bool = False
    """Whether a conversation record on a side chain has been seen."""
    uuids: list[str] = []
    """The names of the first records."""
    agents: list[str] = []
    prompts: dict[str, int] = {}
    tools: dict[str, int] = {}

    def add(self, other: Tally) -> None:
        """Take in what came behind."""
        self.records += other.records
        self.opaque += other.opaque
        self.messages += other.messages
        self.compactions += other.compactions
        self.session_id = self.session_id or other.session_id
        if other.title_rank and other.title_rank >= self.title_rank:
            self.title, self.title_rank = other.title, other.title_rank
        self.started = min((t for t in (self.started, other.started) if t is not None), default=None)
        self.ended = max((t for t in (self.ended, other.ended) if t is not None), default=None)
        self.side = self.side or other.side
        self.uuids += other.uuids[: FINGERPRINT - len(self.uuids)]
        self.agents += [agent for agent in other.agents if agent not in self.agents]
        for mine, theirs in ((self.prompts, other.prompts), (self.tools, other.tools)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count


class ScanState(msgspec.Struct):
    """Where a scan can go on: everything up to the last closed cut. JSON text through `msgspec.json`."""

    cut: CutState = msgspec.field(default_factory=CutState)
    tally: Tally = msgspec.field(default_factory=Tally)


def scan(data: bytes, state: bytes = b"") -> FileFacts:
    """The facts of a file, or of what was added since `state`: `data` then begins at the last closed cut."""
    scanner = _Scanner(msgspec.json.decode(state, type=ScanState) if state else ScanState())
    for start, end in lines(data):
        scanner.take(data[start:end])
    return scanner.facts()


class _Scanner:
    def __init__(self, state: ScanState) -> None:
        self.splitter = Splitter(state.cut)
        self.closed = state.tally
        self.open = Tally()
        self.deltas: list[Delta] = []
        self.book = UsageBook()
        self.calls: dict[str, str] = {}

    def take(self, text: bytes) -> None:
        line = take(text)
        if line is None:
            self._take_broken(text)
            return
        instant = parse_instant(line.timestamp) if line.timestamp is not None else None
        whole = text.endswith(b"\n")
        deltas = self.splitter.feed(line if whole else None, len(text), time=instant)
        if not deltas:
            self._note(line, instant, text)
        elif deltas[-1].end == self.splitter.offset:
            # It closed behind the line, which therefore belongs to what was closed.
            self._note(line, instant, text)
            self._close(deltas)
        else:
            self._close(deltas)
            self._note(line, instant, text)

    def facts(self) -> FileFacts:
        # Encoded before the tail is added: the state is that of the last closed cut.
        state = msgspec.json.encode(ScanState(self.splitter.state, self.closed))
        total, tail = self.closed, self.splitter.tail()
        if tail is not None:
            self.deltas.append(tail)
            self.open.messages = tail.messages
        total.add(self.open)
        return FileFacts(
            runtime=RUNTIME,
            session=total.session_id,
            agents=tuple(total.agents),
            title=total.title,
            started=total.started,
            ended=total.ended,
            records=total.records,
            opaque=total.opaque,
            messages=total.messages,
            compactions=total.compactions,
            prompts=total.prompts,
            tools=total.tools,
            usage={f"{message} {request}": tokens_of(row) for (message, request), row in self.book.rows().items()},
            calls=self.calls,
            sidechain=total.side and not self.splitter.main,
            side_chains=total.side and self.splitter.main,
            fingerprint=tuple(total.uuids),
            deltas=tuple(self.deltas),
            offset=self.splitter.state.offset,
            state=state,
        )

    def _take_broken(self, text: bytes) -> None:
        """A line that is not one object: it never cuts, but what can be recovered from it counts."""
        if not text.strip():
            self.splitter.feed(None, len(text), records=0)
            return
        found, end = read_objects(text)
        rest = bool(text[end:].strip())
        for value, first, last in found:
            record = soften(value)
            self._note(record, parse_instant(record.timestamp), text[first:last])
        self.open.records += rest
        self.open.opaque += rest
        self.splitter.feed(None, len(text), records=len(found) + rest)

    def _close(self, deltas: list[Delta]) -> None:
        for delta in deltas:
            if delta.commit_type == "delta":
                self.open.messages += delta.messages
            else:
                self.open.compactions += 1
        self.closed.add(self.open)
        self.open = Tally()
        self.deltas += deltas

    def _note(self, line: Line, instant: int | None, text: bytes) -> None:
        now = self.open
        now.records += 1
        known = is_known(line)
        if not known:
            now.opaque += 1
        if instant is not None:
            if now.ended is None or instant > now.ended:
                now.ended = instant
            if now.started is None or instant < now.started:
                now.started = instant
        if line.uuid is not None and len(now.uuids) < FINGERPRINT:
            now.uuids.append(line.uuid)
        if line.sessionId and not now.session_id:
            now.session_id = line.sessionId
        if line.agentId and line.agentId not in now.agents:
            now.agents.append(line.agentId)
        kind = line.type
        if kind == "assistant":
            self._note_assistant(line)
        elif kind == "user":
            if known:
                self._note_user(line, text)
        elif kind == "progress":
            self._note_progress(line)
        elif kind in TITLES:
            rank, field = TITLES[kind]
            if (title := getattr(line, field)) and rank >= now.title_rank:
                now.title, now.title_rank = title, rank
        elif kind == "attachment" and line.attachment is not None and line.attachment.type == "queued_command":
            self._count_prompt(_queued_kind(text))

    def _note_assistant(self, line: Line) -> None:
        if line.isSidechain is True:
            self.open.side = True
        self.book.add_record(line, line.uuid or f"@{self.splitter.offset}")
        for block in line.blocks():
            if block.type == "tool_use" and block.name:
                self.open.tools[block.name] = self.open.tools.get(block.name, 0) + 1

    def _note_user(self, line: Line, text: bytes) -> None:
        if line.isSidechain is True:
            self.open.side = True
        results = [block.tool_use_id for block in line.blocks() if block.type == TOOL_RESULT]
        self._count_prompt(TOOL_RESULT if results else classify(_load(text)))
        if isinstance(line.toolUseResult, Answer) and line.toolUseResult.agentId:
            for call in filter(None, results):
                self.calls[line.toolUseResult.agentId] = call

    def _count_prompt(self, kind: str) -> None:
        name = TOOL_RESULT if kind == TOOL_RESULT else "injected" if kind else "human"
        self.open.prompts[name] = self.open.prompts.get(name, 0) + 1

    def _note_progress(self, line: Line) -> None:
        self.book.add_nested(line)
        if line.data is not None and line.data.agentId and line.parentToolUseID:
            self.calls.setdefault(line.data.agentId, line.parentToolUseID)


def _load(text: bytes) -> dict[str, object]:
    try:
        value: dict[str, object] = orjson.loads(text)
        return value
    except orjson.JSONDecodeError:
        objects, _ = read_objects(text)
        return objects[0][0] if objects else {}


def _queued_kind(text: bytes) -> str:
    """A person's, where it was typed while the agent was at work; else a notice."""
    data = _load(text).get("attachment")
    if not isinstance(data, dict):
        return "queued"
    fixed = by_fields(data)
    if fixed is not None:
        return fixed
    return "" if data.get("commandMode") in (None, "prompt") else "queued"
