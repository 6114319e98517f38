"""Messages between agents that stand in a sub-session, or in the collaboration, where the standard has none."""

from __future__ import annotations

from .as_meant import known_type
from .document import Json
from .parts import MESSAGE_FIELDS, MESSAGE_LISTS
from .spellings import plain_key

_NAMES = frozenset({"messages", *MESSAGE_LISTS})


def is_message(value: object) -> bool:
    """Whether something is a message between agents: what a model was told and said names no agents."""
    if not isinstance(value, dict):
        return False
    keys = set(map(plain_key, value))
    return not keys.isdisjoint(MESSAGE_FIELDS) or known_type(value.get("type")) is not None


def messages_at(holder: Json, key: str) -> list[Json]:
    """The messages that an object holds under a key; none where these are none."""
    held = holder[key]
    if not held or not isinstance(held, dict | list) or plain_key(key) not in _NAMES:
        return []
    if not all(map(is_message, held.values() if isinstance(held, dict) else held)):
        return []
    return [{"message_id": name, **one} for name, one in held.items()] if isinstance(held, dict) else held


def holds_messages(holder: Json) -> bool:
    """Whether an object holds messages under any key."""
    return any(messages_at(holder, key) for key in holder)
