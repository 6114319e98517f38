"""JSON lines, read leniently and within limits: the one reader of every line format.

What counts as a record is a property of the bytes, not of a library. The fast libraries refuse what real files hold
(lone surrogates, bytes that are not UTF-8, NaN) and disagree on how deep is too deep, so they only serve the lines
they can take; everything else goes to the small parser below, which is the judge they all defer to. The rules are in
FORMAT.md ("Lines of JSON"); in short:

    a record     a line that is exactly one JSON object, with spaces and a byte order mark around it allowed
    the grammar  RFC 8259, and besides NaN, Infinity, -Infinity, and control characters inside strings
    texts        bytes that are not UTF-8 and lone surrogates become U+FFFD
    limits       a line beyond one of them is kept as bytes and never parsed (`refusal` says which)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import orjson

from harken.events.base import clean

Record = dict[str, Any]
"""A JSON object, as a line or a message of a document holds it."""
MAX_LINE = 64 * 1024 * 1024
"""Bytes of a line, its newline not counted."""
MAX_DEPTH = 1000
"""Objects and lists that are open at the same time."""
SHORT = 2 * MAX_DEPTH
"""An object that is deeper has more bytes than this."""
MAX_OBJECTS = 1000
"""Objects on one line."""
LARGE = 1024 * 1024
"""Values are counted in lines longer than this only: a shorter one cannot hold enough of them to hurt."""
MAX_VALUES = 500_000
"""Values on a large line, counted as `,`, `[` and `{` outside strings: `[{},{},…]` takes thirty times its size in
memory when it is parsed."""
TOO_DEEP = f"nested more than {MAX_DEPTH} deep"
CROWDED = f"more than {MAX_VALUES} values on one line"
HEAD = 64 * 1024
"""How much of an overlong line an event carries."""
BOM = b"\xef\xbb\xbf"
SPACE = b" \t\r\n"

Object = dict[str, Any]
Placed = tuple[Object, int, int]
"""An object, and where it begins and ends in its line."""

_SKIP = re.compile(rb"[ \t\r\n]*+")
# Possessive, so that a string of many megabytes costs no backtracking.
_STRING = re.compile(rb'"([^"\\]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\]*+)*+)"')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS: tuple[tuple[bytes, Any], ...] = (
    (b"true", True),
    (b"false", False),
    (b"null", None),
    (b"NaN", float("nan")),
    (b"Infinity", float("inf")),
    (b"-Infinity", float("-inf")),
)
_LONGEST_INTEGER = 20
"""Digits and sign of the longest integer of 64 bits."""

# A string for the limits: to its closing quote or, in a torn line, to the end.
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


class NotJson(ValueError):
    """The bytes are not JSON from the place on where they were asked to be."""


def lines(data: bytes, start: int = 0) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends; the newline belongs to the line, and the last line may lack one."""
    size = len(data)
    while start < size:
        end = data.find(b"\n", start) + 1 or size
        yield start, end
        start = end


def is_blank(line: bytes) -> bool:
    """Whether the line holds nothing but spaces."""
    return not line.strip(SPACE)


def is_overlong(size: int) -> bool:
    """Whether a line of so many bytes, the newline among them, is too long; so that it need not even be copied."""
    return size > MAX_LINE + 1


def refusal(line: bytes) -> str:
    """Why the line is not parsed, whatever it holds; empty where it is within all limits.

    Linear in the line, and for nearly all lines no more than a count of brackets: few of them cannot nest deeply.
    """
    size = len(line)
    if size <= SHORT:
        return ""
    if size > MAX_LINE and size - line.endswith(b"\n") > MAX_LINE:
        return _overlong(size)
    if size <= LARGE:
        # In text, where brackets are few, to leave them out is three times as quick as to count them.
        opened, crowded = 2 * size - len(line.replace(b"[", b"")) - len(line.replace(b"{", b"")), False
    else:
        opened = line.count(b"[") + line.count(b"{")
        crowded = opened + line.count(b",") > MAX_VALUES
    if opened <= MAX_DEPTH and not crowded:
        return ""
    # Larger and larger beginnings, so that a hostile line is told by its first bytes, at twice the work for the others.
    looked = HEAD
    while looked < size and not (why := _excess(line[:looked], crowded)):
        looked *= 4
    return why if looked < size else _excess(line, crowded)


def _overlong(size: int) -> str:
    return f"a line of {size} bytes, more than {MAX_LINE}"


