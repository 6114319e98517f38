"""Values of a document taken leniently, and the names of the records that are made of them.

Everything in a document may be missing or of another type. Whoever reads it into events asks here, so that what does
not fit is seen in one place.
"""

from __future__ import annotations

import json

from harken.events import Output
from harken.events.base import clean, named

LONGEST_NAME = 200
"""Characters of an id that becomes a session's name."""


def text_of(value: object) -> str:
    """The text; empty for what is none."""
    return clean(value) if isinstance(value, str) else ""


def id_of(value: object) -> str:
    """An id: text, or a whole number as its digits; empty for anything else."""
    if isinstance(value, str):
        return named(value)
    return str(value) if type(value) is int and abs(value) < 1 << 63 else ""


def agent_named(holder: object, key: str) -> str:
    """The id of the agent that an object names under a key; a text there is the id itself, as a repair takes it."""
    agent = holder.get(key) if isinstance(holder, dict) else None
    return id_of(agent.get("agent_id") if isinstance(agent, dict) else agent)


def session_name(value: object) -> str:
    """The id of a session as its name in the store: on one line, without the mark that stands before an agent's. Empty
    for one that cannot be a name."""
    name = id_of(value)
    sound = name.isprintable() and "/" not in name and name == name.strip() and len(name) <= LONGEST_NAME
    return name if sound else ""


def compact(value: object) -> bytes:
    """A value as JSON on one line; a lone surrogate as the escape that it was read from."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def unread(value: object, why: str, name: str, agent: str) -> Output:
    """A part of a document that is not as it must be."""
    return Output(message_id=name, agent_id=agent, raw=compact(value), why=why)


def kind_word(value: object) -> str:
    """What JSON calls the type of a value."""
    words = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return words.get(type(value), "a number")


class MadeUpNames:
    """Names of records: as they are wanted, and unlike all that were given before."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def give(self, wanted: str) -> str:
        """The name, with a number behind it where it is taken."""
        count = self._given.get(wanted, 0) + 1
        self._given[wanted] = count
        return wanted if count == 1 else self.give(f"{wanted}~{count}")
