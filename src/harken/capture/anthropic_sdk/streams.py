"""Streams put together again: from the events of a stream to the message that it would have been in one piece."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from harken.events.base import clean
from harken.formats.kit.jsonl import NotJson, Record, parse, parse_document
from harken.text import text_of

_TEXTS = {"text_delta": "text", "thinking_delta": "thinking"}
"""Deltas that add to a text of their block."""
_VALUES = {"signature_delta": ("signature",), "compaction_delta": ("content", "encrypted_content", "signature")}
"""Deltas that say a value of their block whole."""
INPUT = "partial_json"
"""Where the arguments of a call stand while they are not complete."""


def framed_events(body: bytes) -> Iterator[Record]:
    """The events of a stream of Bedrock's: each stands in a frame of AWS, as JSON that holds it in base64."""
    at = 0
    while at + _FRAME <= len(body):
        length, heads = (int.from_bytes(body[at + place : at + place + 4], "big") for place in (0, 4))
        if length < _FRAME or at + length > len(body):
            return
        said = parse(body[at + 12 + heads : at + length - 4]) or {}
        try:
            event = parse(b64decode(text_of(said.get("bytes")), validate=True))
        except ValueError:
            event = None
        if event is not None:
            yield event
        elif b":exception-type" in body[at + 12 : at + 12 + heads]:
            yield {"type": "error", "error": said}
        at += length


_FRAME = 16
"""The bytes of a frame beside its heads and what it says."""


class WholeMessage(NamedTuple):
    """A message as far as it came."""

    body: Record
    whole: bool
    error: Any = None
    """What the provider said went wrong in the middle."""


def join_events(events: Iterable[Record]) -> WholeMessage:
    """The message that the events are."""
    body: Record = {}
    blocks: dict[int, Record] = {}
    whole, error = False, None
    for event in events:
        match event.get("type"):
            case "message_start":
                body |= _object(event.get("message"))
            case "content_block_start":
                blocks[_index(event, blocks)] = dict(_object(event.get("content_block")))
            case "content_block_delta":
                _grow(blocks.setdefault(_index(event, blocks), {}), _object(event.get("delta")))
            case "content_block_stop":
                _close(blocks.get(_index(event, blocks), {}))
            case "message_delta":
                _change(body, event)
                whole = whole or body.get("stop_reason") is not None
            case "message_stop":
                whole = True
            case "error":
                error = event.get("error") or event
    body["content"] = [blocks[at] for at in sorted(blocks)] or body.get("content") or []
    return WholeMessage(body, whole and not error, error)


def _index(event: Record, blocks: Record | dict[int, Record]) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else len(blocks) - 1


def _grow(block: Record, delta: Record) -> None:
    kind = text_of(delta.get("type"))
    if kind in _TEXTS:
        block.setdefault("type", _TEXTS[kind])
        block[_TEXTS[kind]] = text_of(block.get(_TEXTS[kind])) + text_of(delta.get(_TEXTS[kind]))
    elif kind == "input_json_delta":
        block[INPUT] = text_of(block.get(INPUT)) + text_of(delta.get("partial_json"))
    elif kind == "citations_delta":
        before = block.get("citations")
        block["citations"] = [*(before if isinstance(before, list) else ()), delta.get("citation")]
    elif kind in _VALUES:
        block |= {key: delta[key] for key in _VALUES[kind] if key in delta}
    else:
        block |= {key: value for key, value in delta.items() if key != "type"}


def _close(block: Record) -> None:
    """All of a block has come: arguments are what their pieces say together."""
    if isinstance(text := block.get(INPUT), str):
        try:
            block["input"] = parse_document(clean(text).encode()) if text else block.get("input", {})
        except NotJson:
            return
        del block[INPUT]


def _change(body: Record, event: Record) -> None:
    """What is known of a message only at its end. Figures are totals; those that are left out stand as they were."""
    said = {
        **{key: event[key] for key in event if key not in ("type", "delta", "usage")},
        **_object(event.get("delta")),
    }
    body |= {key: value for key, value in said.items() if value is not None}
    usage = {key: value for key, value in _object(event.get("usage")).items() if value is not None}
    body["usage"] = {**_object(body.get("usage")), **usage}


def _object(value: object) -> Record:
    return value if isinstance(value, dict) else {}
