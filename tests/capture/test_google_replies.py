"""Replies of Google's APIs as events, however they are cut and whatever stands in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.capture.google_sdk.replies import GoogleReply, read_contents, token_in
from harken.capture.google_sdk.steps import join_events, read_interaction, step_events, steps_in
from harken.events import Error, Event, Image, Output, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.formats.kit.gemini import CallIds
from support.google_wire import contents_chunks, interaction_events

USAGE = {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12}
PARTS = st.lists(
    st.one_of(
        st.builds(lambda text: {"text": text}, st.text(min_size=1)),
        st.builds(lambda text: {"text": text, "thought": True}, st.text(min_size=1)),
        st.builds(lambda name: {"functionCall": {"name": name, "args": {"a": name}}}, st.text(min_size=1)),
    ),
    max_size=6,
)


def whole(*parts: Any, **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0, **more}
    return {"candidates": [candidate], "usageMetadata": USAGE, "responseId": "r", "modelVersion": "m-1"}


def read(*chunks: Any, streamed: bool = True) -> GoogleReply:
    return read_contents([list(chunks)], CallIds(), "m", None, streamed=streamed)


@given(PARTS)
def test_a_reply_in_chunks_is_the_reply_in_one_piece(parts: list[Any]) -> None:
    reply = whole(*parts)
    assert read(reply) == read(*contents_chunks(reply))


@given(PARTS)
def test_an_interaction_in_events_is_the_interaction_in_one_piece(parts: list[Any]) -> None:
    steps = [_step(part, number) for number, part in enumerate(parts)]
    body = {"id": "i", "status": "completed", "model": "m", "steps": steps, "usage": {"total_input_tokens": 5}}
    joined, ended, error = join_events(interaction_events(body))
    expected = read_interaction(body, "m", whole=True, error=None, problem=None)
    assert expected == read_interaction(joined, "m", whole=ended, error=error, problem=None)


def _step(part: dict[str, Any], number: int) -> dict[str, Any]:
    if "functionCall" in part:
        asked = part["functionCall"]
        return {"type": "function_call", "id": f"f{number}", "name": asked["name"], "arguments": asked["args"]}
    content = [{"type": "text", "text": part["text"]}]
    if part.get("thought"):
        return {"type": "thought", "summary": content, "signature": "c2ln"}
    return {"type": "model_output", "content": content}


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        ({"finishReason": "SAFETY"}, "the reply was blocked: SAFETY"),
        ({"finishReason": "RECITATION", "finishMessage": "quoted"}, "the reply was blocked: quoted"),
        ({"finishReason": "MALFORMED_FUNCTION_CALL"}, "the reply has no content: MALFORMED_FUNCTION_CALL"),
    ],
)
def test_a_candidate_that_is_kept_back_says_why(candidate: dict[str, Any], words: str) -> None:
    found = read({"candidates": [candidate]}, streamed=False)
    assert [words] == [event.message for event in found.events if isinstance(event, Error)]


def test_a_reply_can_be_continued_until_it_is_at_its_end() -> None:
    cut = {"continuationToken": "t"}
    assert ["t", "t", ""] == [
        token_in([whole({"text": "a"}, finishReason=reason, **cut)]) for reason in ("CONTINUATION", "", "STOP")
    ]
    assert read(whole({"text": "a"}, finishReason="CONTINUATION")).metadata["partial"] is True


def test_a_signature_alone_is_an_entry_without_words() -> None:
    found = read(whole({"text": "", "thoughtSignature": "c2ln"}))
    assert [Response, Output] == [type(event) for event in found.events]


@pytest.mark.parametrize(
    ("given_input", "expected"),
    [
        ("hi", [Prompt(content="hi")]),
        ({"type": "text", "text": "hi"}, [Prompt(content="hi")]),
        (
            [{"type": "text", "text": "see"}, {"type": "image", "data": "AAAA", "mime_type": "image/png"}],
            [Prompt(content="see", images=(Image(media_type="image/png", data="AAAA"),))],
        ),
        (
            [{"role": "user", "content": "hi"}, {"role": "model", "content": [{"type": "text", "text": "yes"}]}],
            [Prompt(content="hi"), Response(content="yes")],
        ),
        (
            [
                {"type": "user_input", "content": "hi"},
                {"type": "thought", "signature": "s", "summary": [{"type": "text", "text": "hm"}]},
                {"type": "google_search_call", "id": "g", "arguments": {"queries": ["x"]}},
                {"type": "google_search_result", "call_id": "g", "result": [{"hits": 1}]},
                {"type": "mcp_server_tool_call", "id": "m", "name": "look", "server_name": "s", "arguments": {}},
                {"type": "function_result", "call_id": "f", "name": "read", "result": {"text": "a", "more": 1}},
            ],
            [
                Prompt(content="hi"),
                Thinking(content="hm"),
                Output(raw=b'{"part_fields":{"signature":"s"}}'),
                ToolCall(id="g", name="google_search", input=b'{"queries":["x"]}', server_tool=True),
                ToolResult(id="g", name="google_search", output='[{"hits":1}]'),
                ToolCall(id="m", name="look", input=b"{}", server_tool=True),
                ToolResult(id="f", name="read", output='{"text":"a","more":1}'),
            ],
        ),
    ],
)
def test_the_input_of_an_interaction_comes_in_several_shapes(given_input: Any, expected: list[Event]) -> None:
    assert expected == [event for step in steps_in(given_input) for event in step_events(step)]


def test_what_the_provider_ran_and_what_came_of_it_are_its_own() -> None:
    found = read(
        whole(
            {"executableCode": {"language": "PYTHON", "code": "1+1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
            {"text": "Two."},
        )
    )
    assert [True] == [event.server_tool for event in found.events if isinstance(event, ToolCall)]
    told = [about for event, about in zip(found.events, found.each, strict=True) if isinstance(event, ToolResult)]
    assert [{"kind": "server_tool"}] == told


KEYS = st.sampled_from(
    ["candidates", "content", "parts", "text", "finishReason", "index", "usageMetadata", "promptFeedback", "error",
     "promptTokenCount", "functionCall", "name", "args", "partialArgs", "jsonPath", "stringValue", "willContinue",
     "steps", "type", "event_type", "interaction", "step", "delta", "summary", "arguments", "result", "usage", "status"]
)  # fmt: skip
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats()
VALUES |= st.sampled_from(["step.delta", "interaction.completed", "user_input", "model_output", "thought", "failed"])
JSON = st.recursive(
    VALUES, lambda inside: st.lists(inside, max_size=4) | st.dictionaries(KEYS, inside, max_size=5), max_leaves=20
)


@given(JSON, JSON)
def test_whatever_a_reply_is_it_is_read(one: Any, other: Any) -> None:
    for found in (read(one, other), read(one, streamed=False)):
        assert len(found.events) == len(found.each)
    token_in([one, other])
    body, ended, error = join_events([one, other])
    read_interaction(body, "m", whole=ended, error=error, problem=None)
    read_interaction(one if isinstance(one, dict) else {}, "m", whole=True, error=other, problem=None)
    events = [event for step in steps_in(one) for event in step_events(step)]
    assert all(isinstance(event, Event) for event in events)


def test_what_the_host_gave_is_not_changed() -> None:
    reply = whole(
        {"text": "a"}, {"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$.a", "numberValue": 1}]}}
    )
    before = json.dumps(reply)
    read(reply)
    assert before == json.dumps(reply)
