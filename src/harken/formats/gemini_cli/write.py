"""Events as a file that Gemini CLI goes on with, and a file's own lines under another session.

The program takes the messages as it finds them and repairs nothing: a call without a result would go out without one.
Calls are written with their results beside them, and no second time as a user's message, which would send them twice.
It passes over a user's words that begin like a command (`/`, `?`) or like texts of its own; before such words stands a
part with `GUARD` in it, which is no letter and takes no room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from harken import ids
from harken.clock import format_millis
from harken.events import Event, Image, Response
from harken.formats.base import Loss, Written
from harken.formats.kit.anthropic import Block
from harken.formats.kit.anthropic_writing import WHY, Arranger, Said
from harken.formats.kit.jsonl import Record, encode
from harken.formats.kit.showing import shown_call, shown_result

from .context import context
from .messages import GUARD
from .records import CHANGE, HEADER, LIST, MESSAGE, MODEL, REWIND, USER, iter_lines, kind_of, messages_in, text_of

_IGNORED = ("/", "?", "<session_context>", "<hook_context>")
"""How words begin that the program leaves out when it goes on with a session."""
_COMMANDS = ("/", "?")
"""Those of them that a user may write."""
_PICTURES = "pictures without content"


class _GeminiArranger(Arranger):
    why = WHY | {"names of tools": "a character that no tool's name has was replaced"}

    def __init__(self, events: Sequence[Event]) -> None:
        super().__init__(thinking=False)
        # An id that several events share is their message's; one of its own is an item's, and parts nothing.
        shared = {name for name, count in Counter(event.api_id for event in events).items() if count > 1}
        self.message_of = lambda event: event.api_id if event.api_id in shared else ""

    def picture(self, image: Image) -> Block | None:
        """Any media that stand in the message itself."""
        if not image.data:
            self.lost[_PICTURES] += 1
            return None
        return {"type": "media", "mimeType": image.media_type or "image/png", "data": image.data}


def write(events: Sequence[Event]) -> Written:
    """The events as a file; the session's id follows from what they say."""
    messages, losses = _messages(events, 0)
    body = b"".join(encode(message) for message in messages)
    start = next((event.time for event in events if event.time is not None), 0)
    session = ids.artifact_id(body)
    session = "-".join((session[:8], session[8:12], session[12:16], session[16:20], session[20:32]))
    return Written(data=_file(messages, header(session, "", start)), losses=losses)


def write_session(events: Sequence[Event], *, session_id: str, project: str, time: int) -> Written:
    """The events as the file of a given session, in a project that has this hash."""
    messages, losses = _messages(events, time)
    return Written(data=_file(messages, header(session_id, project, time)), losses=losses)


def header(session_id: str, project: str, time: int) -> Record:
    """The first line of a session."""
    stamp = format_millis(time)
    return {"sessionId": session_id, "projectHash": project, "startTime": stamp, "lastUpdated": stamp, "kind": "main"}


def _file(messages: list[Record], first: Record) -> bytes:
    return b"".join(encode(record) + b"\n" for record in (first, *messages))


def _messages(events: Sequence[Event], time: int) -> tuple[list[Record], tuple[Loss, ...]]:
    turns = _GeminiArranger(events).run(events)
    found: list[Record] = []
    for number, said in enumerate(turns.messages):
        time = next((event.time for event in said.events if event.time is not None), time)
        # Ids are names within the file: those of other programs may be those of several records.
        message: Record = {"id": f"m{number + 1:06d}", "timestamp": format_millis(time)}
        message |= _asked(said) if said.role == "user" else _answered(said)
        found.append(message)
    return found, turns.losses


def _asked(said: Said) -> Record:
    parts = list(map(_part, said.blocks))
    words = next((part["text"] for part in parts[:1] if "text" in part), "")
    if words.strip().startswith(_IGNORED):
        parts.insert(0, {"text": GUARD})
    return {"type": USER, "content": parts}


