"""Taking back a deliberate move of a name: one more move, with the same care."""

from __future__ import annotations

from harken.errors import Conflict, NotFound

from .base import Store
from .values import Move


def undo(store: Store, number: int | None = None, *, time: int, who: str = "", why: str = "") -> Move:
    """Put a name back to where it was before a move (the newest, unless a number is given).

    `Conflict` if the name has moved on since: undo the later move first. The answer is the move that did it."""
    with store.write() as writer:
        move = _find(store, number)
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


def _find(store: Store, number: int | None) -> Move:
    for move in store.moves(limit=1 if number is None else None):
        if number in (None, move.number):
            return move
    raise NotFound("no such move" if number is None else f"no move {number}", hint="`harken moves` lists them")
