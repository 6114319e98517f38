"""Gemini contents as events: both spellings, ids that are missing, chunks, and whatever else may stand there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from harken.events import Event, Image, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats.kit.gemini import CallIds, content_events, contents_of, instructions_of, usage_of
from harken.formats.kit.gemini_joining import camel
from harken.formats.transcript.events import plain

Content = dict[str, Any]


def events_of(*contents: Any) -> list[Event]:
    ids = CallIds()
    return [event for one in contents_of(list(contents)) for event in content_events(ids.named(one))]


def user(*parts: Any) -> Content:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Any) -> Content:
    return {"role": "model", "parts": list(parts)}


def call(name: str, call_id: str | None = None, **args: Any) -> Content:
    return {"functionCall": {"name": name, "args": args, **({"id": call_id} if call_id else {})}}


def answer(name: str, call_id: str | None = None, **response: Any) -> Content:
    return {"functionResponse": {"name": name, "response": response, **({"id": call_id} if call_id else {})}}


def test_a_conversation_is_read_in_order() -> None:
    said = events_of(
        user({"text": "Look at this"}, {"inlineData": {"mimeType": "image/png", "data": "-_-_"}}),
        model({"text": "hm", "thought": True, "thoughtSignature": "c2ln"}, {"text": "I see."}, call("zoom", "c1", x=2)),
        user(answer("zoom", "c1", result=4), {"text": "well?"}),
    )
    assert [
        Prompt(content="Look at this", images=(Image(media_type="image/png", data="+/+/"),)),
        Thinking(content="hm"),
        Output(raw=b'{"part_fields":{"thoughtSignature":"c2ln"}}'),
        Response(content="I see."),
        ToolCall(id="c1", name="zoom", input=b'{"x":2}'),
        ToolResult(id="c1", name="zoom", output='{"result":4}'),
        Prompt(content="well?"),
    ] == said


def test_objects_of_the_sdk_are_read_as_the_wire_is() -> None:
    part = types.Part
    contents = [
        types.Content(
            role="user", parts=[part(text="hi"), part.from_bytes(data=b"\xff\xfe\xfd", mime_type="audio/wav")]
        ),
        types.Content(
            role="model",
            parts=[
                part(text="mm", thought=True, thought_signature=b"\x01\xff"),
                part(function_call=types.FunctionCall(name="f", args={"snake_case": {"a_b": 1}})),
                part(executable_code=types.ExecutableCode(code="1+1", language=types.Language.PYTHON)),
                part(
                    code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_FAILED, output="no")
                ),
            ],
        ),
        types.Content(role="user", parts=[part.from_function_response(name="f", response={"error": "x"})]),
    ]
    spoken = [event for event in events_of(*map(plain, contents)) if not isinstance(event, Output)]
    prompt, thought, asked, code, ran, failed = spoken
    assert Prompt(content="hi", images=(Image(media_type="audio/wav", data="//79"),)) == prompt
    assert Thinking(content="mm") == thought
    assert ToolCall(id="call_1", name="f", input=b'{"snake_case":{"a_b":1}}') == asked
    assert isinstance(code, ToolCall)
    assert isinstance(ran, ToolResult)
    assert ("code_execution", True, {"language": "PYTHON", "code": "1+1"}) == (
        code.name,
        code.server_tool,
        json.loads(code.input),
    )
    assert (code.id, "no", True) == (ran.id, ran.output, ran.is_error)
    assert ToolResult(id="call_1", name="f", output='{"error":"x"}', is_error=True) == failed


def test_calls_without_ids_are_joined_to_their_answers_by_name_and_order() -> None:
    said = events_of(
        user("go"),
        model(call("a", n=1), call("b", n=2), call("a", n=3)),
        user(answer("b", r=2), answer("a", r=1), answer("a", r=3)),
        model(call("a", n=4)),
        user(answer("a", r=4), answer("c", r=5)),
    )
    calls = {event.id: json.loads(event.input)["n"] for event in said if isinstance(event, ToolCall)}
    results = [(event.id, json.loads(event.output)["r"]) for event in said if isinstance(event, ToolResult)]
    assert {"call_1": 1, "call_2": 2, "call_3": 3, "call_4": 4} == calls
    assert [("call_2", 2), ("call_1", 1), ("call_3", 3), ("call_4", 4), ("", 5)] == results


def test_a_reply_goes_on_with_the_names_of_its_request() -> None:
    ids = CallIds()
    for one in contents_of([user("go"), model(call("a")), user(answer("a"))]):
        ids.named(one)
    (reply,) = contents_of(model(call("a")))
    assert "call_2" == ids.named(reply)["parts"][0]["functionCall"]["id"]


def test_chunks_that_a_chat_keeps_one_by_one_are_what_the_model_said() -> None:
    chunks = [
        model({"text": "mu", "thought": True}),
        model({"text": "se", "thought": True}),
        model({"text": "Hel"}),
        model({"text": "lo"}),
        model({"text": "", "thoughtSignature": "c2ln"}),
    ]
    whole = model({"text": "muse", "thought": True}, {"text": "Hello", "thoughtSignature": "c2ln"})
    assert events_of(user("hi"), whole) == events_of(user("hi"), *chunks)
    assert [Prompt(content="hi"), Thinking(content="muse"), Response(content="Hello")] == events_of(user("hi"), whole)[
        :3
    ]


def test_the_arguments_of_a_call_may_come_in_pieces() -> None:
    def piece(path: str, more: bool = False, **value: Any) -> Content:
        return {
            "functionCall": {"partialArgs": [{"jsonPath": path, "willContinue": more, **value}], "willContinue": True}
        }

    said = events_of(
        user("go"),
        model({"functionCall": {"name": "book", "willContinue": True}}),
        model(piece("$.city", more=True, stringValue="New ")),
        model(piece("$.city", stringValue="York")),
        model(piece("$.guests[0].name", stringValue="Ann"), piece("$.guests[0]['age']", numberValue=7)),
        model(piece("$.guests[9]", boolValue=True), piece("$.note", nullValue="NULL_VALUE")),
        model({"functionCall": {}}),
        model(call("wait", n=1)),
    )
    first, second = (event for event in said if isinstance(event, ToolCall))
    guests = [{"name": "Ann", "age": 7}, True]
    assert {"city": "New York", "guests": guests, "note": None} == json.loads(first.input)
    assert ("book", "wait", 3) == (first.name, second.name, len(said))


def test_the_signature_on_a_call_is_kept_behind_it() -> None:
    _, besides = events_of(model({**call("f", "c"), "thoughtSignature": "c2ln"}))
    assert isinstance(besides, Output)
    assert ({"part_fields": {"thoughtSignature": "c2ln"}}, "") == (json.loads(besides.raw), besides.why)


def test_tools_of_the_provider_media_of_the_model_and_the_unknown_are_kept() -> None:
    said = events_of(
        model(
            {"toolCall": {"toolType": "GOOGLE_SEARCH", "args": {"q": 1}}},
            {"toolResponse": {"toolType": "GOOGLE_SEARCH", "response": {"hits": 2}}},
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
            {"hologram": {}},
        )
    )
    asked, found, picture, unknown = said
    assert ToolCall(id="call_1", name="google_search", input=b'{"q":1}', server_tool=True) == asked
    assert ToolResult(id="call_1", name="google_search", output='{"hits":2}') == found
    assert ["media that the model made", "unknown part of a content: hologram"] == [
        one.why for one in (picture, unknown) if isinstance(one, Output)
    ]


def test_a_file_that_the_provider_keeps_is_an_address() -> None:
    part = {"fileData": {"fileUri": "https://files/1", "mimeType": "application/pdf"}}
    assert [Prompt(images=(Image(media_type="application/pdf", url="https://files/1"),))] == events_of(user(part))


@pytest.mark.parametrize(
    "given",
    ["Be brief.", {"parts": [{"text": "Be brief."}]}, {"text": "Be brief."}, {"parts": {"text": "Be brief."}}],
)
def test_instructions_come_in_several_shapes(given: Any) -> None:
    assert "Be brief." == instructions_of(given)
    assert [System(subtype="instructions", message="Be brief.")] == events_of({"role": "system", "parts": "Be brief."})


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 14}, (10, 4, None, None)),
        (
            {
                "promptTokenCount": 100,
                "cachedContentTokenCount": 60,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 7,
                "toolUsePromptTokenCount": 3,
                "totalTokenCount": 115,
            },
            (43, 12, 60, 7),
        ),
        # Some models count what they thought among what they said: then the total is without it.
        (
            {"prompt_token_count": 10, "candidates_token_count": 9, "thoughts_token_count": 7, "total_token_count": 19},
            (10, 9, None, 7),
        ),
        ({"promptTokenCount": 10}, (10, None, None, None)),
        ({"total_input_tokens": 8, "total_output_tokens": 2, "total_thought_tokens": 1}, (8, 3, None, 1)),
    ],
)
def test_every_token_counts_once(usage: Any, expected: Any) -> None:
    metric = usage_of(usage)
    assert metric is not None
    assert expected == (metric.input_tokens, metric.output_tokens, metric.cache_read_tokens, metric.reasoning_tokens)


def test_usage_that_nobody_told_is_unknown() -> None:
    assert [None, None, None] == [usage_of(given) for given in (None, {}, {"promptTokenCount": "many"})]
    assert Metric(input_tokens=1, served="flex") == usage_of({"promptTokenCount": 1, "trafficType": "ON_DEMAND_FLEX"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.sampled_from(
        ["role", "parts", "text", "thought", "functionCall", "function_response", "inline_data", "args", "response",
         "name", "id", "executableCode", "codeExecutionResult", "toolCall", "thought_signature", "x"]
    ), inside, max_size=5),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_whatever_stands_there_is_read(value: Any) -> None:
    assert all(isinstance(event, Event) for event in events_of(value))
    instructions_of(value)
    usage_of(value)


@given(st.dictionaries(st.text(), st.integers()))
def test_keys_are_spelled_once(record: dict[str, int]) -> None:
    assert camel(record) == camel(camel(record))
