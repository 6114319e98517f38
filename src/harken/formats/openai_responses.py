"""`openai-responses-v1`: a request of the OpenAI Responses API, `{"instructions", "input": [items]}`.

Written, it is what would go to the model. Read, a bare list of items, a string of `input` and a response object with
its `output` and `usage` are understood as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from harken.clock import instant_of_seconds
from harken.errors import BadRecord
from harken.events import Event, Metric, Output, System
from harken.events.base import figure

from .base import Format, Written
from .kit.claims import NO_CLAIM, Claim
from .kit.jsonl import NotJson, Record, encode, parse_beginning, parse_document
from .kit.openai import ITEMS, Speaker, item_events, text_of
from .kit.openai_tools import TOOL_ITEMS, tool_item_events
from .kit.openai_writing import to_items


def _write(events: Sequence[Event]) -> Written:
    instructions, rest = _lead(events)
    items, losses = to_items(rest, documents=True)
    body: Record = {"instructions": instructions} if instructions else {}
    return Written(data=encode({**body, "input": [said.item for said in items]}), losses=losses)


def _lead(events: Sequence[Event]) -> tuple[str, list[Event]]:
    """The system's instructions before anything is said are the request's own; a developer's are messages."""
    texts = []
    rest: list[Event] = []
    for number, event in enumerate(events):
        if isinstance(event, System) and event.subtype == "instructions" and b"developer" not in event.metadata:
            texts.append(event.message)
        elif isinstance(event, System | Output | Metric):
            rest.append(event)
        else:
            rest.extend(events[number:])
            break
    return "\n\n".join(texts), rest


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
        raise BadRecord(f"not a Responses document: {problem}") from None
    if isinstance(value, list):
        value = {"input": value}
    if not isinstance(value, dict):
        raise BadRecord("a Responses document is an object or a list of items")
    return value


def _join(deltas: Iterable[bytes]) -> bytes:
    """One request with the items of all, those that a response gave among them; a single one is left as it is.

    Settings are those of the newest that has them. What came before the first is still named by that one alone."""
    parts = list(deltas)
    if len(parts) == 1:
        return parts[0]
    documents = [_document(part) for part in parts]
    body = {key: value for one in documents for key, value in one.items() if key in _SETTINGS and value is not None}
    before = {key: documents[0][key] for key in _BEFORE if documents and documents[0].get(key) is not None}
    said = [item for one in documents for item in _items(one)]
    return encode({**body, **before, "input": said})


def _places(data: bytes) -> int:
    try:
        value = _document(data)
    except BadRecord:
        return 1
    return len(_items(value))


def _items(value: Record) -> list[Any]:
    """What was given to the model, then what it answered: the order in which a next request gives them again."""
    return [*_given(value.get("input")), *_given(value.get("output"))]


def _given(value: object) -> list[Any]:
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    return value if isinstance(value, list) else []


def events_in(value: Record) -> Iterator[Event]:
    """What a request or a response says."""
    speaker = Speaker()
    speaker.model = text_of(value.get("model"))
    time = instant_of_seconds(value.get("created_at"))
    if instructions := text_of(value.get("instructions")):
        yield System(message_id="instructions", subtype="instructions", message=instructions, time=time)
    for number, item in enumerate(_items(value)):
        yield from read_item(item, {"message_id": f"@{number}", "time": time}, speaker)
    yield from _usage(value, time)


def read_item(item: Any, fields: dict[str, Any], speaker: Speaker) -> list[Event]:
    """The events of one item; what nobody can read is an `Output` with the reason."""
    why = "not an item"
    if isinstance(item, dict):
        if "type" not in item and "role" in item:
            item = {"type": "message", **item}
        try:
            if events := item_events(item, fields, speaker) or tool_item_events(item, fields):
                return events
            why = "" if item.get("type") in ITEMS else f"unknown item {text_of(item.get('type'))[:80]!r}"
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as problem:
            why = f"damaged item: {type(problem).__name__}"
    return [Output(raw=encode(item), why=why, **fields)]


def _usage(value: Record, time: int | None) -> Iterator[Event]:
    usage = value.get("usage")
    if not isinstance(usage, dict):
        return
    details = usage.get("input_tokens_details")
    more = usage.get("output_tokens_details")
    cached = figure(details.get("cached_tokens")) if isinstance(details, dict) else None
    given = figure(usage.get("input_tokens"))
    yield Metric(
        message_id="usage",
        api_id=text_of(value.get("id")),
        time=time,
        model=text_of(value.get("model")),
        input_tokens=None if given is None else max(given - (cached or 0), 0),
        output_tokens=figure(usage.get("output_tokens")),
        cache_read_tokens=cached,
        reasoning_tokens=figure(more.get("reasoning_tokens")) if isinstance(more, dict) else None,
    )


_REQUEST = frozenset(
    {
        "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "store", "stream",
        "include", "text", "metadata", "previous_response_id", "max_output_tokens", "max_tool_calls", "temperature",
        "top_p", "top_logprobs", "truncation", "user", "prompt", "prompt_cache_key", "prompt_cache_retention",
        "safety_identifier", "service_tier", "background", "conversation", "stream_options", "client_metadata",
        "verbosity", "context_management",
    }
)  # fmt: skip
"""The fields of a request; a document with others is somebody's own."""
_BEFORE = ("previous_response_id", "conversation")
"""What the provider itself puts before the items of a request."""
_SETTINGS = _REQUEST.difference(_BEFORE, {"input", "stream", "stream_options", "background"})
"""What the next request says again, if nothing changes; how an answer is delivered is no part of a conversation."""


def _claim(head: bytes, path: str = "") -> Claim:
    """Whether a whole document is a request or a response of this API."""
    body = parse_beginning(head)
    if not isinstance(body, dict):
        return NO_CLAIM
    if body.get("object") == "response" and isinstance(body.get("output"), list):
        return Claim(score=95, reason="it is a response of OpenAI's Responses API")
    items = body.get("input")
    if not isinstance(items, list) or not body.keys() <= _REQUEST or not all(map(_is_item, items)):
        return NO_CLAIM
    return Claim(score=90, reason="it is a request of OpenAI's Responses API")


def _is_item(item: Any) -> bool:
    """Whether it is one of the API's items, as far as it can be seen: the last one may be cut."""
    if not isinstance(item, dict):
        return False
    kind = item.get("type", "message" if "role" in item else None)
    return kind in ITEMS or kind in TOOL_ITEMS or kind == "item_reference" or not item


FORMAT = Format(
    name="openai-responses-v1",
    media_type="application/json",
    description="A request of the OpenAI Responses API: `instructions` and the `input` items, as sent to the model.",
    empty=b'{"input":[]}',
    join=_join,
    claim=_claim,
    reader=_read,
    writer=_write,
    places=_places,
    pairs_calls=True,
)
