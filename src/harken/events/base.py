"""The envelope every event carries, the values in it, and what is made of values from outside before they go into one.

An event is a frozen value: it knows no clock, looks nothing up and does nothing. What several records have in
common rides here; what a kind says for itself is in the file of its family.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

import msgspec

from harken.errors import BadRequest

Cause = str | tuple[str, ...] | None
LARGEST_COUNT = 1 << 53
"""No count of tokens reaches this; beyond it programs that know only floating numbers lose count."""


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something that happened, as one agent's record tells it."""

    kind: ClassVar[str] = ""

    message_id: str = ""
    """The record it came from, unique per record; empty where the source has no ids."""
    agent_id: str = ""
    """Whose record it is; empty where there is only one agent."""
    time: int | None = None
    """The instant in microseconds (see `harken.clock`), or None where nobody wrote it down."""
    substance: str | None = None
    """The message whose content this is again, perhaps in another wording."""
    cause: Cause = None
    """The message, or messages, that triggered this new content."""
    index: int = 0
    """Its place among the events of one record that says several things."""
    api_id: str = ""
    """The provider's own id of the message, which several records may share."""

    def __post_init__(self) -> None:
        if self.substance is not None and self.cause is not None:
            raise BadRequest(
                f"event {self.message_id or '(unnamed)'} names both a substance and a cause",
                hint="substance says 'the same content as', cause says 'triggered by'; an event has one or neither",
            )

    def causes(self) -> tuple[str, ...]:
        """The causes as a tuple, however many there are."""
        if self.cause is None:
            return ()
        return (self.cause,) if isinstance(self.cause, str) else self.cause

    def replace(self, **changes: Any) -> Any:
        """The same event with some fields changed."""
        return msgspec.structs.replace(self, **changes)


