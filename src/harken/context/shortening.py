"""A conversation that is too long for whoever goes on with it: the older part becomes a summary, the newest stays.

The cut is a clean one: before something that was asked or said, where no call waits for its result. What is left out is
counted, and stays in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from harken.errors import BadRequest
from harken.events import Event, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.base import speaker_of
from harken.events.edits import summary_prompt
from harken.formats import Loss, narrative
from harken.formats.base import CHARACTERS_PER_TOKEN, characters

from . import summary

Summarize = Callable[[Sequence[Event]], str]
"""From the part that is left out to the words that stand for it."""
SMALLEST = 500
"""Tokens below which there is no room for a summary and something to go on from."""
LONGEST_SUMMARY = 4
"""A summary takes at most one part in so many of the budget."""


class Shortening(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a conversation goes along as it is: at most so many tokens, or the last turns."""

    budget: int | None = None
    """Tokens of all that goes along, the summary among them; estimated, as a quarter of the characters."""
    last: int | None = None
    """Turns: what a person said and all that followed."""
    narrative: bool = False
    """Whether all of it is told as one message (`narrative-v1`), within the budget where there is one."""
    summarize: Summarize = summary.extract

    def __post_init__(self) -> None:
        if (self.budget is not None and self.last is not None) or (self.narrative and self.last is not None):
            raise BadRequest(
                "a budget, the last turns and a narrative are three ways to say less",
                hint="give one of them, or a narrative within a budget",
            )
        if self.budget is None and self.last is None and not self.narrative:
            raise BadRequest("how much goes along?", hint="give a budget, a number of turns, or ask for a narrative")
        if self.budget is not None and self.budget < SMALLEST:
            raise BadRequest(
                f"a budget of {self.budget} tokens leaves no room", hint=f"give it at least {SMALLEST} tokens"
            )
        if self.last is not None and self.last < 1:
            raise BadRequest("at least one turn goes along", hint="--last 1 is what was asked last, and the answer")


def shorten(events: Sequence[Event], to: Shortening) -> tuple[list[Event], tuple[Loss, ...]]:
    """The conversation with its older part summed up, and what that leaves out; unchanged where it is short enough."""
    cut = _cut_by_turns(events, to.last) if to.last is not None else _cut_by_size(events, to.budget or 0)
    if cut == 0:
        return list(events), ()
    old, rest = events[:cut], events[cut:]
    text = to.summarize(old)
    if to.budget is not None:
        most = to.budget * CHARACTERS_PER_TOKEN // LONGEST_SUMMARY
        text = text if len(text) <= most else text[: most - 1].rstrip() + "…"
    why = "summed up; it stays in the store, and `harken materialize REF` gives it"
    lost = [Loss(what="earlier message", count=sum(isinstance(e, Prompt | Response) for e in old), why=why)]
    lost.append(Loss(what="earlier tool call", count=sum(isinstance(e, ToolCall) for e in old), why=why))
    if to.budget is not None and _size(rest) + len(text) > to.budget * CHARACTERS_PER_TOKEN:
        tokens = (_size(rest) + len(text)) // CHARACTERS_PER_TOKEN
        over = f"what was said last cannot be parted, and takes about {tokens} tokens by itself"
        lost.append(Loss(what="place in the budget", count=1, why=over))
    # It is told to the agent whose conversation this is: to a writer all others are somebody else's.
    told = summary_prompt(text).replace(agent_id=speaker_of(events))
    return [told, *rest], tuple(loss for loss in lost if loss.count)


def narrate(events: Sequence[Event], to: Shortening) -> tuple[list[Event], tuple[Loss, ...]]:
    """The conversation told in one message, which stands where a user speaks; and what is not told."""
    written = narrative.write(events) if to.budget is None else narrative.write_within(events, to.budget)
    told = Prompt(content=written.data.decode(), source="injected", origin="narrative")
    return [told], written.losses


def _cut_by_turns(events: Sequence[Event], turns: int | None) -> int:
    begins = [at for at in _clean_cuts(events) if _begins_turn(events[at])]
    return begins[-turns] if turns is not None and turns < len(begins) else 0


def _cut_by_size(events: Sequence[Event], budget: int) -> int:
    """The first clean cut behind which all fits beside a summary; the last one where nothing fits. A cut at which a
    person speaks is taken before one in the middle of a turn, where less than half of the room is given up for it."""
    room = budget * CHARACTERS_PER_TOKEN
    if _size(events) <= room:
        return 0
    room -= room // LONGEST_SUMMARY
    sizes = _sizes_behind(events)
    cuts = [at for at in _clean_cuts(events) if at]
    fitting = [at for at in cuts if sizes[at] <= room]
    if not fitting:
        return cuts[-1] if cuts else 0
    turns = [at for at in fitting if _begins_turn(events[at]) and sizes[at] >= room // 2]
    return turns[0] if turns else fitting[0]


def _sizes_behind(events: Sequence[Event]) -> list[int]:
    """From each event on, how many characters there are."""
    sizes = [0] * (len(events) + 1)
    for at in range(len(events) - 1, -1, -1):
        sizes[at] = sizes[at + 1] + _weight(events[at])
    return sizes


def _size(events: Sequence[Event]) -> int:
    return sum(map(_weight, events))


def _weight(event: Event) -> int:
    """What an event takes up in a request; reasoning stays behind when a conversation is carried over."""
    return 0 if isinstance(event, Thinking) else characters(event)


def _clean_cuts(events: Sequence[Event]) -> Iterator[int]:
    """Where the conversation may be parted: no call waits for its result, and what comes is no part of what was."""
    waiting: set[str] = set()
    answered = {event.id for event in events if isinstance(event, ToolResult)}
    message = ""
    for at, event in enumerate(events):
        if not waiting and isinstance(event, Prompt | Response | ToolCall | Thinking):
            own = event.api_id or event.message_id
            if isinstance(event, Prompt) or not own or own != message:
                yield at
        message = event.api_id or event.message_id
        if isinstance(event, ToolCall) and event.id in answered:
            waiting.add(event.id)
        elif isinstance(event, ToolResult):
            waiting.discard(event.id)


def _begins_turn(event: Event) -> bool:
    return isinstance(event, Prompt) and event.source != "injected"
