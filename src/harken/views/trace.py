"""A trace: one message, what it came from, and what came of it."""

from __future__ import annotations

from typing import TypedDict

from .base import OTHER
from .flow import ancestry
from .index import Index
from .timeline import Happening, happening


class TraceStep(TypedDict):
    """One event on the way."""

    step: str
    """`before` (it came from this), `this`, or `after` (the same content again, or caused by it)."""
    event: Happening


def trace(index: Index, position: int) -> list[TraceStep]:
    """The way of a message, oldest first: all that led to it, itself, and one step on from it."""
    before = ancestry(index, position)
    known = set(before)
    after = sorted(_after(index, position) - known)
    steps = [TraceStep(step="this" if at == position else "before", event=happening(index, at)) for at in before]
    return steps + [TraceStep(step="after", event=happening(index, at)) for at in after]


def _after(index: Index, position: int) -> set[int]:
    """Those who got the content, what it triggered, and the answers to the calls in it."""
    content = set(index.group(index.content_root(position)))
    caused = {at for member in content for at in index.effects.get(member, ())}
    answers = {at for at, call in index.answers.items() if call in content}
    # Bookkeeping (a metric, say) is caused by messages too, but nothing comes of it.
    return {at for at in content | caused | answers if index.kinds[at] != OTHER}
