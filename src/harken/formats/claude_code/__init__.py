"""`claude-code-v1`: Claude Code's own JSONL, one file per session or sub-agent.

records      the fields of a line that anything is decided by; who stands in the user's place
cut          where a file falls into commits (`cut-2`)
scan         one pass for the importer: whose a file is, cuts, counts, usage, links
branch       the conversation as it stands
measure      how much a delta holds: messages and tokens
read         events: of every record, of the conversation in the order the model reads it
turns        the records that are sent to the model
request      the message list that goes to the model
attachments  what the harness puts before the model besides the conversation
write        a file that Claude Code resumes, from events or from another session's lines
"""

from __future__ import annotations

from collections.abc import Sequence

from harken.formats.base import Delta, Format

from .branch import context
from .brief import read_briefly
from .copies import shared_names
from .measure import measure
from .read import read, read_conversation, side_chains
from .request import messages, write_request
from .scan import CLAIMED_BY, claim, scan
from .write import NOTICES, adopt, rewrite, write

__all__ = ["CLAIMED_BY", "FORMAT", "claim", "context", "messages", "rewrite", "scan", "side_chains", "split"]


def split(data: bytes) -> Sequence[Delta]:
    """The deltas of a file, by `cut-2`."""
    return scan(data).deltas


FORMAT = Format(
    name="claude-code-v1",
    takes_sparse=True,
    media_type="application/jsonl",
    description="Claude Code's session file: one JSON object per line, a tree by `uuid` and `parentUuid`.",
    split=split,
    context=context,
    claim=claim,
    reader=read,
    writer=write,
    conversation_reader=read_conversation,
    direct={"anthropic-messages-v1": write_request},
    measurer=measure,
    brief_reader=read_briefly,
    runtime="claude-code",
    notices=NOTICES,
    project_files=("<system-reminder>\nCodebase and user instructions are shown below",),
    shared_names=shared_names,
    adopter=adopt,
)
