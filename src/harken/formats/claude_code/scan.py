"""One pass over a file for the importer: whose it is, cuts, counts, usage, links. No events are made.

Every line is decoded once, by the typed decoder of `records.py`; this is what the speed of an import rests on. The
records of the open delta wait until it closes and are counted then, so that a tail, which is read again when the file
has grown, is never in the state and never counts twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from harken.clock import parse_instant
from harken.events.base import clean, folder, named
from harken.events.places import TOOL_RESULT
from harken.events.tally import BOUNDARY, RequestUsage, Tally
from harken.formats.base import Delta
from harken.formats.facts import ORIGIN, FileFacts, Origin, prompt_name, read_origin
from harken.formats.kit.anthropic import CALL, HUMAN, RESPONSE, RESULT, SAYS, says
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import is_overlong, lines, parse, read_head, take_apart

from .cut import CutState, Splitter
from .read import API_ERROR, RECORDS, TASK_TOOLS, asked
from .records import (
    CONVERSATION,
    GRAPH,
    SIDE,
    BlockFacts,
    ClaudeRecord,
    ToolUseResult,
    UsageFields,
    by_text,
    classify,
    cost_so_far,
    is_known,
    real,
    soften,
    take,
    texts,
)

TITLES = {"summary": (1, "summary"), "ai-title": (2, "aiTitle"), "custom-title": (3, "customTitle")}
"""A title somebody chose stands over one that was made up, and that over a summary; the last one wins."""
TITLE_LENGTH = 200
RUNTIME = "claude-code"
SUMMARY = "compact_summary"
TEXT = BlockFacts(type="text")
"""What a message is whose content is plain text."""
FINGERPRINT = 64
"""How many uuids are handed out for finding copies; a fork shares its first ones with the original."""


class ClaudeCounts(msgspec.Struct):
    """What a stretch of records adds up to, besides its tally."""

    records: int = 0
    opaque: int = 0
    session_id: str = ""
    title: str = ""
    title_rank: int = 0
    boundary: str = ""
    """The name of the record before, where that is a compaction's boundary."""
    summarized: list[str] = []
    """Boundaries whose summary has been taken from a `summary` record; one of its own may still follow."""
    side: bool = False
    """Whether a conversation record on a side chain has been seen."""
    inside: int = 0
    """Messages on side chains."""
    uuids: list[str] = []
    """The names of the first records."""
    agents: list[str] = []
    told: str = ""
    """The name of the first prompt on a side chain."""
    project: str = ""


class ClaudeScanState(msgspec.Struct):
    """Where a scan can go on: everything up to the last closed cut. JSON text through `msgspec.json`."""

    cut: CutState = msgspec.field(default_factory=CutState)
    counts: ClaudeCounts = msgspec.field(default_factory=ClaudeCounts)
    tally: Tally = msgspec.field(default_factory=Tally)


def scan(data: bytes, state: bytes = b"") -> FileFacts:
    """The facts of a file, or of what was added since `state`: `data` then begins at the last closed cut."""
    scanner = _ClaudeScanner(msgspec.json.decode(state, type=ClaudeScanState) if state else ClaudeScanState())
    for start, end in lines(data):
        if is_overlong(end - start):
            scanner.take_overlong(end - start)
        else:
            scanner.take(data[start:end])
    return scanner.facts()


