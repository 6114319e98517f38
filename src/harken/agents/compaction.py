"""Folding the oldest turns of a transcript into a summary. The log keeps every entry; only the transcript forgets.

Whole turns are folded, so that a call never loses its result; the instructions, the first turn and the last ones
stay. The fold is one `transcript_edit`, which a load repeats. Near the end of its model's window an agent folds by
itself, in the middle of a turn too. Where a model says that it was shown too much, more is folded, step by step:

    1. the turns between the first and the present one
    2. every turn before the present one
    3. of the present turn, what was finished before its last step (a message with its calls and their results)
    4. the last step too, once its calls are answered: the prompt and the summaries stay

A model that was shown too much cannot sum that up, so it is asked about the part alone, shortened; where it does not
answer that either, the summary says what was left out and how it began.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harken.errors import ModelFailed
from harken.events.edits import SUMMARY
from harken.log import messages_of

from .entries import Entry, call_arguments, call_name, calls_of, for_model, steps, turn_groups
from .models import Message, ModelError, Reply, Request

if TYPE_CHECKING:
    from .agent import Agent

ASK = (
    "Sum up the conversation so far for your own use: what was asked, what was found and decided, who said what, and "
    "what is still open. Answer with the summary alone."
)
ASK_ABOUT = (
    "This is a part of your conversation that no longer fits before you. Sum it up for your own use: what was asked, "
    "what was found and decided, who said what, and what is still open. Answer with the summary alone.\n\n"
)
LEAST = 4_000
"""How many characters of what is folded a model is shown at least, when it has to sum up a part."""
EXCERPT = 200
"""How much of each entry a summary has that nobody could write."""
MOST_EXCERPTS = 20

Span = tuple[int, int]


async def make_room(agent: Agent) -> bool:
    """Fold the oldest turns; whether anything was folded.

    An agent that cannot be summed up goes on as it is: the provider will say if it is too much."""
    span = foldable(agent.transcript, keep=1)
    if span is None or _is_summary(agent.transcript, span):
        return False
    try:
        return await _fold(agent, span, None)
    except ModelFailed:
        return False


async def make_more_room(agent: Agent) -> bool:
    """Fold the next that can be folded for a model that was shown too much; False: there is nothing left to fold."""
    entries = agent.transcript
    prompt = _present_prompt(entries)
    before = (foldable(entries, keep=1), _earlier(entries, prompt))
    for span in before:
        if span is not None and not _is_summary(entries, span):
            return await _fold(agent, span, None, tight=True)
    for span in _within(entries, prompt):
        if not _is_summary(entries, span):
            return await _fold(agent, span, None, tight=True, cause=entries[span[0] - 1]["message_id"] or None)
    return False


def foldable(entries: list[Entry], keep: int) -> Span | None:
    """The entries to fold (start, end): every turn between the first and the last `keep`; None where there are none."""
    groups = turn_groups(entries)
    middle = groups[1 : max(1, len(groups) - max(keep, 1))]
    return (middle[0][0], middle[-1][1]) if middle else None


def _present_prompt(entries: list[Entry]) -> int:
    """Where the present turn begins: with what the agent was told, behind the summary of what came before."""
    groups = turn_groups(entries)
    place = groups[-1][0] if groups else len(entries)
    while place < len(entries) - 1 and entries[place].get("origin") == SUMMARY and _is_told(entries[place + 1]):
        place += 1
    return place


def _earlier(entries: list[Entry], prompt: int) -> Span | None:
    """Everything behind the instructions and before the present turn."""
    start = next((place for place, entry in enumerate(entries) if entry.get("role") != "system"), prompt)
    return (start, prompt) if start < prompt else None


def _within(entries: list[Entry], prompt: int) -> list[Span]:
    """What may be folded of the present turn: all but its last step, or all of it."""
    start = next((place for place in range(prompt, len(entries)) if not _is_told(entries[place])), len(entries))
    ends = [place for place in steps(entries) if place > start]
    return [(start, end) for end in ends[-2:]] if prompt < start else []


def _is_told(entry: Entry) -> bool:
    return entry.get("role") == "user" and entry.get("origin") != SUMMARY


def _is_summary(entries: list[Entry], span: Span) -> bool:
    """Whether there is nothing in it but summaries, which folding would not make shorter."""
    return all(entry.get("origin") == SUMMARY for entry in entries[slice(*span)])


async def compact(agent: Agent, summary: str | None, *, keep: int) -> bool:
    """Fold an agent's oldest turns; whether there was anything to fold. The turn it is in stays."""
    agent.refuse_terminated()
    span = foldable(agent.transcript, keep)
    if span is None:
        return False
    return await _fold(agent, span, summary)


