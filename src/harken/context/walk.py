"""Which commits of a chain make up a conversation, and how their bytes are joined.

Two kinds of format stand against each other. In a *linear* one (events, messages) the conversation as it stands is
the nearest compaction or snapshot and all that follows. In a runtime's own file the compaction is a record among the
others, and only the format's `context` can tell what survives it; so it is given every delta of the file, and the
commits that merely repeat or sum up what lies below them are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, islice
from operator import attrgetter

import msgspec

from harken.errors import BadRequest, HarkenError, NotFound
from harken.events import Event
from harken.formats import Format, Loss, find
from harken.formats.base import concatenate, identity
from harken.store.base import Commit, Link, Store

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


def is_linear(format: str) -> bool:
    """Whether the conversation as it stands is simply what follows the nearest compaction."""
    found = find(format)
    return found is None or found.context is identity


def select(store: Store, tip: Commit, stop: str) -> list[Link]:
    """The commits an answer is made of, newest first."""
    if stop == ROOT:
        return all_deltas(store.walk(tip.id))
    if stop != COMPACTION:
        return down_to(store.walk(tip.id), stop)
    chain = store.walk(tip.id, stop=RESETS)
    if not is_linear(chain[-1].format) and (below := store.get_commit(chain[-1].id).parent):
        chain = [*chain, *store.walk(below)]
    return current(chain, is_linear)


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


# -- the conversation at a commit ------------------------------------------------------------------------------------


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a chain in one format, joined."""

    name: str
    format: Format | None
    """None where nobody knows the format."""
    data: bytes
    current: bool = False
    """Whether this is the conversation as it stands, not every record there is."""
    problem: str = ""
    """Why it is not joined but only put together, where that is so."""

    def events(self) -> list[Event]:
        """What the piece says: in the order the model reads it, where it is a conversation that stands."""
        if self.format is None:
            return []
        return self.format.read_conversation(self.data) if self.current else self.format.read(self.data)


def conversation(store: Store, tip: Commit, stop: str) -> tuple[list[Link], list[Piece], tuple[Loss, ...]]:
    """The commits of the conversation at `tip`, what they hold joined by format, and what belongs before it and cannot
    be found; `stop` is `compaction`, `root` or the full name of an ancestor."""
    groups, missing = _groups(store, tip, stop)
    commits = [commit for group in groups for commit in group]
    return commits, _load(store, [stretches(group) for group in groups], current=stop == COMPACTION), missing


def _load(store: Store, groups: Sequence[Sequence[Stretch]], *, current: bool) -> list[Piece]:
    parts = [part for group in groups for part in group]
    artifacts = store.get_many([commit.artifact for part in parts for commit in part.commits])
    pieces = []
    for part in parts:
        deltas = list(islice(artifacts, len(part.commits)))
        pieces.append(_piece(part.format, deltas, current=current))
    return pieces


def _piece(name: str, deltas: list[bytes], *, current: bool) -> Piece:
    """The deltas joined; where their own format cannot do that, one behind the other with the reason."""
    known = find(name)
    if known is not None:
        try:
            data = joined(known, deltas)
            return Piece(name=name, format=known, data=known.context(data) if current else data, current=current)
        except (HarkenError, ValueError, RecursionError) as problem:
            return Piece(name=name, format=None, data=b"".join(deltas), problem=f"{name} cannot be joined: {problem}")
    return Piece(name=name, format=None, data=b"".join(deltas), current=current)


# -- sub-agents that were given their parent's context ---------------------------------------------------------------


def _groups(store: Store, tip: Commit, stop: str) -> tuple[list[list[Link]], tuple[Loss, ...]]:
    """The commits of the answer, newest first; before them those of each context that was handed down.

    Beside them what was handed down and cannot be found."""
    groups = [select(store, tip, stop)]
    seen = {tip.id}
    while stop == COMPACTION and groups[0] and (given := _inherited(store, store.get_commit(groups[0][-1].id))):
        if isinstance(given, str):
            return groups, (Loss(what="inherited context", count=1, why=given),)
        if given.id in seen:
            break
        seen.add(given.id)
        groups.insert(0, select(store, given, stop))
    return groups, ()


def _inherited(store: Store, first: Commit) -> Commit | str | None:
    """The commit whose context a sub-agent was given, if it was given one; a text says why it cannot be found."""
    origin = None if first.parent else first.spawned_from
    if not origin or not origin.get("inherits"):
        return None
    from .spawned import spawn_points

    session = origin.get("session") or "a session without a name"
    if commit := spawn_points(store, [first]).get(first.id):
        try:
            return store.get_commit(commit)
        except NotFound:
            return f"{commit} of {session} is not in this store"
    # What the parent knows now is more than it knew then, so nothing is said rather than too much.
    return f"nobody wrote down at which commit of {session} it was handed over"