class _ClaudeScanner:
    def __init__(self, state: ClaudeScanState) -> None:
        self.splitter = Splitter(state.cut)
        self.counts = state.counts
        self.tally = state.tally
        self.waiting: list[tuple[ClaudeRecord | None, int | None, bytes]] = []
        """The records of the open delta: what each is, when it was, and its text; None for what nobody can read."""
        self.deltas: list[Delta] = []
        self.calls: dict[str, str] = {}
        self.asks: dict[str, str] = {}
        self.origin: Origin | None = None

    def take(self, text: bytes) -> None:
        line = take(text)
        if line is None:
            self._take_broken(text)
            return
        instant = parse_instant(line.timestamp) if line.timestamp is not None else None
        whole = line if text.endswith(b"\n") else None
        deltas = self.splitter.feed(whole, len(text), time=instant)
        if deltas:
            # What closed before the line is without it, what closed behind it holds it.
            before = [delta for delta in deltas if delta.end < self.splitter.offset]
            if before:
                self._close(before)
            self.waiting.append((line, instant, text))
            if len(before) < len(deltas):
                self._close(deltas[len(before) :])
        else:
            self.waiting.append((line, instant, text))

    def facts(self) -> FileFacts:
        # Encoded before the tail is counted: the state is that of the last closed cut.
        state = msgspec.json.encode(ClaudeScanState(self.splitter.state, self.counts, self.tally.without_requests()))
        total, tail = self.counts, self.splitter.tail()
        if tail is not None:
            self._close([tail])
        return FileFacts(
            runtime=RUNTIME,
            session=total.session_id,
            agents=tuple(total.agents),
            title=total.title,
            project=total.project,
            records=total.records,
            opaque=total.opaque,
            messages=self.tally.messages,
            inside=total.inside if self.splitter.main else 0,
            tally=self.tally,
            calls=self.calls,
            asks=self.asks,
            told=total.told,
            origin=self.origin if self.origin and self.origin.session == total.session_id else None,
            sidechain=total.side and not self.splitter.main,
            side_chains=total.side and self.splitter.main,
            fingerprint=tuple(total.uuids),
            deltas=tuple(self.deltas),
            offset=self.splitter.state.offset,
            state=state,
        )

    def _take_broken(self, text: bytes) -> None:
        """A line that is not one object: it never cuts, but what can be recovered from it counts."""
        found, rest = take_apart(text, 0, len(text))
        for value, first, last in found:
            record = soften(value)
            self.waiting.append((record, parse_instant(record.timestamp), text[first:last]))
        if rest is not None:
            self.waiting.append((None, None, b""))
        self.splitter.feed(None, len(text), records=len(found) + (rest is not None))

    def take_overlong(self, size: int) -> None:
        """A line that is kept as bytes and not looked at."""
        self.waiting.append((None, None, b""))
        self.splitter.feed(None, size)

    def _close(self, deltas: Sequence[Delta]) -> None:
        counts, tally = self.counts, self.tally
        before = tally.messages
        for line, _, text in self.waiting:
            counts.records += 1
            counts.opaque += line is None or not is_known(line)
            if line is not None:
                self._note(line, text)
        instants = [instant for _, instant, _ in self.waiting if instant is not None]
        for instant in (min(instants), max(instants)) if instants else ():
            tally.at(instant)
        self.waiting.clear()
        # Of what closed together, the first is what was said, and a compaction repeats the summary.
        said = tally.messages - before
        self.deltas += [msgspec.structs.replace(d, messages=said if d.commit_type == "delta" else 1) for d in deltas]

    def _note(self, line: ClaudeRecord, text: bytes) -> None:
        now = self.counts
        if line.uuid is not None and len(now.uuids) < FINGERPRINT:
            now.uuids.append(line.uuid)
        if not now.session_id and line.sessionId:
            now.session_id = named(line.sessionId)
        if not now.project and b'"cwd"' in text:
            now.project = folder(_load(text))
        if line.agentId is not None and line.agentId and line.agentId not in now.agents:
            now.agents.append(line.agentId)
        kind, boundary, now.boundary, before = line.type, now.boundary, "", self.tally.messages
        if kind == "assistant":
            self._note_assistant(line, text)
        elif kind == "user":
            self._note_user(line, text)
        elif kind == "progress":
            self._note_progress(line)
        elif kind == "system":
            self._note_system(line)
        elif kind in TITLES:
            rank, field = TITLES[kind]
            if (title := getattr(line, field)) and rank >= now.title_rank:
                now.title, now.title_rank = title, rank
            if kind == "summary" and boundary:
                now.summarized.append(boundary)
                self.tally.prompt(SUMMARY)
        elif kind == "harken-origin" and now.records == 1:
            self.origin = read_origin(_load(text).get(ORIGIN), len(text))
        elif kind == "cost-state":
            if (cost := cost_so_far(_load(text))) is not None:
                self.tally.run(None, cost)
        elif kind == "result" or (
            kind == "attachment" and line.attachment is not None and line.attachment.type == "queued_command"
        ):
            # Seldom enough to have the reader say what it is.
            self.tally.record(list(RECORDS[kind](_load(text), b"")))
        if line.isSidechain is True:
            now.side = now.side or kind in CONVERSATION
            now.inside += self.tally.messages - before if line.agentId or line.uuid else 0

    def _note_assistant(self, line: ClaudeRecord, text: bytes) -> None:
        body, tally = line.message, self.tally
        if body is None or body.content is None:
            return
        failed, result = line.isApiErrorMessage is True, False
        for block in (TEXT,) if isinstance(body.content, str) else body.content:
            said = SAYS[block.type] if block.type in SAYS else says(block.type)
            if said == CALL:
                tally.call(block.name or "")
                if block.name in TASK_TOOLS:
                    self.asks.update(asked(_load(text)))
            elif said == RESPONSE:
                if failed:
                    tally.errors += 1
                else:
                    tally.response(body.model or "")
            elif said == RESULT:
                result = True
        if result:
            tally.prompt(TOOL_RESULT)
        count_usage(tally, line)

    def _note_user(self, line: ClaudeRecord, text: bytes) -> None:
        if line.isCompactSummary is True and line.parentUuid in self.counts.summarized:
            # The boundary has a summary of its own after all; what stood behind it was a title.
            self.counts.summarized.remove(line.parentUuid)
            self.tally.prompt(SUMMARY, -1)
        results = [block.tool_use_id for block in line.blocks() if block.type == TOOL_RESULT]
        if not results:
            record = _load(text)
            if (place := classify(record)) is not None:
                if line.isSidechain is True and not self.counts.told:
                    self.counts.told = prompt_name("\n".join(texts(record["message"]["content"])))
                self.tally.prompt(place)
                self._entitle(record, place)
            return
        self.tally.prompt(TOOL_RESULT)
        if isinstance(line.toolUseResult, ToolUseResult) and line.toolUseResult.agentId:
            for call in filter(None, results):
                self.calls.setdefault(line.toolUseResult.agentId, call)  # later ones send the agent back to work

    def _entitle(self, record: dict[str, Any], place: str) -> None:
        """Call a session that nobody gave a title after its first request; a sub-agent's is its parent's text."""
        if self.counts.title or (place != HUMAN and record.get("isSidechain") is not True):
            return
        said = texts(record["message"]["content"])
        asked = next((text for text in said if by_text(text) == HUMAN), "")
        self.counts.title = " ".join(clean(asked[: TITLE_LENGTH * 4]).split())[:TITLE_LENGTH]

    def _note_system(self, line: ClaudeRecord) -> None:
        if line.subtype == BOUNDARY:
            self.tally.compactions += 1
            self.counts.boundary = line.uuid or "?"
        elif line.subtype == API_ERROR:
            self.tally.errors += 1

    def _note_progress(self, line: ClaudeRecord) -> None:
        count_nested(self.tally, line)
        if line.data is not None and line.data.agentId and line.parentToolUseID:
            self.calls.setdefault(line.data.agentId, line.parentToolUseID)


