"""Lines that are not simply one small object: what can be made of them, and what is odd about each."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from harken.events.base import clean
from harken.formats.kit.jsonl import BOM, MAX_OBJECTS, SPACE, refusal, take_apart

from .lines import (
    BLANK,
    BROKEN,
    MARKED,
    NOT_FINITE,
    NOT_OBJECT,
    NOT_UTF8,
    NUMBER,
    ODD_AND_DEEP,
    SEVERAL,
    SURROGATE,
    LineReading,
    is_current,
    normalise,
)

_SPACE = SPACE.decode()
_MAX_DIGITS = 4000


def look_closer(raw: bytes) -> list[LineReading]:
    """What can be made of a line that is not simply one small object; always at least one reading."""
    if raw.startswith(BOM):
        return [_marked(reading) for reading in _look_closer(raw[len(BOM) :])]
    return _look_closer(raw)


def _marked(reading: LineReading) -> LineReading:
    """Some editors put a byte order mark before the first line; it belongs to no object."""
    data, problem, start, end = reading
    begin = start + len(BOM) if data is not None or start else 0
    return data, f"{MARKED}; {problem}" if problem else MARKED, begin, end + len(BOM)


def _look_closer(raw: bytes) -> list[LineReading]:
    if not raw.strip():
        return [(None, BLANK, 0, len(raw))]
    if why := refusal(raw):
        return [(None, why, 0, len(raw))]
    try:
        return _look_at_each(raw)
    except RecursionError:
        return _look_at_depth(raw)


def _look_at_depth(raw: bytes) -> list[LineReading]:
    """What is odd and so deep that only the kit's own parser follows it, which does not say what it met."""
    objects, unread = take_apart(raw, 0, len(raw))
    if unread is not None or not objects:
        return [(None, BROKEN, 0, len(raw))]
    if len(objects) == 1:
        return [(_current(objects[0][0]), ODD_AND_DEEP, 0, len(raw))]
    return [(_current(value), f"{SEVERAL}; {ODD_AND_DEEP}", start, end) for value, start, end in objects]


def _look_at_each(raw: bytes) -> list[LineReading]:
    problem = None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text, problem = raw.decode(errors="replace"), NOT_UTF8
    found = _decode_all(text)
    if found is None:
        return [(None, problem or BROKEN, 0, len(raw))]
    if len(found) == 1:
        value, _, _ = found[0]
        return [(*_accept(value, problem), 0, len(raw))]
    if problem:  # positions in replaced text are not positions in the bytes
        return [(None, problem, 0, len(raw))]
    return list(_places(text, found))


def _places(text: str, found: list[Value]) -> Iterator[LineReading]:
    """Several objects on one line, each where it is in the bytes."""
    at = place = 0
    for value, start, end in found:
        place += len(text[at:start].encode())
        length = len(text[start:end].encode())
        yield (*_accept(value, SEVERAL), place, place + length)
        at, place = end, place + length


class _Numbers:
    """Reads numbers exactly, and remembers whether one of them was beyond what others can read."""

    def __init__(self) -> None:
        self.problem: str | None = None

    def whole(self, digits: str) -> int | float:
        if len(digits) > _MAX_DIGITS:
            self.problem = NUMBER
            return float(digits)
        value = int(digits)
        if not -(2**63) <= value < 2**64:
            self.problem = NUMBER
        return value

    def real(self, text: str) -> float:
        value = float(text)
        if math.isinf(value):
            self.problem = NUMBER
        return value

    def constant(self, text: str) -> float:
        self.problem = NOT_FINITE
        return float(text)


Value = tuple[tuple[Any, str | None], int, int]
"""A value and what is odd about its numbers, and its place in the text."""


def _decode_all(text: str) -> list[Value] | None:
    """Every value on the line with its place; None where the line is not a row of JSON values, or of too many."""
    found: list[Value] = []
    at, size = 0, len(text)
    while len(found) <= MAX_OBJECTS:
        while at < size and text[at] in _SPACE:
            at += 1
        if at == size:
            return found
        numbers = _Numbers()
        decoder = json.JSONDecoder(
            parse_int=numbers.whole, parse_float=numbers.real, parse_constant=numbers.constant, strict=False
        )
        try:
            value, end = decoder.raw_decode(text, at)
        except ValueError:
            return None
        found.append(((value, numbers.problem), at, end))
        at = end
    return None


def _accept(found: tuple[Any, str | None], problem: str | None) -> tuple[dict[str, Any] | None, str | None]:
    value, odd = found
    problems = [text for text in (problem, odd) if text]
    if type(value) is not dict:
        return None, "; ".join([*problems, NOT_OBJECT])
    cleaned = _clean(value)
    if cleaned is not value:
        problems.append(SURROGATE)
    return _current(cleaned), "; ".join(problems) or None


def _current(data: dict[str, Any]) -> dict[str, Any]:
    """With the keys of v2."""
    return data if is_current(data) else normalise(data)


def _clean(value: Any) -> Any:
    """The value with lone surrogates made visible; the very same object where there are none."""
    if type(value) is str:
        return clean(value)
    if type(value) is list:
        items = [_clean(item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if type(value) is dict:
        pairs = {clean(key): _clean(item) for key, item in value.items()}
        same = len(pairs) == len(value) and all(
            a is b and pairs[a] is value[b] for a, b in zip(pairs, value, strict=True)
        )
        return value if same else pairs
    return value
