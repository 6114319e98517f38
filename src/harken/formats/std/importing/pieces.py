"""Values of a document taken leniently, and the names of the records that are made of them.

Everything in a document may be missing or of another type. Whoever reads it into events asks here, so that what does
not fit is seen in one place.
"""

from __future__ import annotations

from harken.events import Output
from harken.events.base import clean
from harken.formats.std.hearers import agent_named as agent_named  # for whoever takes values from here
from harken.formats.std.hearers import id_of as id_of
from harken.formats.std.json_text import compact as compact

LONGEST_NAME = 200
"""Characters of an id that becomes a session's name."""


def text_of(value: object) -> str:
    """The text; empty for what is none."""
    return clean(value) if isinstance(value, str) else ""


def session_name(value: object) -> str:
    """The id of a session as its name in the store: on one line, without the mark that stands before an agent's. Empty
    for one that cannot be a name."""
    name = id_of(value)
    sound = name.isprintable() and "/" not in name and name == name.strip() and len(name) <= LONGEST_NAME
    return name if sound else ""


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
