"""A document that says everything under other names than the standard does, or in another place: it is read as a repair
writes it, with nothing derived."""

from __future__ import annotations

from harken.formats.std.document import Document
from harken.formats.std.parts import inner, values
from harken.formats.std.spellings import plain_key

_LISTS = ("tool_calls", "sub_sessions", "messages")
_OF_SUB = frozenset({"agent"})
_AGENTS = ("from_agent", "to_agent")
_OF_MESSAGE = frozenset({*_AGENTS, "message_type"})
_TOLD = 5
"""How many of the changes are told."""


def in_shape(document: Document) -> tuple[Document, str]:
    """The document in the shape of the standard, and what was done to get it there; empty where nothing was. Most
    documents have that shape, and what mends the others is not loaded for them."""
    if not _is_odd(document):
        return document, ""
    from harken.formats.std.repairing.repair import reshaped

    document, changes = reshaped(document)
    done = "; ".join(f"{change.path}: {change.message}" for change in changes[:_TOLD])
    more = f"; and {len(changes) - _TOLD} more" if len(changes) > _TOLD else ""
    return document, f"the document is read as a repair writes it: {done}{more}" if changes else ""


def _is_odd(document: Document) -> bool:
    data = document.data
    if any(isinstance(data.get(key), dict) for key in _LISTS) or any(key != plain_key(key) for key in data):
        return True
    if not all(sub.keys() >= _OF_SUB for sub in values(data.get("sub_sessions"))):
        return True
    for message in values(data.get("messages")):
        if not message.keys() >= _OF_MESSAGE or any(isinstance(message[key], str) for key in _AGENTS):
            return True
    if isinstance(inner(data, "collaboration").get("orchestrator"), list):
        return True
    calls = values(data.get("tool_calls"))
    return any(
        key.startswith("sub") and isinstance(call[key], dict) for call in calls for key in call if key not in _OWN
    )


_OWN = frozenset({"subagent_info"})
"""What a call has that begins as a sub-session does."""
