"""Parts of a Gemini content that came in pieces, put together again: words, and the arguments of a call."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .jsonl import Record

_WORDS = frozenset({"text", "thought", "thoughtSignature"})
_SNAKE = re.compile(r"(?<=[a-z0-9])_+([a-z0-9])")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,6})\]|\[['\"]([^'\"]*)['\"]\]")
_DEEPEST = 100
"""Steps of a path into arguments; nobody nests them deeper."""
_VALUES = ("stringValue", "numberValue", "boolValue")


def camel(record: Record) -> Record:
    """An object with its keys as the wire spells them; what stands under them is left as it is. None says nothing.

    One that is spelled so already is given back itself: histories are long, and sent again and again."""
    if is_camel(record):
        return record
    return {
        _SNAKE.sub(lambda found: found[1].upper(), key) if isinstance(key, str) and "_" in key else key: value
        for key, value in record.items()
        if value is not None
    }


def is_camel(record: Record) -> bool:
    """Whether an object is spelled as the wire does."""
    try:
        return "_" not in "".join(record) and None not in record.values()
    except TypeError:  # a key that is no text
        return False


def joined(parts: Iterable[Any]) -> list[Any]:
    """Parts with neighbouring words made one, up to a signature: a stream cuts them where it likes, and may end with
    none. The pieces of a call are one call."""
    found: list[Any] = []
    words: list[str] = []
    """The pieces of the part that was found last, where that is words."""
    for part in parts:
        before: Any = found[-1] if found else None
        if _is_words(part):
            if not part["text"] and "thoughtSignature" not in part:
                continue
            if words and _goes_on(before, part):
                words.append(part["text"])
                found[-1] = {**before, **part}
            else:
                _settle(found, words)
                words = [part["text"]]
                found.append(part)
            continue
        _settle(found, words)
        words = []
        call, begun = _call_in(part), _call_in(before)
        if call is None:
            found.append(part)
        elif begun is not None and begun.get("willContinue") is True and "name" not in call:
            found[-1] = {**before, **part, "functionCall": _called(begun, call)}
        else:
            found.append({**part, "functionCall": _called({}, call)} if "partialArgs" in call else part)
    _settle(found, words)
    return found


def _settle(found: list[Any], words: list[str]) -> None:
    """Put the pieces of words together, all at once: there may be very many."""
    if len(words) > 1:
        found[-1] = {**found[-1], "text": "".join(words)}


def _is_words(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str) and part.keys() <= _WORDS


def _goes_on(before: Record, part: Record) -> bool:
    return bool(before.get("thought")) == bool(part.get("thought")) and "thoughtSignature" not in before


def _call_in(part: Any) -> Record | None:
    call = part.get("functionCall") if isinstance(part, dict) else None
    return camel(call) if isinstance(call, dict) else None


def _called(begun: Record, piece: Record) -> Record:
    """A call with one more piece of its arguments."""
    args = piece.get("args", begun.get("args", {}))
    given = piece.get("partialArgs")
    for one in (camel(one) for one in given if isinstance(one, dict)) if isinstance(given, list) else ():
        steps = _STEP.findall(str(one.get("jsonPath", "")))[:_DEEPEST]
        keys = [int(number) if number else name or quoted for name, number, quoted in steps]
        args = _put(args, keys, next((one[key] for key in _VALUES if key in one), None))
    whole = {**begun, **piece, "args": args, "willContinue": piece.get("willContinue")}
    return {key: value for key, value in whole.items() if key != "partialArgs" and value is not None}


def _put(into: Any, keys: list[str | int], value: Any) -> Any:
    """A value with another put somewhere in it; a text that is there already grows."""
    if not keys:
        return into + value if isinstance(into, str) and isinstance(value, str) else value
    key, rest = keys[0], keys[1:]
    if isinstance(key, str):
        record = into if isinstance(into, dict) else {}
        return {**record, key: _put(record.get(key), rest, value)}
    items = list(into) if isinstance(into, list) else []
    before = items[key] if key < len(items) else None
    items[key : key + 1] = [_put(before, rest, value)]
    return items
