"""Events as a file that Qwen Code resumes, and a file's own records as the beginning of another session.

A record needs `uuid`, `parentUuid`, `sessionId`, `timestamp`, `type`, `message` and `cwd`, which has to be the folder
that the program is started in. Ids are made from what is said, so that the same events give the same file. What another
model thought would go out as this one's reasoning, so it is left out; a failed call is told by the key `error`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harken.clock import format_millis
from harken.events import Event, Response
from harken.events.messages import SHOWN
from harken.formats.base import Written
from harken.formats.facts import ORIGIN
from harken.formats.kit.anthropic import Block
from harken.formats.kit.anthropic_writing import Said, arrange
from harken.formats.kit.jsonl import Record, encode
from harken.formats.kit.showing import shown_result
from harken.ids import artifact_id

from .branch import records
from .records import ASSISTANT, BOOTSTRAP, COMPRESSION, SYSTEM, TELEMETRY, TOOL_RESULT, USER, inner, text
from .usage import event_of

VERSION = "0.24.4"
"""The version whose shape is written."""
HERE = "/"
ROLES = {USER: "user", ASSISTANT: "model", TOOL_RESULT: "user"}
PROVENANCE = {USER: "real_user", ASSISTANT: "assistant_output", TOOL_RESULT: "tool_result"}


def write(events: Sequence[Event]) -> Written:
    """The conversation as a session of its own; `rewrite` gives it the id and the folder it is to have."""
    # Another provider's ids do not say which parts make up a message here; what tools answered since does.
    turns = arrange([event.replace(api_id="") if event.api_id else event for event in events])
    writer = _QwenWriter(turns.messages)
    for said in turns.messages:
        writer.say(said)
    return Written(data=b"".join(writer.lines), losses=turns.losses)


class _QwenWriter:
    def __init__(self, messages: list[Said]) -> None:
        self.lines: list[bytes] = []
        self._parent: str | None = None
        self._time = next((e.time for said in messages for e in said.events if e.time is not None), 0)
        self._session = _uuid(b"session", encode([said.blocks for said in messages[:1]]))

    def say(self, said: Said) -> None:
        """One record for what was heard or said, one for each result."""
        self._pass(said.events[:1])
        parts = [part for block in said.blocks if (part := _part(block))]
        if said.role == USER:
            is_hidden = bool(said.injected) and said.injected not in SHOWN
            self._line(USER, parts, {"provenance": SYSTEM} if is_hidden else {})
            return
        model = next((e.model for e in said.events if isinstance(e, Response) and e.model), "")
        self._line(ASSISTANT, parts, {"model": model} if model else {})
        names = {block["id"]: block["name"] for block in said.blocks if block["type"] == "tool_use"}
        for call, block, event in said.results:
            self._pass([event] if event is not None else [])
            status = "error" if block.get("is_error") else "success"
            result = _result(call, names.get(call, ""), block)
            shown = {"callId": call, "status": status, "resultDisplay": shown_result(block)}
            self._line(TOOL_RESULT, [result], {"toolCallResult": shown})

    def _pass(self, events: Sequence[Event]) -> None:
        """Time never runs backwards here, though it does in the files."""
        for event in events:
            if event.time is not None and event.time > self._time:
                self._time = event.time

    def _line(self, kind: str, parts: list[Record], marks: Record) -> None:
        message = {"role": ROLES[kind], "parts": parts}
        uuid = _uuid((self._parent or "").encode(), str(len(self.lines)).encode(), encode(message))
        record: Record = {"uuid": uuid, "parentUuid": self._parent, "sessionId": self._session}
        record |= {"timestamp": format_millis(self._time), "type": kind, "provenance": PROVENANCE[kind], "cwd": HERE}
        record |= {"version": VERSION, "message": message, **marks}
        self.lines.append(encode(record) + b"\n")
        self._parent = uuid


def _uuid(*parts: bytes) -> str:
    """A uuid made from content, in the form of a name-based one."""
    made = artifact_id(b"\0".join(parts))
    return f"{made[:8]}-{made[8:12]}-5{made[13:16]}-8{made[17:20]}-{made[20:32]}"


def title_line(session_id: str, cwd: str, time: int, title: str) -> Record:
    """The record by which the program knows a session's name; `sign` gives it its place."""
    record: Record = {"uuid": _uuid(b"title", session_id.encode(), title.encode(errors="replace")), "parentUuid": None}
    record |= {
        "sessionId": session_id,
        "timestamp": format_millis(time),
        "type": SYSTEM,
        "provenance": SYSTEM,
        "cwd": cwd,
    }
    payload = {"customTitle": title, "titleSource": "manual"}
    return record | {"version": VERSION, "subtype": "custom_title", "systemPayload": payload}


