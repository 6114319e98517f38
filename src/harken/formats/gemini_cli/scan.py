"""One pass over a session file for the importer: cuts, counts, usage, links. Every line is parsed once; what it says is
counted from the same events that a reader gets, so the two cannot come to different numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from harken.events import Event, Output, ToolResult
from harken.events.base import clean, named
from harken.events.places import TOOL_RESULT
from harken.events.records import by_record
from harken.events.tally import RequestUsage, Tally
from harken.formats.base import Delta
from harken.formats.facts import ORIGIN, FileFacts, prompt_name, read_origin
from harken.formats.kit.jsonl import SHORT, Placed, Record, refusal
from harken.formats.kit.scanning import LineScanner, remembered

from . import quick
from .cut import RULE, MessageCutter
from .messages import AGENT, call_id, calls_of, origin_of, plain_id, thought_text
from .read import ASIDE, BOUNDARY, PROMPT, RESULT, SAID, MessageTeller, odd_events
from .records import HEADER, LIST, MESSAGE, MODEL, TOUCHED, iter_lines, kind_of, messages_in, text_of, words_of

RUNTIME = "gemini-cli"
NAMES = 16
"""How many record names are handed out for finding copies."""
TITLE = 200
SPAWN = "invoke_agent"
"""The tool that starts a sub-agent."""
_FOLDER = re.compile(r"Workspace Directories:\*\*\n\s*- (.+)|working in the directory: (.+)")


class GeminiCounts(msgspec.Struct, omit_defaults=True):
    """What is known of a file up to a cut; the next scan goes on from it."""

    rule: str = RULE
    offset: int = 0
    session: str = ""
    agent: bool = False
    title: str = ""
    """What was asked first."""
    summary: str = ""
    """What the program calls the session, once it has made up its mind."""
    project: str = ""
    records: int = 0
    opaque: int = 0
    told: str = ""
    tally: Tally = msgspec.field(default_factory=Tally)
    names: list[str] = []

    def copy(self) -> GeminiCounts:
        """The same counts, which may then go their own way."""
        return msgspec.structs.replace(self, tally=self.tally.without_requests(), names=list(self.names))


def scan(data: bytes, state: bytes = b"") -> FileFacts:
    """The facts of a file, or of what was added since `state`: `data` begins at that state's offset."""
    return _GeminiScanner(remembered(state, GeminiCounts)).run(data)


def split(data: bytes) -> list[Delta]:
    """Every delta of the file, the tail last; compactions stand behind the delta whose last line they repeat."""
    return list(scan(data).deltas)


