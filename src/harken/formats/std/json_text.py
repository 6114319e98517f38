"""The JSON of session documents: read without losing anything, and written as it was read.

msgspec reads what it can, in less time and memory; what it refuses (lone surrogates, and what is no JSON) is left to
the decoder of Python, which also says where it stumbled. A test holds the two against each other.
"""

from __future__ import annotations

import codecs
import itertools
import json
import math
import re
from array import array
from typing import Any

import msgspec

from harken.errors import BadRecord

from .findings import at

Json = dict[str, Any]

DEEPEST = 200
"""How deep objects and lists may lie in one another: more than any session has, and less than any program stumbles
over."""
_DEEPER = 8
"""Levels that a record of an import has around a part of a document."""
_HINT = "`harken std validate` says where, and what may be the cause"


def loads(data: bytes, deepest: int = DEEPEST) -> Any:
    """The value; `BadRecord` where there is none, or one that no program could hold."""
    body = data.removeprefix(codecs.BOM_UTF8)
    depth = nesting(body)
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = _decoded_slowly(body)
    if depth > deepest:
        raise _too_deep()
    return value


def loads_kept(data: bytes) -> Json:
    """The object of a record that an import made of a part of a document: it may lie some levels deeper there than
    documents may. Empty where it is none."""
    try:
        value = loads(data, DEEPEST + _DEEPER)
    except BadRecord:
        return {}
    return value if isinstance(value, dict) else {}


def _decoded_slowly(body: bytes) -> Any:
    try:
        return json.loads(decoded(body), parse_constant=_refused, parse_float=_finite, parse_int=_whole)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as problem:
        raise BadRecord(f"no JSON: {problem}", hint=_HINT) from None


def _too_deep() -> BadRecord:
    return BadRecord(
        f"objects and lists lie more than {DEEPEST} deep in one another", hint="this was not written by an agent"
    )


def dumps(value: Any) -> bytes:
    """The bytes of a JSON value; a lone surrogate is written as the escape that it was read from."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def compact(value: object) -> bytes:
    """A value as JSON on one line; a lone surrogate as the escape that it was read from."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def decoded(data: bytes) -> str:
    """The text of a file, which is UTF-8 in JSON; a byte order mark is passed over."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        encoding = json.detect_encoding(data)
        what = "" if encoding.startswith("utf-8") else f"; the file may be {encoding[:6].upper()}"
        raise BadRecord(f"no JSON: byte {problem.start} is no UTF-8{what}", hint=_HINT) from None


def nesting(data: bytes) -> int:
    """How deep objects and lists lie in one another; told without reading the values, which could already fail."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    outline = data.translate(None, _OTHERS).replace(b'""', b"")  # two texts side by side become one: no matter
    brackets = _TEXTS.sub(b"", outline)
    return max(itertools.accumulate(array("b", brackets.translate(_STEPS))), default=0)


_OTHERS = bytes(set(range(256)) - set(b'[{]}"'))
_TEXTS = re.compile(rb'"[^"]*"')
_STEPS = bytes.maketrans(b'[{]}"', b"\x01\x01\xff\xff\x00")


def _refused(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def _finite(text: str) -> float:
    return float(_bounded(text))


def _whole(text: str) -> int:
    return int(_bounded(text))


def _bounded(text: str) -> str:
    if is_too_large(text):
        raise ValueError(f"{text if len(text) <= 24 else text[:20] + '…'} is too large a number")
    return text


def is_too_large(number: str) -> bool:
    """Whether a number, as JSON writes it, is one that Python cannot hold: a fraction beyond all, a whole number of
    thousands of digits."""
    if (digits := number.removeprefix("-")).isdigit():
        return len(digits) > _MOST_DIGITS
    return number[-1:].isdigit() and math.isinf(float(number))


_MOST_DIGITS = 4300
"""What Python reads and writes as text, unless told otherwise."""


# -- fields that stand twice -------------------------------------------------------------------------------------------


class HiddenValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value that nobody sees, since its field stands once more in the same object."""

    path: str
    value: Any


def hidden_values(data: bytes, value: Any = None) -> list[HiddenValue]:
    """What JSON's rule that the last one counts has hidden, in the order of the document. It is told sooner with the
    value that `loads` gave. `BadRecord` as `loads`."""
    if value is not None and _has_as_many_keys(data, value):
        return []
    text = decoded(data)
    if nesting(data) > DEEPEST or not _has_repeated(text):
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


def _has_as_many_keys(data: bytes, value: Any) -> bool:
    """Whether the value surely has every key of the text: keys are counted by the colon behind them."""
    if b'\\\\"' in data or _GAP.search(data):  # then counting does not do
        return False
    try:
        return _keys(data) == _keys(msgspec.json.encode(value))
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError, OverflowError):
        return False


_GAP = re.compile(rb'"\s+:')


def _keys(data: bytes) -> int:
    return data.count(b'":') - data.count(b'\\":')


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
