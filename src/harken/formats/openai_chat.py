"""`openai-chat-v1`: a request of OpenAI's chat completions, `{"messages": […]}`, as LiteLLM and many providers take it.

Written, it is what would go to the model. Read, a bare list of messages and a response with its `choices` and `usage`
are understood as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from harken.clock import instant_of_seconds
from harken.errors import BadRecord
from harken.events import Event, Metric, Output
from harken.events.base import figure, text_at

from .base import Format, Written
from .kit.anthropic import BLOCKS
from .kit.chat import PARTS, ROLES, message_events
from .kit.claims import NO_CLAIM, Claim
from .kit.jsonl import NotJson, Record, encode, parse_beginning, parse_document


def _write(events: Sequence[Event]) -> Written:
    from .kit.chat_writing import to_messages  # whoever reads needs none of it

    messages, losses = to_messages(events)
    return Written(data=encode({"messages": messages}), losses=losses)


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(data: bytes) -> list[Event]:
    try:
        value = _document(data)
    except BadRecord as problem:
        return [Output(message_id="@0", raw=data, why=str(problem), media_type="text/plain")] if data else []
    return list(events_in(value))


def _document(data: bytes) -> Record:
    try:
        value = parse_document(data)
    except NotJson as problem:
        raise BadRecord(f"not a chat document: {problem}") from None
    if isinstance(value, list):
        return {"messages": value}
    if isinstance(value, dict) and (isinstance(value.get("messages"), list) or isinstance(value.get("choices"), list)):
        return value
    if isinstance(value, dict) and text_at(value, "role") in ROLES:
        return {"messages": [value]}
    raise BadRecord("a chat document is an object with messages or choices, or a list of messages")


def events_in(value: Record) -> Iterator[Event]:
    """What a request or a response says."""
    model = text_at(value, "model")
    given = _given(value)
    for number, message in enumerate(given):
        yield from _placed(message_events(message, model), number)
    if choices := _choices(value):
        time, api_id = instant_of_seconds(value.get("created")), text_at(value, "id")
        yield from _placed(_answer(choices, model), len(given), time, api_id)
        yield from _usage(value, choices[0], {"time": time, "api_id": api_id})


def _placed(events: Iterable[Event], number: int, time: int | None = None, api_id: str = "") -> Iterator[Event]:
    for index, event in enumerate(events):
        yield event.replace(message_id=f"@{number}", index=index, time=time, api_id=event.api_id or api_id)


def _answer(choices: list[Any], model: str) -> Iterator[Event]:
    """The first choice is what was said; the others were offered beside it, and are kept as they are."""
    yield from message_events(_chosen(choices), model)
    for other in choices[1:]:
        yield Output(raw=encode(other))


def _given(value: Record) -> list[Any]:
    messages = value.get("messages")
    return messages if isinstance(messages, list) else []


def _choices(value: Record) -> list[Any]:
    choices = value.get("choices")
    return choices if isinstance(choices, list) else []


def _chosen(choices: list[Any]) -> Any:
    first = choices[0]
    message = first.get("message") if isinstance(first, dict) else None
    return {"role": "assistant", **message} if isinstance(message, dict) else first


def _usage(value: Record, choice: Any, fields: dict[str, Any]) -> Iterator[Event]:
    usage = value.get("usage")
    if not isinstance(usage, dict):
        return
    given, details = figure(usage.get("prompt_tokens")), _inner(usage, "prompt_tokens_details")
    read = _first(
        details.get("cached_tokens"), usage.get("cache_read_input_tokens"), usage.get("prompt_cache_hit_tokens")
    )
    kept = (details.get(key) for key in ("cache_write_tokens", "cache_creation_tokens"))
    written = _first(*kept, usage.get("cache_creation_input_tokens"))
    cached = (read or 0) + (written or 0)
    tier = text_at(value, "service_tier")
    yield Metric(
        message_id="usage",
        model=text_at(value, "model"),
        # What came from the cache and went into it is counted in, unless it is more than all there is.
        input_tokens=given if given is None or cached > given else given - cached,
        output_tokens=figure(usage.get("completion_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
        cache_write_1h_tokens=figure(_inner(details, "cache_creation_token_details").get("ephemeral_1h_input_tokens")),
        reasoning_tokens=figure(_inner(usage, "completion_tokens_details").get("reasoning_tokens")),
        cost_usd=_cost(usage.get("cost")),
        stop_reason=text_at(choice, "finish_reason") if isinstance(choice, dict) else "",
        served="" if tier in ("auto", "default") else tier,
        **fields,
    )


def _cost(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 2**53:
        return None
    return float(value)


def _inner(value: Record, key: str) -> Record:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _first(*values: object) -> int | None:
    """The first that is a count: providers have several names for one thing, and leave some of them empty."""
    return next((count for value in values if (count := figure(value)) is not None), None)


# -- joining -----------------------------------------------------------------------------------------------------------


def _join(deltas: Iterable[bytes]) -> bytes:
    """One request with the messages of all, what a response said among them; a single one is left as it is.

    Settings are those of the newest that has them."""
    parts = list(deltas)
    if len(parts) == 1:
        return parts[0]
    documents = [_document(part) for part in parts]
    body = {key: value for one in documents for key, value in one.items() if key in _SETTINGS and value is not None}
    return encode({**body, "messages": [message for one in documents for message in _messages(one)]})


def _places(data: bytes) -> int:
    try:
        return len(_messages(_document(data)))
    except BadRecord:
        return 1


def _messages(value: Record) -> list[Any]:
    """What was given to the model, then what it answered, as a next request gives it again."""
    choices = _choices(value)
    return [*_given(value), *([_as_given(_chosen(choices))] if choices else [])]


def _as_given(answer: Any) -> Any:
    """A message as it is sent back: what an answer leaves empty is left out, and of a sound its words stay."""
    if not isinstance(answer, dict):
        return answer
    message = {key: value for key, value in answer.items() if value not in (None, []) or key == "content"}
    audio = message.pop("audio", None)
    if isinstance(audio, dict) and not message.get("content"):
        message["content"] = audio.get("transcript")
    return message


# -- whose file it is --------------------------------------------------------------------------------------------------

_OPENAI = frozenset(
    {
        "max_completion_tokens", "frequency_penalty", "presence_penalty", "function_call", "functions", "logit_bias",
        "logprobs", "top_logprobs", "modalities", "moderation", "audio", "n", "parallel_tool_calls", "prediction",
        "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort", "response_format",
        "safety_identifier", "seed", "stop", "store", "stream_options", "user", "verbosity", "web_search_options",
    }
)  # fmt: skip
"""Fields that a request to Anthropic does not have."""
_REQUEST = _OPENAI | {
    "model", "messages", "max_tokens", "metadata", "service_tier", "stream", "temperature", "tool_choice", "tools",
    "top_p", "top_k", "thinking",
}  # fmt: skip
"""The fields of a request; a document with others is somebody's own."""
_SETTINGS = _REQUEST - {"messages", "stream", "stream_options", "n"}
"""What the next request says again, if nothing changes; how an answer is delivered is no part of a conversation."""
_CHAT = frozenset(
    {
        "tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content", "thinking_blocks",
        "reasoning_items", "reasoning_details", "provider_specific_fields", "audio", "annotations",
    }
)  # fmt: skip
"""Fields that a message to Anthropic does not have."""
_MESSAGE = _CHAT | {"role", "content", "name", "cache_control", "images"}
_ANTHROPIC = BLOCKS - PARTS


