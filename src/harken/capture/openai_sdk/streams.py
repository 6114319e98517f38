"""Streams put together again: from chunks and events to the reply that they would have been in one piece."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from harken.formats.kit.jsonl import Record

NAMES = frozenset({"role", "id", "type", "index", "name", "object", "call_id", "format"})
"""What a later piece says again and does not add to; some servers leave it empty there."""
TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


class WholeReply(NamedTuple):
    """A reply as far as it came."""

    body: Record
    whole: bool
    error: Any = None
    """What the provider said went wrong in the middle."""


# -- chat completions --------------------------------------------------------------------------------------------------


def join_chunks(chunks: Iterable[Record], *, done: bool) -> WholeReply:
    """The completion that the chunks are; `done` where the provider said that there are no more."""
    body: Record = {}
    choices: dict[int, Record] = {}
    error = None
    for chunk in chunks:
        error = chunk.get("error") or error
        body |= {key: value for key, value in chunk.items() if value is not None and key not in ("choices", "error")}
        for choice in _records(chunk.get("choices")):
            index = choice.get("index")
            index = index if isinstance(index, int) else 0
            own = choices.setdefault(index, {"index": index, "message": {"role": "assistant"}})
            _add(own["message"], choice.get("delta"))
            _add(own, {key: value for key, value in choice.items() if key in ("logprobs", "content_filter_results")})
            own |= {key: choice[key] for key in ("finish_reason", "stop_reason") if choice.get(key) is not None}
    body["choices"] = [choices[index] for index in sorted(choices)]
    finished = bool(choices) and all(choice.get("finish_reason") for choice in choices.values())
    return WholeReply(body, (done or finished) and not error, error)


def _records(value: object) -> list[Record]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _add(into: Record, piece: object) -> None:
    """Add a piece to what came before it: texts grow, objects are joined, the rest is as it was said last."""
    if not isinstance(piece, dict):
        return
    for key, value in piece.items():
        before = into.get(key)
        if value is None:
            into.setdefault(key, None)
        elif key == "content" and (isinstance(before, list) or isinstance(value, list)):
            into[key] = _parts(before)
            _add_parts(into[key], _parts(value))
        elif isinstance(before, str) and isinstance(value, str):
            into[key] = (value or before) if key in NAMES else before + value
        elif isinstance(value, dict):
            into[key] = before if isinstance(before, dict) else {}
            _add(into[key], value)
        elif isinstance(value, list):
            into[key] = before if isinstance(before, list) else []
            _add_all(into[key], value)
        else:
            into[key] = value


def _parts(content: object) -> list[Any]:
    """Content as the parts that it is made of."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def _add_parts(into: list[Any], pieces: list[Any]) -> None:
    """Parts of a content that comes now as text and now as a list (Mistral's thoughts): those of a kind are joined."""
    for piece in pieces:
        last = into[-1] if into else None
        kind = piece.get("type") if isinstance(piece, dict) else None
        if not isinstance(last, dict) or last.get("type") != kind or kind not in ("text", "thinking"):
            into.append(piece)
        elif isinstance(last.get(kind), list) and isinstance(piece.get(kind), list):
            _add_parts(last[kind], piece[kind])
        else:
            _add(last, piece)


def _add_all(into: list[Any], pieces: list[Any]) -> None:
    """Pieces of a list say by their index to which element they belong; without one, by their id, or to the last. Some
    servers (Ollama) give every call the same index: one that has a name and another id is another call."""
    for piece in pieces:
        if not isinstance(piece, dict):
            into.append(piece)
            continue
        index, own_id = piece.get("index"), piece.get("id")
        numbered = isinstance(index, int)
        of_it = [one for one in into if isinstance(one, dict) and numbered and one.get("index") == index][-1:]
        if of_it and _is_another_call(of_it[0], piece):
            of_it = []
        if not numbered and not own_id and "function" in piece:
            of_it = [one for one in into[-1:] if isinstance(one, dict)]
        if not of_it:
            into.append({})
            of_it = into[-1:]
        _add(of_it[0], piece)


def _is_another_call(known: Record, piece: Record) -> bool:
    function, ids = piece.get("function"), (known.get("id"), piece.get("id"))
    return isinstance(function, dict) and bool(function.get("name")) and all(ids) and ids[0] != ids[1]


# -- responses ---------------------------------------------------------------------------------------------------------


def join_events(events: Iterable[Record]) -> WholeReply:
    """The response that the events are."""
    body: Record = {}
    items: dict[int, Record] = {}
    whole, error = False, None
    for event in events:
        kind = event.get("type")
        at = event.get("output_index")
        if isinstance(said := event.get("response"), dict):
            body |= said
            whole = whole or kind in TERMINAL
        elif kind == "error" or "error" in event:
            error = event.get("error") or {key: event.get(key) for key in ("code", "message", "param")}
        elif isinstance(at, int) and isinstance(item := event.get("item"), dict):
            items[at] = item
        elif isinstance(at, int) and isinstance(kind, str):
            _grow(items, at, kind, event)
    output = body.get("output")
    if not (whole and isinstance(output, list) and output):
        body["output"] = [items[at] for at in sorted(items)]
    return WholeReply(body, whole and not error, error)


_TEXTS = {
    "response.output_text.delta": ("message", "content", "content_index", "output_text", "text"),
    "response.refusal.delta": ("message", "content", "content_index", "refusal", "refusal"),
    "response.reasoning_text.delta": ("reasoning", "content", "content_index", "reasoning_text", "text"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary", "summary_index", "summary_text", "text"),
}
"""A piece of text: of which item, in which list, where in it, of which kind of part, under which key."""
_FIELDS = {
    "response.function_call_arguments.delta": ("function_call", "arguments"),
    "response.mcp_call_arguments.delta": ("mcp_call", "arguments"),
    "response.custom_tool_call_input.delta": ("custom_tool_call", "input"),
    "response.code_interpreter_call_code.delta": ("code_interpreter_call", "code"),
}


def _grow(items: dict[int, Record], at: int, kind: str, event: Record) -> None:
    """Add a piece to an item that is not done."""
    piece = event.get("delta")
    if not isinstance(piece, str):
        return
    if kind in _FIELDS:
        of, field = _FIELDS[kind]
        item = items.setdefault(at, {"type": of})
        item[field] = (item.get(field) or "") + piece
    elif kind in _TEXTS:
        of, field, place, part_kind, key = _TEXTS[kind]
        item = items.setdefault(at, {"type": of, **({"role": "assistant"} if of == "message" else {})})
        number = event.get(place)
        parts = item[field] = item.get(field) or []
        while len(parts) <= (number if isinstance(number, int) and number < 1000 else 0):
            parts.append({"type": part_kind, key: ""})
        part = parts[number if isinstance(number, int) and number < len(parts) else 0]
        part[key] = (part.get(key) or "") + piece
