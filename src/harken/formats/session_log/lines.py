"""Lines of a session log: bytes in, one `Record` per object out, and nothing a file may hold stops the reading.

Memory is bounded by the line limit, whatever the file: a longer line is counted, its head is kept and the rest is
passed over. Well-formed lines take orjson's road; what orjson refuses (a lone surrogate, a NaN, two objects on a
line) gets a second, slower look, and only what survives neither is given up as data. It is still there as bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import orjson

from harken.events.text import clean

from .dialects import is_current, normalise

MAX_LINE = 16 * 1024 * 1024
"""Longer lines are kept in the file and reported, not read."""
MAX_DEPTH = 200
"""Nesting beyond this is not read: common JSON writers could not write it again."""
HEAD = 64 * 1024
"""How much of an overlong line is kept in its record."""

BLANK = "blank line"
TORN = "no newline at the end"
BROKEN = "not JSON"
OVERLONG = "line too long"
SEVERAL = "several objects on one line"
DEEP = "nested too deeply"
NOT_OBJECT = "not an object"
NOT_UTF8 = "not UTF-8"
SURROGATE = "lone surrogate"
NUMBER = "number beyond 64 bits"
NOT_FINITE = "NaN or infinity"

# A run of this many digits may be a number that orjson would round; a shorter one cannot.
_LONG_NUMBER = b"0" * 20
_DIGITS = bytes(0x30 if 0x30 <= byte <= 0x39 else byte & 0x5F for byte in range(256))
_SPACE = " \t\r\n"
_MAX_DIGITS = 4000


class Record(msgspec.Struct, frozen=True, gc=False):
    """One object of the log, or the bytes that should have been one."""

    line: int
    """Its line, counted from 1."""
    offset: int
    """Where it begins, in bytes from the start of the file."""
    length: int
    """How many bytes it has, without the newline."""
    data: dict[str, Any] | None
    """The object with the keys of v2, whatever the dialect; None where it could not be read."""
    problem: str | None
    """What is odd about it; an odd record may still have data."""
    raw: bytes
    """The bytes as they stand; of an overlong line only the head."""


Reading = tuple[dict[str, Any] | None, str | None, int, int]
"""Data, problem, and the start and end of the object inside its line."""


def read_records(chunks: Iterable[bytes], *, offset: int = 0, line: int = 1) -> Iterator[Record]:
    """The records in a stream of bytes that begins at `offset`, which is the start of line number `line`."""
    loads, record, failed = orjson.loads, Record, orjson.JSONDecodeError
    for raw, length, ended, wide in _split(chunks):
        data: Any = None
        if ended and length == len(raw) and not (wide and _LONG_NUMBER in raw.translate(_DIGITS)):
            try:
                data = loads(raw)
            except failed:
                data = None
        if type(data) is dict and (length < 2 * MAX_DEPTH or _shallow(raw, data)):
            yield record(line, offset, length, data if is_current(data) else normalise(data), None, raw)
        elif length > len(raw):
            yield record(line, offset, length, None, f"{OVERLONG}: {length} bytes", raw)
        else:
            for value, problem, start, end in look_closer(raw):
                if not ended:
                    problem = f"{TORN}; {problem}" if problem else TORN
                yield record(line, offset + start, end - start, value, problem, raw[start:end])
        offset += length + 1
        line += 1


def _split(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, int, bool, bool]]:
    """Lines as (bytes, true length, ended by a newline, may hold a long number)."""
    rest = b""
    skipped = 0  # bytes of an overlong line that were passed over
    for chunk in chunks:
        wide = _LONG_NUMBER in (rest[-20:] + chunk).translate(_DIGITS)
        lines = chunk.split(b"\n")
        last = lines.pop()
        if lines:
            first = lines[0]
            whole = len(rest) + skipped + len(first)
            if whole > MAX_LINE:
                yield (rest + first[:HEAD])[:HEAD], whole, True, False
            else:
                # What was left over comes from an earlier chunk, whose long numbers were not looked for here.
                yield rest + first, whole, True, wide or len(rest) > 20
            rest, skipped = b"", 0
            for line in lines[1:]:
                yield line, len(line), True, wide
        if skipped:
            skipped += len(last)
        else:
            rest = rest + last if rest else last
            if len(rest) > MAX_LINE:
                rest, skipped = rest[:HEAD], len(rest) - HEAD
    if rest:
        yield rest, len(rest) + skipped, False, True


def _shallow(raw: bytes, data: Any) -> bool:
    # Few brackets cannot nest deeply; many may simply stand in a text.
    return raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH or not _depth_exceeds(data, MAX_DEPTH)


def look_closer(raw: bytes) -> list[Reading]:
    """What can be made of a line that is not simply one small object; always at least one reading."""
    if not raw.strip():
        return [(None, BLANK, 0, len(raw))]
    problem = None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text, problem = raw.decode(errors="replace"), NOT_UTF8
    try:
        found = _decode_all(text)
    except RecursionError:
        return [(None, DEEP, 0, len(raw))]
    if found is None:
        return [(None, problem or BROKEN, 0, len(raw))]
    if len(found) == 1:
        value, _, _ = found[0]
        return [(*_accept(value, problem), 0, len(raw))]
    if problem:  # positions in replaced text are not positions in the bytes
        return [(None, problem, 0, len(raw))]
    return [
        (*_accept(value, SEVERAL), len(text[:start].encode()), len(text[:end].encode())) for value, start, end in found
    ]


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


def _decode_all(text: str) -> list[tuple[tuple[Any, str | None], int, int]] | None:
    """Every value on the line with its place; None where the line is not a row of JSON values."""
    found: list[tuple[tuple[Any, str | None], int, int]] = []
    at, size = 0, len(text)
    while True:
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


def _accept(found: tuple[Any, str | None], problem: str | None) -> tuple[dict[str, Any] | None, str | None]:
    value, odd = found
    problems = [text for text in (problem, odd) if text]
    if type(value) is not dict:
        return None, "; ".join([*problems, NOT_OBJECT])
    if _depth_exceeds(value, MAX_DEPTH):
        return None, "; ".join([*problems, DEEP])
    cleaned = _clean(value)
    if cleaned is not value:
        problems.append(SURROGATE)
    data = cleaned if is_current(cleaned) else normalise(cleaned)
    return data, "; ".join(problems) or None


def _depth_exceeds(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        below: list[Any] = []
        for item in level:
            if type(item) is dict:
                below.extend(item.values())
            elif type(item) is list:
                below.extend(item)
        if not below:
            return False
        level = below
    return True


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
