"""The arguments of a call as an object."""

from __future__ import annotations

import json
import math
from typing import Any

DEEPEST = 64
"""Levels of arguments that are looked into; a document has them inside other things, and readers have limits."""


def params_of(data: bytes) -> dict[str, Any]:
    """The arguments; none where they are no JSON object."""
    return exact_params(data)[0]


def exact_params(data: bytes) -> tuple[dict[str, Any], bool]:
    """The arguments, and whether they say all that was written: not so where they are no JSON object, or one that names
    something twice."""
    if not data.strip():
        return {}, True
    reader = _Reader()
    try:
        found = reader.read(data)
    except (ValueError, RecursionError):
        return {}, False
    if not isinstance(found, dict) or _depth(found) > DEEPEST:
        return {}, False
    return found, reader.exact


class _Reader:
    def __init__(self) -> None:
        self.exact = True

    def read(self, data: bytes) -> Any:
        text = data.decode("utf-8")
        return json.loads(text, parse_constant=self._refuse, parse_float=self._number, object_pairs_hook=self._object)

    def _refuse(self, name: str) -> float:
        raise ValueError(f"{name} is no JSON")

    def _number(self, digits: str) -> float:
        if math.isinf(value := float(digits)):
            raise ValueError("no number that JSON readers know")
        return value

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        self.exact = self.exact and len(found) == len(pairs)
        return found


def _depth(value: Any) -> int:
    """How many levels a value has; one more than `DEEPEST` where it has more."""
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        depth += 1
        level = [
            part
            for one in level
            if isinstance(one, dict | list)
            for part in (one.values() if isinstance(one, dict) else one)
            if isinstance(part, dict | list)
        ]
    return depth
