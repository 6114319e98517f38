"""A document as whoever wrote it meant it, for readers that count: each thing once, every agent and every task
by its own id, and the types of messages as the standard spells them. A repair does the same, and tells."""

from __future__ import annotations

from .copies import without_copies
from .document import Json
from .flat_calls import with_own_calls
from .listed_twice import with_owners
from .meant_agents import with_meant_agents, with_names_as_ids
from .meant_statuses import with_meant_statuses
from .meant_tasks import with_meant_tasks
from .models import ADDED_MESSAGE_TYPES, MESSAGE_TYPES
from .spellings import known_word

_TYPES = (*MESSAGE_TYPES, *ADDED_MESSAGE_TYPES)


def as_meant(data: Json) -> Json:
    """The document as it is meant; itself where it says that word for word."""
    data = with_meant_tasks(with_names_as_ids(_with_known_types(without_copies(data))))
    return with_owners(with_own_calls(with_meant_agents(with_meant_statuses(data))))


def known_type(value: object) -> str | None:
    """The type of a message, from whatever spelling of it; None where nobody knows it."""
    return known_word(value, _TYPES)


def _with_known_types(data: Json) -> Json:
    listed = data.get("messages")
    if not isinstance(listed, list):
        return data
    made = [{**one, "message_type": known} if (known := _other_type(one)) else one for one in listed]
    return {**data, "messages": made} if any(new is not old for new, old in zip(made, listed, strict=True)) else data


def _other_type(message: object) -> str | None:
    """The type of a message that has it in another spelling."""
    said = message.get("message_type") if isinstance(message, dict) else None
    return None if said in _TYPES else known_type(said)
