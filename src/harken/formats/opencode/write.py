"""Events as messages of OpenCode's, and rows of one session as those of another.

A message is written as rows, the shape in which sessions are kept; `export.py` makes of rows what the program imports.
Reasoning of another model is left out: the program would send it as words. A call without a result is closed.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from harken.clock import format_instant
from harken.events import Event, Prompt, ToolCall
from harken.events.base import clean, excerpt
from harken.formats.base import Loss, Written
from harken.formats.kit.anthropic_writing import Arranger, Said
from harken.formats.kit.jsonl import Record, encode, parse

from .identifiers import Identifiers, session_identifier
from .records import SESSION, MessagePart, RowMessage, blocks, inside, text

VERSION = "1.18.33"
"""The OpenCode whose sessions these are like."""
AGENT = "build"
OTHER = "other"
"""The provider that a model is said to be of whose provider nobody named."""
NO_TOKENS = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
PICTURES_OF_FAILURES = Loss(
    what="pictures of failed calls", count=0, why="what is told of a failed call is its text alone"
)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The session that is written."""

    session: str
    cwd: str = "/"
    now: int = 0
    """The present in milliseconds, which no message comes after; 0 where it does not matter."""
    model: str = ""
    """`PROVIDER/MODEL` with which the program goes on."""


def write_rows(events: Sequence[Event], target: Target | None = None) -> Written:
    """The events as rows; without a target the session's id follows from what they say."""
    turns = _arranger(events).run(events)
    times = _times(turns.messages, target.now if target is not None else 0)
    if target is None:
        said = encode([[one.role, one.blocks, [result for _, result, _ in one.results]] for one in turns.messages])
        target = Target(session=session_identifier(times[0] if times else 0, said.decode(errors="replace")))
    composer = _RowComposer(target)
    for said_message, time in zip(turns.messages, times, strict=True):
        composer.add(said_message, time)
    if not composer.messages:
        return Written(data=b"", losses=turns.losses)
    lost = msgspec.structs.replace(PICTURES_OF_FAILURES, count=composer.lost_pictures)
    losses = (*turns.losses, lost) if lost.count else turns.losses
    title = next((event.content for event in events if isinstance(event, Prompt) and event.source != "injected"), "")
    first, last = times[0], target.now or times[-1]
    row = {
        "id": target.session,
        "project_id": "global",
        "slug": "harken",
        "directory": target.cwd,
        "title": excerpt(clean(title), 80) or f"New session - {format_instant(first * 1000)}",
        "version": VERSION,
        "time_created": first,
        "time_updated": last,
    }
    return Written(data=rows_of(composer.messages, row), losses=losses)


def _arranger(events: Sequence[Event]) -> Arranger:
    """Calls of one message stay together, whether results came between them or not. Some APIs give every call an id of
    its own: there those are of one message that were made before the first result."""
    shared = Counter(event.api_id for event in events if isinstance(event, ToolCall))
    arranger = Arranger(thinking=False)
    arranger.message_of = lambda event: event.api_id if shared[event.api_id] > 1 else ""
    return arranger


def rows_of(messages: Sequence[RowMessage], session: Record) -> bytes:
    """The rows of messages, then the session's own."""
    made = bytearray()
    for message in messages:
        done = inside(message.info, "time", "completed") or message.created
        times = {"time_created": message.created, "time_updated": done}
        own = {"id": message.id, "session_id": message.session, **times, "data": message.info}
        made += encode({"message": own}) + b"\n"
        for part in message.parts:
            own = {"id": part.id, "message_id": message.id, "session_id": message.session, **times, "data": part.data}
            made += encode({"part": own}) + b"\n"
    return bytes(made) + encode({SESSION: session}) + b"\n"