def _load(text: bytes) -> dict[str, Any]:
    return parse(text) or {}


# -- usage: a response is written over several lines which all repeat it, forks copy them, and progress records embed
# those of a sub-agent; so a request is named by the API's message id and its own, a message without one by its record


def count_usage(tally: Tally, line: ClaudeRecord) -> None:
    """Count what an assistant record says."""
    if (body := line.message) is None:
        return
    fields = body.usage
    if fields is None or (line.isUnmetered is True and not any(msgspec.structs.astuple(fields))):
        fields = _old_fields(line)
    if fields is None and line.costUSD is None:
        return
    # Most lines only repeat what the first line of their message said.
    known = tally.requests.get(f"{body.id} {line.requestId or ''}") if body.id else None
    if known is not None and not known.nested and (known.output or 0) >= (fields.output_tokens or 0 if fields else 0):
        return
    tally.request(
        body.id or line.uuid or "", line.requestId or "", _usage(fields or UsageFields(), body.model, line.costUSD)
    )


def count_nested(tally: Tally, line: ClaudeRecord) -> None:
    """Count what a progress record embeds of another agent's message."""
    inner = line.data.message if line.data is not None else None
    body = inner.message if inner is not None and not isinstance(inner, str) else None
    if inner is None or isinstance(inner, str) or body is None or body.usage is None or not body.id:
        return
    tally.request(body.id, inner.requestId or "", _usage(body.usage, body.model, None, nested=True))


