"""Replies of Anthropic's API as events, whatever they hold and however they came."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from harken.capture.anthropic_sdk.replies import read_message
from harken.capture.anthropic_sdk.streams import WholeMessage, framed_events, join_events
from harken.events import Response, Thinking, ToolCall
from harken.events.cbor import encode_events
from support.anthropic_wire import message_steps

MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "Let me see.", "signature": "sig"},
        {"type": "redacted_thinking", "data": "sealed"},
        {"type": "text", "text": "I look.", "citations": [{"type": "char_location", "cited_text": "look"}]},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.txt", "deep": {"x": [1, 2]}}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"type": "web_search_result"}]},
        {"type": "compaction", "content": "What was said.", "encrypted_content": "sealed"},
        {"type": "hologram", "of": "a fox"},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "context_management": {"applied_edits": []},
    "usage": {"input_tokens": 3, "output_tokens": 7, "cache_creation": {"ephemeral_1h_input_tokens": 2}},
}
STEPS = list(message_steps(MESSAGE))


def test_a_stream_says_what_the_whole_message_says() -> None:
    whole = read_message(WholeMessage(MESSAGE, whole=True), "req_1")
    streamed = read_message(join_events(json.loads(json.dumps(STEPS))), "req_1")

    assert whole == streamed
    assert 7 == len(whole.events)
    assert "partial" in whole.metadata and whole.metadata["partial"] is None


@pytest.mark.parametrize("count", range(len(STEPS)))
def test_a_stream_that_ends_anywhere_is_partial_until_the_model_said_why_it_stopped(count: int) -> None:
    reply = read_message(join_events(STEPS[:count]), "")

    finished = any(step["type"] == "message_delta" for step in STEPS[:count])
    assert (None if finished else True) == reply.metadata["partial"]
    assert reply.events


def test_a_call_of_which_only_the_beginning_came_keeps_it() -> None:
    steps = [step for step in STEPS if step.get("index") == 3][:2]

    (call,) = read_message(join_events(steps), "").events

    assert isinstance(call, ToolCall)
    assert ("toolu_1", "read", b'{"path": "a.txt", "d') == (call.id, call.name, call.input)


def frame(payload: bytes, heads: bytes = b"") -> bytes:
    length = 16 + len(heads) + len(payload)
    return length.to_bytes(4, "big") + len(heads).to_bytes(4, "big") + b"crc1" + heads + payload + b"crc2"


def test_the_frames_of_bedrock_hold_the_same_events() -> None:
    frames = [
        frame(json.dumps({"bytes": base64.b64encode(json.dumps(step).encode()).decode()}).encode()) for step in STEPS
    ]

    assert STEPS == list(framed_events(b"".join(frames)))
    assert STEPS[:-1] == list(framed_events(b"".join(frames)[:-1]))
    broken = frame(b'{"message":"Too many"}', b"\x0f:exception-type\x07\x00\x13throttlingException")
    reply = read_message(join_events(framed_events(frames[0] + broken)), "")
    assert ({"message": "Too many"}, True) == (reply.metadata["error"], reply.metadata["partial"])


ODD: list[Any] = [
    *("x\ud800y", "", "text", 10**40, float("nan"), None, True, -1, [], {}, {"type": ["text"], "\ud800": 1}),
    *([[], {}, "x\udfff", 1], [{"type": "text", "text": 1}], [{"type": {}}]),
]


def changed(value: Any, odd: Any) -> Iterator[Any]:
    """The value with each of its fields, at any depth, changed to the odd one in turn."""
    places: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in places:
        for one in (odd, *changed(inner, odd)):
            copy = value.copy()
            copy[key] = one
            yield copy


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: f"{odd!r:.20}")
def test_any_field_may_hold_anything(odd: Any) -> None:
    for message in changed(MESSAGE, odd):
        encode_events(read_message(WholeMessage(message, whole=True), "").events)
    for steps in changed(STEPS, odd):
        events = [step for step in steps if isinstance(step, dict)]
        encode_events(read_message(join_events(events), "").events)


@pytest.mark.parametrize("data", [b"", b"\0" * 40, b"\0\0\0\x10\xff\xff\xff\xff" + b"x" * 20, b"{}" * 20])
def test_frames_that_are_none_say_nothing(data: bytes) -> None:
    assert [] == list(framed_events(data))


def test_kinds_of_blocks_are_kinds_of_events() -> None:
    events = read_message(WholeMessage(MESSAGE, whole=True), "").events

    assert [Thinking, Thinking, Response, ToolCall] == [type(event) for event in events[:4]]
    assert {"msg_1"} == {event.api_id for event in events}