def _times(messages: Sequence[Said], now: int) -> list[int]:
    """When each message was made, in milliseconds: as it says, later than the one before, earlier than now."""
    known = [next((event.time // 1000 for event in said.events if event.time), None) for said in messages]
    first = next((time for time in known if time is not None), None)
    last = (first if first is not None else now - len(messages)) - 1
    times = []
    for time in known:
        last = max(last + 1, time or 0)
        times.append(last)
    late = max(0, last - now + 1) if now else 0
    return [time - late for time in times]


class _RowComposer:
    def __init__(self, target: Target) -> None:
        self._target = target
        provider, _, model = target.model.partition("/")
        self._model = {"providerID": provider or OTHER, "modelID": model or OTHER}
        self._ids = Identifiers(target.session)
        self._user = ""
        self.messages: list[RowMessage] = []
        self.lost_pictures = 0

    def add(self, said: Said, time: int) -> None:
        """The next message."""
        name = self._ids.make("msg", time)
        info = self._user_info(time) if said.role == "user" else self._assistant_info(said, time)
        results = {call: (block, event) for call, block, event in said.results}
        parts = []
        for block in said.blocks:
            if block["type"] == "tool_use":
                data = self._call(block, *results[block["id"]], time, name)
            elif block["type"] == "text":
                data = {"type": "text", "text": clean(block["text"])}
                if said.injected:
                    data["synthetic"] = True
                if said.role == "assistant":
                    data["time"] = {"start": time, "end": time}
            else:
                data = file_of(block)
            parts.append(MessagePart(self._ids.make("prt", time), data))
        if said.role == "user":
            self._user = name
        self.messages.append(RowMessage(id=name, session=self._target.session, info=info, parts=parts, created=time))

    def _user_info(self, time: int) -> Record:
        return {"role": "user", "time": {"created": time}, "agent": AGENT, "model": self._model}

    def _assistant_info(self, said: Said, time: int) -> Record:
        ends = [event.time // 1000 for _, _, event in said.results if event is not None and event.time]
        model = next((found for event in said.events if (found := getattr(event, "model", ""))), "")
        return {
            "parentID": self._user or self._ids.make("msg", time),
            "role": "assistant",
            "mode": AGENT,
            "agent": AGENT,
            "path": {"cwd": self._target.cwd, "root": "/"},
            "cost": 0,
            "tokens": NO_TOKENS,
            "modelID": clean(model) or self._model["modelID"],
            "providerID": OTHER if model else self._model["providerID"],
            "time": {"created": time, "completed": max([time, *ends])},
            "finish": "tool-calls" if said.results else "stop",
        }

    def _call(self, block: Record, result: Record, event: Event | None, time: int, message: str) -> Record:
        end = max(time, event.time // 1000) if event is not None and event.time else time
        words, files = _answer(result["content"])
        state: Record = {"input": block["input"], "time": {"start": time, "end": end}}
        if result.get("is_error"):
            self.lost_pictures += len(files)
            state |= {"status": "error", "error": clean(words)}
        else:
            state |= {"status": "completed", "output": clean(words), "title": "", "metadata": {}}
            own = {"sessionID": self._target.session, "messageID": message}
            if files:
                state["attachments"] = [{"id": self._ids.make("prt", time), **own, **file} for file in files]
        return {"type": "tool", "tool": block["name"], "callID": block["id"], "state": state}


def _answer(content: Any) -> tuple[str, list[Record]]:
    """The words of a result, and its pictures."""
    if isinstance(content, str):
        return content, []
    words = "\n".join(block["text"] for block in content if block["type"] == "text")
    return words, [file_of(block) for block in content if block["type"] != "text"]


def file_of(block: Record) -> Record:
    """A picture or a document as a part of a message."""
    source = block["source"]
    media = source.get("media_type", "image/png")
    url = source["url"] if source["type"] == "url" else f"data:{media};base64,{source['data']}"
    return {"type": "file", "mime": media, "url": url}


# -- the program's own session, under other ids ------------------------------------------------------------------------

KEPT = ("slug", "title", "version", "agent", "model", "permission")
"""What a session that goes on has from the one it goes on from."""


def rewrite(data: bytes, target: Target) -> bytes:
    """Rows of a conversation as those of another session: every id is a new one, everything else stays."""
    found = [block.message for block in blocks(data) if block.message is not None and not block.removed]
    made = Identifiers(target.session)
    names: dict[str, str] = {}
    parts: dict[str, list[str]] = {}
    for message in found:
        names[message.id] = made.make("msg", message.created)
        parts[message.id] = [made.make("prt", message.created) for _ in message.parts]
    messages = [_renamed(message, names, parts[message.id], target.session) for message in found]
    row = {"id": target.session, "project_id": "global", "slug": "harken", "title": "harken", "version": VERSION}
    row |= {key: value for key, value in _session(data).items() if key in KEPT and value is not None}
    times = {"time_created": target.now, "time_updated": target.now}
    return rows_of(messages, row | {"directory": target.cwd} | times)


def _session(data: bytes) -> Record:
    row: Record = {}
    for block in blocks(data):
        row |= (block.row or {}) if block.table == SESSION else {}
    return row


def _renamed(message: RowMessage, names: dict[str, str], parts: list[str], session: str) -> RowMessage:
    info, name = dict(message.info), names[message.id]
    if "parentID" in info:
        info["parentID"] = names.get(text(info["parentID"]), info["parentID"])
    found = []
    for part, given in zip(message.parts, parts, strict=True):
        data = part.data
        if part.type == "compaction" and "tail_start_id" in data:
            data = data | {"tail_start_id": names.get(text(data["tail_start_id"]), data["tail_start_id"])}
        elif isinstance(inside(data, "state", "attachments"), list):
            data = copy.deepcopy(data)
            for file in data["state"]["attachments"]:
                if isinstance(file, dict):
                    file |= {"sessionID": session, "messageID": name}
        found.append(MessagePart(given, data))
    return RowMessage(id=name, session=session, info=info, parts=found, created=message.created)


def with_metadata(data: bytes, key: str, value: object) -> bytes:
    """The rows with one more key in what the session's own row has of other programs."""
    *before, last = data.splitlines(keepends=True)
    row = (parse(last) or {}).get(SESSION, {})
    known = parse(text(row.get("metadata")).encode()) or {}
    row["metadata"] = encode(known | {key: msgspec.to_builtins(value)}).decode()
    return b"".join(before) + encode({SESSION: row}) + b"\n"
