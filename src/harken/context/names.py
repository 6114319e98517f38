"""Names: those that Harken keeps for itself, and what sessions go on from by them; taking a move back; keeping a
chain's bytes for ever."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import msgspec

from harken.errors import Conflict, HarkenError
from harken.formats import Loss
from harken.formats.facts import Origin
from harken.store import find_move
from harken.store import undo as undo_move
from harken.store.base import Commit, Move, Name, SessionRow, Store

from .chains import SUPERSEDED_BY, recall, recall_stamps

LIVE_BRANCH = "live/"
"""Before a session's name: where the recording of its run stands."""
RESUMED_BRANCH = "resumed/"
"""Before the name of a session that Harken wrote: the commit it continues."""
PRINCIPALS_BRANCH = "principals/"
"""Before a principal: what it keeps by keys, and its sessions."""
REMEMBERED = "instantiated"
"""The key of the annotation, on that commit, that remembers what was written."""
OWN_REMARKS = frozenset((REMEMBERED, SUPERSEDED_BY))
"""The keys of remarks by which Harken knows something itself."""


class Remembered(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept beside the commit that a session continues: the session, and how much of it is not its own."""

    runtime: str
    session: str
    prefix: int
    """How many bytes were written."""
    records: int | None = None
    """How many records these were, where the source is no file that grows: bytes do not stay in their places."""
    tier: str
    losses: tuple[Loss, ...] = ()
    origin: Origin | None = None
    """What the file itself says, where nothing else is known of it."""
    source: str = ""
    """The session that was continued; empty where it was of none, and where an older Harken wrote it, which did not
    say."""

    def goes_on_from(self, commit: Commit | None) -> str:
        """The session that was continued: what is remembered of it, else what its commit says. Those of a sub-agent
        may name the session above it."""
        told = self.origin.source if self.origin is not None else self.source
        return told or (commit.session_id if commit is not None else "")


def is_own(name: Name) -> bool:
    """Whether Harken keeps this branch for itself; people are not shown it unless they ask."""
    return name.kind == "branch" and is_kept(name.name)


def is_kept(name: str) -> bool:
    """Whether it is one of the names that Harken keeps for itself."""
    return name.startswith((LIVE_BRANCH, RESUMED_BRANCH, PRINCIPALS_BRANCH))


def continuations(names: Iterable[Name]) -> list[str]:
    """The sessions that Harken wrote to go on from where the names point."""
    return [name.name.removeprefix(RESUMED_BRANCH) for name in names if name.name.startswith(RESUMED_BRANCH)]


class Continued(msgspec.Struct, frozen=True, kw_only=True):
    """Of a session that Harken wrote: what it goes on from."""

    commit: str
    """The full name of the commit."""
    session: str = ""
    """The session that is part of; empty where it is of none."""
    time: int
    """When it was written: what is in it may be older."""
    prefix: int = 0
    """How many bytes were written; 0 where its source is no file that grows."""


def resumed_sessions(store: Store) -> dict[str, Continued]:
    """The sessions that Harken wrote to continue a conversation."""
    found: dict[str, Continued] = {}
    targets = sorted({name.target for name in store.names("branch") if name.name.startswith(RESUMED_BRANCH)})
    commits: dict[str, Commit] = {}
    with contextlib.suppress(HarkenError):  # a damaged one is for fsck to tell of
        commits = {commit.id: commit for commit in store.get_commits(targets)} if targets else {}
    for target, notes in store.annotations_of(targets).items() if targets else ():
        for note in notes:
            if note.key == REMEMBERED:
                with contextlib.suppress(msgspec.MsgspecError):
                    kept = msgspec.json.decode(note.value, type=Remembered)
                    source = kept.goes_on_from(commits.get(target))
                    prefix = kept.prefix if kept.records is None else 0
                    found[kept.session] = Continued(commit=target, session=source, time=note.time, prefix=prefix)
    return found


def begun_elsewhere(rows: Iterable[SessionRow]) -> dict[str, Continued]:
    """The same of sessions whose files say so themselves, whichever store wrote them."""
    found: dict[str, Continued] = {}
    for row in rows:
        if any(stamp.copies for stamp in recall_stamps(row).values()):  # few say that they go on from anything
            for known in recall(row).values():
                if (told := known.origin) is not None:
                    commit = known.forked_from or told.commit
                    found[row.session] = Continued(
                        commit=commit, session=told.source, time=told.instant, prefix=told.prefix
                    )
    return found


def undo(store: Store, name: str | None, number: int | None, *, time: int, who: str = "") -> Name:
    """Take back the newest deliberate move of a name (or of any), or the move of that number. It is one more move."""
    move = find_move(store, name, number)
    try:
        back = undo_move(store, move, time=time, who=who)
    except Conflict as problem:
        raise Conflict(str(problem), hint=_instead(store, move) or problem.hint) from problem
    return Name(name=back.name, kind=back.kind, target=back.after)


def _instead(store: Store, move: Move) -> str:
    """What to do where a move cannot be taken back because the name is not where the move left it."""
    now = store.find_name(move.name)
    if now is None or now.target == move.after:
        return ""
    last = store.moves(move.name, limit=1)[0]
    if last.after == now.target:
        return f"it was moved again since; take that back first: `harken undo {last.number}`"
    here = store.get_commit(now.target).short
    there = store.get_commit(move.before).short if move.before else ""
    to = f"`harken {move.kind} --move {move.name} {there}`" if there else f"`harken {move.kind} --delete {move.name}`"
    return f"it has gone on to {here} by itself since; {to} does it all the same, and {here} stays in the store"


def set_pin(store: Store, commit: Commit, *, pinned: bool, only: bool) -> int:
    """Keep the bytes of a commit (and, unless `only`, of the chain behind it) for ever, or stop doing so. The answer
    is how many artifacts that concerns."""
    artifacts = [commit.artifact] if only else [step.artifact for step in store.walk(commit.id)]
    with store.write() as writer:
        for artifact in dict.fromkeys(artifacts):
            writer.set_policy(artifact, "pin" if pinned else "default")
    return len(set(artifacts))
