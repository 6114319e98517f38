"""Calls that a model makes at once stay together, also where each is an item with an id of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.formats import get

ITEMS: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": "go"},
    {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"},
    {"type": "custom_tool_call", "id": "ctc_2", "call_id": "b", "name": "g", "input": "{}"},
    {"type": "function_call_output", "call_id": "b", "output": "2"},
    {"type": "custom_tool_call_output", "call_id": "a", "output": "1"},
]


@pytest.mark.parametrize("named", [True, False], ids=["with ids", "without ids"])
@pytest.mark.parametrize("to", ["anthropic-messages-v1", "openai-chat-v1"])
def test_items_that_were_called_at_once_are_one_message(to: str, named: bool) -> None:
    items = [{key: value for key, value in item.items() if named or key != "id"} for item in ITEMS]
    events = get("openai-responses-v1").read(json.dumps({"input": items}).encode())

    messages = json.loads(get(to).write(events).data)["messages"]

    assert 1 == [message["role"] for message in messages].count("assistant")