def _part(block: Block) -> Record:
    if block["type"] == "text":
        return {"text": block["text"]}
    return {"inlineData": {"mimeType": block["mimeType"], "data": block["data"]}}


def _answered(said: Said) -> Record:
    calls = [block for block in said.blocks if block["type"] == "tool_use"]
    texts = [block for block in said.blocks if block["type"] == "text"]
    content: Any = [{"text": block["text"]} for block in texts]
    if len(texts) < 2:
        content = texts[0]["text"] if texts else ""
    if said.blocks.index(calls[0]) < len(texts) if calls else False:
        # Words behind a call: as parts they keep their place.
        content = [_call_part(block) if block["type"] == "tool_use" else _part(block) for block in said.blocks]
    message: Record = {"type": MODEL, "content": content}
    if model := next((event.model for event in said.events if isinstance(event, Response) and event.model), ""):
        message["model"] = model
    if calls:
        results = {call: block for call, block, _ in said.results}
        message["toolCalls"] = [_call(block, results[block["id"]]) for block in calls]
    return message


def _call_part(block: Block) -> Record:
    return {"functionCall": {"id": block["id"], "name": block["name"], "args": block["input"]}}


def _call(call: Block, result: Block) -> Record:
    content = result["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    words = "\n".join(part["text"] for part in parts if part["type"] == "text")
    failed = bool(result.get("is_error"))
    response = {"id": call["id"], "name": call["name"], "response": {"error" if failed else "output": words}}
    media = [_part(part) for part in parts if part["type"] != "text"]
    return {
        "id": call["id"],
        "name": call["name"],
        "args": call["input"],
        "result": [{"functionResponse": response}, *media],
        "status": "error" if failed else "success",
        "displayName": call["name"],
        "description": shown_call(call),
        "resultDisplay": shown_result(result),
    }


# -- a file's own lines under another session --------------------------------------------------------------------------


def rewrite(data: bytes, *, session_id: str, project: str, time: int) -> bytes:
    """The file as the beginning of another session, for the program to go on with: a new header, the messages and lists
    as they are, and last the time, by which the program tells whether a session is too old to be kept."""
    lines = [encode(header(session_id, project, time)) + b"\n", *_moved(data)]
    lines.append(encode({"$set": {"lastUpdated": format_millis(time)}}) + b"\n")
    return b"".join(lines)


def _moved(data: bytes) -> Iterator[bytes]:
    for line in iter_lines(data):
        record = line.record
        if record is None:
            continue
        kind = kind_of(record)
        if kind == HEADER:
            yield from (encode(message) + b"\n" for message in messages_in(record.get("messages")))
        elif kind in (MESSAGE, REWIND, LIST) or (kind == CHANGE and text_of(record["$set"].get("summary"))):
            raw = data[line.start : line.end]
            yield raw if raw.endswith(b"\n") else raw + b"\n"


def dropped(data: bytes) -> tuple[Loss, ...]:
    """What the program leaves out when it goes on with its own file: prompts that it takes for commands."""
    records = (line.record for line in iter_lines(context(data)) if line.record is not None)
    messages = [
        message
        for record in records
        for message in _messages_of(record)
        if message.get("type") == USER and _words(message.get("content")).strip().startswith(_COMMANDS)
    ]
    count = len({text_of(message.get("id")) or place for place, message in enumerate(messages)})
    why = "Gemini CLI leaves out prompts that begin like a command when it goes on with a session"
    return (Loss(what="prompts", count=count, why=why),) if count else ()


def _messages_of(record: Record) -> Sequence[Record]:
    kind = kind_of(record)
    if kind == MESSAGE:
        return [record]
    return messages_in((record["$set"] if kind == LIST else record).get("messages"))


def _words(content: Any) -> str:
    parts = content if isinstance(content, list) else [content]
    return "".join(text_of(part.get("text")) if isinstance(part, dict) else text_of(part) for part in parts)


def name_line(title: str) -> bytes:
    """The line by which the program calls a session so."""
    return encode({"$set": {"summary": title}}) + b"\n"
