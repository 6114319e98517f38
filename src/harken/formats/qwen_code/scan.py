"""One pass over a file for the importer: whose it is, cuts, counts, usage, links. Events are made of few records alone:
those of seldom shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from harken.events import Metric, Output
from harken.events.base import clean, folder, named
from harken.events.places import TOOL_RESULT as ANSWERED
from harken.events.tally import RequestUsage, Tally
from harken.formats.base import Delta
from harken.formats.facts import ORIGIN, FileFacts, prompt_name, read_origin
from harken.formats.kit.jsonl import Placed, Record
from harken.formats.kit.scanning import LineScanner, remembered

from .cut import BOUNDARY, RULE, QwenCutter, act_of, may_cut
from .read import QwenReader, first_prompt
from .records import (
    ASSISTANT,
    HUMAN,
    SYSTEM,
    TELEMETRY,
    TITLE,
    TOOL_RESULT,
    USER,
    inner,
    iter_records,
    parts_of,
    place_of,
    stretches,
    text,
    typed_text,
)
from .usage import (
    FAILURE,
    QwenMeter,
    answer_metric,
    event_of,
    is_response,
    plain_tokens,
    telemetry_key,
    telemetry_metric,
)

RUNTIME = "qwen-code"
NAMES = 64
"""How many uuids are handed out for finding copies; a fork shares its first ones with the original."""
TITLE_LENGTH = 200
AGENT_TOOLS = ("agent", "task")
"""The tools that start a sub-agent; their argument `prompt` is the first that it hears."""


class QwenCounts(msgspec.Struct):
    """What is known of a file up to a cut; the next scan goes on from it. JSON text through `msgspec.json`."""

    rule: str = RULE
    offset: int = 0
    session: str = ""
    agent: str = ""
    forked_from: str = ""
    side: bool = False
    """Whether the first conversation record is a sub-agent's."""
    main: bool = False
    """Whether it is not."""
    told: str = ""
    """The name of a sub-agent's first prompt."""
    title: str = ""
    title_rank: int = 0
    """0 the first prompt, 1 made up by the program, 2 chosen by somebody."""
    project: str = ""
    records: int = 0
    opaque: int = 0
    tally: Tally = msgspec.field(default_factory=Tally)
    names: list[str] = []

    def copy(self) -> QwenCounts:
        """The same counts, which may then go their own way."""
        return msgspec.structs.replace(self, tally=self.tally.without_requests(), names=list(self.names))


def scan(data: bytes, state: bytes = b"") -> FileFacts:
    """The facts of a file, or of what was added since `state`: `data` begins at that state's offset."""
    return _QwenScanner(remembered(state, QwenCounts)).run(data)


def split(data: bytes) -> Sequence[Delta]:
    """Every delta of the file, the tail last; compactions stand behind the delta whose last line they repeat."""
    return scan(data).deltas


def record_names(data: bytes) -> Iterator[str]:
    """The names of the records in some bytes, which a copy under another session id shares."""
    return (name for each in iter_records(data) if (name := clean(text(each.record, "uuid"))))


