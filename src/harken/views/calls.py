"""What a call asks of its tool, for people."""

from __future__ import annotations

import json
from collections.abc import Sequence

from harken.events.base import excerpt

SHORT = 160
"""A value of no more characters than this stands on one line."""
_TELLING = ("command", "cmd", "file_path", "path", "notebook_path", "pattern", "query", "url", "description", "prompt")
"""Arguments that tell best what a call does, the best first."""


def arguments(data: bytes) -> tuple[tuple[str, str], ...]:
    """What a tool was given: each argument and its text. What is no JSON object stands without a name."""
    text = data.decode("utf-8", "replace")
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return (("", text),) if text.strip() else ()
    if not isinstance(given, dict):
        return (("", given if isinstance(given, str) else text),)
    return tuple((str(name), value if isinstance(value, str) else _dumped(value)) for name, value in given.items())


def _dumped(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        return text if len(text) <= SHORT else json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:  # laid out, it may be nested as deep as the arguments are
        return text


def what_it_does(given: Sequence[tuple[str, str]]) -> str:
    """The argument that tells most, on one line."""
    named = dict(given)
    told = next((named[name] for name in _TELLING if named.get(name, "").strip()), given[0][1] if given else "")
    return excerpt(told, 100)
