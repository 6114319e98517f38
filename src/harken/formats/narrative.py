"""`narrative-v1`: a conversation as Markdown, for a person who reads it and for a model that has to go on from it.

What was said stands in full; a call is one line with what it was to do, its result the first lines of it. Behind what
agents other than the main one heard, said and did stands whose it is. Within a budget of tokens the newest turns are
told best: the older a turn is, the shorter it is told, and the oldest may be left out. Whatever is not told in full is
counted as a loss. It cannot be read back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from harken.errors import BadRequest
from harken.events import Error, Event, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean, excerpt, speaker_of
from harken.events.tools import doing, tool_and_deed

from .base import CHARACTERS_PER_TOKEN, Format, Loss, Written

OPENING = (
    "This is the record of a conversation between a user and an assistant that uses tools, oldest turn first. What was "
    "said stands in the words it was said in; of each tool call there is what it was to do, and how its result began."
)
OTHER_AGENTS = (
    "Several agents take part. Behind what another one than the main agent heard, said or did stands the name of that "
    "agent, in brackets."
)
ERROR = 200
"""Characters of a failure that are told."""
AGENT_NAME = 60
"""Characters of an agent's name that are told."""
SMALLEST = 200
"""Tokens below which no narrative makes sense."""


class Manner(msgspec.Struct, frozen=True):
    """How much of a turn is told: characters of what was said, of a result, and whether calls are told one by one."""

    said: int | None
    result: int
    calls: bool = True


FULL, SHORT, LINE = Manner(None, 1500), Manner(600, 200), Manner(160, 0, calls=False)
_TOLD = Prompt | Response | ToolCall | ToolResult | Error | System
TURN, STEP = "earlier turn", "step of a long turn"
WHY = {
    "thinking": "a narrative tells what was said and done",
    "picture": "a narrative has words alone",
    "end of a long text": "of long texts a narrative has the beginning",
    "end of a long result": "of a tool's result a narrative has the beginning",
    "arguments of a tool call": "of a tool call a narrative has one line: the tool, and what it was to do",
    "tool call": "older turns are told without their calls, to stay within the budget",
    "result of a tool": "older turns are told without their calls, to stay within the budget",
    STEP: "it did not fit into the budget",
    TURN: "it did not fit into the budget",
    "notices": "they are for people, not for the model",
    "unread record": "nobody could read it",
}


def write(events: Sequence[Event]) -> Written:
    """The whole conversation."""
    cast = _cast(events)
    return _written([_turn_in_words(turn, FULL, cast) for turn in _turns(events)], events, cast, left_out=0)


def write_within(events: Sequence[Event], budget: int) -> Written:
    """The conversation in no more than so many tokens, the newest turns told best."""
    if budget < SMALLEST:
        raise BadRequest(f"a narrative in {budget} tokens says nothing", hint=f"give it at least {SMALLEST}")
    turns, cast = _turns(events), _cast(events)
    room = budget * CHARACTERS_PER_TOKEN - len("\n".join(_beginning(len(turns), cast))) - 1
    told: list[TurnInWords] = []
    # A manner holds for as long as its share of the room lasts; what is left goes to the next shorter one.
    shares = iter(((FULL, 0.6), (SHORT, 0.9), (LINE, 1.0)))
    manner, share = next(shares)
    used = 0
    for turn in reversed(turns):
        one = _turn_in_words(turn, manner, cast)
        while used + len(one) > room * share and (nearer := next(shares, None)) is not None:
            manner, share = nearer
            one = _turn_in_words(turn, manner, cast)
        if used + len(one) > room:
            if told:
                break
            one = _part_of(turn, room, cast)
        told.append(one)
        used += len(one)
    return _written(told[::-1], events, cast, left_out=len(turns) - len(told))


Cast = Mapping[str, str]
"""What stands behind what an agent heard, said and did; the main one is not in it."""


def _cast(events: Sequence[Event]) -> Cast:
    main = speaker_of(events)
    others = dict.fromkeys(event.agent_id for event in events if isinstance(event, _TOLD) and event.agent_id != main)
    return {agent: f" ({_code(excerpt(agent, AGENT_NAME))})" for agent in others if agent}


def _beginning(left_out: int, cast: Cast) -> list[str]:
    opening = f"{OPENING} {OTHER_AGENTS}" if cast else OPENING
    more = [f"*{left_out} earlier turns are left out.*\n"] if left_out else []
    return ["# A conversation so far\n", f"{opening}\n", *more]


def _written(told: Sequence[TurnInWords], events: Sequence[Event], cast: Cast, left_out: int) -> Written:
    lost = sum((one.lost for one in told), Counter())
    lost[TURN] = left_out
    lost["thinking"] = sum(isinstance(event, Thinking) for event in events)
    lost["picture"] = sum(len(event.images) for event in events if isinstance(event, Prompt | ToolResult))
    lost["unread record"] = sum(isinstance(event, Output) and bool(event.why) for event in events)
    parts = [*_beginning(left_out, cast), *(one.text for one in told)]
    losses = tuple(Loss(what=what, count=lost[what], why=WHY[what]) for what in WHY if lost[what])
    return Written(data=clean("\n".join(parts)).encode(), losses=losses)


