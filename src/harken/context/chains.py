"""From what a scan cut out of a source to a chain of commits: of a file that grows, a document that is rewritten, a
database, or a session log that is being written.

Closed deltas become commits at once and for good. What follows the last cut is the tail: one commit, which hangs from
the last closed one. When the source has grown, the new commits hang from the last closed commit again; the old tail
keeps its id and says what came in its place. So a source that was kept as it grew ends at the same tip as one that
was kept in one go. Equal bytes give equal commits: keeping a rewritten source from its beginning makes the old commits
again as far as the two agree, and leaves the old chain there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from harken.formats.base import Delta
from harken.store.base import Annotation, Draft, Store, Writer

SUPERSEDED_BY = "superseded_by"
"""The annotation of a tail that is on no chain any more. Its value is the full name of the new chain's tip, or empty
once the tail came back: a source was put back, or a cut fell where it ended after all. The newest one counts."""


def is_superseded(notes: Sequence[Annotation]) -> bool:
    """Whether a commit with these annotations, the oldest first, gave way to another."""
    return next((bool(note.value) for note in reversed(notes) if note.key == SUPERSEDED_BY), False)


def come_back(store: Store, writer: Writer, commits: Sequence[str], *, now: int) -> None:
    """Say of the commits of a chain that were superseded once that they are so no more."""
    for commit, notes in store.annotations_of(commits).items():
        if is_superseded(notes):
            writer.annotate(commit, SUPERSEDED_BY, "", time=now)


class ChainState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a chain goes: what the session's row remembers of it."""

    closed: str = ""
    """The commit that ends at the last closed cut."""
    closed_time: int = 0
    """Its time, which those after it cannot fall behind."""
    commits: int = 0
    """How many commits end there; the tail is one more."""
    tail: str = ""
    """The commit of what follows, which a grown source supersedes."""

    @property
    def tip(self) -> str:
        """The newest commit; empty before the first."""
        return self.tail or self.closed


class Extended(msgspec.Struct, frozen=True, kw_only=True):
    """A chain that went on: its state now, and the commits that were made for it, or were there and made again."""

    state: ChainState
    made: tuple[str, ...] = ()


def extend(
    writer: Writer,
    state: ChainState,
    deltas: Iterable[tuple[Delta, bytes | Iterable[bytes]]],
    facts: Draft,
    *,
    now: int,
    keep_tail: bool = True,
    ends: Collection[str] = (),
    alike: Sequence[str] = (),
    seen_by: tuple[str, str] | None = None,
) -> Extended:
    """Commit the deltas behind the last closed commit, each with its bytes (in pieces, where they are many), in the
    writer's transaction.

    `facts` is what every commit says (format, template, principal, session); where it comes from (`spawned_from`,
    `forked_from`) stands on the first alone. Without `keep_tail` a tail waits, and the old one stays as long as nothing
    has closed. `ends` are commits at which other sources of the session end, which do not give way. `alike` are
    artifacts that the chain's deltas nearly repeat, in order; `seen_by` is a principal and a machine by whom every
    commit was seen as well, outside its name and seal.
    """
    before, made = state, list[str]()
    parent, time, count, tail = state.closed, state.closed_time, state.commits, ""
    for delta, data in deltas:
        if not delta.closed and not keep_tail:
            continue
        if isinstance(data, bytes):
            artifact = writer.put(data, like=alike[count] if count < len(alike) else "")
        else:
            artifact = writer.put_stream(data)
        time = max(time, delta.time or 0)
        draft = _draft(facts, delta, artifact=artifact, parent=parent, time=time, first=not count)
        commit = writer.commit(draft)
        if seen_by is not None:
            writer.commit(msgspec.structs.replace(draft, principal=seen_by[0], machine=seen_by[1]))
        made.append(commit.id)
        parent = commit.id
        if delta.closed:
            count += 1
            state = ChainState(closed=commit.id, closed_time=time, commits=count)
        else:
            tail = commit.id
    if not made:
        return Extended(state=before)
    state = msgspec.structs.replace(state, tail=tail)
    # A tail that was closed just where it ended is a commit of the chain, and nothing took its place.
    if before.tail and before.tail not in made and before.tail not in ends:
        writer.annotate(before.tail, SUPERSEDED_BY, state.tip, time=now)
    return Extended(state=state, made=tuple(made))


def _draft(facts: Draft, delta: Delta, *, artifact: str, parent: str, time: int, first: bool) -> Draft:
    return msgspec.structs.replace(
        facts,
        artifact=artifact,
        parent=parent,
        time=time,
        commit_type=delta.commit_type,
        checkpoint=delta.checkpoint,
        message_count=delta.messages,
        token_count=(delta.end - delta.start) // 4,
        approximate=True,
        spawned_from=facts.spawned_from if first else None,
        forked_from=facts.forked_from if first else "",
    )
