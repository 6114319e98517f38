"""One pass over a file for the importer: cuts, counts, usage, links. No events are made.

Every line is decoded once, by the typed decoder of `records.py`; this is what the speed of an import rests on.
"""

from __future__ import annotations

import msgspec

from harken.clock import parse_instant
from harken.formats.base import Delta
from harken.formats.facts import FileFacts

from .cut import CutState, Splitter
from .records import Answer, Line, lines, read_objects, soften, take
from .types import is_known
from .usage import UsageBook, tokens_of

TITLES = {"summary": (1, "summary"), "ai-title": (2, "aiTitle"), "custom-title": (3, "customTitle")}
RUNTIME = "claude-code"
FINGERPRINT = 64
"""How many uuids are handed out for finding copies; a fork shares its first ones with the original."""


class ScanState(msgspec.Struct):
    """Where a scan can go on: everything up to the last closed cut. JSON text through `msgspec.json`."""

    cut: CutState = msgspec.field(default_factory=CutState)
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
    agents: list[str] = []

    @property
    def offset(self) -> int:
        """How many bytes of the file are behind the last closed cut; `scan` wants the bytes from there on."""
        return self.cut.offset


def scan(data: bytes, state: bytes = b"") -> FileFacts:
    """The facts of a file, or of what was added since `state`: `data` then begins at the last closed cut."""
    scanner = _Scanner(msgspec.json.decode(state, type=ScanState) if state else ScanState())
    for start, end in lines(data):
        scanner.take(data[start:end])
    return scanner.facts()


class _Scanner:
    def __init__(self, state: ScanState) -> None:
        self.now = msgspec.structs.replace(state, uuids=list(state.uuids), agents=list(state.agents))
        self.splitter = Splitter(state.cut)
        self.closed = self._snapshot()
        self.deltas: list[Delta] = []
        self.book = UsageBook()
        self.calls: dict[str, str] = {}

    def take(self, text: bytes) -> None:
        line = take(text)
        whole = text.endswith(b"\n")
        if line is None:
            self._take_broken(text)
            return
        instant = parse_instant(line.timestamp) if line.timestamp is not None else None
        if deltas := self.splitter.feed(line if whole else None, len(text), time=instant):
            self._close(deltas, line, instant)
        else:
            self._note(line, instant)

    def facts(self) -> FileFacts:
        tail = self.splitter.tail()
        if tail is not None:
            self.deltas.append(tail)
        self.now.messages = self.closed.messages + (tail.messages if tail else 0)
        now = self.now
        return FileFacts(
            runtime=RUNTIME,
            session=now.session_id,
            agents=tuple(now.agents),
            title=now.title,
            started=now.started,
            ended=now.ended,
            records=now.records,
            opaque=now.opaque,
            messages=now.messages,
            compactions=now.compactions,
            usage={f"{message} {request}": tokens_of(row) for (message, request), row in self.book.rows().items()},
            calls=self.calls,
            sidechain=now.side and not self.splitter.main,
            side_chains=now.side and self.splitter.main,
            fingerprint=tuple(now.uuids),
            deltas=tuple(self.deltas),
            offset=self.closed.offset,
            state=msgspec.json.encode(self.closed),
        )

    def _take_broken(self, text: bytes) -> None:
        """A line that is not one object: it never cuts, but what can be recovered from it counts."""
        if not text.strip():
            self.splitter.feed(None, len(text), records=0)
            return
        found, end = read_objects(text)
        rest = bool(text[end:].strip())
        for value, _, _ in found:
            record = soften(value)
            self._note(record, parse_instant(record.timestamp))
        self.now.records += rest
        self.now.opaque += rest
        self.splitter.feed(None, len(text), records=len(found) + rest)

    def _close(self, deltas: list[Delta], line: Line, instant: int | None) -> None:
        """The line closed something: before itself (it belongs to the next delta), or behind itself."""
        behind = deltas[-1].end == self.splitter.offset
        for delta in deltas:
            if delta.commit_type == "delta":
                self.now.messages += delta.messages
            else:
                self.now.compactions += 1
        if behind:
            self._note(line, instant)
        self.closed = self._snapshot()
        if not behind:
            self._note(line, instant)
        self.deltas += deltas

    def _snapshot(self) -> ScanState:
        now = self.now
        return msgspec.structs.replace(now, cut=self.splitter.state, uuids=list(now.uuids), agents=list(now.agents))

    def _note(self, line: Line, instant: int | None) -> None:
        now = self.now
        now.records += 1
        if not is_known(line):
            now.opaque += 1
        if instant is not None:
            now.ended = instant if now.ended is None else max(now.ended, instant)
            now.started = instant if now.started is None else min(now.started, instant)
        if line.uuid is not None and len(now.uuids) < FINGERPRINT:
            now.uuids.append(line.uuid)
        if not now.session_id and line.sessionId:
            now.session_id = line.sessionId
        if line.agentId and line.agentId not in now.agents:
            now.agents.append(line.agentId)
        if line.type == "assistant":
            now.side = now.side or line.isSidechain is True
            self.book.add_record(line, line.uuid or f"@{self.splitter.offset}")
        elif line.type == "user":
            now.side = now.side or line.isSidechain is True
            if isinstance(line.toolUseResult, Answer) and line.toolUseResult.agentId:
                self._link(line, line.toolUseResult.agentId)
        elif line.type == "progress":
            self._note_progress(line)
        elif line.type in TITLES:
            self._entitle(line)

    def _link(self, line: Line, agent_id: str) -> None:
        for block in line.blocks():
            if block.type == "tool_result" and block.tool_use_id:
                self.calls[agent_id] = block.tool_use_id

    def _note_progress(self, line: Line) -> None:
        self.book.add_nested(line)
        if line.data is not None and line.data.agentId and line.parentToolUseID:
            self.calls.setdefault(line.data.agentId, line.parentToolUseID)

    def _entitle(self, line: Line) -> None:
        """A title somebody chose stands over one that was made up, and that over a summary; the last one wins."""
        rank, field = TITLES[line.type or ""]
        title = getattr(line, field)
        if title and rank >= self.now.title_rank:
            self.now.title, self.now.title_rank = title, rank
