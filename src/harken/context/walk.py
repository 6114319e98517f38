"""Which commits of a chain make up an answer, and how their bytes are joined. Pure: values in, values out.

Two kinds of format stand against each other. In a *linear* one (events, messages) the conversation as it stands is
the nearest compaction or snapshot and all that follows. In a runtime's own file the compaction is a record among the
others, and only the format's `context` can tell what survives it; so it is given every delta of the file, and the
commits that merely repeat or sum up what lies below them are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter

import msgspec

from harken.errors import BadRequest
from harken.formats import Format
from harken.formats.base import concatenate
from harken.store.base import Link

DELTA = "delta"
COMPACTION = "compaction"
ROOT = "root"
RESETS = ("compaction", "snapshot")
"""The types of commit that stand for everything below them."""


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """Commits of one format in a row, oldest first."""

    format: str
    commits: tuple[Link, ...]


def current(chain: Sequence[Link], linear: Callable[[str], bool]) -> list[Link]:
    """The commits behind the conversation as it stands now; newest first, as `chain` is.

    The chain reaches its root, or ends at a compaction or snapshot of a linear format."""
    # Asked once per format: chains are long and formats are few.
    straight = {name: linear(name) for name in {link.format for link in chain}}
    kept: list[Link] = []
    hidden_beyond = ""
    for place, link in enumerate(chain, 1):
        if hidden_beyond and link.format != hidden_beyond:
            break
        if straight[link.format]:
            kept.append(link)
            if link.commit_type in RESETS:
                break
        elif link.commit_type not in RESETS or place == len(chain):
            kept.append(link)
        elif link.commit_type == COMPACTION:
            hidden_beyond = link.format
    return kept


def all_deltas(chain: Sequence[Link]) -> list[Link]:
    """Every delta of a chain that reaches its root, each once; newest first.

    A compaction or snapshot is left out, since the chain below holds what it stands for; at the root there is
    nothing below, so there it is content."""
    return [*(link for link in chain[:-1] if link.commit_type not in RESETS), *chain[-1:]]


def down_to(chain: Sequence[Link], ancestor: str) -> list[Link]:
    """Every delta down to the ancestor, which is part of the answer whatever its type; newest first."""
    for place, link in enumerate(chain, 1):
        if link.id == ancestor:
            return all_deltas(chain[:place])
    raise BadRequest(
        f"ctx-{ancestor[:8]} is not an ancestor of ctx-{chain[0].id[:8]}",
        hint="`stop` is `compaction`, `root` or a commit further down the same chain; `harken log REF` lists them",
    )


def stretches(links: Iterable[Link]) -> list[Stretch]:
    """The commits (newest first) as stretches of one format each, oldest first."""
    oldest_first = reversed(list(links))
    return [
        Stretch(format=name, commits=tuple(group)) for name, group in groupby(oldest_first, key=attrgetter("format"))
    ]


# -- joining -----------------------------------------------------------------------------------------------------------

LINES = ("application/jsonl", "application/x-ndjson")
"""The media types of formats whose records end with the line."""


def gap(format: Format | None, delta: bytes) -> bytes:
    """What belongs between this delta and the next: a newline, where a line format's delta lacks its last one.

    A file is cut behind newlines, so an import is joined byte for byte as it was. A delta that somebody made by hand
    may lack one, and the next would run into it; as the last of a conversation it stays as it is."""
    if format is None or format.media_type not in LINES or format.join is not concatenate:
        return b""
    return b"\n" if delta and not delta.endswith(b"\n") else b""


def joined(format: Format, deltas: Sequence[bytes]) -> bytes:
    """The deltas as one conversation, as their format joins them."""
    closed = [delta + after if (after := gap(format, delta)) else delta for delta in deltas[:-1]]
    return format.join([*closed, *deltas[-1:]])
