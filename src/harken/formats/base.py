"""What a format is: a name, and functions from bytes to events and back.

Everything here is a pure function of bytes. A format that cannot do a thing (a rendering cannot be read back) leaves
the function out, and `can` says so as data, so that tables and errors need no special cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from harken.errors import BadRequest
from harken.events import Event

from .kit.claims import Claim


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Something a writer could not say in its format."""

    what: str
    count: int
    why: str


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What a writer made, and what it had to leave out."""

    data: bytes
    losses: tuple[Loss, ...] = ()


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a file that becomes one commit: `data[start:end]`.

    Deltas of type `delta` follow each other without a gap, so joining them gives the file again. A `compaction`
    repeats the boundary and summary lines that the delta before it ends with.
    """

    start: int
    end: int
    commit_type: str = "delta"
    checkpoint: str = "turn_boundary"
    time: int | None = None
    """The last instant written in it."""
    closed: bool = True
    """False for the tail, which a grown file would continue."""
    records: int = 0
    messages: int = 0
    """How many messages begin in it."""


def concatenate(deltas: Iterable[bytes]) -> bytes:
    """The join of line formats: bytes behind bytes."""
    return b"".join(deltas)


def whole(data: bytes) -> list[Delta]:
    """The split of a format that has no rule of its own: one delta."""
    return [Delta(start=0, end=len(data), closed=False)] if data else []


def identity(data: bytes) -> bytes:
    """The context of a linear format: all of it."""
    return data


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """A name plus its functions."""

    name: str
    media_type: str = "application/octet-stream"
    description: str = ""
    """A sentence for whoever gets these bytes raw and has to make sense of them."""
    empty: bytes = b""
    """The empty conversation in this format."""
    join: Callable[[Iterable[bytes]], bytes] = concatenate
    split: Callable[[bytes], Sequence[Delta]] = whole
    context: Callable[[bytes], bytes] = identity
    """The verbatim records, in source order, of the conversation as it stands."""
    claim: Callable[[bytes, str], Claim] | None = None
    """How sure it is that a file is of this format, from its first bytes (`claims.HEAD` of them) and its path."""
    reader: Callable[[bytes], Iterable[Event]] | None = None
    writer: Callable[[Sequence[Event]], Written] | None = None
    teller: Callable[[bytes], Iterable[Event]] | None = None
    """The events of a context in the order the model reads them, where that is not the order of the bytes."""
    direct: Mapping[str, Callable[[bytes], Written]] = {}
    """By format: the way from a context of this format straight to that one, where going through events says less."""

    runtime: str = ""
    """The runtime that goes on from a file in this format; empty for a format that no program continues."""
    notices: frozenset[str] = frozenset()
    """Kinds of injected prompts by which that runtime tells its model about itself: its tools, modes, surroundings."""
    adopter: Callable[[Sequence[Event]], Written] | None = None
    """Writes what happened in another runtime, where that takes more than `writer` does."""

    @property
    def can(self) -> frozenset[str]:
        """What it can do, as data: `read`, `write`."""
        return frozenset(name for name, there in (("read", self.reader), ("write", self.writer)) if there)

    def read(self, data: bytes) -> list[Event]:
        """The events in the bytes; what cannot be read is among them as `Output`, never missing."""
        if self.reader is None:
            raise BadRequest(f"{self.name} can be written but not read")
        return list(self.reader(data))

    def tell(self, data: bytes) -> list[Event]:
        """The events of the conversation as it stands, in the order the model reads them."""
        return self.read(data) if self.teller is None else list(self.teller(data))

    def adopt(self, events: Sequence[Event]) -> Written:
        """The bytes for what happened in another runtime, so that this one goes on with it."""
        return self.write(events) if self.adopter is None else self.adopter(events)

    def write(self, events: Sequence[Event]) -> Written:
        """The bytes for the events, and what they could not say."""
        if self.writer is None:
            raise BadRequest(f"{self.name} can be read but not written")
        return self.writer(events)
