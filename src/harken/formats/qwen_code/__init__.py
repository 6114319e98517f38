"""`qwen-code-v1`: Qwen Code's session files, one JSON object per line: a tree like Claude Code's, Gemini's parts.

records  what a line is; who stands in the user's place; whether a file is Qwen Code's
parts    parts of messages as events
usage    which records report a request
cut      where a file falls into commits (`cut-1`)
scan     one pass for the importer: whose a file is, cuts, counts, usage, links
branch   the conversation as it stands
read     events: of every record, of the conversation in the order the model reads it
write    a file that Qwen Code resumes, from events or from another session's records
stream   what the program prints while it runs
"""

from __future__ import annotations

from harken.formats.base import Format

from .branch import context
from .copies import shared_names
from .read import read, read_conversation
from .records import CLAIMED_BY, NOTICES, claim
from .scan import record_names, scan, split
from .write import rewrite, write

FORMAT = Format(
    name="qwen-code-v1",
    takes_sparse=True,
    media_type="application/jsonl",
    description="Qwen Code's session file: one JSON object per line, a tree by `uuid` and `parentUuid`, with messages "
    "of Gemini's parts.",
    split=split,
    context=context,
    claim=claim,
    reader=read,
    conversation_reader=read_conversation,
    writer=write,
    runtime="qwen-code",
    notices=NOTICES,
    shared_names=shared_names,
)

__all__ = ["CLAIMED_BY", "FORMAT", "claim", "context", "record_names", "rewrite", "scan", "split", "write"]
