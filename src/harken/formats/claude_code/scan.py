"""One pass over a file for the importer: cuts, counts, usage, links. No events are made.

Every line is decoded once, by the typed decoder of `records.py`; this is what the speed of an import rests on. The
records of the open delta wait until it closes and are counted then, so that a tail, which is read again when the file
has grown, is never in the state and never counts twice.
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
        self.tally = state.tally
        self.waiting: list[tuple[Line | None, int | None, bytes]] = []
        """The records of the open delta: what each is, when it was, and its text; None for what nobody can read."""
        self.deltas: list[Delta] = []
        self.book = UsageBook()
        self.calls: dict[str, str] = {}

    def take(self, text: bytes) -> None:
        line = take(text)
        if line is None:
            self._take_broken(text)
            return
        instant = parse_instant(line.timestamp) if line.timestamp is not None else None
        whole = line if text.endswith(b"\n") else None
        deltas = self.splitter.feed(whole, len(text), time=instant)
        if not deltas:
            self.waiting.append((line, instant, text))
        elif deltas[-1].end == self.splitter.offset:
            # It closed behind the line, which therefore belongs to what was closed.
            self.waiting.append((line, instant, text))
            self._close(deltas)
        else:
            self._close(deltas)
            self.waiting.append((line, instant, text))

    def facts(self) -> FileFacts:
        # Encoded before the tail is counted: the state is that of the last closed cut.
        state = msgspec.json.encode(ScanState(self.splitter.state, self.tally))
        total, tail = self.tally, self.splitter.tail()
        if tail is not None:
            self._close([tail])
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
        for value, first, last in found:
            record = soften(value)
            self.waiting.append((record, parse_instant(record.timestamp), text[first:last]))
        if rest := text[end:].strip():
            self.waiting.append((None, None, rest))
        self.splitter.feed(None, len(text), records=len(found) + bool(rest))

    def _close(self, deltas: list[Delta]) -> None:
        tally = self.tally
        for delta in deltas:
            if delta.commit_type == "delta":
                tally.messages += delta.messages
            else:
                tally.compactions += 1
        for line, instant, text in self.waiting:
            tally.records += 1
            if line is None or not is_known(line):
                tally.opaque += 1
            if line is not None:
                if instant is not None:
                    if tally.ended is None or instant > tally.ended:
                        tally.ended = instant
                    if tally.started is None or instant < tally.started:
                        tally.started = instant
                self._note(line, text)
        self.waiting.clear()
        self.deltas += deltas

    def _note(self, line: Line, text: bytes) -> None:
        now = self.tally
        if line.uuid is not None and len(now.uuids) < FINGERPRINT:
            now.uuids.append(line.uuid)
        if not now.session_id and line.sessionId:
            now.session_id = line.sessionId
        if line.agentId is not None and line.agentId and line.agentId not in now.agents:
            now.agents.append(line.agentId)
        kind = line.type
        if kind == "assistant":
            self._note_assistant(line)
        elif kind == "user":
            if is_known(line):
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
            self.tally.side = True
        self.book.add_record(line, line.uuid or f"#{self.tally.records}")
        for block in line.blocks():
            if block.type == "tool_use" and block.name:
                self.tally.tools[block.name] = self.tally.tools.get(block.name, 0) + 1

    def _note_user(self, line: Line, text: bytes) -> None:
        if line.isSidechain is True:
            self.tally.side = True
        results = [block.tool_use_id for block in line.blocks() if block.type == TOOL_RESULT]
        self._count_prompt(TOOL_RESULT if results else classify(_load(text)))
        if isinstance(line.toolUseResult, Answer) and line.toolUseResult.agentId:
            for call in filter(None, results):
                self.calls[line.toolUseResult.agentId] = call

    def _count_prompt(self, kind: str) -> None:
        name = TOOL_RESULT if kind == TOOL_RESULT else "injected" if kind else "human"
        self.tally.prompts[name] = self.tally.prompts.get(name, 0) + 1

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
