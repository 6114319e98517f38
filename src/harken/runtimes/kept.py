"""What an import remembers of a file, in the session's row: enough to go on where it stopped, and to answer without
reading the file again. All of it is derived: an import with `--verify` makes it anew from the bytes.
"""

from __future__ import annotations

import msgspec
import zstandard

from harken import ids
from harken.context.chains import ChainState
from harken.events.tally import Tally, merge_requests
from harken.formats.facts import FileFacts
from harken.store import SessionRow

from .files import Stamp

HEAD = 4 * 1024
FOOT = 64 * 1024
SETTLE = 2_000_000
"""A file touched within two seconds of its import may have been written in the same tick of its clock."""


LONG = 2 << 10
LARGEST = 1 << 30


class Guard(msgspec.Struct, frozen=True, array_like=True):
    """The head and the last stretch of a prefix, as digests: if both still fit, the file has only grown."""

    head: str = ""
    foot: str = ""

    @classmethod
    def of(cls, head: bytes, foot: bytes) -> Guard:
        """The guard of a prefix, from its first and its last bytes."""
        return cls(ids.artifact_id(head), ids.artifact_id(foot))


class SideFile(msgspec.Struct, frozen=True, array_like=True):
    """A file beside the session's own, kept as an artifact."""

    artifact: str
    size: int
    modified: int


class Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The memory of one imported file."""

    stamp: Stamp
    read_at: int
    """When it was read, to tell a settled file from one that is still being written."""
    offset: int = 0
    """The last closed cut."""
    chain: ChainState = ChainState()
    """The commits up to there, and the one of what follows."""
    guard: Guard = Guard()
    scan: str = ""
    """The scanner's state at the last closed cut (JSON text)."""
    size: int = 0
    records: int = 0
    opaque: int = 0
    tally: Tally = msgspec.field(default_factory=Tally)
    """What the file amounts to, its requests by the ids under which each counts once."""
    agents: tuple[str, ...] = ()
    calls: dict[str, str] = {}
    """Sub-agent to the call that started it."""
    first: str = ""
    """The name of the first record, which a copy shares."""
    forked_from: str = ""
    """The commit this file goes on from, in another session."""
    beside: dict[str, SideFile] = {}
    rewrites: int = 0

    def settled(self, stamp: Stamp) -> bool:
        """Whether the file is as it was, so that nothing has to be read."""
        return self.stamp == stamp and stamp.modified // 1000 + SETTLE < self.read_at


def remember(kept: Kept) -> bytes:
    """The memory as a session's row holds it: JSON, compressed where it is long."""
    data = msgspec.json.encode(kept)
    return data if len(data) < LONG else zstandard.compress(data, 9)


def recall(row: SessionRow | None) -> Kept | None:
    """The memory in a session's row, if an import left one."""
    if row is None or not row.state:
        return None
    try:
        data = row.state
        if data.startswith(zstandard.FRAME_HEADER):
            data = zstandard.ZstdDecompressor().decompress(data, max_output_size=LARGEST)
        return msgspec.json.decode(data, type=Kept)
    except (msgspec.MsgspecError, zstandard.ZstdError):
        return None  # another version's memory: reading the file again makes a new one


def facts_into(kept: Kept, facts: FileFacts) -> Kept:
    """The memory with the totals of a scan that goes to the present end of the file."""
    requests = {} if facts.restarted else dict(kept.tally.requests)
    merge_requests(requests, facts.tally.requests)
    return msgspec.structs.replace(
        kept,
        records=facts.records,
        opaque=facts.opaque,
        tally=msgspec.structs.replace(facts.tally, requests=requests),
        agents=facts.agents,
        calls={**kept.calls, **facts.calls},
        first=kept.first or (facts.fingerprint[0] if facts.fingerprint else ""),
    )