def _excess(line: bytes, crowded: bool) -> str:
    """What there is too much of outside the strings of a line, or of its beginning."""
    bare = _TEXT.sub(b"", line)
    if crowded and bare.count(b"[") + bare.count(b"{") + bare.count(b",") > MAX_VALUES:
        return CROWDED
    return TOO_DEEP if _nests_too_deep(bare) else ""


def _nests_too_deep(bare: bytes) -> bool:
    """Whether brackets stand open too deep in a text without its strings."""
    steps = memoryview(bare.translate(_STEPS, _NOT_BRACKETS)).cast("b")
    return any(depth > MAX_DEPTH for depth in accumulate(steps))


def parse(line: bytes) -> Object | None:
    """The record the line is: exactly one JSON object, within the limits; else None."""
    if len(line) > SHORT and refusal(line):
        return None
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return parse_slowly(line)
    return value if isinstance(value, dict) else None


def parse_slowly(line: bytes) -> Object | None:
    """The same for a line that is known to be within the limits, by the judge alone."""
    try:
        value, end = parse_at(line, len(BOM) if line.startswith(BOM) else 0)
    except NotJson:
        return None
    return value if isinstance(value, dict) and _skip(line, end) == len(line) else None


def read_objects(line: bytes) -> tuple[list[Placed], int]:
    """Every object the line begins with, each with its place, and where the last one ends.

    One object for almost every line; none where it is not JSON or beyond a limit; several where two writers lost the
    newline between them.
    """
    if len(line) > SHORT and refusal(line):
        return [], 0
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _parse_several(line)
    return ([(value, 0, len(line))], len(line)) if isinstance(value, dict) else ([], 0)


def _parse_several(line: bytes) -> tuple[list[Placed], int]:
    found: list[Placed] = []
    at = _skip(line, len(BOM) if line.startswith(BOM) else 0)
    while at < len(line):
        try:
            value, end = parse_at(line, at)
        except NotJson:
            break
        if not isinstance(value, dict):
            break
        if len(found) == MAX_OBJECTS:
            return [], 0
        found.append((value, at, end))
        at = _skip(line, end)
    return found, at if found else 0


def parse_document(data: bytes) -> Any:
    """The value of a whole JSON document, by the same grammar; `NotJson` says what is wrong with it.

    A document has no limit but the depth: whoever takes one in limits its size.
    """
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _nests_too_deep(_TEXT.sub(b"", data)):
        raise NotJson(TOO_DEEP)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        value, end = parse_at(data, len(BOM) if data.startswith(BOM) else 0)
    if _skip(data, end) < len(data):
        raise NotJson(f"something stands behind the value at {end}")
    return value


class Unread(NamedTuple):
    """What of a line is not an object: kept, with the reason."""

    start: int
    raw: bytes
    """The bytes; of an overlong line only the head."""
    why: str


def take_apart(data: bytes, start: int, end: int) -> tuple[list[Placed], Unread | None]:
    """Every object on the line `data[start:end]`, with its place in `data`, and what on the line is none."""
    if is_overlong(end - start):
        # Neither copied nor looked at.
        return [], Unread(start, data[start : start + HEAD], _overlong(end - start))
    line = data[start:end]
    found, behind = read_objects(line)
    if behind == len(line) and len(found) == 1:
        value, first, _ = found[0]
        return [(value, start + first, end)], None
    objects = [(value, start + first, start + last) for value, first, last in found]
    rest = line[behind:].strip(SPACE)
    if not rest:
        return objects, None
    why = "something stands behind the record" if objects else refusal(line) or "the line is not a JSON object"
    return objects, Unread(start + behind, rest, why)


def read_head(head: bytes, most: int = 40) -> Iterator[Object]:
    """The objects that the first lines of a file begin with, or that its first array holds, as they are asked for.

    The last line may be cut anywhere: of its object everything is there that stands before the cut.
    """
    if head.lstrip(SPACE + BOM)[:1] == b"[":
        items = parse_beginning(head)
        yield from [item for item in items[:most] if isinstance(item, dict)] if isinstance(items, list) else []
        return
    for start, end in lines(head):
        line = head[start:end]
        value = parse(line)
        if value is None and not line.endswith(b"\n"):
            value = parse_beginning(line)
        if isinstance(value, dict):
            yield value
            most -= 1
        if not most:
            return


