"""A session file as events.

A message is told by the line that brings it, and what its repetitions add by these. A list (`$set` with `messages`)
puts the whole conversation in place of what it was. That is told in one of three ways, which depend on the line and on
the few before it, never on an earlier turn, so that a delta read alone says what it says in the file:

first      behind a header, nothing in between but other changes: its messages are told, nobody has told them before
summary    a compaction made it just then: `compact_boundary`, then what stands in place of the conversation
again      any other: a program that goes on repeats everything, in fewer words; that is one notice (`history`)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import force_setattr

from harken.clock import parse_instant
from harken.events import Event, Output, Prompt, Response, System
from harken.events.base import clean
from harken.formats.kit.jsonl import Record, encode, take_apart

from .messages import SUMMARY, Told, is_result, message_events, time_of
from .records import (
    HEADER,
    LIST,
    MESSAGE,
    MODEL,
    REWIND,
    USER,
    GeminiLine,
    iter_lines,
    kind_of,
    messages_in,
    summary_in,
    text_of,
)

PROMPT, RESULT, SAID, NOTE, BOUNDARY, ASIDE = "prompt", "result", "said", "note", "boundary", "aside"
"""What a line does to the conversation, beside `header`, `list` and `rewind`."""
_FIRST_OPINION = 4096
"""How much of a text is looked at to tell whether it is said again."""


class MessageTeller:
    """Goes from line to line: `look` says what a line does, then `tell` what it says."""

    def __init__(self) -> None:
        self.agent = False
        """Whether the file is a sub-agent's."""
        self.told = Told()
        self._prompt = ""
        """The id of the last prompt."""
        self._opening = self._resumed = False
        """Whether a header is all there was, other changes aside; and whether one of these named the session, as only
        a program does that goes on with it."""

    def look(self, record: Record, kind: str) -> str:
        """What the line does. It changes nothing."""
        if kind == MESSAGE:
            name = record.get("type")
            if name == MODEL:
                return SAID
            if name == USER:
                return RESULT if is_result(record) else PROMPT
            return NOTE
        if kind == LIST:
            return BOUNDARY if not self._opening and self._is_summary(record["$set"]) else LIST
        return kind if kind in (HEADER, REWIND) else ASIDE

    @staticmethod
    def _is_summary(change: Record) -> bool:
        made = parse_instant(change.get("lastUpdated"))
        return made is not None and summary_in(messages_in(change["messages"]), made) >= 0

    def is_again(self, record: Record, act: str) -> bool:
        """Whether a message was there just before: no cut parts the two."""
        return self.is_present(record["id"], act)

    def is_present(self, name: str, act: str) -> bool:
        """The same by its id."""
        return name == (self.told.id if act == SAID else self._prompt)

    @property
    def is_first(self) -> bool:
        """Whether a list would be told whole: nobody has told its messages."""
        return self._opening and not self._resumed

    def begin(self, act: str, name: str) -> None:
        """Another message begins, or the present one is written again."""
        self._opening = self._resumed = False
        if act == SAID and name != self.told.id:
            self.told, self._prompt = Told(name), ""
        elif act == PROMPT and name != self._prompt:
            self.told, self._prompt = Told(), name

    def pass_by(self, record: Record, kind: str) -> bool:
        """Go past a line without telling what it says; the answer is whether it would tell the messages of a list."""
        act = self.look(record, kind)
        if kind == LIST:
            return self._replace(act)
        if kind == HEADER:
            self._forget()
            self._opening = True
        elif kind == MESSAGE:
            self._opening = self._resumed = False
        elif kind == REWIND:
            self._forget()
        elif isinstance(change := record.get("$set"), dict):
            self._change(change)
        return kind == HEADER

    def tell(self, record: Record, act: str, place: str) -> list[Event]:
        """What the line says; `place` names a line that has no name."""
        if act in (PROMPT, RESULT, SAID, NOTE):
            return self._message(record, act)
        if act == HEADER:
            return self._header(record, place)
        if act in (LIST, BOUNDARY):
            return self._list(record["$set"], act, place)
        if act == REWIND:
            self._forget()
            return [System(subtype="rewind", message=clean(record["$rewindTo"]), message_id=place)]
        change = record.get("$set")
        if not isinstance(change, dict):
            return [Output(raw=encode(record), why="unknown record", message_id=place)]
        self._change(change)
        if title := clean(text_of(change.get("summary"))):
            return [System(subtype="title", message=title, message_id=place)]
        return []

    def _change(self, change: Record) -> None:
        self._resumed = self._resumed or (self._opening and isinstance(change.get("sessionId"), str))

    def _replace(self, act: str) -> bool:
        """All messages are replaced; the answer is whether those that take their place are told."""
        first = self.is_first
        self._forget()
        self._opening = first  # what comes next may still be the beginning
        return first or act == BOUNDARY

    def _forget(self) -> None:
        self.told, self._prompt, self._opening, self._resumed = Told(), "", False, False

    def _message(self, record: Record, act: str) -> list[Event]:
        name = record["id"]
        again = act == PROMPT and name == self._prompt
        self.begin(act, name)
        if again:
            return []
        begin = self.told.count if act == SAID else 0
        events = _numbered(message_events(record, self.told, agent=self.agent), clean(name), time_of(record), begin)
        if act == SAID:
            self.told.count += len(events)
        return events

    def _header(self, record: Record, place: str) -> list[Event]:
        self._forget()
        self._opening = True
        self.agent = self.agent or record.get("kind") == "subagent"
        about = {key: value for key, value in record.items() if key != "messages"}
        # Without a time: a file with nothing else (every resume makes one) must not pass for the newest of its session.
        init = System(subtype="init", metadata=encode(about), message_id=place)
        return [init, *self._all(messages_in(record.get("messages")), place, 1)]

    def _list(self, change: Record, act: str, place: str) -> list[Event]:
        messages = messages_in(change["messages"])
        told = self._replace(act)
        if act == BOUNDARY:
            made = parse_instant(change.get("lastUpdated"))
            boundary = System(subtype="compact_boundary", message_id=place, time=made)
            return [boundary, *self._all(messages, place, 1)]
        if told:
            return self._all(messages, place, 0)
        about = encode({"messages": len(messages)})
        return [System(subtype="history", metadata=about, message_id=place)]

    def _all(self, messages: list[Record], place: str, begin: int) -> list[Event]:
        """Every message of a list, as events of one record."""
        events: list[Event] = []
        told, summary = Told(), summary_in(messages)
        for number, message in enumerate(messages):
            if message.get("type") == MODEL:
                told = Told(message["id"])
            origin = SUMMARY if number == summary else ""
            said = list(message_events(message, told, agent=self.agent, origin=origin))
            # What the program tells of itself when it starts has no time, for the same reason as the header.
            time = None if _is_start(said) else time_of(message)
            events += _numbered(said, place, time, begin + len(events))
        return events


