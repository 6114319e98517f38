"""`copilot-cli-v1`: the sessions of Copilot CLI, one event per line.

records   the lines, which types of events there are, whether a file is a session
cut       where a file falls into commits (`cut-1`)
read      a file as events
context   the conversation as it stands
scan      one pass for the importer: cuts, counts, usage, links; the lines of sub-agents
write     events as a file, and a file's own lines under another session
"""

from __future__ import annotations

from harken.formats.base import Format

from .context import context
from .read import NOTICES, events_of_line, read, read_conversation
from .records import CLAIMED_BY, claim
from .scan import record_names, scan, side_chains, split
from .write import adopt, rewrite, write

FORMAT = Format(
    name="copilot-cli-v1",
    media_type="application/jsonl",
    description=(
        "Copilot CLI session: JSON lines `{type, data, id, timestamp, parentId}`; `user.message`, `assistant.message` "
        "and `tool.execution_complete` are the conversation."
    ),
    split=split,
    context=context,
    claim=claim,
    reader=read,
    conversation_reader=read_conversation,
    writer=write,
    adopter=adopt,
    runtime="copilot-cli",
    notices=NOTICES,
    shared_names=lambda data: lambda name: "" if name.startswith("@") else name,
)

__all__ = [
    "CLAIMED_BY",
    "FORMAT",
    "claim",
    "context",
    "events_of_line",
    "read",
    "record_names",
    "rewrite",
    "scan",
    "side_chains",
    "split",
    "write",
]
