"""Folding the oldest turns of a transcript into a summary. The log keeps every entry; only the transcript forgets.

Whole turns are folded, so that a call never loses its result; the instructions, the first turn and the last ones
stay. The fold is one `transcript_edit`, which a load repeats. Near the end of its model's window an agent folds by
itself, in the middle of a turn too, since the turn it is in always stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harken.errors import BadRequest, ModelFailed
from harken.events import TranscriptEdit
from harken.events.edits import SUMMARY, edit

from .entries import Entry, for_model, is_pending, turn_groups
from .models import Message, ModelError, Request

if TYPE_CHECKING:
    from .agent import Agent

ASK = (
    "Sum up the conversation so far for your own use: what was asked, what was found and decided, who said what, and "
    "what is still open. Answer with the summary alone."
)


async def make_room(agent: Agent) -> bool:
    """Fold the oldest turns; whether anything was folded.

    An agent that cannot be summed up goes on as it is: the provider will say if it is too much."""
    span = foldable(agent.transcript, keep=1)
    if span is None or (span[1] - span[0] == 1 and agent.transcript[span[0]].get("origin") == SUMMARY):
        return False
    try:
        return await _fold(agent, span, None)
    except ModelFailed:
        return False


def foldable(entries: list[Entry], keep: int) -> tuple[int, int] | None:
    """The entries to fold (start, end): every turn between the first and the last `keep`; None where there are none."""
    groups = turn_groups(entries)
    middle = groups[1 : max(1, len(groups) - max(keep, 1))]
    return (middle[0][0], middle[-1][1]) if middle else None


async def compact(agent: Agent, summary: str | None, *, keep: int) -> bool:
    """Fold an agent's oldest turns; whether there was anything to fold."""
    agent.refuse_terminated()
    if is_pending(agent.transcript):
        raise BadRequest(
            f"{agent.label} is in the middle of a turn", hint="let it finish, or resume() it, then compact"
        )
    span = foldable(agent.transcript, keep)
    if span is None:
        return False
    return await _fold(agent, span, summary)


async def _fold(agent: Agent, span: tuple[int, int], summary: str | None) -> bool:
    agent.create()
    start, end = span
    text = summary if summary is not None else await _summarise(agent, agent.transcript[:end])
    message_id = agent.session.log_transcript_edit(agent.agent_id, "compact", end, start=start, content=text)
    edit(agent.transcript, TranscriptEdit(action="compact", start=start, n=end), folded(message_id, text))
    return True


def folded(message_id: str, text: str) -> Entry:
    """The entry that stands for what was folded, as a load makes it too."""
    return {
        "message_id": message_id,
        "role": "user",
        "content": text,
        "source": "injected",
        "origin": SUMMARY,
    }


async def _summarise(agent: Agent, entries: list[Entry]) -> str:
    question: Message = {"role": "user", "content": ASK}
    messages = [*for_model(entries), question]
    try:
        reply = await agent.model.complete(
            Request(messages=messages, agent_id=agent.agent_id, path=agent.path, turn=agent.turns)
        )
    except ModelError as problem:
        raise ModelFailed(f"{agent.language_model} gave no summary: {problem}", hint="pass one yourself") from problem
    if not reply.content:
        raise ModelFailed(f"{agent.language_model} gave no summary", hint="pass one yourself: compact(summary=…)")
    return reply.content
