"""The JSON of session documents: read without losing anything, and written as it was read.

Not by msgspec: numbers of any size and lone surrogates have to come back as they were.
"""

from __future__ import annotations

import itertools
import json
import re
from array import array
from collections.abc import Callable
from typing import Any

import msgspec

from harken.errors import BadRecord

from .findings import at

Json = dict[str, Any]

DEEPEST = 200
"""How deep objects and lists may lie in one another: more than any session has, and less than any program stumbles
over."""
_HINT = "`harken std validate` says where, and what may be the cause"


def loads(data: bytes) -> Any:
    """The value; `BadRecord` where there is none, or one that no program could hold."""
    return _parsed(data, None)


def loads_and_repeats(data: bytes) -> tuple[Any, bool]:
    """The value, and whether a field stands twice in one of its objects: then `hidden_values` has what it hides."""
    repeats = False

    def as_object(pairs: list[tuple[str, Any]]) -> Json:
        nonlocal repeats
        made = dict(pairs)
        repeats = repeats or len(made) != len(pairs)
        return made

    return _parsed(data, as_object), repeats


def _parsed(data: bytes, as_object: Callable[[list[tuple[str, Any]]], Json] | None) -> Any:
    text = decoded(data)
    try:
        value = json.loads(
            text, parse_constant=_refused, parse_float=_finite, parse_int=_whole, object_pairs_hook=as_object
        )
    except RecursionError:
        raise _too_deep() from None
    except ValueError as problem:
        raise BadRecord(f"no JSON: {problem}", hint=_HINT) from None
    if nesting(text) > DEEPEST:
        raise _too_deep()
    return value


def _too_deep() -> BadRecord:
    return BadRecord(
        f"objects and lists lie more than {DEEPEST} deep in one another", hint="this was not written by an agent"
    )


def dumps(value: Any) -> bytes:
    """The bytes of a JSON value; a lone surrogate is written as the escape that it was read from."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def decoded(data: bytes) -> str:
    """The text of a file, which is UTF-8 in JSON; a byte order mark is passed over."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        encoding = json.detect_encoding(data)
        what = "" if encoding.startswith("utf-8") else f"; the file may be {encoding[:6].upper()}"
        raise BadRecord(f"no JSON: byte {problem.start} is no UTF-8{what}", hint=_HINT) from None


def nesting(text: str) -> int:
    """How deep objects and lists lie in one another; told without reading the values, which could already fail."""
    brackets = _TEXTS.sub("", _ESCAPES.sub("", text) if "\\" in text else text)
    steps = array("b", brackets.encode("ascii", "ignore").translate(_STEPS, _OTHERS))
    return max(itertools.accumulate(steps), default=0)


_ESCAPES = re.compile(r'\\["\\]')
_TEXTS = re.compile(r'"[^"]*"')
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_OTHERS = bytes(set(range(256)) - set(b"[{]}"))


def _refused(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{_cut(text)} is too large a number")
    return number


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{_cut(text)} is too large a number") from None


def _cut(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:20]}…"


# -- fields that stand twice -------------------------------------------------------------------------------------------


class HiddenValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value that nobody sees, since its field stands once more in the same object."""

    path: str
    value: Any


def hidden_values(data: bytes) -> list[HiddenValue]:
    """What JSON's rule that the last one counts has hidden, in the order of the document. `BadRecord` as `loads`."""
    text = decoded(data)
    if nesting(text) > DEEPEST or not _has_repeated(text):
        return []
    found: list[HiddenValue] = []
    todo: list[tuple[str, Any]] = [("", json.loads(text, object_pairs_hook=_Pairs))]
    while todo:
        path, value = todo.pop()
        if isinstance(value, _Pairs):
            last = {key: number for number, (key, _) in enumerate(value)}
            hidden = [pair for number, pair in enumerate(value) if last[pair[0]] != number]
            found += [HiddenValue(path=at(path, key), value=_plain(below)) for key, below in hidden]
            shown = [(at(path, key), value[number][1]) for key, number in last.items()]
        else:
            shown = [(at(path, number), below) for number, below in enumerate(value)]
        todo += [(where, below) for where, below in reversed(shown) if isinstance(below, _Pairs | list)]
    return found


class _Pairs(tuple[Any, ...]):
    """An object with all of its fields."""


def _has_repeated(text: str) -> bool:
    found = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len(dict(pairs)) != len(pairs)

    try:
        json.loads(text, object_pairs_hook=look)
    except ValueError as problem:
        raise BadRecord(f"no JSON: {problem}", hint=_HINT) from None
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, _Pairs):
        return {key: _plain(below) for key, below in value}
    return [_plain(below) for below in value] if isinstance(value, list) else value