def _turns(events: Iterable[Event]) -> list[list[Event]]:
    """What was asked and all that followed, in the order in which it was; a turn begins with what a person says."""
    turns: list[list[Event]] = []
    for event in events:
        if not isinstance(event, _TOLD):
            continue
        begins = isinstance(event, Prompt) and event.source != "injected"
        if begins or not turns:
            turns.append([])
        turns[-1].append(event)
    return turns


class TurnInWords(msgspec.Struct, frozen=True):
    """A turn in words, and what of it is not told."""

    text: str
    lost: Counter[str]

    def __len__(self) -> int:
        """How many characters it takes up, the line break behind it among them."""
        return len(self.text) + 1


def _turn_in_words(turn: Sequence[Event], manner: Manner, cast: Cast) -> TurnInWords:
    return _joined(_pieces(turn, manner, cast))


def _joined(pieces: Iterable[TurnInWords]) -> TurnInWords:
    pieces = list(pieces)
    lost = sum((piece.lost for piece in pieces), Counter())
    return TurnInWords("\n".join(piece.text for piece in pieces if piece.text), lost)


def _part_of(turn: Sequence[Event], room: int, cast: Cast) -> TurnInWords:
    """As much of a long turn as there is room for: how it began, and how it ended."""
    first, *others = _pieces(turn, LINE, cast)
    gap = TurnInWords(f"*{len(others)} steps are left out.*\n", Counter())
    left = room - len(first) - len(gap)
    kept: list[TurnInWords] = []
    for piece in reversed(others):
        if piece.text and len(piece) > left:
            break
        kept.append(piece)
        left -= len(piece) if piece.text else 0
    missing = len(others) - len(kept)
    gap = TurnInWords(f"*{missing} steps are left out.*\n", Counter({STEP: missing}))
    return _joined([first, *([gap] if missing else []), *kept[::-1]])


def _pieces(turn: Sequence[Event], manner: Manner, cast: Cast) -> list[TurnInWords]:
    """A turn piece by piece, in words; a piece may have no words, only what is lost."""
    names = {event.id: event.name for event in turn if isinstance(event, ToolCall)}
    return [_piece(event, manner, names, cast.get(event.agent_id, "")) for event in turn]


def _piece(event: Event, manner: Manner, names: Mapping[str, str], whose: str) -> TurnInWords:
    lost: Counter[str] = Counter()
    said = ""
    match event:
        case Prompt() if event.content.strip() or event.images:
            who = "User" if event.source != "injected" else "Context"
            said = f"## {who}{whose}\n\n{_words(event.content, manner, lost)}\n"
        case Response() if event.content.strip():
            said = f"## Assistant{whose}\n\n{_words(event.content, manner, lost)}\n"
        case System(subtype="instructions") if event.message.strip():
            said = f"## Instructions{whose}\n\n{_words(event.message, manner, lost)}\n"
        case System(subtype=subtype) if subtype != "instructions":
            lost["notices"] += 1
        case ToolCall() if manner.calls:
            lost["arguments of a tool call"] += not _is_told_by_its_line(event)
            said = f"- Call{whose}: {_code(doing(event))}\n"
        case ToolResult() if manner.calls:
            said = _result(event, manner, names, whose, lost)
        case ToolCall():
            lost["tool call"] += 1
        case ToolResult():
            lost["result of a tool"] += 1
        case Error() if event.message.strip():
            said = f"- Error{whose}: {excerpt(event.message, ERROR)}\n"
            lost["end of a long text"] += len(" ".join(event.message.split())) > ERROR
    return TurnInWords(said, lost)


def _words(text: str, manner: Manner, lost: Counter[str]) -> str:
    most = manner.said
    text = text.strip()
    if most is not None and len(text) > most:
        lost["end of a long text"] += 1
        text = text[:most].rstrip() + " …"
    # A line that begins like a heading would be taken for one of ours.
    return "\n".join(f"\\{line}" if line.startswith("#") else line for line in text.split("\n"))


def _result(event: ToolResult, manner: Manner, names: Mapping[str, str], whose: str, lost: Counter[str]) -> str:
    text = event.output.strip()
    shown = text[: manner.result].rstrip()
    if len(shown) < len(text):
        lost["end of a long result"] += 1
        shown += " …"
    name = event.name or names.get(event.id, "")
    head = f"- {'Failed' if event.is_error else 'Result'}{f' of {_code(name)}' if name else ''}{whose}:"
    return f"{head}\n\n{_fenced(shown)}\n" if shown else f"{head} nothing\n"


def _is_told_by_its_line(call: ToolCall) -> bool:
    """Whether a call was given nothing but what its line says."""
    try:
        given = msgspec.json.decode(call.input)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        given = call.input.decode("utf-8", "replace")
    values = list(given.values()) if isinstance(given, dict) else [given]
    return values in ([], [tool_and_deed(call)[1]])


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