class _QwenScanner(LineScanner[QwenCounts, QwenCutter]):
    def __init__(self, counts: QwenCounts) -> None:
        super().__init__(counts, QwenCutter(counts.offset))
        # Whatever waits at a cut is decided: the cutter sees to it.
        self.meter = QwenMeter()
        self.reader = QwenReader(self.meter)

    def _line(self, line: bytes, record: Record, start: int, end: int) -> None:
        cutter, act = self.cutter, act_of(record)
        whole = line[-1] == 10
        if whole and may_cut(act, bound=self.meter.waits) and (delta := cutter.before(start, act)):
            self._close((delta,))
        cutter.add(start, end, act, record)
        self._note(line, record, act)
        if act == BOUNDARY and whole:
            self._close(cutter.after(start, end))

    def _broken(self, start: int, end: int, line: bytes, objects: list[Placed], *, unread: bool) -> None:
        for record, first, last in objects:
            act = act_of(record)
            self.cutter.add(start, end, act, record)
            self._note(line[first:last], record, act)
        if unread:
            self.cutter.unread(end)
            self.now.records += 1
            self.now.opaque += 1

    # -- one record ----------------------------------------------------------------------------------------------------

    def _note(self, line: bytes, record: Record, act: str) -> None:
        now = self.now
        now.records += 1
        self._note_whose(line, record)
        kind = record.get("type")
        if kind == SYSTEM:
            self._note_system(line, record, act)
        elif kind == ASSISTANT and (said := _quickly(record)) is not None:
            calls, responses = said
            for call in calls:
                now.tally.call(name := clean(text(call, "name")))
                if name in AGENT_TOOLS:
                    self._note_ask(call)
            model = text(record, "model")
            for _ in range(responses):
                now.tally.response(model)
            if self.meter.answer(record):
                self._note_usage(answer_metric(record, clean(text(record, "uuid"))))
        elif kind == USER and _is_plain(record):
            self.meter.clear()
            self._note_prompt(record)
        elif kind == TOOL_RESULT and _is_result(record):
            self.meter.clear()
            now.tally.prompt(ANSWERED)
        else:
            self._note_slowly(line, record)

    def _note_whose(self, line: bytes, record: Record) -> None:
        now = self.now
        self._note_time(record.get("timestamp"))
        if now.records > NAMES and now.session and now.project:
            return  # whose it is was told by the first records
        if len(now.names) < NAMES and (uuid := text(record, "uuid")):
            now.names.append(clean(uuid))
        if not now.session:
            now.session = named(text(record, "sessionId"))
        if not now.project:
            now.project = folder(record)
        if "forkedFrom" in record and not now.forked_from:
            now.forked_from = named(text(inner(record, "forkedFrom"), "sessionId"))
        if not now.main and not now.side and record.get("type") in (USER, ASSISTANT, TOOL_RESULT, SYSTEM):
            now.side = record.get("isSidechain") is True
            now.main = not now.side
        if not now.agent and now.side:
            now.agent = named(text(record, "agentId"))
        if now.records == 1 and ORIGIN in record:
            self.origin = read_origin(record[ORIGIN], len(line))

    def _note_usage(self, metric: Metric | None) -> None:
        if metric is not None:
            self.now.tally.metric(metric)

    def _note_system(self, line: bytes, record: Record, act: str) -> None:
        now, subtype = self.now, record.get("subtype")
        if subtype == TELEMETRY:
            event = event_of(record)
            if is_response(event):
                if self.meter.response(event):
                    uuid = clean(text(record, "uuid"))
                    if (plain := plain_tokens(event)) is None:
                        self._note_usage(telemetry_metric(record, uuid))
                    else:
                        key, number, agent = telemetry_key(record, event, uuid)
                        usage = RequestUsage(*plain, None, clean(text(event, "model")), None, bool(agent))
                        now.tally.request(key, number, usage)
                return
            self.meter.age()
            now.tally.errors += event.get("event.name") == FAILURE
        elif act == BOUNDARY:
            self._note_slowly(line, record)
        else:
            self.meter.age()
            if subtype == TITLE:
                self._note_title(inner(record, "systemPayload"))

    def _note_title(self, payload: Record) -> None:
        now = self.now
        if title := " ".join(clean(text(payload, "customTitle")[: TITLE_LENGTH * 4]).split()):
            now.title = title[:TITLE_LENGTH]
            now.title_rank = 1 if payload.get("titleSource") == "auto" else 2

    def _note_prompt(self, record: Record) -> None:
        now = self.now
        kinds = [kind for kind, _ in stretches(parts_of(record) or [], place_of(record))]
        now.tally.prompt(HUMAN if HUMAN in kinds else kinds[0])
        self._entitle(record)

    def _entitle(self, record: Record) -> None:
        """Call a session after its first request; a sub-agent's is its parent's text."""
        now = self.now
        if now.side and not now.told:
            words = first_prompt(record)
            now.told = prompt_name(words) if words else ""
            now.title = now.title or _short(words)
        elif not now.title:
            now.title = _short(typed_text(record))

    def _note_ask(self, call: Record) -> None:
        name, prompt = clean(text(call, "id")), text(inner(call, "args"), "prompt")
        if name and prompt:
            self.asks[name] = prompt_name(clean(prompt))

    def _note_slowly(self, line: bytes, record: Record) -> None:
        """A record of a shape that is seldom seen: the reader says what it is."""
        events = self.reader.record(record, f"@{self.cutter.end}", line)
        self.now.tally.record(events)
        self.now.opaque += any(isinstance(event, Output) and bool(event.why) for event in events)
        if record.get("type") == USER:
            self._entitle(record)
        elif record.get("type") == ASSISTANT:
            for part in parts_of(record) or ():
                call = inner(part, "functionCall")
                if text(call, "name") in AGENT_TOOLS:
                    self._note_ask(call)

    # -- the whole -----------------------------------------------------------------------------------------------------

    def _facts(self) -> FileFacts:
        self._settle()
        now = self.now
        return FileFacts(
            runtime=RUNTIME,
            session=now.session,
            agents=(now.agent,) if now.agent else (),
            forked_from=now.forked_from if now.forked_from != now.session else "",
            origin=self._signed(),
            title=now.title,
            named=now.title_rank == 2,
            project=now.project,
            records=now.records,
            opaque=now.opaque,
            messages=now.tally.messages,
            tally=now.tally,
            asks=self.asks,
            told=now.told,
            sidechain=now.side,
            fingerprint=tuple(now.names),
            deltas=tuple(self.deltas),
            offset=self.closed.offset,
            state=msgspec.json.encode(self.closed),
        )


def _short(words: str) -> str:
    return " ".join(words[: TITLE_LENGTH * 4].split())[:TITLE_LENGTH]


# -- the shapes that nearly all records have ---------------------------------------------------------------------------

_SAID = frozenset({"text", "thought"})


def _quickly(record: Record) -> tuple[list[Record], int] | None:
    """The calls and the number of texts in an answer of the usual shape; None for any other."""
    calls: list[Record] = []
    responses = 0
    parts = parts_of(record)
    for part in parts if parts is not None else (None,):
        if not isinstance(part, dict):
            return None
        if "text" in part:
            if not isinstance(part["text"], str) or not part.keys() <= _SAID:
                return None
            responses += part.get("thought") is not True
        elif len(part) == 1 and isinstance(call := part.get("functionCall"), dict):
            calls.append(call)
        else:
            return None
    return calls, responses


def _is_plain(record: Record) -> bool:
    """Whether a prompt is nothing but words and pictures, and has some."""
    parts = parts_of(record)
    return bool(parts) and all(isinstance(part, dict) and _is_shown(part) for part in parts or ())


def _is_shown(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str) or isinstance(part.get("inlineData"), dict)


def _is_result(record: Record) -> bool:
    """Whether a record is the result of one call and nothing else."""
    parts = parts_of(record)
    return (
        parts is not None
        and len(parts) == 1
        and isinstance(parts[0], dict)
        and isinstance(parts[0].get("functionResponse"), dict)
    )
