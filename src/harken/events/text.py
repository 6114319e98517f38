"""Text that came from outside: what may not stand in UTF-8 is made visible, never fatal."""

from __future__ import annotations


def clean(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD; the bytes they came from are kept elsewhere."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
