"""Words that stand for a conversation, or for the older part of one: made of its own words, or written by a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from harken.context import Ref
from harken.context.compaction import events_at, foundation
from harken.context.summary import extract
from harken.context.summary import request as summary_request
from harken.errors import BadRequest
from harken.events import Event
from harken.store import Store

from .arguments import LessOptions

if TYPE_CHECKING:
    from harken.context.shortening import Shortening


def ask_for_summary(store: Store, ref: Ref, model: str) -> str:
    """What the model says to the conversation that a compaction of REF would fold."""
    _, base = foundation(store, ref)
    return _written_by(model, events_at(store, base))


def shortening(less: LessOptions) -> Shortening | None:
    """How much of a conversation goes along; None where all of it does."""
    budget, last, narrative = less.get("budget"), less.get("last"), less.get("narrative", False)
    model = less.get("model", "")
    if budget is None and last is None and not narrative:
        if model:
            raise BadRequest("a model has nothing to sum up", hint="say what goes along: a budget, or the last turns")
        return None
    from harken.context.shortening import Shortening  # most conversations go along whole

    if narrative and model:
        raise BadRequest("a narrative is told without a model", hint="leave out the model, or the narrative")
    return Shortening(
        budget=budget, last=last, narrative=narrative, summarize=partial(_written_by, model) if model else extract
    )


def _written_by(model: str, events: Sequence[Event]) -> str:
    from harken.agents.models.ask import ask

    return ask(model, summary_request(events), purpose="compact")
