"""Every session, as a trace and as a request: what is written obeys the rules of those who read it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harken import formats
from harken.context.translate import translate
from harken.context.walk import Piece
from harken.events import Event, Metric, Prompt, Response, ToolCall, ToolResult
from harken.events.tally import Tally
from harken.formats import narrative
from harken.formats.base import CHARACTERS_PER_TOKEN
from harken.testing.formats import unsaid
from support.every_session import session_sources, told
from support.gen_ai_schema import INPUT, OUTPUT
from support.recordings import CORPUS

SOURCES = session_sources()
EVERY = pytest.mark.parametrize(("path", "name"), SOURCES, ids=[f"{name}-{Path(path).name}" for path, name in SOURCES])
OTEL = formats.get("otel-genai-v1")
MESSAGES = formats.get("anthropic-messages-v1")


# -- traces ------------------------------------------------------------------------------------------------------------


@EVERY
def test_a_trace_has_messages_as_the_conventions_have_them(path: str, name: str) -> None:
    for what, events in told(path, name):
        written = OTEL.write(events)

        for key, text in messages_in(written.data):
            for check in validators()[key]:
                check.validate(json.loads(text))
        again = OTEL.read(written.data)
        assert not unsaid(events, written, again), what
        if not any(loss.what == "figures of runs" for loss in written.losses):
            assert Tally.of(events).tokens == Tally.of(again).tokens, what
        told_before = calls_and_results(events)
        more = calls_and_results(again) - told_before
        assert not [one for one in more if one in told_before], what


def calls_and_results(events: Iterable[Event]) -> Counter[tuple[str, str]]:
    """How often each call is made and answered, as far as it has an id."""
    return Counter((event.kind, event.id) for event in events if isinstance(event, ToolCall | ToolResult) and event.id)


def messages_in(data: bytes) -> Iterator[tuple[str, str]]:
    """The messages of every call of a trace; a span has the fields that OTLP asks for on the way."""
    for resource in json.loads(data)["resourceSpans"] if data else ():
        for span in (span for scope in resource["scopeSpans"] for span in scope["spans"]):
            assert (32, 16) == (len(span["traceId"]), len(span["spanId"]))
            assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
            said = {one["key"]: one["value"] for one in span["attributes"]}
            assert said["gen_ai.operation.name"]["stringValue"] in ("chat", "execute_tool", "invoke_agent")
            for key in ("gen_ai.input.messages", "gen_ai.output.messages"):
                if key in said:
                    yield key, said[key]["stringValue"]


@cache
def validators() -> dict[str, list[jsonschema.Draft202012Validator]]:
    """A short schema that names every part, and the published ones, which let any part pass, where they are at hand."""
    found = {"gen_ai.input.messages": [INPUT], "gen_ai.output.messages": [OUTPUT]}
    folder = CORPUS / "schemas" / "open-telemetry__semantic-conventions" if CORPUS else None
    for key, schemas in found.items():
        if folder is not None:
            file = key.replace("gen_ai.", "gen-ai-").replace(".", "-") + ".json"
            schemas.append(json.loads((folder / file).read_text()))
    return {key: [jsonschema.Draft202012Validator(one) for one in schemas] for key, schemas in found.items()}


@pytest.mark.parametrize(("reason", "expected"), [("end_turn", "stop"), ("max_tokens", "length"), ("pause", "stop")])
def test_why_a_model_stopped_is_told_in_the_words_of_the_conventions(reason: str, expected: str) -> None:
    events = [Prompt(content="?"), Response(content="!"), Metric(output_tokens=1, stop_reason=reason)]
    (_, _), (_, text) = messages_in(OTEL.write(events).data)

    assert expected == json.loads(text)[0]["finish_reason"]
    assert [reason] == [event.stop_reason for event in OTEL.read(OTEL.write(events).data) if isinstance(event, Metric)]


# -- requests ----------------------------------------------------------------------------------------------------------


@EVERY
def test_a_request_alternates_and_answers_every_call_at_once(path: str, name: str) -> None:
    for _, events in told(path, name):
        check_request(json.loads(MESSAGES.write(events).data))
    format = formats.get(name)
    data = format.context(Path(path).read_bytes())
    made = translate([Piece(name=name, format=format, data=data, current=True)], MESSAGES)

    check_request(json.loads(made.data))


def check_request(body: dict[str, Any]) -> None:
    messages = body["messages"]
    roles = [one["role"] for one in messages]
    # A fragment may begin with what a model said: nobody's words are made up for it.
    assert roles == [("user", "assistant")[(at + (roles[0] == "assistant")) % 2] for at in range(len(roles))]
    waiting: list[str] = []
    for message in messages:
        blocks = message["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        assert blocks, "a message says something"
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(waiting) == sorted(results)
        assert len(results) == len([b for b in blocks[: len(results)] if b["type"] == "tool_result"]), "they come first"
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert len(calls) == len(set(calls))
        assert not calls or message["role"] == "assistant"
        waiting = calls
    assert not waiting, "no call is left without a result"


# -- narratives --------------------------------------------------------------------------------------------------------


@EVERY
def test_a_narrative_is_no_longer_than_its_budget(path: str, name: str) -> None:
    for what, events in told(path, name):
        for budget in (narrative.SMALLEST, 1000):
            text = narrative.write_within(events, budget).data.decode()

            assert len(text) <= budget * CHARACTERS_PER_TOKEN, what
