"""The conversation as it stands: what Gemini CLI rebuilds from a file when it goes on with it.

The program keeps messages by their ids, in the order in which the ids first came. A message replaces the one of its id,
a list replaces everything, `$rewindTo` takes away that message and all behind it (all, where there is none of that id).

`context` keeps the lines that are still in force: from the last list on, but for messages that were taken back; before
it the header, the last summary, and the lines that first told the messages which the list repeats: their own, which say
more than the list does, or an earlier list.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harken.events import Event
from harken.events.base import clean
from harken.formats.kit.jsonl import Record

from .messages import SESSION_CONTEXT, SUMMARY, Told, message_events, origin_of, time_of
from .read import MessageTeller
from .records import (
    CHANGE,
    HEADER,
    LIST,
    MESSAGE,
    MODEL,
    REWIND,
    GeminiLine,
    iter_lines,
    kind_of,
    messages_in,
    summary_in,
    words_of,
)


class StandingMessage(NamedTuple):
    """A message that stands, and the line it came from."""

    line: int
    message: Record


class StandingMessages(NamedTuple):
    """What is left of the file: the messages by their ids, and the numbers of the lines that are still in force."""

    entries: dict[str, StandingMessage]
    lines: list[int]
    header: Record
    """What the headers and changes say, taken together."""
    places: dict[str, int]
    """Of messages that have no line of their own: the number of the line that told them."""


class _MessageReplay:
    def __init__(self, lines: list[GeminiLine]) -> None:
        self.entries: dict[str, StandingMessage] = {}
        self.header: Record = {}
        self.first: int | None = None
        """The first header."""
        self.summary: int | None = None
        """The last line that gives the session a name."""
        self.base = 0
        """Lines from here on are in force unless they are gone."""
        self.told: dict[str, list[int]] = {}
        """The lines of each message, before and behind the base."""
        self.listed: dict[str, tuple[int, ...]] = {}
        """For messages in lists, the line of the list that first told each, and of the header before it."""
        self.gone: set[int] = set()
        self.entangled = False
        """Whether part of a list was taken back: no selection of lines says that, so those behind it stay."""
        self._teller, self._begun = MessageTeller(), 0
        for number, line in enumerate(lines):
            if line.record is not None:
                self._take(number, line.record)

    def _take(self, number: int, record: Record) -> None:
        kind = kind_of(record)
        self._begun = number if kind == HEADER else self._begun
        if self._teller.pass_by(record, kind):
            listed = record["$set"] if kind == LIST else record
            for message in messages_in(listed.get("messages")):
                self.listed.setdefault(message["id"], (number, self._begun))
        if kind == MESSAGE:
            name = record["id"]
            self.entries[name] = StandingMessage(number, record)
            self.told.setdefault(name, []).append(number)
        elif kind == REWIND:
            self._rewind(number, record["$rewindTo"])
        elif kind in (LIST, CHANGE):
            change = record["$set"]
            self.header |= {key: value for key, value in change.items() if key != "messages"}
            if change.get("summary"):
                self.summary = number
            if kind == LIST:
                self._restart(number)
                self._put(number, change["messages"])
        elif kind == HEADER:
            self.first = number if self.first is None else self.first
            self.header |= {key: value for key, value in record.items() if key != "messages"}
            self._put(number, record.get("messages"))

    def _put(self, number: int, listed: object) -> None:
        for message in messages_in(listed):
            self.entries[message["id"]] = StandingMessage(number, message)

    def _restart(self, number: int) -> None:
        self.entries = {}
        self.base, self.gone, self.entangled = number, set(), False

    def _rewind(self, number: int, name: str) -> None:
        if name not in self.entries:
            self._restart(number + 1)
            self.told, self.listed = {}, {}
            return
        names = list(self.entries)
        taken = names[names.index(name) :]
        alone = all(self.entries[one].line >= self.base and self._is_line(one) for one in taken)
        for one in taken:
            del self.entries[one]
        if not alone:
            self.entangled = True
        elif not self.entangled:
            self.gone.add(number)
            for one in taken:
                self.gone.update(line for line in self.told.pop(one) if line >= self.base)

    def _is_line(self, name: str) -> bool:
        """Whether a message stands on lines of its own alone, none of which is older than the base, and in no list."""
        return self.entries[name].line in self.told.get(name, ()) and self.told[name][0] >= self.base

    def lines(self, count: int) -> list[int]:
        """The numbers of the lines that are in force, of a file of so many."""
        kept = {number for name in self.entries for number in self.told.get(name) or self.listed.get(name, ())}
        kept |= {number for number in (self.first, self.summary) if number is not None}
        rest = range(self.base, count)
        return sorted({*(number for number in kept if number < self.base), *rest} - self.gone)


def conversation(lines: list[GeminiLine]) -> StandingMessages:
    """The conversation of the file as it stands."""
    replay = _MessageReplay(lines)
    places = {
        name: replay.listed.get(name, (entry.line,))[0]
        for name, entry in replay.entries.items()
        if name not in replay.told
    }
    return StandingMessages(replay.entries, replay.lines(len(lines)), replay.header, places)


def context(data: bytes) -> bytes:
    """The verbatim lines of the conversation as it stands."""
    lines = list(iter_lines(data))
    alive = conversation(lines).lines
    if len(alive) == len(lines):
        return data
    return b"".join(data[lines[number].start : lines[number].end] for number in alive)


def read_conversation(data: bytes) -> Iterator[Event]:
    """The messages that stand, in the order in which the model hears them, each with all that any of its lines says.
    One that has no line of its own goes by the place of the list that told it."""
    lines = list(iter_lines(data))
    found = conversation(lines)
    richer = _richer(lines, found.entries)
    messages = [
        _beginning(name, lines, found) or _merged(entry.message, richer.get(name))
        for name, entry in found.entries.items()
    ]
    agent = found.header.get("kind") == "subagent"
    summary = summary_in(messages)
    told = Told()
    answered = told.answered
    last, count = "", 0
    for number, message in enumerate(messages):
        if message.get("type") == MODEL:
            told = Told(message["id"])
            told.answered = answered
        origin = SUMMARY if number == summary else ""
        time, place = time_of(message), found.places.get(message["id"])
        name = clean(message["id"]) if place is None else f"@{lines[place].start}"
        count = count if name == last else 0
        for event in message_events(message, told, agent=agent, origin=origin):
            yield event.replace(message_id=name, time=time, index=count)
            count += 1
        last = name


def _beginning(name: str, lines: list[GeminiLine], found: StandingMessages) -> Record | None:
    """What the program told of its surroundings, where the message is that: it says it anew at every start under one
    name, and the conversation began with the first."""
    place, message = found.places.get(name), found.entries[name].message
    if place is None or origin_of(words_of(message.get("content"))) != SESSION_CONTEXT:
        return None
    record = lines[place].record or {}
    listed = messages_in(record["$set"]["messages"] if kind_of(record) == LIST else record.get("messages"))
    return next((one for one in listed if one["id"] == name), None)


def _richer(lines: list[GeminiLine], entries: dict[str, StandingMessage]) -> dict[str, Record]:
    """The messages that stand, as the first of their own lines told them and later ones added to it."""
    found: dict[str, Record] = {}
    for line in lines:
        if line.record is not None and kind_of(line.record) == MESSAGE and line.record["id"] in entries:
            name = line.record["id"]
            found[name] = {**found.get(name, {}), **line.record}
    return found


_FIRST = ("timestamp", "tokens", "model", "thoughts", "toolCalls", "displayContent")
"""What a message says best where it was written first."""


def _merged(message: Record, rich: Record | None) -> Record:
    if rich is None or rich is message:
        return message
    return {**rich, **message, **{key: rich[key] for key in _FIRST if rich.get(key)}}
