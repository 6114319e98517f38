"""`claude-code-v1`: Claude Code's own JSONL, one file per session or sub-agent.

grammar   JSON without a depth limit, for the lines that the fast path cannot take
records   the fields of a line that anything is decided by
cut       where a file falls into commits (`cut-1`)
scan      one pass for the importer
branch    the conversation as it stands
usage     tokens, counted once
"""

from __future__ import annotations

from collections.abc import Sequence

from harken.formats.base import Delta, Format

from .branch import context
from .detect import detect
from .scan import scan
from .side import side_chains
from .usage import UsageRow, merge

__all__ = ["FORMAT", "UsageRow", "context", "merge", "scan", "side_chains", "split"]


def split(data: bytes) -> Sequence[Delta]:
    """The deltas of a file, by `cut-1`."""
    return scan(data).deltas


FORMAT = Format(name="claude-code-v1", media_type="application/jsonl", split=split, context=context, detect=detect)
