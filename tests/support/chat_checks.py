"""What OpenAI's chat completions accept: the types of its SDK, taken strictly, and the rules that no type tells."""

from __future__ import annotations

import collections.abc
import json
import re
import typing
from typing import Any, NotRequired, Required, Union, get_type_hints

from openai.types.chat import ChatCompletionMessageParam
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict, is_typeddict

EXTRAS = (
    *("reasoning_content", "thinking_blocks", "reasoning_items", "reasoning_details"),
    *("cache_control", "provider_specific_fields", "extra_content"),
)
"""Fields of LiteLLM, OpenRouter and Google, which the SDK's types do not name."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_strict: dict[Any, Any] = {}


def strict(kind: Any) -> Any:
    """The SDK's type without its leniency: lists are lists, and no other key is taken."""
    if is_typeddict(kind):
        if kind not in _strict:
            fields = {
                key: (Required if key in kind.__required_keys__ else NotRequired)[strict(inner)]
                for key, inner in get_type_hints(kind).items()
            }
            made = TypedDict(kind.__name__, fields)  # type: ignore[operator]
            made.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
            _strict[kind] = made
        return _strict[kind]
    inside = tuple(strict(inner) for inner in typing.get_args(kind))
    if typing.get_origin(kind) is collections.abc.Iterable:
        return list[inside[0]]  # type: ignore[valid-type]
    return Union[inside] if typing.get_origin(kind) is Union else kind  # noqa: UP007


MESSAGES: TypeAdapter[list[Any]] = TypeAdapter(list[strict(ChatCompletionMessageParam)])  # type: ignore[misc]


def without_extras(value: Any) -> Any:
    """The same as OpenAI itself has it."""
    if isinstance(value, dict):
        return {key: without_extras(inner) for key, inner in value.items() if key not in EXTRAS}
    return [without_extras(inner) for inner in value] if isinstance(value, list) else value


def accepted(data: bytes) -> list[dict[str, Any]]:
    """The messages of a request that the API would take; fails with what it would say."""
    messages: list[dict[str, Any]] = json.loads(data)["messages"]
    plain = without_extras(messages)
    assert plain == MESSAGES.validate_python(plain)
    waiting: list[str] = []
    used: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, f"calls that the messages behind them do not answer: {waiting}"
        calls = message.get("tool_calls", [])
        assert message.get("content") or calls, f"an empty message: {message}"
        for call in calls:
            assert 1 <= len(call["id"]) <= 40 and call["id"] not in used
            assert _NAME.fullmatch(call[call["type"]]["name"])
        waiting = [call["id"] for call in calls]
        used |= set(waiting)
    assert not waiting, f"calls without a result: {waiting}"
    return messages
