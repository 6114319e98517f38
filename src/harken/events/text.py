"""Text that came from outside: what may not stand in UTF-8 is made visible, never fatal; and the beginning of it."""

from __future__ import annotations

import re

_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD; the bytes they came from are kept elsewhere."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def excerpt(text: str, limit: int = 100) -> str:
    """The beginning of a text on one line, with an ellipsis where something is missing."""
    # The cut comes first: a text may be very long, and only its beginning matters.
    short = _SPACE.sub(" ", text[: limit * 4]).strip()
    return short if len(short) <= limit and len(text) <= limit * 4 else short[: limit - 1].rstrip() + "…"