def _is_start(events: list[Event]) -> bool:
    return len(events) == 1 and isinstance(events[0], Prompt) and events[0].origin == "session_context"


def _numbered(events: Iterable[Event], message_id: str, time: int | None, begin: int) -> list[Event]:
    made = list(events)
    # Nobody has them yet: to make them anew would take three times as long.
    for number, event in enumerate(made, begin):
        force_setattr(event, "message_id", message_id)
        force_setattr(event, "time", time)
        if number:
            force_setattr(event, "index", number)
    return made


# -- a whole file ------------------------------------------------------------------------------------------------------


def read(data: bytes) -> list[Event]:
    """Every event of the file, in its order."""
    return list(iter_read(data))


def iter_read(data: bytes) -> Iterator[Event]:
    """The same one by one. What a compaction puts in place of the conversation names the message it repeats."""
    teller = MessageTeller()
    said: dict[tuple[str, str], str] = {}
    folded = ""
    for line in iter_lines(data, telling=True):
        for event in tell_line(teller, line, data):
            if type(event) is System:
                folded = event.message_id if event.subtype == "compact_boundary" else folded
            elif type(event) is Prompt or type(event) is Response:
                key = (event.kind, event.content[:_FIRST_OPINION])
                if not event.message_id.startswith("@"):
                    said[key] = event.message_id
                elif event.message_id == folded and key in said:
                    yield event.replace(substance=said[key])
                    continue
            yield event


def tell_line(teller: MessageTeller, line: GeminiLine, data: bytes) -> list[Event]:
    """What a line says. Of two objects on one line both are told, though the program passes over such a line."""
    start, end, record, blank = line
    if record is not None:
        return teller.tell(record, teller.look(record, kind_of(record)), f"@{start}")
    if blank:
        return []
    objects, rest = take_apart(data, start, end)
    events = [event for record, start, _ in objects for event in odd_events(record, f"@{start}")]
    return events if rest is None else [*events, Output(raw=rest.raw, why=rest.why, message_id=f"@{rest.start}")]


def odd_events(record: Record, place: str) -> list[Event]:
    """What an object says that shares its line with others: it is looked at by itself."""
    teller = MessageTeller()
    return teller.tell(record, teller.look(record, kind_of(record)), place)
