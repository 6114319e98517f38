"""What an import needs to know of a session's file, found in one pass and without building an event.

Every runtime's `scan` answers with the same value. The counts are those of the whole file so far: a scan that goes on
from an earlier `state` is given only the bytes from `offset` on, and adds them to what the state remembers. The state
is that of the last closed cut, so that the tail, which will be read again, is never counted twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from .base import Delta


class Tokens(msgspec.Struct, frozen=True, array_like=True):
    """What one API message (or one whole run, where only totals are known) cost."""

    input: int = 0
    """Without what came from the cache."""
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    nested: bool = False
    """Known only from a record that embeds another agent's: it counts where its id is seen nowhere else."""

    def beats(self, other: Tokens) -> bool:
        """Whether these figures stand where both claim the same key."""
        if self.nested != other.nested:
            return other.nested
        return self.output > other.output


def merge_usage(tables: Iterable[Mapping[str, Tokens]]) -> dict[str, Tokens]:
    """Several tables of usage as one in which everything counts once, whatever lines, files or forks it stands in."""
    merged: dict[str, Tokens] = {}
    for table in tables:
        for key, tokens in table.items():
            known = merged.get(key)
            if known is None or tokens.beats(known):
                merged[key] = tokens
    seen = {key.split(" ", 1)[0] for key, tokens in merged.items() if not tokens.nested}
    return {key: tokens for key, tokens in merged.items() if not tokens.nested or key.split(" ", 1)[0] not in seen}


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One file, as the importer sees it."""

    runtime: str
    session: str = ""
    """The session the file names; empty where it names none, and the file's stem has to do."""
    agents: tuple[str, ...] = ()
    """The agents whose records are in the file, other than the session's own."""
    parent: str = ""
    """The session that spawned this one."""
    call_id: str = ""
    """The call in the parent that did so, where the file says."""
    inherits: bool = False
    """Whether it began with the parent's context before it."""
    forked_from: str = ""
    """The session whose records this one copies or builds on."""
    fork_base: int | None = None
    """How many bytes of that session's file come before this one's, where the file says so instead of copying them."""
    title: str = ""
    started: int | None = None
    ended: int | None = None
    records: int = 0
    opaque: int = 0
    """Records nobody could read."""
    messages: int = 0
    """Things said: prompts and responses."""
    usage: dict[str, Tokens] = {}
    """Tokens by the key under which they count once, across files: `<api id> <request id>`."""
    prompts: dict[str, int] = {}
    """`human`, `injected`, `tool_result`: how many of each stood in the user's place."""
    tools: dict[str, int] = {}
    """How often each tool was called."""
    compactions: int = 0
    calls: dict[str, str] = {}
    """Sub-agent to the call that started it, as far as this file tells."""
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
