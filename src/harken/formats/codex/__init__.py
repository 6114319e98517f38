"""`codex-v1`: the rollout files of Codex, one JSON object per line.

records   the lines, whatever their age and state; which of them are known; whether a file is a rollout
cut       where a file falls into commits (`cut-2`)
scan      one pass for the importer: cuts, counts, usage, links
usage     running totals as steps
copies    what a record is called in every copy of the file
context   the conversation as it stands
classify  who speaks in the user's place
read      a file as events
truncate  long texts, shortened as Codex does
request   what goes to the model
write     events as a file, and a file's own lines under another thread
"""

from __future__ import annotations

from harken.formats.base import Format

from .classify import NOTICES
from .context import context
from .copies import delta_names, shared_names
from .read import iter_read, read, read_conversation
from .records import CLAIMED_BY, claim
from .request import request_items
from .scan import record_names, scan, split
from .write import in_present_shape, output_budget, rewrite, with_base, write, write_session

FORMAT = Format(
    name="codex-v1",
    takes_sparse=True,
    media_type="application/jsonl",
    description="Codex rollout: JSON lines `{timestamp, type, payload}`; `response_item` lines are the conversation.",
    split=split,
    context=context,
    claim=claim,
    reader=iter_read,
    conversation_reader=read_conversation,
    writer=write,
    older={"codex-v1": in_present_shape},
    runtime="codex",
    notices=NOTICES,
    project_files=("# AGENTS.md instructions",),
    shared_names=shared_names,
    delta_names=delta_names,
)

__all__ = [
    "CLAIMED_BY",
    "FORMAT",
    "claim",
    "context",
    "output_budget",
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
