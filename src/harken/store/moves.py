"""Taking back a deliberate move of a name: one more move, with the same care."""

from __future__ import annotations

from harken.errors import Conflict, NotFound

from .base import Store
from .values import Move


def find_move(store: Store, name: str | None = None, number: int | None = None) -> Move:
    """The move that is meant where one is to be taken back: that of a number, or the newest of a name (or of any)."""
    for move in store.moves(name, limit=1 if number is None else None):
        if number in (None, move.number):
            return move
    if number is not None:
        which = f"no move {number}"
    else:
        which = f"no move of {name!r}" if name else "there is no move"
    raise NotFound(f"{which} to undo", hint="`harken moves` lists them")


def undo(store: Store, move: Move, *, time: int, who: str = "", why: str = "") -> Move:
    """Put a name back to where it was before a move.

    `Conflict` if the name has moved on since: undo the later move first. The answer is the move that did it."""
    with store.write() as writer:
        writer.move(
            move.name,
            kind=move.kind,
            to=move.before,
            expect=move.after,
            time=time,
            who=who,
            why=why or f"undo of move {move.number}",
        )
        done = store.moves(move.name, limit=1)[0]
    if done.number == move.number:
        raise Conflict(f"move {move.number} left {move.name!r} where it was", hint="there is nothing to undo")
    return done
