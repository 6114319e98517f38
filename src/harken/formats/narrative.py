"""`narrative-v1`: a conversation as Markdown, for a person who reads it and for a model that has to go on from it.

What was said stands in full; a call is one line with what it was to do, its result the first lines of it. Within a
budget of tokens the newest turns are told best: the older a turn is, the shorter it is told, and the oldest may be left
out. Whatever is not told in full is counted as a loss. It cannot be read back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from harken.errors import BadRequest
from harken.events import Error, Event, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean, excerpt
from harken.events.tools import doing

from .base import CHARACTERS_PER_TOKEN, Format, Loss, Written

OPENING = (
    "This is the record of a conversation between a user and an assistant that uses tools, oldest turn first. What was "
    "said stands in the words it was said in; of each tool call there is what it was to do, and how its result began."
)
SMALLEST = 200
"""Tokens below which no narrative makes sense."""


class Manner(msgspec.Struct, frozen=True):
    """How much of a turn is told: characters of what was said, of a result, and whether calls are told one by one."""

    said: int | None
    result: int
    calls: bool = True


FULL, SHORT, LINE = Manner(None, 1500), Manner(600, 200), Manner(160, 0, calls=False)
MANNERS = (FULL, SHORT, LINE)
WHY = {
    "thinking": "a narrative tells what was said and done",
    "picture": "a narrative has words alone",
    "end of a long text": "of long texts a narrative has the beginning",
    "end of a long result": "of a tool's result a narrative has the beginning",
    "tool call": "older turns are told without their calls, to stay within the budget",
    "earlier turn": "it did not fit into the budget",
    "unread record": "nobody could read it",
}


def write(events: Sequence[Event]) -> Written:
    """The whole conversation."""
    turns = _turns(events)
    return _written([TurnInWords(turn, FULL) for turn in turns], events, left_out=0)


def write_within(events: Sequence[Event], budget: int) -> Written:
    """The conversation in about so many tokens, the newest turns told best."""
    if budget < SMALLEST:
        raise BadRequest(f"a narrative in {budget} tokens says nothing", hint=f"give it at least {SMALLEST}")
    room = budget * CHARACTERS_PER_TOKEN - len(OPENING) - 200
    told: list[TurnInWords] = []
    turns = _turns(events)
    # A manner holds for as long as its share of the room lasts; what is left goes to the next shorter one.
    shares = iter(((FULL, 0.6), (SHORT, 0.9), (LINE, 1.0)))
    manner, share = next(shares)
    used = 0
    for turn in reversed(turns):
        one = TurnInWords(turn, manner)
        while used + len(one.text) > room * share and (nearer := next(shares, None)) is not None:
            manner, share = nearer
            one = TurnInWords(turn, manner)
        if used + len(one.text) > room and told:
            break
        told.append(one)
        used += len(one.text)
    return _written(told[::-1], events, left_out=len(turns) - len(told))


def _written(told: Sequence[TurnInWords], events: Sequence[Event], left_out: int) -> Written:
    lost = sum((one.lost for one in told), Counter())
    lost["earlier turn"] = left_out
    lost["thinking"] = sum(isinstance(event, Thinking) for event in events)
    lost["picture"] = sum(len(event.images) for event in events if isinstance(event, Prompt | ToolResult))
    lost["unread record"] = sum(isinstance(event, Output) and bool(event.why) for event in events)
    parts = ["# A conversation so far\n", f"{OPENING}\n"]
    if left_out:
        parts.append(f"*{left_out} earlier turns are left out.*\n")
    parts += [one.text for one in told]
    losses = tuple(Loss(what=what, count=lost[what], why=WHY[what]) for what in WHY if lost[what])
    return Written(data=clean("\n".join(parts)).encode(), losses=losses)


def _turns(events: Iterable[Event]) -> list[list[Event]]:
    """What was asked and all that followed, in the order in which it was; a turn begins with what a person says."""
    turns: list[list[Event]] = []
    for event in events:
        if not isinstance(event, Prompt | Response | ToolCall | ToolResult | Error | System):
            continue
        begins = isinstance(event, Prompt) and event.source != "injected"
        if begins or not turns:
            turns.append([])
        turns[-1].append(event)
    return turns


class TurnInWords:
    """A turn in words, and what of it is not told."""

    def __init__(self, turn: Sequence[Event], manner: Manner) -> None:
        self.lost: Counter[str] = Counter()
        self._manner = manner
        self._names = {event.id: event.name for event in turn if isinstance(event, ToolCall)}
        self.text = "\n".join(self._parts(turn))

    def _parts(self, turn: Sequence[Event]) -> Iterator[str]:
        for event in turn:
            match event:
                case Prompt() if event.content.strip() or event.images:
                    who = "User" if event.source != "injected" else "Context"
                    yield f"## {who}\n\n{self._words(event.content)}\n"
                case Response() if event.content.strip():
                    yield f"## Assistant\n\n{self._words(event.content)}\n"
                case System(subtype="instructions") if event.message.strip():
                    yield f"## Instructions\n\n{self._words(event.message)}\n"
                case ToolCall() if self._manner.calls:
                    yield f"- Call: {_code(doing(event))}\n"
                case ToolResult() if self._manner.calls:
                    yield self._result(event)
                case ToolCall():
                    self.lost["tool call"] += 1
                case Error() if event.message.strip():
                    yield f"- Error: {excerpt(event.message, 200)}\n"

    def _words(self, text: str) -> str:
        most = self._manner.said
        text = text.strip()
        if most is not None and len(text) > most:
            self.lost["end of a long text"] += 1
            text = text[:most].rstrip() + " …"
        # A line that begins like a heading would be taken for one of ours.
        return "\n".join(f"\\{line}" if line.startswith("#") else line for line in text.split("\n"))

    def _result(self, event: ToolResult) -> str:
        text = event.output.strip()
        shown = text[: self._manner.result].rstrip()
        if len(shown) < len(text):
            self.lost["end of a long result"] += 1
            shown += " …"
        name = event.name or self._names.get(event.id, "")
        head = f"- {'Failed' if event.is_error else 'Result'}{f' of {_code(name)}' if name else ''}:"
        return f"{head}\n\n{_fenced(shown)}\n" if shown else f"{head} nothing\n"


def _code(text: str) -> str:
    return "`" + text.replace("`", "'") + "`"


def _fenced(text: str) -> str:
    """Text between fences that are longer than any in it."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}\n{text}\n{fence}"


FORMAT = Format(
    name="narrative-v1",
    media_type="text/markdown",
    description="A conversation told in Markdown, for a person or for a model that goes on from it; not read back.",
    writer=write,
    is_rendering=True,
)
