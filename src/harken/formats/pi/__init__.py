"""`pi-v1`: the session files of pi and of OpenClaw, one JSON object per line, a tree.

records   the lines, of every version and of both programs; what a message holds; whether a file is a session
cut       where a file falls into commits (`cut-1`)
scan      one pass for the importer: cuts, counts, usage, links
usage     what requests used and cost
copies    what an entry is called in every copy of it
context   the conversation as it stands
read      events: of every record, of the conversation in the order the model hears it
write     a session that pi goes on with, from events or from another session's entries
"""

from __future__ import annotations

from harken.formats.base import Format

from .context import context
from .copies import record_names, shared_names, unnamed_names
from .read import iter_read, read_conversation
from .records import CLAIMED_BY, claim, is_of_openclaw
from .scan import scan, split
from .write import hang_name, name_line, rewrite, write, write_session

NOTICES = frozenset({"openclaw.runtime-context", "openclaw.system-note"})
"""Origins of messages in which the program tells its model about itself."""

FORMAT = Format(
    name="pi-v1",
    takes_sparse=True,
    media_type="application/jsonl",
    description="Session of pi or OpenClaw: a header, then JSON lines that are a tree by `id` and `parentId`.",
    split=split,
    context=context,
    claim=claim,
    reader=iter_read,
    conversation_reader=read_conversation,
    writer=write,
    runtime="pi",
    notices=NOTICES,
    project_files=(
        "# AGENTS.md instructions",
    ),  # Codex says them in a prompt; pi puts the file before its model itself
    shared_names=shared_names,
    unnamed_names=unnamed_names,
)

__all__ = [
    "CLAIMED_BY",
    "FORMAT",
    "claim",
    "context",
    "hang_name",
    "is_of_openclaw",
    "name_line",
    "record_names",
    "rewrite",
    "scan",
    "split",
    "write",
    "write_session",
]