def _claim(head: bytes, path: str = "") -> Claim:
    """Whether a whole document is a request or a response of this API, or the messages alone."""
    body = parse_beginning(head)
    if isinstance(body, list):
        body = {"messages": body}
    if not isinstance(body, dict):
        return NO_CLAIM
    if body.get("object") == "chat.completion" and isinstance(body.get("choices"), list):
        return Claim(score=95, reason="it is a response of OpenAI's chat completions")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not body.keys() <= _REQUEST:
        return NO_CLAIM
    # The last message may be cut: then it has no content yet.
    if not all(map(_is_message, messages[:-1])) or not _is_begun(messages[-1]):
        return NO_CLAIM
    if body.keys() & _OPENAI or messages[0].get("role") == "system" or any(map(_is_chat, messages)):
        return Claim(score=92, reason="it is a request of OpenAI's chat completions")
    return Claim(score=55, reason="it is a request with messages of words, which chat completions take")


def _is_begun(message: Any) -> bool:
    """Whether it is a message as far as it can be seen, and has nothing in it that is Anthropic's alone."""
    if not isinstance(message, dict) or not message.keys() <= _MESSAGE:
        return False
    return not message or (text_at(message, "role") in ROLES and not _kinds(message) & _ANTHROPIC)


def _is_message(message: Any) -> bool:
    return _is_begun(message) and ("content" in message or not message.keys().isdisjoint(_CHAT))


def _is_chat(message: Record) -> bool:
    """Whether only chat completions have such a message; words of a user and an assistant may be for any API."""
    if message.get("role") in ("developer", "tool", "function") or not message.keys().isdisjoint(_CHAT):
        return True
    return bool(_kinds(message) & (PARTS - BLOCKS))


def _kinds(message: Record) -> set[str]:
    """What the parts of its content are."""
    content = message.get("content")
    return {text_at(part, "type") for part in content if isinstance(part, dict)} if isinstance(content, list) else set()


FORMAT = Format(
    name="openai-chat-v1",
    media_type="application/json",
    description="A request of OpenAI's chat completions: `messages` with roles, words and calls, as sent to the model.",
    empty=b'{"messages":[]}',
    join=_join,
    claim=_claim,
    reader=_read,
    writer=_write,
    places=_places,
    pairs_calls=True,
)