class Image(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A picture that was part of a message or of a tool's result."""

    media_type: str = ""
    data: str = ""
    """Base64, as it stood in the record; empty where only an address is known."""
    url: str = ""
    at: int | None = None
    """How many characters of the text stand before it; None for a picture behind all of it."""

    @property
    def is_public(self) -> bool:
        """Whether its address says where it is; that of a file which a provider keeps is an id."""
        return self.url[:8].lower().startswith(("http://", "https://"))


def join_parts(parts: Iterable[str | Image]) -> tuple[str, tuple[Image, ...]]:
    """Texts and pictures in order, as one text of lines and pictures that know their places in it."""
    said: list[str] = []
    found: list[tuple[Image, int, int]] = []
    length = 0
    for part in parts:
        if isinstance(part, str):
            length += len(part) + bool(said)  # with the line break before it
            said.append(part)
        else:
            found.append((part, len(said), length))
    images = (
        # Behind everything is where a picture stands that says nothing else.
        image if count == len(said) else msgspec.structs.replace(image, at=place)
        for image, count, place in found
    )
    return "\n".join(said), tuple(images)


def split_parts(text: str, images: Iterable[Image]) -> list[str | Image]:
    """The text and the pictures in the order in which they were said; what `join_parts` has joined."""
    parts: list[str | Image] = []
    done = 0
    for image in images:
        place = len(text) if image.at is None else min(max(image.at, done), len(text))
        parts += [_between(text, done, place), image]
        done = place
    parts.append(_between(text, done, len(text)))
    return [part for part in parts if part != ""]


def _between(text: str, start: int, end: int) -> str:
    """A piece of the text, without the line break that joined it to the piece before."""
    return text[start:end].removeprefix("\n") if start else text[:end]


class LoggedString(str):
    """Text with the id of the message whose content it is; everywhere else it is simply a string.

    What an agent said carries its own id; a formatted version of it carries the original's. Whoever logs the text
    asks for `message_id` and records it as the substance, so nothing has to be passed along beside the words.
    `log` is the log the id is from, where that is known: in another log the same id is another message.
    """

    __slots__ = ("log", "message_id")

    message_id: str | None
    log: str | None

    def __new__(cls, content: object, message_id: str | None = None, log: object = None) -> Self:
        text = super().__new__(cls, content)
        text.message_id = message_id
        text.log = None if log is None else str(log)
        return text

    def id_in(self, log: object) -> str | None:
        """The id, where it is one of this log or nobody has said which log it is from."""
        return self.message_id if self.log is None or self.log == str(log) else None

    def __reduce__(self) -> tuple[type[Self], tuple[str, str | None, str | None]]:
        return type(self), (str(self), self.message_id, self.log)


# -- names of agents and hooks --------------------------------------------------------------------------------------

_LIKE_AN_ID = re.compile(r"agent_[0-9]+")


def is_name(name: str) -> bool:
    """A name stands in front of what is said (`[Name]: …`), so it may not look like anything else."""
    return bool(name.strip()) and len(name) <= 80 and name.isprintable() and "[" not in name and "]" not in name


def check_name(name: str) -> None:
    """Refuse what cannot be a new name; a log may hold some that have spaces around them."""
    if not isinstance(name, str) or not is_name(name) or name != name.strip():
        raise BadRequest(
            f"{name!r:.80} cannot be a name",
            hint="one line of at most 80 characters, no brackets, no spaces around it",
        )


@lru_cache(1 << 14)
def likeness(name: str) -> str:
    """What names have in common that would be taken for each other: spelled in other code points, cases or spaces."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def is_like_an_id(name: str) -> bool:
    """Whether it would be taken for an id that we give."""
    return _LIKE_AN_ID.fullmatch(likeness(name)) is not None


# -- values from outside: what cannot be is made visible or unknown, never fatal --------------------------------------


def clean(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD; the bytes they came from are kept elsewhere."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def text_at(record: Mapping[str, Any], key: str) -> str:
    """The text that a record has there, `clean`; empty where it has none."""
    value = record.get(key)
    return clean(value) if isinstance(value, str) else ""


def yes_or_no(value: object) -> bool | None:
    """The value where it is true or false; None for anything else."""
    return value if isinstance(value, bool) else None


def named(text: str) -> str:
    """An id as a name; empty where it was no text, since all such ids look alike once they are `clean`."""
    text = clean(text)
    return "" if "\N{REPLACEMENT CHARACTER}" in text else text


def folder(record: Mapping[str, Any], key: str = "cwd") -> str:
    """The folder that a record says was worked in; empty where it names none."""
    named = record.get(key)
    return clean(named) if isinstance(named, str) else ""


def excerpt(text: str, limit: int = 100) -> str:
    """The beginning of a text on one line, with an ellipsis where something is missing."""
    # The cut comes first: a text may be very long, and only its beginning matters.
    short = " ".join(text[: limit * 4].split())
    return short if len(short) <= limit and len(text) <= limit * 4 else short[: limit - 1].rstrip() + "…"


def holds(text: str, words: str) -> bool:
    """Whether a text has the words in it, as they are or as a string in JSON: a result often is a document."""
    if words in text:
        return True
    import json  # few texts are looked through, and every command imports this module

    escaped = json.dumps(words, ensure_ascii=False)[1:-1]
    return (escaped != words and escaped in text) or (not words.isascii() and json.dumps(words)[1:-1] in text)


Count = Annotated[int, msgspec.Meta(ge=0, lt=LARGEST_COUNT)]
"""A count of tokens, to a typed decoder."""


def figure(value: object) -> int | None:
    """A count of tokens as a file tells it; None for what cannot be one."""
    return value if type(value) is int and 0 <= value < LARGEST_COUNT else None


class Tokens(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many tokens; None where nobody told, which is not zero."""

    input: int | None = None
    """Without what came from the cache or went into it."""
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None

    @property
    def prompt(self) -> int:
        """What was put before the model, from the cache or not, as far as anybody told."""
        return sum(count or 0 for count in (self.input, self.cache_read, self.cache_write))

    @property
    def possible(self) -> Tokens:
        """The counts that can be; the others are unknown."""
        return Tokens(
            input=figure(self.input),
            output=figure(self.output),
            cache_read=figure(self.cache_read),
            cache_write=figure(self.cache_write),
        )

    def __add__(self, other: Tokens) -> Tokens:
        """The sum of what is known: unknown and unknown is unknown, unknown and three is three.

        It goes up to `LARGEST_COUNT`, which stands for more than can be, in whatever order the parts come."""
        return Tokens(
            input=_plus(self.input, other.input),
            output=_plus(self.output, other.output),
            cache_read=_plus(self.cache_read, other.cache_read),
            cache_write=_plus(self.cache_write, other.cache_write),
        )

    def minus(self, other: Tokens) -> Tokens:
        """How much more these are; what is unknown here stays so."""
        return Tokens(
            input=_minus(self.input, other.input),
            output=_minus(self.output, other.output),
            cache_read=_minus(self.cache_read, other.cache_read),
            cache_write=_minus(self.cache_write, other.cache_write),
        )


def _minus(one: int | None, other: int | None) -> int | None:
    return None if one is None else max(0, one - (other or 0))


def _plus(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one + other, LARGEST_COUNT)


def sum_of_known(counts: Iterable[int | None]) -> int | None:
    """Many counts at once, as `Tokens` are added up."""
    known = [count for count in counts if count is not None]
    return min(sum(known), LARGEST_COUNT) if known else None


_SPEAKING = frozenset({"prompt", "response", "tool_call"})
_SPOKEN = _SPEAKING | {"tool_result", "thinking"}


def speaker_of(events: Iterable[Event]) -> str:
    """The agent whose conversation it is: the main one wherever it takes part (another may be heard before it, where
    the beginning was cut off), else the first that is heard or spoken to."""
    found = dict.fromkeys(event.agent_id for event in events if event.kind in _SPEAKING)
    return "" if "" in found else next(iter(found), "")


def of_one_agent(events: Sequence[Event]) -> tuple[Sequence[Event], int]:
    """The events without what other agents than that one heard and said, and how many these are."""
    whose = speaker_of(events)
    kept = [event for event in events if event.agent_id == whose or not _is_said_to_somebody(event)]
    return kept, len(events) - len(kept)


def _is_said_to_somebody(event: Event) -> bool:
    """Whether an event is part of one agent's conversation: its words, or the instructions that it was given."""
    if event.kind == "system":
        return getattr(event, "subtype", "") == "instructions" and bool(event.agent_id)
    return event.kind in _SPOKEN
