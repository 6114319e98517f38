"""From what a commit says to rows of the index. Everything here is a pure function of events."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from harken import ids
from harken.analytics.compactions import compaction_facts
from harken.analytics.files import touched_by
from harken.context.walk import place_in
from harken.events import (
    AgentCreated,
    Error,
    Event,
    Metric,
    PieceOfText,
    Prompt,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    TranscriptEdit,
)
from harken.events.base import clean, excerpt

HUMAN, INJECTED, ASSISTANT, THINKING, CALL, RESULT, SYSTEM, TITLE, SUMMARY = ROLES = (
    "human", "injected", "assistant", "thinking", "call", "result", "system", "title", "summary",
)  # fmt: skip
WHAT = 80
"""Characters of what a call was called with."""
_DEEP = 100
"""How deep arguments are looked into."""
_TELLING = ("command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt", "skill", "plan")
"""The arguments that tell best what a call is for, the best first."""
COMPACT = "compact_boundary"


class CallRow(NamedTuple):
    """What a message has that is a call."""

    call_id: str
    tool: str
    what: str
    touched: list[tuple[str, str]]


class CompactionRow(NamedTuple):
    """What a message has at which the conversation was compacted."""

    before: int | None
    after: int | None
    trigger: str


class ResultRow(NamedTuple):
    """What a call came to."""

    agent: str | None
    """Whose call it was: agents of one session may call by the same ids."""
    call_id: str
    time: int | None
    failed: bool
    event: int
    """Its place in its record."""


class MessageRow(NamedTuple):
    """A message, with the text that goes into the index and is not stored."""

    key: int
    agent: str | None
    role: str
    tool: str | None
    model: str | None
    time: int | None
    record: str | None
    event: int
    size: int
    sum: int
    text: str
    more: CallRow | CompactionRow | ResultRow | None = None
    flow: tuple[str, str] | None = None
    """Where its content comes from: the other message, and `substance` or `cause`."""
    alike: str = ""
    """What it shares with all that say the same in one family of sessions, where records have no names."""
    unnamed: int | None = None
    """Its key in an older version of the session in which its record had no name; None where there can be none."""


class EventText(NamedTuple):
    """What an event says: in which role, in what words, with which tool."""

    role: str
    text: str
    tool: str = ""
    more: CallRow | CompactionRow | ResultRow | None = None


def is_storable(text: str) -> bool:
    """Whether SQLite takes the text: a name that was no UTF-8 has lone surrogates in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def key_of(scope: str, name: str, index: int) -> int:
    """64 bits of what a message is called, as SQLite's integers have them."""
    return ids.short_key(f"{scope}\0{name}\0{index}")


class RecordNames(NamedTuple):
    """What the records of a delta are called."""

    scope: str
    """What a name belongs to that no other session shares."""
    commit: str
    """What a record belongs to that has neither a name nor a place."""
    begin: int | None
    """The place in its chain at which the delta begins; None where it is no part of the count."""
    shared: Callable[[str], str] | None = None
    """From a name to what copies of the record are called too, or nothing."""
    alike: Callable[[str], str] | None = None
    """From a name to what the record says, where only that tells a copy."""
    unnamed: Callable[[str], str] | None = None
    """From a name to what `shared` calls the record where it has no name, or nothing."""
    named_in: str = ""
    """The session whose names these are too: of one that Harken wrote with the records of another, that one."""


def message_rows(events: Sequence[Event], names: RecordNames) -> Iterator[MessageRow]:
    """The events that say something, as rows. What a record leaves to those beside it, the tool that a result is of and
    the model that thought or called, is taken from there."""
    tools = _Tools()
    models = {
        event.api_id: event.model
        for event in events
        if (type(event) is Response or type(event) is Metric) and event.model
    }
    compacted = ""
    for number, event in enumerate(events):
        told = said(event)
        if type(event) is ToolCall:
            tools.call(event)
        if type(event) is System and event.subtype == COMPACT:
            compacted = event.message_id
        if told is None:
            continue
        role, text, tool, more = told
        if compacted and event.message_id == compacted and type(event) is not System:
            role, tool, more = SYSTEM, "", None  # said before, and put in the place of the conversation by the runtime
        name, index = event.message_id, event.index
        record = in_chain(name, names.begin) if name[:1] == "@" else name
        alike = names.alike(name) if names.alike is not None and name else ""
        if alike:
            key = key_of(alike, "", index)
        elif common := names.shared(name) if names.shared is not None and name else "":
            key = key_of("", common, index)
        else:
            scope = names.named_in if names.named_in and name[:1] != "@" else names.scope
            key = key_of(scope, record, index) if record else key_of(names.commit, "", number)
        nameless = names.unnamed(name) if names.unnamed is not None and name and name[0] != "@" else ""
        if type(event) is ToolResult:
            tool = tools.take(event) or tool
        model = _model(event, models)
        flow = _flow(event, names.begin) if event.substance is not None or type(event) is Prompt else None
        size, total = len(text), zlib.crc32(text.encode())
        yield MessageRow(
            key, event.agent_id or None, role, tool or None, model, event.time, record or None, index, size, total,
            text, more, flow, alike, key_of("", nameless, index) if nameless else None,
        )  # fmt: skip