class _GeminiScanner(LineScanner[GeminiCounts, MessageCutter]):
    def __init__(self, counts: GeminiCounts) -> None:
        super().__init__(counts, MessageCutter(counts.offset))
        self.teller = MessageTeller()
        self.teller.agent = counts.agent
        self.said: list[Event] = []
        """What the present message says; the next line may go on with it."""
        self.counted = False
        """Whether an answer of a tool was counted for the present message, where that was done quickly."""

    def _line(self, line: bytes, record: Record, start: int, end: int) -> None:
        cutter, teller, whole = self.cutter, self.teller, line[-1] == 10
        act = teller.look(record, kind_of(record))
        again = act in (PROMPT, SAID) and teller.is_again(record, act)
        if whole and not again and (delta := cutter.before(start, act)):
            self._close((delta,))
        cutter.add(start, end, act, record)
        self.now.records += 1
        self._note(record, act, end - start)
        self._say(teller.tell(record, act, "@"))
        if act == BOUNDARY and whole:
            self._close(cutter.after(start, end))

    # -- the usual lines, of which no event is made ----------------------------------------------------------------

    def _quickly(self, line: bytes, start: int, end: int) -> bool:
        now = self.now
        if line[-1] != 10:
            return False
        if touched := TOUCHED.fullmatch(line):
            self.cutter.touch(end, touched[1])
            now.records += 1
            return True
        if not now.title or len(now.names) < NAMES or (len(line) > SHORT and refusal(line)):
            return False
        if line.startswith(b'{"$'):
            if self.teller.is_first or not now.project or (record := quick.listed(line)) is None:
                return False
            if self.teller.look(record, LIST) == BOUNDARY:
                return False  # all of what it puts in place of the conversation is told
            self._line(line, record, start, end)
            return True
        if (found := quick.message(line)) is None:
            return False
        if found.type == MODEL:
            return self._quick_model(found, start, end)
        if (answers := quick.results(found)) is not None:
            return self._quick_results(found, answers, start, end)
        return self._quick_prompt(found, start, end)

    def _quick_model(self, found: quick.QuickMessage, start: int, end: int) -> bool:
        text = quick.words(found)
        again = found.id == self.teller.told.id
        if text is None or (again and self.said):
            return False
        calls: list[tuple[str, quick.QuickCall, bool]] = []
        for call in found.toolCalls:
            name = plain_id(call.id, call.name)
            if not name or (call.name == SPAWN and quick.errand(call) is None):
                return False
            calls.append((name, call, quick.is_answered(call)))
        if not again and (delta := self.cutter.before(start, SAID)):
            self._close((delta,))
        self.cutter.put(start, end, SAID, found.timestamp, calls=[(name, done) for name, _, done in calls])
        self.now.records += 1
        for name, call, _ in calls:
            if agent := named(call.agentId):
                self.calls.setdefault(agent, name)
            if call.name == SPAWN:
                self.asks[name] = prompt_name(quick.errand(call) or "")
        self.teller.begin(SAID, found.id)
        if self._count_said(found, text, calls):
            self._note_time(found.timestamp)
        return True

    def _count_said(self, found: quick.QuickMessage, text: str, calls: list[tuple[str, quick.QuickCall, bool]]) -> bool:
        """Count what is new in a message, and say whether anything is."""
        told, tally = self.teller.told, self.now.tally
        before = told.count
        if not before:
            self._settle_said()
            self.counted = False
        if found.thoughts:
            thoughts = list(filter(None, map(thought_text, found.thoughts)))
            told.count += sum(told.thoughts[at : at + 1] != [thought] for at, thought in enumerate(thoughts))
            told.thoughts = thoughts or told.thoughts
        if text and told.texts[:1] != [text]:
            told.texts[:1] = [text]
            told.count += 1
            tally.response(found.model)
        for name, call, _ in calls:
            if name not in told.calls:
                told.calls.add(name)
                told.count += 1
                tally.call(call.name)
        if found.tokens is not None and (figures := msgspec.structs.astuple(found.tokens)) != told.tokens:
            told.tokens = figures
            told.count += 1
            tally.request(found.id, "", _usage(found.tokens, found.model))
        for name, _, answered in calls:
            if answered and name not in told.answered:
                told.answered.add(name)
                told.count += 1
                if not self.counted:
                    tally.prompt(TOOL_RESULT)
                self.counted = True
        return told.count > before

    def _quick_results(self, found: quick.QuickMessage, answers: list[tuple[str, str]], start: int, end: int) -> bool:
        """Answers that were told with their calls, as nearly all are."""
        names = [plain_id(call, name) for call, name in answers]
        if not names or not all(name and name in self.teller.told.answered for name in names):
            return False
        self.cutter.put(start, end, RESULT, found.timestamp, answers=names)
        self.now.records += 1
        self.teller.begin(RESULT, found.id)
        return True

    def _quick_prompt(self, found: quick.QuickMessage, start: int, end: int) -> bool:
        text = quick.typed_words(found)
        if text is None or (self.now.agent and not self.now.told):
            return False
        again = self.teller.is_present(found.id, PROMPT)
        if not again and (delta := self.cutter.before(start, PROMPT)):
            self._close((delta,))
        self.cutter.put(start, end, PROMPT, found.timestamp)
        self.now.records += 1
        self.teller.begin(PROMPT, found.id)
        if not again:
            self._settle_said()
            self.now.tally.prompt(origin_of(text) or (AGENT if self.teller.agent else ""))
            self._note_time(found.timestamp)
        return True

    # -- everything else -------------------------------------------------------------------------------------------

    def _note(self, record: Record, act: str, size: int) -> None:
        """What else a line tells than what was said: names, folders, agents."""
        now = self.now
        if act == SAID:
            self._note_calls(record)
        if act in (PROMPT, RESULT, SAID) and len(now.names) < NAMES:
            now.names.append(clean(record["id"]))
        if act == PROMPT:
            if not now.title:
                self._entitle(record)
            if now.agent and not now.told:
                now.told = prompt_name(words_of(record.get("content")))
        elif act == HEADER:
            self._note_header(record, size)
        elif act in (LIST, BOUNDARY):
            self._note_list(messages_in(record["$set"]["messages"]))
        elif act == ASIDE and isinstance(change := record.get("$set"), dict):
            now.summary = _line_of(text_of(change.get("summary"))) or now.summary
            now.project = now.project or _first_folder(change)

    def _note_header(self, record: Record, size: int) -> None:
        now = self.now
        if not now.session:
            if now.records == 1 and ORIGIN in record:
                self.origin = read_origin(record[ORIGIN], size)
            now.session = named(record["sessionId"])
        now.agent = now.agent or record.get("kind") == "subagent"
        now.summary = _line_of(text_of(record.get("summary"))) or now.summary
        now.project = now.project or _first_folder(record)
        self._note_list(messages_in(record.get("messages")))

    def _note_list(self, messages: list[Record]) -> None:
        if self.now.project and self.now.title:
            return
        for message in messages:
            if message.get("type") == "user":
                words = words_of(message.get("content"))
                if not self.now.project and (found := _FOLDER.search(words[:4000])):
                    self.now.project = clean((found[1] or found[2]).strip().rstrip("."))
                if not self.now.title:
                    self._entitle(message)

    def _note_calls(self, message: Record) -> None:
        for place, call in enumerate(calls_of(message)):
            name = call_id(message, call, place)
            if agent := named(text_of(call.get("agentId"))):
                self.calls.setdefault(agent, name)
            asked = call.get("args")
            if call.get("name") == SPAWN and isinstance(asked, dict):
                self.asks[name] = prompt_name(text_of(asked.get("prompt")))

    def _entitle(self, message: Record) -> None:
        """A session is called after the first thing that somebody typed."""
        shown = words_of(message.get("displayContent")) if message.get("displayContent") else ""
        text = shown or words_of(message.get("content"))
        if not origin_of(text):
            self.now.title = _line_of(text)

    def _say(self, events: list[Event]) -> None:
        """Count what was said; a repetition goes on with the record that it repeats."""
        if events and not events[0].index:
            self._settle_said()
        elif events and not self.said and self.counted:
            # The record began with lines that were counted quickly, an answer among them.
            events = [event for event in events if not isinstance(event, ToolResult)]
        self.said += events

    def _settle_said(self) -> None:
        """Count the messages that are over."""
        if self.said:
            for record in by_record(self.said):
                self.now.tally.record(record)
                self.now.opaque += any(isinstance(event, Output) and bool(event.why) for event in record)
            self.said = []

    def _settle(self) -> None:
        self._settle_said()
        self._settle_times()

    def _broken(self, start: int, end: int, line: bytes, objects: list[Placed], *, unread: bool) -> None:
        self.cutter.unread(end)
        for record, _, _ in objects:
            self._say(odd_events(record, "@"))
        self.now.records += len(objects) + unread
        if unread:
            self._say([Output(why="unread")])

    def _facts(self) -> FileFacts:
        self._settle()
        now = self.now
        return FileFacts(
            runtime=RUNTIME,
            session=now.session,
            origin=self._signed(),
            title=(now.title if now.agent else "") or now.summary or now.title,
            project=now.project,
            records=now.records,
            opaque=now.opaque,
            messages=now.tally.messages,
            tally=now.tally,
            calls=self.calls,
            asks=self.asks,
            told=now.told,
            sidechain=now.agent,
            fingerprint=tuple(now.names),
            deltas=tuple(self.deltas),
            offset=self.closed.offset,
            state=msgspec.json.encode(self.closed),
        )


def _usage(tokens: quick.QuickTokens, model: str) -> RequestUsage:
    """As `usage_of` counts: what came from the cache is no part of the input, what was thought is one of the output."""
    inclusive = tokens.input + tokens.output + tokens.tool == tokens.total
    made = tokens.output if inclusive else tokens.output + tokens.thoughts
    return RequestUsage(max(0, tokens.input - tokens.cached) + tokens.tool, made, tokens.cached, None, model)


def _line_of(text: str) -> str:
    return " ".join(clean(text[: TITLE * 10]).split())[:TITLE]


def _first_folder(record: Record) -> str:
    folders = record.get("directories")
    first = folders[0] if isinstance(folders, list) and folders else None
    return clean(first) if isinstance(first, str) else ""


def record_names(data: bytes) -> Iterator[str]:
    """The ids of the messages in some bytes, which a copy under another session shares."""
    for line in iter_lines(data):
        if line.record is not None and kind_of(line.record) == MESSAGE:
            yield clean(line.record["id"])
