"""`codex-v1`: the rollout files of Codex, one JSON object per line."""

from __future__ import annotations

from harken.formats.base import Format

from .context import context
from .cut import split
from .detect import detect

FORMAT = Format(
    name="codex-v1",
    media_type="application/jsonl",
    description="Codex rollout: JSON lines `{timestamp, type, payload}`; `response_item` lines are the conversation.",
    split=split,
    context=context,
    detect=detect,
)