def parse_beginning(data: bytes) -> Any:
    """The value the bytes begin with, as far as it goes; None where they do not begin with an object or a list."""
    if len(data) > SHORT and refusal(data):
        return None
    stack: list[tuple[Any, str]] = []
    try:
        return parse_at(data, len(BOM) if data.startswith(BOM) else 0, stack)[0]
    except NotJson:
        pass
    value = None
    while stack:
        value, key = stack.pop()
        if stack and isinstance(outer := stack[-1][0], dict):
            outer[key] = value
        elif stack:
            outer.append(value)
    return value


def parse_at(data: bytes, at: int, stack: list[tuple[Any, str]] | None = None) -> tuple[Any, int]:
    """The value that begins at `at` (spaces before it do not count) and where it ends; of any depth.

    Where it is not JSON, `stack` is left with the containers that were open.
    """
    # Open containers, each with the key under which it will stand; a stack of our own instead of the interpreter's.
    stack = [] if stack is None else stack
    key = ""
    while True:
        at = _skip(data, at)
        first = data[at : at + 1]
        if first in (b"{", b"["):
            container: Any = {} if first == b"{" else []
            at = _skip(data, at + 1)
            if data[at : at + 1] == (b"}" if first == b"{" else b"]"):
                value: Any = container
                at += 1
            else:
                stack.append((container, key))
                if first == b"{":
                    key, at = _key(data, at)
                continue
        else:
            value, at = _scalar(data, at, first)
        while stack:
            container, outer = stack[-1]
            is_object = isinstance(container, dict)
            if is_object:
                container[key] = value
            else:
                container.append(value)
            at = _skip(data, at)
            sign = data[at : at + 1]
            at += 1
            if sign == b",":
                if is_object:
                    key, at = _key(data, _skip(data, at))
                break
            if sign != (b"}" if is_object else b"]"):
                raise NotJson(f"unexpected byte at {at - 1}")
            stack.pop()
            value, key = container, outer
        else:
            return value, at


def _skip(data: bytes, at: int) -> int:
    match = _SKIP.match(data, at)
    return match.end() if match else at


def _key(data: bytes, at: int) -> tuple[str, int]:
    key, at = _string(data, at)
    at = _skip(data, at)
    if data[at : at + 1] != b":":
        raise NotJson(f"no colon at {at}")
    return key, at + 1


def _string(data: bytes, at: int) -> tuple[str, int]:
    match = _STRING.match(data, at)
    if match is None:
        raise NotJson(f"no string at {at}")
    text = match[1].decode("utf-8", "replace")
    if "\\" in text:
        text = clean(json.loads(f'"{text}"', strict=False))
    return text, match.end()


def _scalar(data: bytes, at: int, first: bytes) -> tuple[Any, int]:
    if first == b'"':
        return _string(data, at)
    for word, value in _WORDS:
        if data.startswith(word, at):
            return value, at + len(word)
    match = _NUMBER.match(data, at)
    if match is None:
        raise NotJson(f"no value at {at}")
    digits, end = match[0], match.end()
    if match[1] is None and match[2] is None and len(digits) <= _LONGEST_INTEGER:
        whole = int(digits)
        if -(1 << 63) <= whole < 1 << 64:
            return whole, end
    return float(digits), end


def encode(value: Any) -> bytes:
    """JSON text of anything that was parsed, however deep it is; NaN and infinity are written as null."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except (orjson.JSONEncodeError, RecursionError):
        return encode_slowly(value)


def encode_slowly(value: Any) -> bytes:
    """The same without a library, all of which have a limit of their own: orjson writes 254 levels."""
    parts: list[str] = []
    # Values still to be written, and text that goes between them.
    waiting: list[tuple[bool, Any]] = [(True, value)]
    while waiting:
        is_value, item = waiting.pop()
        if not is_value:
            parts.append(item)
        elif isinstance(item, dict):
            waiting.append((False, "}"))
            for place, (key, inner) in enumerate(reversed(item.items())):
                waiting += [(True, inner), (False, ("," * (place < len(item) - 1)) + json.dumps(key) + ":")]
            waiting.append((False, "{"))
        elif isinstance(item, list):
            waiting.append((False, "]"))
            for place, inner in enumerate(reversed(item)):
                waiting += [(True, inner), (False, "," * (place < len(item) - 1))]
            waiting.append((False, "["))
        else:
            parts.append(_plain(item))
    return "".join(parts).encode()


def _plain(item: Any) -> str:
    try:
        return json.dumps(item, allow_nan=False)
    except ValueError:
        return "null"
