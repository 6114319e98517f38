"""Events as a session that Copilot CLI resumes.

Found by trying: `session.start` comes first and names the session; `user.message`, `assistant.message` and
`tool.execution_complete` are enough behind it. A picture is an event of its own, which the message names. Ids are made
from what is said, so that the same events give the same file.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from harken import ids
from harken.clock import format_millis
from harken.events import Event, Response
from harken.formats.base import Loss, Written
from harken.formats.kit.anthropic_writing import Said, arrange
from harken.formats.kit.jsonl import Record, encode

from .records import (
    ANSWER,
    ASSET,
    AT_PATH,
    ATTACHED,
    PROMPT,
    RESULT,
    START,
    agent_of,
    content_of,
    iter_lines,
    kind_of,
)

VERSION = "1.0.102"
"""The version whose shape is written."""
PRODUCER = "harken"
NOT_SHOWN = "Copilot CLI shows pictures of tools only to a model of which it knows that it can see them"


def write(events: Sequence[Event]) -> Written:
    """The conversation as a session of its own; `rewrite` gives it the id and the folder it is to have."""
    turns = arrange(events)
    first = next((said.events[0].time for said in turns.messages if said.events), None)
    writer = _CopilotWriter(turns.messages, first or 0)
    losses = list(turns.losses)
    if writer.hidden:
        losses.append(Loss(what="picture in a result", count=writer.hidden, why=NOT_SHOWN))
    return Written(data=b"".join(writer.lines), losses=tuple(losses))


def adopt(events: Sequence[Event]) -> Written:
    """What happened in another runtime as a session of Copilot CLI's."""
    # Another provider's ids do not say which parts make up a message here; what tools answered since does.
    return write([event.replace(api_id="") for event in events])


