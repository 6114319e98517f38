"""Branches, tags and pins: list, set, remove, take back."""

from __future__ import annotations

from collections.abc import Iterator

from harken.context.names import is_own
from harken.errors import NotFound
from harken.repo import Repo
from harken.store import Name

from .base import ApiAnswer, ApiRequest, stamp
from .crossing import crosses
from .values import NameAnswer, name_answers

_LONGEST = 19
"""Digits of the largest number that a move can have."""


class NamesRequest(ApiRequest, frozen=True, kw_only=True):
    """Which names to list."""

    kind: str = ""
    """`branch` or `tag`; empty for both."""
    all: bool = False
    """Those too that Harken keeps for itself: `live/SESSION`, `resumed/SESSION`, `principals/…`."""
    name: str = ""
    """The one of exactly this name; empty for all."""


@crosses
def names(repo: Repo, request: NamesRequest) -> Iterator[NameAnswer]:
    """The branches and tags, by name."""
    if request.name:
        one = repo.find_name(request.name)
        found = [one] if one is not None and request.kind in ("", one.kind) else []
    else:
        found = repo.names(request.kind or None)
    return iter(name_answers(repo, found if request.all else [name for name in found if not is_own(name)]))


class ForkRequest(ApiRequest, frozen=True, kw_only=True):
    """Where to branch off."""

    ref: str
    """The commit."""
    name: str
    """What the branch is called; it must be new."""
    who: str = ""
    """Who does it."""
    why: str = ""
    """The reason, for the list of moves."""


@crosses
def fork(repo: Repo, request: ForkRequest) -> NameAnswer:
    """Start a branch at any commit."""
    made = repo.fork(request.ref, request.name, who=request.who, why=request.why)
    return name_answers(repo, [made])[0]


class SetNameRequest(ApiRequest, frozen=True, kw_only=True):
    """A name and where it points."""

    name: str
    """What it is called."""
    kind: str
    """`branch` or `tag`."""
    ref: str
    """The commit it points at."""
    move: bool = False
    """Whether it is there already and moves; otherwise it must be new."""
    expect: str | None = None
    """The full name of the commit that it has to point at now, in place of `move`; empty: it has to be new."""
    who: str = ""
    """Who does it."""
    why: str = ""
    """The reason, for the list of moves."""


@crosses
def set_name(repo: Repo, request: SetNameRequest) -> NameAnswer:
    """Make a branch or tag, or move one that is there."""
    expect = request.expect or ""
    if request.move and request.expect is None:
        before = repo.find_name(request.name)
        if before is None:
            hint = f"`harken {request.kind} {request.name} REF` makes it"
            raise NotFound(f"no {request.kind} {request.name!r} to move", hint=hint)
        expect = before.target
    commit = repo.commit(request.ref)
    why = request.why or ("move" if request.move else "new")
    repo.move(request.name, commit, kind=request.kind, expect=expect, who=request.who, why=why)
    return name_answers(repo, [Name(name=request.name, kind=request.kind, target=commit.id)])[0]


class DeleteNameRequest(ApiRequest, frozen=True, kw_only=True):
    """Which name to remove."""

    name: str
    """What it is called."""
    kind: str
    """`branch` or `tag`."""
    expect: str | None = None
    """The full name of the commit that it has to point at now; None: any."""
    who: str = ""
    """Who does it."""
    why: str = ""
    """The reason, for the list of moves."""


@crosses
def delete_name(repo: Repo, request: DeleteNameRequest) -> NameAnswer:
    """Remove a branch or tag; the commits stay."""
    why = request.why or "delete"
    repo.move(request.name, None, kind=request.kind, expect=request.expect, who=request.who, why=why)
    return NameAnswer(name=request.name, kind=request.kind, target="", short="")


class MovesRequest(ApiRequest, frozen=True, kw_only=True):
    """Which moves to list."""

    name: str = ""
    """The branch or tag; empty for all."""
    limit: int | None = None
    """At most so many."""


class MoveAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A deliberate move of a branch or tag."""

    number: int
    """The number by which `undo` takes it."""
    name: str
    """The branch or tag."""
    kind: str
    """`branch` or `tag`."""
    before: str
    """The full name of the commit it pointed at; empty where it was new."""
    before_short: str
    """The short name of that commit."""
    after: str
    """The full name of the commit it points at since; empty where it was removed."""
    after_short: str
    """The short name of that commit."""
    time: str | None
    """When it was moved."""
    who: str
    """Who moved it."""
    why: str
    """The reason."""


@crosses
def moves(repo: Repo, request: MovesRequest) -> Iterator[MoveAnswer]:
    """Where branches and tags were moved on purpose, newest first."""
    found = repo.moves(request.name or None, limit=request.limit)
    if request.name and not found and repo.find_name(request.name) is None and not repo.moves(request.name, limit=1):
        raise NotFound(
            f"there is no branch or tag {request.name!r}, and there was none", hint="`harken moves` lists all moves"
        )
    shorts = repo.shorts({end for move in found for end in (move.before, move.after) if end})
    for move in found:
        yield MoveAnswer(
            number=move.number,
            name=move.name,
            kind=move.kind,
            before=move.before,
            before_short=shorts.get(move.before, ""),
            after=move.after,
            after_short=shorts.get(move.after, ""),
            time=stamp(move.time),
            who=move.who,
            why=move.why,
        )


class UndoRequest(ApiRequest, frozen=True, kw_only=True):
    """Which move to take back."""

    name: str = ""
    """The branch or tag whose last move it is; empty for whichever was moved last. A number that is no name is taken
    as the number of a move."""
    number: int | None = None
    """The number of the move, in place of a name."""
    who: str = ""
    """Who does it."""


@crosses
def undo(repo: Repo, request: UndoRequest) -> NameAnswer:
    """Take back a move of a branch or tag, which is one more move."""
    name, number = request.name, request.number
    if number is None and name.isdecimal() and len(name) < _LONGEST and not repo.moves(name, limit=1):
        name, number = "", int(name)
    return name_answers(repo, [repo.undo(name or None, number=number, who=request.who)])[0]


class PinRequest(ApiRequest, frozen=True, kw_only=True):
    """What to keep for ever."""

    ref: str
    """The commit."""
    off: bool = False
    """Stop keeping it for ever."""
    only: bool = False
    """This commit's bytes alone, not those of the chain behind it."""


class PinAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What is kept now."""

    id: str
    """The full name of the commit."""
    short: str
    """Its short name."""
    policy: str
    """`pin` or `default`."""
    artifacts: int
    """How many artifacts got that policy."""


@crosses
def pin(repo: Repo, request: PinRequest) -> PinAnswer:
    """Keep a commit's bytes for ever, or stop doing so."""
    commit = repo.commit(request.ref)
    count = repo.pin(commit, off=request.off, only=request.only)
    return PinAnswer(id=commit.id, short=commit.short, policy="default" if request.off else "pin", artifacts=count)
