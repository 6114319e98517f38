"""Requests of the Responses API."""

from __future__ import annotations

import json

from harken.events import Image, Metric, Output, Prompt, Response, System, ToolCall, ToolResult
from harken.formats import codex
from harken.formats.openai_responses import FORMAT
from support.rollouts import Rollout


def test_instructions_before_the_conversation_are_the_requests_own() -> None:
    written = FORMAT.write(
        [
            System(subtype="init"),
            System(subtype="instructions", message="be brief"),
            System(subtype="instructions", message="dev", metadata=b'{"role":"developer"}'),
            Prompt(content="hi"),
            System(subtype="instructions", message="later"),
        ]
    )

    assert {
        "instructions": "be brief",
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "dev"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "later"}]},
        ],
    } == json.loads(written.data)


def test_a_codex_conversation_is_what_codex_sends() -> None:
    rollout = Rollout(base_instructions={"text": "be brief"}).turn("a").call("c").output("c").call("d").turn("b")

    written = json.loads(FORMAT.write(codex.read(rollout.data)).data)

    assert "be brief" == written["instructions"]
    assert codex.request_items(rollout.data) == written["input"]


def test_a_response_is_read_with_its_usage() -> None:
    data = json.dumps(
        {
            "id": "resp_1",
            "model": "m",
            "created_at": 1794739067,
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
                {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"},
            ],
            "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 40}, "output_tokens": 5},
        }
    ).encode()

    said, call, metric = FORMAT.read(data)

    assert isinstance(said, Response) and isinstance(call, ToolCall) and isinstance(metric, Metric)
    assert ("hi", "m", 1794739067_000_000) == (said.content, said.model, said.time)
    assert ("resp_1", 60, 40, 5) == (
        metric.api_id,
        metric.input_tokens,
        metric.cache_read_tokens,
        metric.output_tokens,
    )


def test_short_forms_of_the_input_are_understood() -> None:
    (as_text,) = FORMAT.read(b'{"input":"hi"}')
    (as_list,) = FORMAT.read(b'[{"role":"user","content":"hi"}]')
    (output,) = FORMAT.read(b'{"input":[{"type":"function_call_output","call_id":"c","output":"x"}]}')

    assert [("hi", "user")] * 2 == [(event.content, event.source) for event in (as_text, as_list)]
    assert ToolResult(message_id="@0", id="c", output="x") == output


def test_what_is_not_an_item_is_kept_with_the_reason() -> None:
    events = FORMAT.read(b'{"input":[1,{"type":"novel"}]}') + FORMAT.read(b"nonsense")

    assert ["not an item", "unknown item 'novel'"] == [e.why for e in events if isinstance(e, Output)][:2]
    assert all(isinstance(event, Output) and event.why for event in events)


def test_requests_are_joined_by_their_input() -> None:
    joined = FORMAT.join([b'{"instructions":"a","input":"one"}', b'{"input":[{"role":"user","content":"two"}]}'])

    assert ["a", "one", "two"] == [
        event.message if isinstance(event, System) else event.content for event in FORMAT.read(joined)
    ]


def test_joining_keeps_what_a_response_gave_and_what_the_newest_request_set() -> None:
    asked = b'{"model":"m1","previous_response_id":"r0","tools":[{"name":"f"}],"stream":true,"input":"one"}'
    answered = b"""{"object":"response","id":"r1","model":"m2","instructions":null,"output":[
        {"type":"function_call","name":"f","arguments":"{}","call_id":"c"}]}"""
    result = b"""{"instructions":"be brief","previous_response_id":"r1","input":[
        {"type":"function_call_output","call_id":"c","output":"x"}]}"""

    joined = FORMAT.join([asked, answered, result])

    assert [Prompt, ToolCall, ToolResult] == [type(event) for event in FORMAT.read(joined)[1:]]
    document = json.loads(joined)
    assert ("m2", "be brief", "r0") == tuple(document[key] for key in ("model", "instructions", "previous_response_id"))
    assert [{"name": "f"}] == document["tools"]
    assert {"model", "instructions", "previous_response_id", "tools", "input"} == document.keys()
    assert joined == FORMAT.join([FORMAT.join([asked, answered]), result])


def test_a_pdf_is_a_file_of_the_message_and_for_codex_a_document_that_is_lost() -> None:
    pdf, address = Image(media_type="application/pdf", data="JVBERi0="), "https://example.com/a.pdf"
    events = [Prompt(content="Look", images=(pdf, Image(media_type="application/pdf", url=address)))]

    made = FORMAT.write(events)

    assert [
        {"type": "input_text", "text": "Look"},
        {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
        {"type": "input_file", "file_url": address},
    ] == json.loads(made.data)["input"][0]["content"]
    assert () == made.losses
    assert [("document", 2)] == [(loss.what, loss.count) for loss in codex.FORMAT.write(events).losses]
    (read,) = FORMAT.read(made.data)
    assert isinstance(read, Prompt) and pdf == read.images[0]
