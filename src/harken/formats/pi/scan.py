"""One pass over a session for the importer: cuts, counts, usage, links. No event is made, every line is parsed once."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import msgspec

from harken.events.base import clean, folder, named
from harken.events.places import ATTACHED, TOOL_RESULT
from harken.events.tally import Tally
from harken.formats.base import Delta
from harken.formats.facts import ORIGIN, FileFacts, read_origin
from harken.formats.kit.jsonl import Placed, Record
from harken.formats.kit.scanning import LineScanner, remembered

from .copies import TELLING, copy_name
from .cut import BOUNDARY, RULE, PiCutter, act_of
from .read import SHELL_ORIGIN, extension_of
from .records import (
    ASSISTANT,
    BRANCH_SUMMARY,
    COMPACTION,
    CUSTOM_MESSAGE,
    EXTENSION,
    INFO,
    MESSAGE,
    RESULT,
    SESSION,
    SHELL,
    SPOKEN,
    SUMMARIES,
    USAGE,
    USER,
    is_mirror,
    is_spawned,
    text_of,
    time_of,
    unread_in,
    why_unknown,
    words_of,
)
from .usage import request_of

RUNTIME = "pi"
NAMES = 16
"""How many names of entries are handed out for finding copies."""
_TITLE = 200
_FILES = re.compile(r"<file name=\"[^\"]*\">.*?</file>\s*", re.DOTALL)
"""Files that were given along with a prompt stand before it."""
_FILE_NAME = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z_(.+)|([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


class PiCounts(msgspec.Struct):
    """What is known of a file up to a cut; the next scan goes on from it. JSON text through `msgspec.json`."""

    rule: str = RULE
    offset: int = 0
    session: str = ""
    forked_from: str = ""
    name: str = ""
    """The name that somebody gave the session."""
    opening: str = ""
    """The beginning of the first prompt of a person."""
    project: str = ""
    """The folder that was worked in, as the header says."""
    begun: bool = False
    """Whether the header has been read."""
    records: int = 0
    opaque: int = 0
    tally: Tally = msgspec.field(default_factory=Tally)
    names: list[str] = []

    def copy(self) -> PiCounts:
        """The same counts, which may then go their own way."""
        return msgspec.structs.replace(self, tally=self.tally.without_requests(), names=list(self.names))


def scan(data: bytes, state: bytes = b"") -> FileFacts:
    """The facts of a file, or of what was added since `state`: `data` begins at that state's offset."""
    return _PiScanner(remembered(state, PiCounts)).run(data)


def split(data: bytes) -> list[Delta]:
    """Every delta of the file, the tail last; compactions stand behind the delta whose last line they repeat."""
    return list(scan(data).deltas)


