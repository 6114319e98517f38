"""`TranscriptEntry`: one message of a conversation, call or result, as a person reads it."""

# Types are not put off here: whoever decodes an entry would look for them where users find it (below).
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import UUID, uuid4

TranscriptRole = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[str, ...] = get_args(TranscriptRole)

PRIMARY = "primary"
SUBAGENT = "subagent:"
"""Before the id of the agent, in the source of what a sub-agent said and heard."""
CONVERSATION = "conversation:"
"""Before the name of a further conversation of the same session, in the source of its entries."""


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One thing that was said, asked of a tool, or answered by one."""

    role: TranscriptRole
    content: str
    """The words; of a call its arguments as JSON, of a result what the tool gave back."""
    created_at: datetime
    tool_name: str | None = None
    tool_call_id: str | None = None
    """Joins a call to its result."""
    tool_input: dict[str, Any] | None = None
    """The arguments of a call, where they are an object."""
    metadata: dict[str, Any] | None = None
    """What the provider said beside it; `kind` where it is no plain message (`thinking`, `error`, …)."""
    entry_id: UUID = field(default_factory=uuid4)
    source: str = PRIMARY
    """`primary`, `subagent:<id>`, or `conversation:<name>` for a further conversation of the session."""
    sequence: int = 0
    """Its place within the source, from 0 without gaps."""


# Where users find it; the file of its slice is called after it.
TranscriptEntry.__module__ = "harken.capture"

_SYMBOLS = {"system": "⚙️", "user": "👤", "assistant": "🤖"}


def format_transcript(entries: Iterable[TranscriptEntry]) -> str:
    """The entries as text for people: who, when, and the words, with a blank line after each."""
    lines: list[str] = []
    for entry in entries:
        speaker = f"🔧 {entry.tool_name}" if entry.role == "tool" else f"{_symbol(entry.role)} {entry.role.upper()}"
        source = "" if entry.source == PRIMARY else f"[{entry.source}] "
        lines += [f"{source}[{entry.created_at.strftime('%H:%M:%S')}] {speaker}", entry.content, ""]
    return "\n".join(lines)


def _symbol(role: str) -> str:
    return _SYMBOLS.get(role, "•")


def in_order(entries: Iterable[TranscriptEntry]) -> tuple[TranscriptEntry, ...]:
    """The entries as they came, but within each source by number: some arrive late."""
    came = tuple(entries)
    numbered: dict[str, list[TranscriptEntry]] = {}
    for entry in came:
        numbered.setdefault(entry.source, []).append(entry)
    for own in numbered.values():
        own.sort(key=lambda entry: entry.sequence)
    turns = {source: iter(own) for source, own in numbered.items()}
    return tuple(next(turns[entry.source]) for entry in came)
