"""What happened in one delta of a conversation, for a list: first words, tools, and how full the context was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from harken.events import Event, Metric, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean, excerpt

from .compactions import compaction_facts, is_request
from .steps import is_answer, is_compaction, is_human, said_once

WORDS = 200
"""Characters of the words that are told."""
TOOLS = 8
"""Tools that are told by name."""


class DeltaFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a delta holds, in a few words and numbers."""

    prompt: str = ""
    """The first words of what a person said."""
    injected: str = ""
    """The first words of what a program put in a person's place."""
    answer: str = ""
    """The first words of the last answer."""
    prompts: int = 0
    """How often a person spoke."""
    answers: int = 0
    thoughts: int = 0
    calls: int = 0
    failed: int = 0
    tools: tuple[tuple[str, int], ...] = ()
    """Tools with how often each was called, the most used first."""
    compaction: str = ""
    """The record at which the conversation was folded; empty where it was not."""
    before: int | None = None
    """Tokens before that, where the record says so."""
    after: int | None = None
    held: int | None = None
    """Tokens before the model at the last request, with what it answered; None where nobody counted."""
    asked: int | None = None
    """Tokens before the model at the first request."""
    unread: str = ""
    """Why nothing is known of it; empty where something is."""


def facts_of(events: Sequence[Event]) -> DeltaFacts:
    """The facts of a delta; what a compaction puts in the place of the conversation was said before."""
    requests = request_sizes(events)
    told = [event for record in said_once(events) for event in record]
    people = [event for event in told if isinstance(event, Prompt) and is_human(event) and event.content]
    others = [event for event in told if isinstance(event, Prompt) and not is_human(event) and event.content]
    answers = [event for event in told if isinstance(event, Response) and is_answer(event) and event.content.strip()]
    tools = Counter(clean(event.name) or "?" for event in told if isinstance(event, ToolCall))
    folded = next((event for event in told if is_compaction(event)), None)
    before, after, _ = compaction_facts(folded.metadata if isinstance(folded, System) else b"")
    return DeltaFacts(
        prompt=_first_words(people),
        injected=_first_words(others),
        answer=excerpt(clean(answers[-1].content), WORDS) if answers else "",
        prompts=len(people),
        answers=len(answers),
        thoughts=sum(isinstance(event, Thinking) for event in told),
        calls=tools.total(),
        failed=sum(isinstance(event, ToolResult) and event.is_error for event in told),
        tools=tuple(tools.most_common(TOOLS)),
        compaction=folded.message_id if folded is not None else "",
        before=before,
        after=after,
        held=sum(requests[-1]) if requests else None,
        asked=requests[0][0] if requests else None,
    )


def request_sizes(events: Iterable[Event]) -> list[tuple[int, int]]:
    """Of each request the tokens that stood before the model, and those that it answered with."""
    metrics = (event for event in events if isinstance(event, Metric) and is_request(event))
    sizes = (metric.tokens.possible for metric in metrics)
    return [(tokens.prompt, tokens.output or 0) for tokens in sizes if tokens.prompt]


def _first_words(prompts: Sequence[Prompt]) -> str:
    return excerpt(clean(prompts[0].content), WORDS) if prompts else ""


def together(several: Sequence[DeltaFacts]) -> DeltaFacts:
    """Several deltas as one, the oldest first."""
    tools: Counter[str] = Counter()
    for one in several:
        tools.update(dict(one.tools))
    counts = {name: sum(getattr(one, name) for one in several) for name in _COUNTS}
    return DeltaFacts(
        prompt=next((one.prompt for one in several if one.prompt), ""),
        injected=next((one.injected for one in several if one.injected), ""),
        answer=next((one.answer for one in reversed(several) if one.answer), ""),
        tools=tuple(tools.most_common(TOOLS)),
        compaction=next((one.compaction for one in several if one.compaction), ""),
        before=next((one.before for one in several if one.before is not None), None),
        after=next((one.after for one in several if one.after is not None), None),
        held=next((one.held for one in reversed(several) if one.held is not None), None),
        asked=next((one.asked for one in several if one.asked is not None), None),
        unread=next((one.unread for one in several if one.unread), ""),
        **counts,
    )


_COUNTS = ("prompts", "answers", "thoughts", "calls", "failed")