def _usage(fields: UsageFields, model: str | None, cost: float | None, *, nested: bool = False) -> RequestUsage:
    used = fields.input_tokens, fields.output_tokens, fields.cache_read_input_tokens, fields.cache_creation_input_tokens
    return RequestUsage(*used, model or "", None if cost is None else real(cost), nested)


def _old_fields(line: ClaudeRecord) -> UsageFields | None:
    """Early builds are said to have written the figures beside the message."""
    if line.inputTokens is None and line.outputTokens is None:
        return None
    return UsageFields(line.inputTokens, line.outputTokens, line.cacheReadInputTokens, line.cacheCreationInputTokens)


# -- whether a file is Claude Code's: by what it writes in every record, not by one telling word. A record of its tree
# has always had `parentUuid` and `isSidechain`, and a message whose content is Anthropic's. Relatives borrow half of
# that: Qwen Code has the same names but Gemini's `parts`, the stream has `session_id`.

SURE = 95
_OTHERS = ("provenance", "systemPayload", "usageMetadata", "projectHash")
"""Fields of relatives that Claude Code never writes."""
_HOME = "/.claude/projects/"

CLAIMED_BY = ("parentUuid", "uuid", "sessionId", "leafUuid", "messageId")
"""A record without any of these keys is no reason to claim a file."""


def claim(head: bytes, path: str = "") -> Claim:
    """How sure it is, and by which record."""
    home, found = _HOME in path.replace("\\", "/"), NO_CLAIM
    for number, record in enumerate(read_head(head), 1):
        if _is_others(record):
            return NO_CLAIM
        score, reason = _judge(record, home)
        if score > found.score:
            found = Claim(score=score, reason=f"record {number} {reason}")
        if score >= SURE:
            break
    return found


def _is_others(record: dict[str, Any]) -> bool:
    body = record.get("message")
    return any(name in record for name in _OTHERS) or (isinstance(body, dict) and "parts" in body)


def _judge(record: dict[str, Any], home: bool) -> tuple[int, str]:
    body = record.get("message")
    role = body.get("role") if isinstance(body, dict) else None
    # An answer and an attachment are written before the type; a cut may lie between.
    kind = record.get("type", "attachment" if "attachment" in record else role)
    if not isinstance(kind, str):
        return 0, ""
    speaks = kind not in CONVERSATION or role == kind
    if kind in GRAPH and "parentUuid" in record and isinstance(record.get("isSidechain"), bool) and speaks:
        return SURE, f"is a `{kind}` record with `parentUuid` and `isSidechain`"
    content = body.get("content") if isinstance(body, dict) else None
    linked = "parentUuid" in record or isinstance(record.get("sessionId"), str)
    if kind in CONVERSATION and isinstance(record.get("uuid"), str) and linked and isinstance(content, str | list):
        return 75, f"is a `{kind}` record with a uuid and Anthropic's message"
    named = any(isinstance(record.get(name), str) for name in ("sessionId", "leafUuid", "messageId"))
    if kind in SIDE and named:
        return 70, f"is a `{kind}` record, which no other runtime writes"
    if home and isinstance(record.get("sessionId"), str):
        return 55, "names a session and lies where Claude Code keeps them"
    return 0, ""