class _PiScanner(LineScanner[PiCounts, PiCutter]):
    """The records of the open delta wait until it closes and are counted then, so that a tail, which is read again when
    the file has grown, is never in the state and never counts twice."""

    def __init__(self, counts: PiCounts) -> None:
        super().__init__(counts, PiCutter(counts.offset))
        self.waiting: list[tuple[Record | None, int]] = []
        """The records of the open delta and their sizes; None for what nobody can read."""

    def _line(self, line: bytes, record: Record, start: int, end: int) -> None:
        cutter, act, whole = self.cutter, act_of(record), line[-1] == 10
        if whole and (delta := cutter.before(start, act)):
            self._close((delta,))
        cutter.add(start, end, act, record)
        self.waiting.append((record, end - start))
        if act == BOUNDARY and whole:
            self._close(cutter.after(start, end))

    def _broken(self, start: int, end: int, line: bytes, objects: list[Placed], *, unread: bool) -> None:
        self.cutter.unread(end)
        self.waiting += [(record, last - first) for record, first, last in objects]
        if unread:
            self.waiting.append((None, end - start))

    def _close(self, deltas: tuple[Delta, ...]) -> None:
        """Hand out deltas; what waited is in the first of them."""
        now = self.now
        said = now.tally.messages
        for record, size in self.waiting:
            now.records += 1
            if record is None:
                now.opaque += 1
            else:
                self._note(record, size)
        self.waiting.clear()
        self.deltas += [msgspec.structs.replace(deltas[0], messages=now.tally.messages - said), *deltas[1:]]

    def _end(self) -> FileFacts:
        # The state is made before the tail is counted.
        self._settle_times()
        self.now.offset = self.cutter.start
        self.closed = self.now.copy()
        if tail := self.cutter.tail():
            self._close((tail,))
        return self._facts()

    # -- counting: what the reader's events would add up to -----------------------------------------------------------

    def _note(self, record: Record, size: int) -> None:
        now, kind = self.now, record.get("type")
        if isinstance(stamp := record.get("timestamp"), str):
            self._note_time(stamp)
        elif (at := time_of(record)) is not None:
            now.tally.at(at)
        message = record.get("message")
        if kind == MESSAGE and isinstance(message, dict):
            self._note_message(record, message)
        elif kind == SESSION:
            self._note_header(record, size)
        else:
            self._note_entry(record, kind)
        if len(now.names) < NAMES and isinstance(kind, str) and kind in TELLING:
            now.names.append(copy_name(record))

    def _note_message(self, record: Record, message: Record) -> None:
        tally, role = self.now.tally, text_of(message.get("role"))
        if role == ASSISTANT:
            self._note_answer(record, message)
        elif role == RESULT:
            tally.prompt(TOOL_RESULT)
            self.now.opaque += bool(unread_in(message.get("content")))
            self._note_request(record, message, nested=True)
            self._note_spawned(message)
        elif role == USER:
            content = message.get("content")
            self.now.opaque += bool(unread_in(content))
            if is_spawned(content):
                tally.prompt("agent")
            else:
                tally.prompt("")
                if not self.now.opening:
                    self.now.opening = _opening(words_of(content))
        elif role == SHELL:
            if message.get("excludeFromContext") is not True:
                tally.prompt(SHELL_ORIGIN)
        elif role in EXTENSION:
            self._note_extension(message)
        elif role in SUMMARIES:
            tally.prompt(SUMMARIES[role])
        elif why_unknown(record):
            self.now.opaque += 1

    def _note_answer(self, record: Record, message: Record) -> None:
        if is_mirror(message):
            return
        tally, content = self.now.tally, message.get("content")
        model = clean(text_of(message.get("model")))
        if isinstance(content, str):
            tally.response(model)
        unknown = not isinstance(content, str | list | None)
        for block in content if isinstance(content, list) else ():
            kind = block.get("type") if isinstance(block, dict) else None
            if kind in SPOKEN and not isinstance(block.get(kind), str | None):
                unknown = True
            elif kind == "text":
                tally.response(model)
            elif kind == "toolCall":
                tally.call(clean(text_of(block.get("name"))))
            elif kind != "thinking":
                unknown = True
        self.now.opaque += unknown
        tally.errors += message.get("stopReason") == "error"
        self._note_request(record, message)

    def _note_entry(self, record: Record, kind: object) -> None:
        now, tally = self.now, self.now.tally
        if kind == COMPACTION:
            tally.compactions += 1
            self._note_request(record, record)
        elif kind == CUSTOM_MESSAGE:
            self._note_extension(record)
        elif kind == BRANCH_SUMMARY:
            if text_of(record.get("summary")):
                tally.prompt(BRANCH_SUMMARY)
            self._note_request(record, record)
        elif kind == USAGE:
            self._note_request(record, record)
        elif kind == INFO:
            now.name = " ".join(text_of(record.get("name"))[: 4 * _TITLE].split())[:_TITLE]
        elif why_unknown(record):
            now.opaque += 1

    def _note_extension(self, message: Record) -> None:
        self.now.opaque += bool(unread_in(message.get("content")))
        if not (origin := extension_of(message)).startswith(ATTACHED):
            self.now.tally.prompt(origin)

    def _note_request(self, record: Record, message: Record, *, nested: bool = False) -> None:
        if "usage" in message and (found := request_of(record, message, nested=nested)) is not None:
            (api_id, request_id), usage = found
            self.now.tally.request(api_id, request_id, usage)

    def _note_spawned(self, message: Record) -> None:
        """The sub-agent that a result of OpenClaw's names: the last part of its key."""
        details = message.get("details")
        key = details.get("childSessionKey") if isinstance(details, dict) else None
        if isinstance(key, str) and (agent := named(key.rpartition(":")[2])):
            self.calls.setdefault(agent, clean(text_of(message.get("toolCallId"))))

    def _note_header(self, header: Record, size: int) -> None:
        now = self.now
        if now.begun:
            return
        now.begun = True
        if now.records == 1 and ORIGIN in header:
            self.origin = read_origin(header[ORIGIN], size)
        now.session = named(text_of(header.get("id")))
        now.project = folder(header)
        now.forked_from = named(session_in(text_of(header.get("parentSession"))))

    # -- the whole ----------------------------------------------------------------------------------------------------

    def _facts(self) -> FileFacts:
        self._settle_times()
        now = self.now
        return FileFacts(
            runtime=RUNTIME,
            session=now.session,
            forked_from=now.forked_from if now.forked_from != now.session else "",
            origin=self._signed(),
            title=now.name or now.opening,
            named=bool(now.name),
            project=now.project,
            records=now.records,
            opaque=now.opaque,
            messages=now.tally.messages,
            tally=now.tally,
            calls=self.calls,
            fingerprint=tuple(now.names),
            deltas=tuple(self.deltas),
            offset=now.offset,
            state=msgspec.json.encode(self.closed),
        )


def _opening(text: str) -> str:
    text = text[:100_000]
    words = _FILES.sub("", text) if text.startswith("<file ") else text
    return " ".join(clean(words or text).split())[:_TITLE]


def session_in(path: str) -> str:
    """The session whose file a header names as the one it was forked from, as far as the file's name tells."""
    stem = PurePosixPath(path.replace("\\", "/")).name.removesuffix(".jsonl")
    found = _FILE_NAME.fullmatch(stem)
    return (found[1] or found[2]) if found else ""
