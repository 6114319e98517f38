"""Between two deltas of lines there is a newline, even where nobody wrote one.

A file is cut behind newlines, so an import is joined byte for byte as it was. A delta that somebody made by hand may
lack its last newline, and the next would run into it; as the last of a conversation it stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from harken.formats import Format
from harken.formats.base import concatenate

LINES = ("application/jsonl", "application/x-ndjson")
"""The media types of formats whose records end with the line."""


def gap(format: Format | None, delta: bytes) -> bytes:
    """What belongs between this delta and the next."""
    if format is None or format.media_type not in LINES or format.join is not concatenate:
        return b""
    return b"\n" if delta and not delta.endswith(b"\n") else b""


def joined(format: Format, deltas: Sequence[bytes]) -> bytes:
    """The deltas as one conversation, as their format joins them."""
    closed = [delta + after if (after := gap(format, delta)) else delta for delta in deltas[:-1]]
    return format.join([*closed, *deltas[-1:]])
