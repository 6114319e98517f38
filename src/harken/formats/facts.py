"""What an import needs to know of a session's file, found in one pass and without building an event.

Every runtime's `scan` answers with the same value. The counts are those of the whole file so far: a scan that goes on
from an earlier `state` is given only the bytes from `offset` on, and adds them to what the state remembers. The state
is that of the last closed cut, so that the tail, which will be read again, is never counted twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from harken import ids
from harken.clock import parse_instant
from harken.events.base import named
from harken.events.tally import Tally

from .base import Delta

ORIGIN = "harken_origin"
"""The key under which a file that Harken began says so, in its first record."""


def prompt_name(text: str) -> str:
    """A short name by which a prompt is known again, in the call that gives it and where it is heard."""
    return ids.short_digest(text.strip().encode(errors="replace"))


ShortText = Annotated[str, msgspec.Meta(max_length=ids.NAME_LIMIT)]
"""What a transcript may say anything in, and is remembered."""


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a session goes on from, as its own file says where Harken wrote the beginning. It is believed as far as the
    bytes are those that were written."""

    session: ShortText = ""
    """The session that was written: a program that copies the file copies these words too. Empty in a session log,
    whose name is made from them."""
    source: ShortText = ""
    """The session that it goes on from; empty where the commit is of none."""
    commit: str
    """The full name of the commit that it goes on from."""
    time: str
    """The time of that commit. Where the source has grown since, a fresh import of it may have another one there."""
    size: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
    """How many bytes behind the first line are not the session's own."""
    digest: ShortText
    """The first 16 digits of their name as an artifact."""
    tier: ShortText
    """How they were made: `1` the runtime's own records, otherwise a translation."""
    records: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)] = 0
    """How many records are not the session's own, where a program takes them into a database and bytes tell nothing."""
    line: int = 0
    """How long the first line is, as the reader of the file adds."""

    @property
    def prefix(self) -> int:
        """How many bytes from the beginning of the file on are not the session's own."""
        return self.line + self.size

    @property
    def instant(self) -> int:
        """The time of the commit that it goes on from."""
        return parse_instant(self.time) or 0

    def is_of(self, data: bytes) -> bool:
        """Whether a file begins with what was written. One of which only parts are held is taken at its word, and so
        are the rows of a database."""
        return (
            bool(self.records)
            or not isinstance(data, bytes)
            or ids.short_digest(data[self.line : self.prefix]) == self.digest
        )


def read_origin(value: object, line: int) -> Origin | None:
    """What the first record of a file says under `ORIGIN`; None where that is nothing Harken would write."""
    try:
        told = msgspec.convert(value, Origin)
    except msgspec.ValidationError:
        return None
    if len(told.commit) < ids.COMMIT_FULL or not ids.is_hex(told.commit) or parse_instant(told.time) is None:
        return None
    return msgspec.structs.replace(told, session=named(told.session), source=named(told.source), line=line)


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One file, as the importer sees it."""

    runtime: str
    session: str = ""
    """The session the file names; empty where it names none, and the file's stem has to do."""
    agents: tuple[str, ...] = ()
    """The agents whose records are in the file, other than the session's own."""
    parent: str = ""
    """The session that spawned this one."""
    forked_from: str = ""
    """The session whose records this one copies or builds on."""
    origin: Origin | None = None
    """What the file goes on from, where Harken wrote its beginning and this scan read it."""
    fork_base: int | None = None
    """How many bytes of that session's file come before this one's, where the file says so instead of copying them."""
    title: str = ""
    named: bool = False
    """Whether somebody chose the title, as far as the format tells."""
    project: str = ""
    """The folder that was worked in, as the first record says that names one."""
    records: int = 0
    opaque: int = 0
    """Records nobody could read."""
    messages: int = 0
    """Prompts and responses: the sum over the deltas, and what the tally says (`Tally.messages`)."""
    inside: int = 0
    """How many of these are of other agents than the file's own, which have chains of their own."""
    tally: Tally = msgspec.field(default_factory=Tally)
    """What is counted: of the whole file so far, but of requests only those that this scan saw."""
    calls: dict[str, str] = {}
    """Sub-agent to the call that started it, as far as this file tells."""
    makers: dict[str, str] = {}
    """Sub-agent to the other sub-agent in this file that started it; without one it was the file's own agent."""
    asks: dict[str, str] = {}
    """Calls that start sub-agents, each to the name of the prompt it gives (`prompt_name`)."""
    told: str = ""
    """The name of a sub-agent's first prompt: by it the call is found where no record names the two together."""
    sidechain: bool = False
    """Whether the whole file is a sub-agent's."""
    side_chains: bool = False
    """Whether another agent's records stand between those of the file's own."""
    fingerprint: tuple[str, ...] = ()
    """Names of the first conversation records, the same in a copy under another session id."""
    deltas: tuple[Delta, ...] = ()
    """What this scan cut, with offsets into the whole file; the last one may be an open tail."""
    offset: int = 0
    """The last closed cut: where the next scan of a grown file begins."""
    state: bytes = b""
    """What the next scan has to be told (JSON)."""

    @property
    def started(self) -> int | None:
        """The first instant the file names."""
        return self.tally.started

    @property
    def ended(self) -> int | None:
        """The last instant the file names."""
        return self.tally.ended


Scan = Callable[[bytes, bytes], FileFacts]
"""What a runtime's scan is: the bytes of a source, and the state in which the last scan of it ended."""