class _Tools:
    """The tools that results are of: of calls with one id those of the last record, in their order."""

    def __init__(self) -> None:
        self._called: dict[tuple[str, str], tuple[str, list[str]]] = {}

    def call(self, event: ToolCall) -> None:
        key = event.agent_id, event.id
        record, names = self._called.get(key, ("", []))
        waiting = names if record and record == event.message_id else []
        self._called[key] = event.message_id, [*waiting, clean(event.name)]

    def take(self, event: ToolResult) -> str:
        _, names = self._called.get((event.agent_id, event.id), ("", []))
        return names.pop(0) if len(names) > 1 else "".join(names)


def _model(event: Event, models: Mapping[str, str]) -> str | None:
    """The model that wrote it; None where nobody says so, or where it was not written by one."""
    if type(event) is Response and event.model:
        return event.model
    return (models.get(event.api_id) or None) if event.api_id and type(event) in _WRITTEN else None


_WRITTEN = (Response, Thinking, ToolCall)


def in_chain(name: str, begin: int | None) -> str:
    """The name of a record that a reader called after its place in the delta, as the chain calls it."""
    place = place_in(name)
    return name if place is None else "" if begin is None else f"@{begin + place}"


def said(event: Event) -> EventText | None:
    """What an event says, as it is searched for; None where that is nothing."""
    teller = _TELLERS.get(type(event))
    return None if teller is None else teller(event)


def _worded(role: str, text: str) -> EventText | None:
    return EventText(role, clean(text)) if text else None


def _prompt(event: Prompt) -> EventText | None:
    return _worded(INJECTED if event.source == "injected" else HUMAN, event.content)


def _result(event: ToolResult) -> EventText | None:
    result = _result_row(event)
    return EventText(RESULT, clean(event.output), clean(event.name), result) if event.output else None


def _call(event: ToolCall) -> EventText:
    try:
        given = orjson.loads(event.input) if event.input else None
    except ValueError:  # not JSON, or deeper than it reads
        given = event.input.decode("utf-8", "replace")
    tool = clean(event.name)
    text = clean("\n".join([tool, *_words_in(given)]))
    return EventText(
        CALL, text, tool, CallRow(clean(event.id), tool, what(given), touched_by(tool, given, event.input))
    )


def _notice(event: System) -> EventText | None:
    if event.subtype == COMPACT:
        return EventText(SYSTEM, clean(event.message), "", _compaction(event.metadata))
    return _worded(SYSTEM, event.message)


def _edit(event: TranscriptEdit) -> EventText | None:
    """The summary that stands for what a compaction folded."""
    return _worded(INJECTED, event.content) if event.action == "compact" else None


_TELLERS: dict[type, Callable[[Any], EventText | None]] = {
    Prompt: _prompt,
    Response: lambda event: _worded(ASSISTANT, event.content),
    Thinking: lambda event: _worded(THINKING, event.content),
    PieceOfText: lambda event: _worded(ASSISTANT, event.content),
    ToolCall: _call,
    ToolResult: _result,
    System: _notice,
    TranscriptEdit: _edit,
    Error: lambda event: _worded(SYSTEM, event.message),
}


# -- what stands in a call -------------------------------------------------------------------------------------------


def _words_in(given: Any, depth: int = 0) -> Iterator[str]:
    """The texts in a call's arguments. Their names are the tool's, and say nothing; those further down may."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, dict) and depth < _DEEP:
        for name, value in given.items():
            if depth:
                yield name
            yield from _words_in(value, depth + 1)
    elif isinstance(given, list) and depth < _DEEP:
        for value in given:
            yield from _words_in(value, depth + 1)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        yield str(given)


def what(given: Any) -> str:
    """What a tool was called with, in a few words."""
    if isinstance(given, dict):
        told = next((given[key] for key in _TELLING if given.get(key)), None)
        given = next(iter(given.values()), "") if told is None else told
    if isinstance(given, list):
        given = " ".join(value for value in given if isinstance(value, str))
    return clean(excerpt(given, WHAT)) if isinstance(given, str) else ""


# -- links and compactions -------------------------------------------------------------------------------------------


def _flow(event: Event, begin: int | None) -> tuple[str, str] | None:
    """Whose words these are, or what made somebody say them to an agent."""
    if event.substance is not None:
        return in_chain(event.substance, begin), "substance"
    return (in_chain(causes[0], begin), "cause") if (causes := event.causes()) else None


def _compaction(metadata: bytes) -> CompactionRow:
    return CompactionRow(*compaction_facts(metadata))


def agent_names(events: Iterable[Event]) -> list[tuple[str, str]]:
    """The agents that came into being, and what they are called."""
    made = (event for event in events if type(event) is AgentCreated)
    return [(event.agent_id, clean(event.name)) for event in made if event.agent_id and event.name]


def results(events: Iterable[Event], agent: str = "") -> list[ResultRow]:
    """What calls came to. `agent` is whose they are where the records do not say."""
    return [_result_row(event, agent) for event in events if type(event) is ToolResult]


def _result_row(event: ToolResult, agent: str = "") -> ResultRow:
    return ResultRow(event.agent_id or agent or None, clean(event.id), event.time, event.is_error, event.index)


def said_row(scope: str, role: str, text: str, time: int | None) -> MessageRow:
    """A text that is no record: a session's title, a commit's summary."""
    text = clean(text)
    key = key_of(scope, role, 0)
    return MessageRow(key, None, role, None, None, time, None, 0, len(text), zlib.crc32(text.encode()), text)
