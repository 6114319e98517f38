"""What a tool was given, for people."""

from __future__ import annotations

import json

SHORT = 160
"""A value of no more characters than this stands on one line."""


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
