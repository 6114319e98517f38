"""`codex-v1`: the rollout files of Codex, one JSON object per line.

records     the lines, whatever their age and state
cut         where a file falls into commits            scan     one pass for the importer
classify    who speaks in the user's place             context  the conversation as it stands
items       one item as events                         request  what goes to the model
read        a file as events                           write    events as a file; rewrite: under another thread
"""

from __future__ import annotations

from harken.formats.base import Format

from .claim import claim
from .classify import NOTICES
from .context import context
from .cut import Splitter, split
from .read import read
from .request import request_items
from .rewrite import rewrite, with_base
from .scan import record_names, scan
from .write import write, write_session

FORMAT = Format(
    name="codex-v1",
    media_type="application/jsonl",
    description="Codex rollout: JSON lines `{timestamp, type, payload}`; `response_item` lines are the conversation.",
    split=split,
    context=context,
    claim=claim,
    reader=read,
    writer=write,
    runtime="codex",
    notices=NOTICES,
)

__all__ = [
    "FORMAT",
    "Splitter",
    "claim",
    "context",
    "read",
    "record_names",
    "request_items",
    "rewrite",
    "scan",
    "split",
    "with_base",
    "write",
    "write_session",
]
