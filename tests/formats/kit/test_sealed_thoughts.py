"""Thoughts without words: hidden by the provider, or only signed; a provider takes back each only as what it was."""

from __future__ import annotations

import orjson
import pytest

from harken.events import Event, Prompt, Response, Thinking
from harken.formats import get
from harken.formats.kit.anthropic_writing import arrange

SIGNED = {"type": "thinking", "thinking": "", "signature": "c2lnbmVk"}
HIDDEN = {"type": "redacted_thinking", "data": "aGlkZGVu"}
SAID = {"type": "thinking", "thinking": "Hm.", "signature": "c2FpZA=="}


def conversation() -> list[Event]:
    """One reply of Anthropic's with a thought of each kind."""
    messages = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": [SIGNED, HIDDEN, SAID, {"type": "text", "text": "So."}]},
    ]
    return list(get("anthropic-messages-v1").read(orjson.dumps({"messages": messages})))


def blocks(events: list[Event]) -> list[object]:
    told = (block for said in arrange(events, thinking=True).messages for block in said.blocks)
    return [block for block in told if "thinking" in block["type"]]


@pytest.mark.parametrize(
    "name",
    [
        "anthropic-messages-v1",
        "openai-chat-v1",
        "events-v1",
        "session-log-v2",
        "transcript-v1",
        "otel-genai-v1",
        "atif-v1",
    ],
)
def test_a_thought_without_words_comes_back_as_the_kind_that_it_was(name: str) -> None:
    written = get(name).write(conversation())

    assert [SIGNED, HIDDEN, SAID] == blocks(list(get(name).read(written.data)))


def test_a_thought_of_which_nobody_knows_the_kind_goes_back_as_a_hidden_one() -> None:
    events: list[Event] = [Prompt(content="Why?"), Thinking(signature="aGlkZGVu"), Response(content="So.")]

    assert [HIDDEN] == blocks(events)


def test_what_a_runtime_says_in_place_of_a_hidden_thought_is_not_sent_as_its_words() -> None:
    line = {"type": "thinking", "thinking": "[Reasoning redacted]", "thinkingSignature": "aGlkZGVu", "redacted": True}
    message = {"role": "assistant", "content": [line, {"type": "text", "text": "So."}]}
    head = b'{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00Z","cwd":"/"}\n'
    record = {"type": "message", "id": "a", "parentId": None, "timestamp": "2026-01-01T00:00:00Z", "message": message}

    events = list(get("pi-v1").read(head + orjson.dumps(record) + b"\n"))

    assert [HIDDEN] == blocks(events)
