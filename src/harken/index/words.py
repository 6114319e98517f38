"""Text as the index takes it in: prepared so that SQLite's own tokenizer finds what people look for."""

from __future__ import annotations

VERSION = 1
"""Raised whenever `prepare` answers otherwise: an index that was made before is then built again."""


def prepare(text: str) -> str:
    """The text for the index."""
    return text
