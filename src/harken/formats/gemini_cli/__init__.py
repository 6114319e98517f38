"""`gemini-cli-v1`: the session files of Gemini CLI, one JSON object per line.

records   the lines, whatever their state; whether a file is a session
messages  one message as events
read      a file as events
cut       where a file falls into commits (`cut-1`)
scan      one pass for the importer: cuts, counts, usage, links
context   the conversation as it stands
write     events as a file, and a file's own lines under another session
document  `gemini-json-v1`: the old files, one JSON document each
"""

from __future__ import annotations

from harken.formats.base import Format

from .context import context, read_conversation
from .document import to_lines
from .messages import NOTICES
from .read import iter_read, read
from .records import CLAIMED_BY, agent_of, claim, shared_names
from .scan import record_names, scan, split
from .write import dropped, name_line, rewrite, write, write_session

FORMAT = Format(
    name="gemini-cli-v1",
    media_type="application/jsonl",
    description=(
        "Gemini CLI session: JSON lines; a header, messages `{id, timestamp, type, content}`, of which the last of an "
        "id counts, and changes: `$set` with `messages` replaces them all, `$rewindTo` takes back."
    ),
    split=split,
    context=context,
    claim=claim,
    reader=iter_read,
    conversation_reader=read_conversation,
    writer=write,
    older={"gemini-json-v1": to_lines},
    runtime="gemini-cli",
    notices=NOTICES,
    shared_names=shared_names,
    agent_of=agent_of,
)

__all__ = [
    "CLAIMED_BY",
    "FORMAT",
    "claim",
    "context",
    "dropped",
    "name_line",
    "read",
    "record_names",
    "rewrite",
    "scan",
    "split",
    "write",
    "write_session",
]