def _part(block: Block) -> Record | None:
    match block["type"]:
        case "text":
            return {"text": block["text"]}
        case "tool_use":
            return {"functionCall": {"id": block["id"], "name": block["name"], "args": block["input"]}}
        case "image" | "document":
            source = block["source"]
            if source["type"] == "base64":
                return {"inlineData": {"mimeType": source["media_type"], "data": source["data"]}}
            return {"fileData": {"mimeType": "image/png", "fileUri": source["url"]}}
    return None


def _result(call: str, name: str, block: Block) -> Record:
    content = block["content"]
    found = [part for one in content if (part := _part(one))] if isinstance(content, list) else []
    said = content if isinstance(content, str) else "\n".join(part["text"] for part in found if "text" in part)
    pictures = [part for part in found if "text" not in part]
    response = {"error" if block.get("is_error") else "output": said}
    result: Record = {"id": call, "name": name, "response": response} | ({"parts": pictures} if pictures else {})
    return {"functionResponse": result}


# -- a file's own records under another session id ---------------------------------------------------------------------

_SESSION = re.compile(r"[0-9a-fA-F-]{32,36}")
_OF_ONE_SESSION = frozenset({"session_sources_snapshot", "parent_session", "session_source", "turn_result"})
"""Subtypes of records about the session that held them; the program leaves them out of a fork too."""
_OF_AN_AGENT = ("isSidechain", "agentId", "agentName", "agentColor", "agentRunId", "agentRound", "externalInputKind")


def rewrite(data: bytes, *, session_id: str, cwd: str) -> bytes:
    """The conversation of a file as the beginning of another session, as the program's own fork writes it: each record
    behind the one before, with its own uuid, and the session it was copied from.

    A sub-agent's records become a conversation of their own."""
    found = [record for record in records(data) if text(record, "subtype") not in _OF_ONE_SESSION]
    if found and all(record.get("isSidechain") is True for record in found):
        found = list(_lifted(found))
    lines: list[bytes] = []
    parent: str | None = None
    for record in found:
        lines.append(encode(_moved(record, session_id, cwd, parent)) + b"\n")
        parent = text(record, "uuid")
    return b"".join(lines)


def _moved(record: Record, session_id: str, cwd: str, parent: str | None) -> Record:
    old = text(record, "sessionId")
    moved = {**record, "parentUuid": parent, "sessionId": session_id, "cwd": cwd}
    moved.pop("forkedFrom", None)
    moved.pop(ORIGIN, None)
    if _SESSION.fullmatch(old) and old != session_id:
        moved["forkedFrom"] = {"sessionId": old, "messageUuid": record["uuid"]}
    prompt = text(event_of(record), "prompt_id") if text(record, "subtype") == TELEMETRY else ""
    if old and prompt.startswith(f"{old}#"):
        # It numbers the prompts of a session by these.
        event = {**event_of(record), "prompt_id": session_id + prompt[len(old) :]}
        moved["systemPayload"] = {**inner(record, "systemPayload"), "uiEvent": event}
    return moved


def _lifted(found: list[Record]) -> Iterator[Record]:
    """A sub-agent's records as those of a conversation of its own. It writes a record for each part of an answer, which
    a session could not be resumed from: every call has to stand in the record that its results follow."""
    open_answer: Record | None = None
    for record in found:
        own = {key: value for key, value in record.items() if key not in _OF_AN_AGENT}
        if own.get("type") == ASSISTANT:
            if open_answer is None:
                open_answer = own
            else:
                parts = [*_parts(open_answer), *_parts(own)]
                open_answer["message"] = {"role": "model", "parts": parts}
            continue
        if own.get("type") == SYSTEM and own.get("subtype") != BOOTSTRAP:
            continue
        if open_answer is not None:
            yield open_answer
            open_answer = None
        yield _bootstrapped(own)
    if open_answer is not None:
        yield open_answer


def _bootstrapped(record: Record) -> Record:
    """A fork's agent begins with the history of another: to a session that is what a compaction leaves."""
    if record.get("subtype") != BOOTSTRAP or record.get("type") != SYSTEM:
        return record
    history = inner(record, "systemPayload").get("history")
    payload = {"compressedHistory": history if isinstance(history, list) else []}
    return record | {"subtype": COMPRESSION, "systemPayload": payload}


def _parts(record: Record) -> list[object]:
    parts = inner(record, "message").get("parts")
    return parts if isinstance(parts, list) else []
