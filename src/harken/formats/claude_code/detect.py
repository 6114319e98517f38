"""Whether bytes are a Claude Code file: by what the first lines are, not by what the file is called."""

from __future__ import annotations

from harken.formats.kit.jsonl import lines

from .records import take
from .types import CONVERSATION, known_type

LOOK = 64 * 1024
_ENOUGH = 40
_SIGNS = (b'"sessionId"', b'"uuid"', b'"leafUuid"', b'"messageId"')


def detect(head: bytes) -> bool:
    """Whether some early line is a record of a known type that carries one of the names only these files have."""
    for number, (start, end) in enumerate(lines(head[:LOOK])):
        if number >= _ENOUGH:
            break
        text = head[start:end]
        if not any(sign in text for sign in _SIGNS):
            continue
        line = take(text)
        if line is None or not known_type(line.type):
            continue
        # Relatives of Claude Code use the same names for other things: the first record they share tells them apart.
        spoken = line.type not in CONVERSATION or (line.message is not None and line.message.content is not None)
        return spoken and _is_on_disk(text)
    # A first line may be longer than what we were shown.
    return head[:1] == b"{" and b"\n" not in head and b'"sessionId"' in head and b'"uuid"' in head


def _is_on_disk(text: bytes) -> bool:
    """What `--output-format stream-json` prints has the same types, but spells its names with underscores."""
    return b'"session_id"' not in text or b'"sessionId"' in text
