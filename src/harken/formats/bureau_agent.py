"""`bureau-agent-v1`: the conversation of Bureau's native agent, a CBOR array of messages.

A message is `{Role, Content}`, a block `{Type, Text, ToolUse, ToolResult, ServerToolUse, ServerToolResult, Thinking}`
with the fields that do not apply present as null (the originals are Go structs without tags). There is no system
role, no id and no time; what a tool of ours answered stands in a message of the user, what a provider's tool
answered stands in the assistant's. One message gives several events, told apart by `index`: 0 begins a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from harken.errors import BadRecord
from harken.events import Event, Output, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.base import clean
from harken.events.cbor import CBOR, array_head, dumps, join_arrays, loads

from .base import Format, Loss, Written
from .kit.claims import NO_CLAIM, Claim

BureauBlock = dict[str, Any]

_BLANK: BureauBlock = {
    "Type": "",
    "Text": "",
    "ToolUse": None,
    "ToolResult": None,
    "ServerToolUse": None,
    "ServerToolResult": None,
    "Thinking": None,
}
_NO_PLACE = "a message has a role and blocks, and no place for this"
_ENVELOPE = ("message_id", "agent_id", "time", "substance", "cause", "api_id")


# -- reading ---------------------------------------------------------------------------------------------------------


def _read(data: bytes) -> list[Event]:
    try:
        messages = loads(data)
    except BadRecord as problem:
        return [Output(raw=data, why=str(problem), media_type="application/octet-stream")]
    if not isinstance(messages, list):
        return [Output(raw=data, why="bureau-agent-v1 is a CBOR array", media_type=CBOR)]
    return [event for message in messages for event in _read_message(message)]


def _read_message(message: Any) -> list[Event]:
    try:
        role, blocks = message["Role"], message["Content"]
        if role not in ("user", "assistant"):
            raise BadRecord(f"unknown role {role!r}")
        if not blocks:
            raise BadRecord("a message without content")
        events = [_read_block(role, block) for block in blocks]
    except (BadRecord, KeyError, TypeError, AttributeError) as problem:
        why = str(problem) if isinstance(problem, BadRecord) else f"not a message: {problem}"
        return [Output(raw=dumps(message), why=why, media_type=CBOR)]
    return [event.replace(index=index) for index, event in enumerate(events)]


def _read_block(role: str, block: Any) -> Event:
    kind = _text(block["Type"])
    read = _BLOCKS.get((role, kind))
    if read is None:
        raise BadRecord(f"unknown block {kind!r} in a message of role {role!r}")
    return read(block)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if not isinstance(value, str):
        raise BadRecord(f"text expected, not {type(value).__name__}")
    return value


def _json(value: Any) -> bytes:
    return value if isinstance(value, bytes) else _text(value).encode("utf-8", "surrogatepass")


def _call(field: str, *, server: bool) -> Callable[[BureauBlock], Event]:
    def read(block: BureauBlock) -> Event:
        use = block[field]
        return ToolCall(id=_text(use["ID"]), name=_text(use["Name"]), input=_json(use.get("Input")), server_tool=server)

    return read


def _tool_result(block: BureauBlock) -> Event:
    result = block["ToolResult"]
    error = result.get("IsError", False)
    return ToolResult(id=_text(result["ToolUseID"]), output=_text(result.get("Content")), is_error=bool(error))


def _server_result(block: BureauBlock) -> Event:
    result = block["ServerToolResult"]
    return ToolResult(id=_text(result["ToolUseID"]), output=_text(result.get("Content")))


def _thinking(block: BureauBlock) -> Event:
    thought = block["Thinking"]
    return Thinking(content=_text(thought.get("Content")), signature=_text(thought.get("Signature")))


_BLOCKS: dict[tuple[str, str], Callable[[BureauBlock], Event]] = {
    ("user", "text"): lambda block: Prompt(content=_text(block["Text"])),
    ("user", "tool_result"): _tool_result,
    ("assistant", "text"): lambda block: Response(content=_text(block["Text"])),
    ("assistant", "thinking"): _thinking,
    ("assistant", "tool_use"): _call("ToolUse", server=False),
    ("assistant", "server_tool_use"): _call("ServerToolUse", server=True),
    ("assistant", "server_tool_result"): _server_result,
}


# -- writing ---------------------------------------------------------------------------------------------------------


class _Writing:
    """The messages so far, and what could not be said."""

    def __init__(self) -> None:
        self.items: list[bytes] = []
        self.lost: Counter[str] = Counter()
        self._servers: set[str] = set()
        self._role = ""
        self._record = ""
        self._blocks: list[BureauBlock] = []

    def take(self, event: Event) -> None:
        if isinstance(event, Output) and (kept := _kept_message(event)):
            self.close()
            self.items.append(kept)
            return
        self._note_envelope(event)
        block = self._block(event)
        if block is None:
            self.lost[event.kind] += 1
            return
        role = "user" if block["Type"] == "tool_result" or isinstance(event, Prompt) else "assistant"
        if role != self._role or self._begins(event):
            self.close()
        self._role, self._record = role, event.api_id or event.message_id
        self._blocks.append(block)

    def _begins(self, event: Event) -> bool:
        # Without ids the index tells where a message begins. With them, one message may be spread over several
        # records: an assistant's share the provider's id, and the answers to parallel calls belong together.
        if not event.message_id:
            return not event.index
        if isinstance(event, ToolResult):
            return self._role == "user" and self._blocks[-1]["Type"] != "tool_result"
        return self._record != (event.api_id or event.message_id)

    def close(self) -> None:
        """End the message that is open."""
        if self._blocks:
            self.items.append(dumps({"Role": self._role, "Content": self._blocks}))
        self._role, self._record, self._blocks = "", "", []

    def _block(self, event: Event) -> BureauBlock | None:
        match event:
            case Prompt(content=content) | Response(content=content):
                return _BLANK | {"Type": "text", "Text": clean(content)}
            case Thinking():
                thought = {"Content": clean(event.content), "Signature": clean(event.signature)}
                return _BLANK | {"Type": "thinking", "Thinking": thought}
            case ToolCall():
                kind, field = ("server_tool_use", "ServerToolUse") if event.server_tool else ("tool_use", "ToolUse")
                if event.server_tool:
                    self._servers.add(event.id)
                use = {"ID": clean(event.id), "Name": clean(event.name), "Input": event.input or b"{}"}
                return _BLANK | {"Type": kind, field: use}
            case ToolResult() if event.id in self._servers:
                result: BureauBlock = {"ToolUseID": clean(event.id), "Content": clean(event.output).encode()}
                self.lost["error of a server tool"] += event.is_error
                return _BLANK | {"Type": "server_tool_result", "ServerToolResult": result}
            case ToolResult():
                result = {"ToolUseID": clean(event.id), "Content": clean(event.output), "IsError": event.is_error}
                return _BLANK | {"Type": "tool_result", "ToolResult": result}
        return None

    def _note_envelope(self, event: Event) -> None:
        for name in _ENVELOPE:
            self.lost[name] += getattr(event, name) not in ("", None)
        self.lost["images"] += len(getattr(event, "images", ()))
        self.lost["source"] += isinstance(event, Prompt) and event.source != "user"
        self.lost["model"] += isinstance(event, Response) and event.model != ""


def _kept_message(event: Output) -> bytes:
    """The message that an opaque event was made from, if that is what it was made from."""
    if event.media_type != CBOR:
        return b""
    try:
        value = loads(event.raw)
    except BadRecord:
        return b""
    return event.raw if isinstance(value, dict) and "Role" in value else b""


def _write(events: Sequence[Event]) -> Written:
    writing = _Writing()
    for event in events:
        writing.take(event)
    writing.close()
    losses = tuple(Loss(what=what, count=count, why=_NO_PLACE) for what, count in sorted(writing.lost.items()) if count)
    return Written(data=array_head(len(writing.items)) + b"".join(writing.items), losses=losses)


def _claim(head: bytes, path: str = "") -> Claim:
    if 0x81 <= (head[0] if head else 0) <= 0x9B and b"dRole" in head[:400] and b"gContent" in head:
        return Claim(score=90, reason="it is a CBOR array of messages with `Role` and `Content`")
    return NO_CLAIM


FORMAT = Format(
    name="bureau-agent-v1",
    media_type="application/cbor",
    description="A CBOR array (RFC 8949) of messages: `Role` (user or assistant) and `Content`, a list of blocks.",
    empty=b"\x80",
    join=join_arrays,
    claim=_claim,
    reader=_read,
    writer=_write,
    places=lambda data: len(_read(data)),
    names_stored=True,
)
