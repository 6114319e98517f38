"""The paths of values that a session does not tell and that a document has all the same."""

from __future__ import annotations

import re
from collections.abc import Iterable

MANY = 10
"""More paths than this that differ in one number are told as one."""
_NUMBER = re.compile(r"\[[0-9]+\]")


def any_number(path: str) -> str:
    """The path with `[*]` for each number."""
    return _NUMBER.sub("[*]", path)


def summed_up(paths: Iterable[str]) -> list[str]:
    """The paths in order, each once; many that differ in one number are told as one with `[*]`."""
    groups: dict[str, list[str]] = {}
    for path in dict.fromkeys(paths):
        groups.setdefault(any_number(path), []).append(path)
    return [path for general, found in groups.items() for path in ([general] if len(found) > MANY else found)]
