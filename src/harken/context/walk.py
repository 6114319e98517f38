"""Which commits of a chain make up a conversation, and how their bytes are joined.

Two kinds of format stand against each other. In a *linear* one (events, messages) the conversation as it stands is
the nearest compaction or snapshot and all that follows. In a runtime's own file the compaction is a record among the
others, and only the format's `context` can tell what survives it; so it is given every delta of the file, and the
commits that merely repeat or sum up what lies below them are passed over.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain as in_turn
from itertools import groupby, islice
from operator import attrgetter

import msgspec

from harken import ids
from harken.errors import BadRequest, HarkenError, NotFound
from harken.events import Event
from harken.formats import Format, Loss, find
from harken.formats.base import concatenate, identity
from harken.formats.kit.jsonl import lines
from harken.store.base import Commit, Store, WalkStep

from .readable import for_readers

DELTA = "delta"
COMPACTION = "compaction"
ROOT = "root"
SNAPSHOT = "snapshot"
RESETS = (COMPACTION, SNAPSHOT)
"""The types of commit that stand for everything below them."""


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """Commits of one format in a row, oldest first."""

    format: str
    commits: tuple[WalkStep, ...]


def current(chain: Sequence[WalkStep], linear: Callable[[str], bool]) -> list[WalkStep]:
    """The commits behind the conversation as it stands now; newest first, as `chain` is.

    The chain reaches its root, or ends at a compaction or snapshot of a linear format."""
    # Asked once per format: chains are long and formats are few.
    straight = {name: linear(name) for name in {step.format for step in chain}}
    kept: list[WalkStep] = []
    hidden_beyond = ""
    for place, step in enumerate(chain, 1):
        if hidden_beyond and step.format != hidden_beyond:
            break
        if straight[step.format]:
            kept.append(step)
            if step.commit_type in RESETS:
                break
        elif step.commit_type not in RESETS or place == len(chain):
            kept.append(step)
        elif step.commit_type == COMPACTION:
            hidden_beyond = step.format
    return kept


def all_deltas(chain: Sequence[WalkStep]) -> list[WalkStep]:
    """Every delta of a chain that reaches its root, each once; newest first.

    A compaction or snapshot is left out, since the chain below holds what it stands for; at the root there is
    nothing below, so there it is content."""
    return [*(step for step in chain[:-1] if step.commit_type not in RESETS), *chain[-1:]]


def down_to(chain: Sequence[WalkStep], ancestor: str) -> list[WalkStep]:
    """Every delta down to the ancestor, which is part of the answer whatever its type; newest first."""
    for place, step in enumerate(chain, 1):
        if step.id == ancestor:
            return all_deltas(chain[:place])
    raise BadRequest(
        f"ctx-{ancestor[:8]} is not an ancestor of ctx-{chain[0].id[:8]}",
        hint="`stop` is `compaction`, `root` or a commit further down the same chain; `harken log REF` lists them",
    )


def stretches(steps: Iterable[WalkStep]) -> list[Stretch]:
    """The commits (newest first) as stretches of one format each, oldest first."""
    oldest_first = reversed(list(steps))
    return [
        Stretch(format=name, commits=tuple(group)) for name, group in groupby(oldest_first, key=attrgetter("format"))
    ]


def is_linear(format: str) -> bool:
    """Whether the conversation as it stands is simply what follows the nearest compaction."""
    found = find(format)
    return found is None or found.context is identity


def select(store: Store, tip: Commit, stop: str) -> list[WalkStep]:
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
    closed = [(delta, after) if (after := gap(format, delta)) else (delta,) for delta in deltas[:-1]]
    return format.join([*in_turn.from_iterable(closed), *deltas[-1:]])


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
    find_place: Callable[[int], str] | None = None
    """What a record without a name is called that begins at a place of `data`; None where names are stored."""

    def events(self) -> list[Event]:
        """What the piece says: in the order the model reads it, where it is a conversation that stands."""
        if self.format is None:
            return []
        found = self.format.read_conversation(self.data) if self.current else self.format.read(self.data)
        return found if self.find_place is None else list(renamed(found, self.find_place))


def conversation(
    store: Store, tip: Commit, stop: str, *, readable: bool = False
) -> tuple[list[WalkStep], list[Piece], tuple[Loss, ...]]:
    """The commits of the conversation at `tip`, what they hold joined by format, and what belongs before it and cannot
    be found; `stop` is `compaction`, `root` or the full name of an ancestor. Where it need only be `readable`, overlong
    lines may be left out (`kit/sparse.py`)."""
    groups, missing = _groups(store, tip, stop)
    commits = [commit for _, group in groups for commit in group]
    names = [commit.artifact for _, group in groups for commit in reversed(group)]
    artifacts = store.get_many(names, large=for_readers(store, commits) if readable else None)
    pieces = []
    for session, group in groups:
        for part in stretches(group):
            deltas = list(islice(artifacts, len(part.commits)))
            pieces.append(_piece(store, part, deltas, session, current=stop == COMPACTION))
    return commits, pieces, missing


def _piece(store: Store, part: Stretch, deltas: list[bytes], session: str, *, current: bool) -> Piece:
    """The deltas joined; where their own format cannot do that, one behind the other with the reason."""
    name = part.format
    known = find(name)
    if known is None:
        return Piece(name=name, format=None, data=b"".join(deltas), current=current)
    try:
        data = joined(known, deltas)
        said = known.context(data) if current else data
    except (HarkenError, ValueError, RecursionError) as problem:
        return Piece(name=name, format=None, data=b"".join(deltas), problem=f"{name} cannot be joined: {problem}")
    find_place = None
    if not known.names_stored:
        sizes = [len(delta) + len(gap(known, delta)) for delta in deltas] if known.places is len else None
        find_place = _Places(store, part, sizes, session, partial(Excerpt, data, said) if said != data else None)
    return Piece(name=name, format=known, data=said, current=current, find_place=find_place)


# -- what records without a name are called ----------------------------------------------------------------------------
#
# A record without a name of its own is called `@` and its place: how far it is from the beginning of the chain, where
# every delta counts once. A reader sees a part of the chain (one delta, one stretch, what a compaction left) and counts
# from the beginning of that; here its count is made into the place in the chain, which is what every command prints and
# what `SESSION@@PLACE` finds.

_PLACE = re.compile(r"@([0-9]{1,18})")


def place_in(name: str) -> int | None:
    """The place that a record is called after; None where it has a name."""
    found = _PLACE.fullmatch(name) if name[:1] == "@" else None
    return int(found[1]) if found else None


def places(format: Format | None, delta: bytes) -> int:
    """How many places a delta takes up in its chain."""
    if format is None or format.places is len:
        return len(delta) + len(gap(format, delta))
    return format.places(delta)


def starts(store: Store, tip: str) -> tuple[dict[str, int], int, bytes]:
    """At which place each delta of the chain begins, at which the next one would, and the bytes of the last."""
    deltas = all_deltas(store.walk(tip))[::-1] if tip else []
    found: dict[str, int] = {}
    at, data = 0, b""
    contents = store.get_many([step.artifact for step in deltas], large=for_readers(store, deltas))
    for step, data in zip(deltas, contents, strict=True):
        found[step.id] = at
        at += places(find(step.format), data)
    return found, at, data


def added(format: Format, delta: bytes, begin: int | None) -> list[Event]:
    """What a commit adds, as events: those of its delta, as the chain calls them, in which it begins at that place."""
    return list(named(format, format.read_delta(delta), begin))


def named(format: Format, events: Iterable[Event], begin: int | None) -> Iterator[Event]:
    """A delta's events as the chain calls them, in which the delta begins at that place; None where it is no part of
    the count, and its records have no place."""
    if not format.names_stored:
        yield from renamed(events, lambda place: "" if begin is None else f"@{begin + place}")
        return
    last = ""  # what the record was called that had no name; empty behind one that has
    for place, event in enumerate(events):
        if event.message_id or begin is None:
            last = ""
        else:
            # The further events of a record go by the name of its first.
            last = last if event.index and last else f"@{begin + place}"
            event = event.replace(message_id=last)
        yield event


def renamed(events: Iterable[Event], name: Callable[[int], str]) -> Iterator[Event]:
    """The events, with `name(place)` wherever they name a record by its place."""

    def new(text: str) -> str:
        return text if (place := place_in(text)) is None else name(place)

    for event in events:
        changes: dict[str, object] = {}
        if event.message_id[:1] == "@":
            changes["message_id"] = new(event.message_id)
        if event.substance and event.substance[0] == "@":
            changes["substance"] = new(event.substance)
        if event.cause:
            causes = tuple(map(new, event.causes()))
            if causes != event.causes():
                changes["cause"] = causes[0] if isinstance(event.cause, str) else causes
        yield event.replace(**changes) if changes else event


class Excerpt:
    """Where the lines of a conversation lie in the whole they were taken from, in order and verbatim."""

    def __init__(self, whole: bytes, part: bytes) -> None:
        self._ends: list[int] = []
        self._moves: list[int | None] = []
        there = 0
        for start, end in lines(part):
            found = _find_line(whole, part[start:end].rstrip(b"\n"), there)
            move = None if found is None else found - start
            there = there if found is None else found + end - start
            if self._moves and self._moves[-1] == move:
                self._ends[-1] = end
            else:
                self._ends.append(end)
                self._moves.append(move)

    def __call__(self, place: int) -> int | None:
        """The place in the whole; None for a line that the whole does not have."""
        at = bisect_right(self._ends, place)
        move = self._moves[at] if at < len(self._moves) else None
        return None if move is None else place + move


def _find_line(whole: bytes, text: bytes, start: int) -> int | None:
    """Where a line with this text stands in the whole, at or behind a place at which a line begins."""
    if whole.startswith(text, start) and whole[start + len(text) : start + len(text) + 1] in (b"\n", b""):
        return start
    at = whole.find(b"\n" + text + b"\n", max(start - 1, 0))
    if at < 0 and whole.endswith(b"\n" + text):
        at = len(whole) - len(text) - 1
    return at + 1 if at >= 0 and at + 1 >= start else None


class _Places:
    """What a record is called that a reader found at a place of a piece: made out when the first one asks."""

    def __init__(
        self, store: Store, part: Stretch, sizes: list[int] | None, session: str, excerpt: Callable[[], Excerpt] | None
    ) -> None:
        self._store, self._part, self._sizes, self._session = store, part, sizes, session
        self._make_excerpt = excerpt
        self._excerpt: Excerpt | None = None
        self._ends: list[int] = []
        self._begin: list[int | None] = []

    def __call__(self, place: int) -> str:
        if not self._ends:
            self._settle()
        within = place if self._excerpt is None else self._excerpt(place)
        if within is None:
            return ""
        at = min(bisect_right(self._ends, within), len(self._ends) - 1)
        begin = self._begin[at]
        return "" if begin is None else f"{self._session}@{begin + within - (self._ends[at - 1] if at else 0)}"

    def _settle(self) -> None:
        commits = self._part.commits
        if self._make_excerpt is not None:
            self._excerpt = self._make_excerpt()
        known: dict[str, int] | None = None
        if self._sizes is None or self._store.get_commit(commits[0].id).parent:
            known, _, _ = starts(self._store, commits[-1].id)
        sizes = self._sizes or self._measure()
        at = 0
        for step, size in zip(commits, sizes, strict=True):
            # One that stands for others and is no part of the count has them from the beginning, or says it anew.
            begin = at if known is None else known.get(step.id, 0 if step.commit_type == SNAPSHOT else None)
            self._begin.append(begin)
            at += size
            self._ends.append(at)

    def _measure(self) -> list[int]:
        format = find(self._part.format)
        return [places(format, data) for data in self._store.get_many([step.artifact for step in self._part.commits])]


# -- contexts that were handed down: a sub-agent's, a fork's, what a session went back to ------------------------------


def _groups(store: Store, tip: Commit, stop: str) -> tuple[list[tuple[str, list[WalkStep]]], tuple[Loss, ...]]:
    """The commits of the answer, newest first; before them those of each context that was handed down, with what its
    records are called after. Beside them what was handed down and cannot be found."""
    groups = [("", select(store, tip, stop))]
    names = Callers()
    seen = {tip.id}
    while stop == COMPACTION and groups[0][1] and (given := inherited(store, groups[0][1][-1].id)):
        if isinstance(given, Loss):
            return groups, (given,)
        if given.id in seen:
            break
        seen.add(given.id)
        groups.insert(0, (names(given), select(store, given, stop)))
    return groups, ()


class Callers:
    """What the records of contexts that were handed down are called after, asked from the nearest on: the session, and
    where a nearer one is of the same session, the commit."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, given: Commit) -> str:
        if given.session_id in self._seen:
            return ids.commit_ref(given.id)
        self._seen.add(given.session_id)
        return given.session_id


def inherited(store: Store, commit: str) -> Commit | Loss | None:
    """The commit whose context a chain with this root was given, if it was; a loss says why it cannot be found."""
    first = store.get_commit(commit)
    origin = None if first.parent else first.spawned_from
    if not origin or not origin.get("inherits"):
        return None
    from .spawned import spawn_points

    session = origin.get("session") or "a session without a name"
    lost = partial(Loss, what="inherited context", count=1)
    if found := spawn_points(store, [first]).get(first.id):
        try:
            return store.get_commit(found)
        except NotFound:
            return lost(why=f"{found} of {session} is not in this store")
    if store.find_session(session) is None:
        return lost(why=f"{session} is not in this store")
    # What the parent knows now is more than it knew then, so nothing is said rather than too much.
    return lost(why=f"nobody wrote down at which commit of {session} it was handed over")
