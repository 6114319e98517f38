"""How Codex shortens what is too long for its model: the middle goes, a marker says how much.

Budgets are in bytes of UTF-8 (or in tokens of four bytes), cuts fall between characters, and the marker comes on top.
"""

from __future__ import annotations

from typing import Any

from harken.events.base import clean
from harken.formats.kit.jsonl import Record

BYTES_PER_TOKEN = 4
FALLBACK_BUDGET = 12_000
"""Bytes of one tool output that Codex sends to a model it has no settings for: 10 000 and a fifth."""


def approximate_tokens(text: str) -> int:
    """A token is four bytes."""
    return -(-len(clean(text).encode()) // BYTES_PER_TOKEN)


def _ends(text: str, budget: int) -> tuple[str, str, int]:
    data = text.encode()
    left = budget // 2
    head = data[:left].decode(errors="ignore")
    start = max(len(data) - (budget - left), len(head.encode()))
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return head, data[start:].decode(), len(data)


def truncate_bytes(text: str, budget: int) -> str:
    """The text, its middle replaced by a count of characters where it is longer than the budget."""
    text = clean(text)
    if len(text.encode()) <= budget:
        return text
    head, tail, _ = _ends(text, budget)
    return f"{head}…{len(text) - len(head) - len(tail)} chars truncated…{tail}"


def truncate_parts(texts: list[str], tokens: int) -> list[str]:
    """Texts that together are longer than the budget: what is left of the first ones, a count of tokens, the last."""
    texts = [clean(text) for text in texts]
    head, tail, size = _ends("".join(texts), tokens * BYTES_PER_TOKEN)
    removed = -(-(size - tokens * BYTES_PER_TOKEN) // BYTES_PER_TOKEN)
    ends = reversed(_taken([text[::-1] for text in reversed(texts)], len(tail)))
    return [*_taken(texts, len(head)), f"…{removed} tokens truncated…", *(text[::-1] for text in ends)]


def _taken(texts: list[str], length: int) -> list[str]:
    """The first characters of texts that follow each other."""
    taken = []
    for text in texts:
        if length <= 0:
            break
        taken.append(text[:length])
        length -= len(text)
    return taken


def truncate_output(output: Any, budget: int) -> Any:
    """A tool's output within the budget; the parts share it in order, pictures cost nothing."""
    if isinstance(output, str):
        return truncate_bytes(output, budget)
    if not isinstance(output, list):
        return output
    parts: list[Record] = []
    omitted = 0
    for part in output:
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "input_text" else None
        if not isinstance(text, str):
            parts.append(part)
        elif text and budget <= 0:
            omitted += 1
        elif text:
            parts.append({**part, "text": truncate_bytes(text, budget)})
            budget -= len(clean(text).encode())
    if omitted:
        parts.append({"type": "input_text", "text": f"[omitted {omitted} text items ...]"})
    return parts