async def _fold(
    agent: Agent, span: Span, summary: str | None, *, tight: bool = False, cause: str | None = None
) -> bool:
    agent.refuse_terminated()
    agent.create()
    start, end = span
    before = agent.transcript[start:end]
    text, reply = (summary, None) if summary is not None else await _summarise(agent, span, tight)
    if agent.is_terminated or agent.transcript[start:end] != before:  # somebody has folded or ended it meanwhile
        if reply is not None:
            agent.pool.meter(agent, reply, agent.last_message_id())
        return False
    with agent.session.batch():
        message_id = agent.session.log_transcript_edit(
            agent.agent_id, "compact", end, start=start, content=text, cause=cause
        )
        if reply is not None:
            agent.pool.meter(agent, reply, message_id)
    return True


async def _summarise(agent: Agent, span: Span, tight: bool) -> tuple[str, Reply | None]:
    """What stands for these entries, and the reply it is from."""
    start, end = span
    question: Message = {"role": "user", "content": ASK}
    try:
        if not tight:
            return await _asked(agent, [*for_model(agent.transcript[:end]), question])
    except ModelError as problem:
        if not problem.too_long:
            raise ModelFailed(
                f"{agent.language_model} gave no summary: {problem}", hint="pass one yourself: compact(summary=…)"
            ) from problem
    part = agent.transcript[start:end]
    for room in _lengths(agent):
        try:
            return await _asked(agent, [_about(part, room)])
        except ModelError as problem:
            if not problem.too_long:
                break
    return _unsummed(part), None


async def _asked(agent: Agent, messages: list[Message]) -> tuple[str, Reply]:
    request = Request(
        messages=messages,
        agent_id=agent.agent_id,
        path=agent.path,
        before=agent.session.registry.before(agent.agent_id),
        turn=agent.turns,
        purpose="summary",
    )
    reply = await agent.pool.ask(agent, request)
    if not reply.content:
        raise ModelError("an empty summary")
    return reply.content, reply


def _lengths(agent: Agent) -> Iterator[int]:
    """How many characters a model that was shown too much is shown to sum up: a quarter of that, then less."""
    room = sum(len(str(message.get("content") or "")) for message in for_model(agent.transcript)) // 4
    while room > LEAST:
        yield room
        room //= 4
    yield LEAST


def _about(part: list[Entry], room: int) -> Message:
    share = max(room // max(len(part), 1), 20)
    return {"role": "user", "content": ASK_ABOUT + "\n".join(_shown(entry, share) for entry in part)[:room]}


def _unsummed(part: list[Entry]) -> str:
    """The summary that nobody could write."""
    ids = [str(entry.get("message_id") or "?") for entry in (part[0], part[-1])]
    head = (
        f"[{len(part)} messages were left out to make room, and not summed up: {ids[0]} to {ids[1]} in the session log]"
    )
    return "\n".join([head, *(_shown(entry, EXCERPT) for entry in part[-MOST_EXCERPTS:])])


def _shown(entry: Entry, most: int) -> str:
    """An entry in one short piece."""
    calls = "; ".join(f"{call_name(call)}({call_arguments(call)})" for call in calls_of(entry))
    text = "\n".join(str(message.get("content") or "") for message in messages_of(entry)) or calls
    half = most // 2
    shortened = text if len(text) <= most else f"{text[:half]} […] {text[-half:]}"
    return f"{entry.get('role')}: {shortened}"