class _CopilotWriter:
    def __init__(self, messages: list[Said], time: int) -> None:
        self.lines: list[bytes] = []
        self.hidden = 0
        self._parent: str | None = None
        self._time = time
        self._assets: set[str] = set()
        session = _uuid(b"session", encode([said.blocks for said in messages[:1]]))
        begun = {"sessionId": session, "version": 1, "producer": PRODUCER, "copilotVersion": VERSION}
        self._line(START, begun | {"startTime": format_millis(time), "context": {"cwd": "/"}})
        for said in messages:
            self._pass(said.events[:1])
            if said.role == "user":
                self._user(said)
            else:
                self._assistant(said)

    def _user(self, said: Said) -> None:
        texts: list[str] = []
        shown: list[Record] = []
        for block in said.blocks:
            if block["type"] == "text":
                texts.append(block["text"])
            elif named := self._picture(block):
                shown.append({"type": "blob", **_take_caption(texts), **named})
        data: Record = {"content": "\n".join(texts), **({"attachments": shown} if shown else {})}
        self._line(PROMPT, data | ({"source": said.injected} if said.injected else {}))

    def _assistant(self, said: Said) -> None:
        text = "\n\n".join(block["text"] for block in said.blocks if block["type"] == "text")
        calls = [
            {"toolCallId": block["id"], "name": block["name"], "arguments": block["input"], "type": "function"}
            for block in said.blocks
            if block["type"] == "tool_use"
        ]
        model = next((event.model for event in said.events if isinstance(event, Response) and event.model), "")
        data: Record = {"messageId": _uuid(b"message", encode([self._parent, said.blocks])), "content": text}
        self._line(ANSWER, data | {"toolRequests": calls} | ({"model": model} if model else {}))
        for call, block, event in said.results:
            self._pass([event] if event is not None else [])
            self._line(RESULT, {"toolCallId": call, **self._answered(block)})

    def _answered(self, block: Record) -> Record:
        content = block["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        shown = [{"type": "image", **named} for part in parts if (named := self._picture(part))]
        self.hidden += len(shown)
        if block.get("is_error"):
            return {"success": False, "error": {"message": text}}
        return {"success": True, "result": {"content": text, **({"binaryResultsForLlm": shown} if shown else {})}}

    def _picture(self, block: Record) -> Record | None:
        """What names a picture, which has been written down before the message; None for another block."""
        source = block.get("source")
        if block["type"] != "image" or not isinstance(source, dict) or not isinstance(source.get("data"), str):
            return None
        media, data = source.get("media_type", "image/png"), source["data"]
        size = _decoded_size(data)
        asset = f"harken:{ids.artifact_id(data.encode())}"
        if asset not in self._assets:
            self._assets.add(asset)
            about = {"assetId": asset, "type": "image", "mimeType": media, "byteLength": size, "data": data}
            self._line(ASSET, about)
        return {"assetId": asset, "mimeType": media, "byteLength": size}

    def _pass(self, events: Sequence[Event]) -> None:
        """Time never runs backwards here, though it does in the files."""
        for event in events:
            if event.time is not None and event.time > self._time:
                self._time = event.time

    def _line(self, kind: str, data: Record) -> None:
        name = _uuid(kind.encode(), encode([self._parent, data, len(self.lines)]))
        record: dict[str, Any] = {"type": kind, "data": data, "id": name, "timestamp": format_millis(self._time)}
        self.lines.append(encode(record | {"parentId": self._parent}) + b"\n")
        self._parent = name


def rewrite(data: bytes, *, session_id: str, cwd: str, time: int) -> bytes:
    """The session's own lines as the beginning of another session, for Copilot CLI to resume.

    A `session.start` of the new session comes first. The other lines follow as they are, but for the line that each
    names before it, where that one is left out; lines of a sub-agent become the session's own."""
    old = next((content_of(line.record) for line in iter_lines(data) if line.record and _begins(line.record)), {})
    begun = {**old, "sessionId": session_id, "version": 1, "producer": PRODUCER}
    begun |= {"copilotVersion": old.get("copilotVersion", VERSION), "startTime": format_millis(time)}
    begun["context"] = {"cwd": cwd}
    first = _uuid(b"start", session_id.encode())
    out = [_encoded(START, begun, first, time)]
    there, parent = {first}, first
    for line in iter_lines(data):
        record = line.record
        if record is None or _begins(record):
            continue
        raw = data[line.start : line.end]
        above = record.get("parentId")
        changed: Record = {} if isinstance(above, str) and above in there else {"parentId": parent}
        if agent_of(record):
            record = _as_own(record)
            changed.setdefault("parentId", parent)
        out.append(encode({**record, **changed}) + b"\n" if changed else raw if raw.endswith(b"\n") else raw + b"\n")
        if isinstance(name := record.get("id"), str):
            there.add(name)
            parent = name
    return b"".join(out)


def _as_own(record: Record) -> Record:
    """A line of a sub-agent without what says so: by either of the two the program leaves it out."""
    data = {key: value for key, value in content_of(record).items() if key != "parentToolCallId"}
    own = {key: value for key, value in record.items() if key != "agentId"}
    return own | {"data": data} if isinstance(record.get("data"), dict) else own


def _begins(record: Record) -> bool:
    return kind_of(record) == START


def _encoded(kind: str, data: Record, name: str, time: int) -> bytes:
    return encode({"type": kind, "data": data, "id": name, "timestamp": format_millis(time), "parentId": None}) + b"\n"


def _take_caption(texts: list[str]) -> Record:
    """The name of a picture: words before it that the program says by itself, which are taken off the prompt, since it
    would say them once more."""
    words, _, last = texts[-1].rpartition("\n") if texts else ("", "", "")
    if last != ATTACHED and not last.startswith(AT_PATH):
        return {}
    texts[-1:] = [words] if words else []
    return {} if last == ATTACHED else {"displayName": last}


def _decoded_size(data: str) -> int:
    try:
        return len(base64.b64decode(data, validate=False))
    except (binascii.Error, ValueError):
        return 0


def _uuid(kind: bytes, content: bytes) -> str:
    """An id of the shape the program gives its events, made from what they say."""
    digits = ids.artifact_id(kind + b"\0" + content)[:32]
    digits = f"{digits[:12]}4{digits[13:16]}{'89ab'[int(digits[16], 16) % 4]}{digits[17:]}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
