"""JSON as it really lies in the files: a small parser without a depth limit that can stop in the middle of a line.

The fast libraries refuse what real transcripts hold (lone surrogates, bytes that are not UTF-8) and disagree on how
deep is too deep. This one is the judge they all defer to, so that what counts as a JSON object is a property of the
bytes and not of a library: the grammar of RFC 8259 over bytes, where a string is any run of bytes from 0x20 on.
It is slow, and asked only about the few lines that the fast path could not take.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_SPACE = re.compile(rb"[ \t\r\n]*")
# Possessive, so that a string of many megabytes costs no backtracking.
_STRING = re.compile(rb'"([^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+)"')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS = ((b"true", True), (b"false", False), (b"null", None))
BOM = b"\xef\xbb\xbf"


class NotJson(ValueError):
    """The bytes are not JSON from the place on where they were asked to be."""


def parse_at(data: bytes, at: int) -> tuple[Any, int]:
    """The value that begins at `at` (spaces before it do not count) and where it ends."""
    # Open containers, each with the key its next value belongs to; a stack of our own instead of the interpreter's.
    stack: list[tuple[Any, str]] = []
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


def parse_object(line: bytes) -> dict[str, Any] | None:
    """The object, if the line is exactly one JSON object with nothing but spaces around it."""
    try:
        value, end = parse_at(line, len(BOM) if line.startswith(BOM) else 0)
    except NotJson:
        return None
    return value if isinstance(value, dict) and _skip(line, end) == len(line) else None


def parse_several(line: bytes) -> tuple[list[tuple[dict[str, Any], int, int]], int]:
    """The objects a line begins with, each with its place, and where the last of them ends.

    Two writers that lost the newline between them leave two objects on one line; both are whole.
    """
    found: list[tuple[dict[str, Any], int, int]] = []
    at = _skip(line, 0)
    while at < len(line):
        try:
            value, end = parse_at(line, at)
        except NotJson:
            break
        if not isinstance(value, dict):
            break
        found.append((value, at, end))
        at = _skip(line, end)
    return found, at


def encode(value: Any) -> bytes:
    """JSON text of anything that was parsed, however deep it is."""
    try:
        return orjson.dumps(value)
    except (orjson.JSONEncodeError, RecursionError):
        pass
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
            parts.append(json.dumps(item))
    return "".join(parts).encode()


def _skip(data: bytes, at: int) -> int:
    match = _SPACE.match(data, at)
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
        text = json.loads(f'"{text}"')
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
    if match[1] is None and match[2] is None and len(match[0]) <= 19:
        return int(match[0]), match.end()
    return float(match[0]), match.end()
