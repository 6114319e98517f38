"""Numbers: what sessions cost and what happened in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harken.events import Tokens
from harken.events.tally import Figures
from harken.repo import Repo
from harken.repo.counting import SessionFigures, TotalFigures

from .base import ApiAnswer, ApiRequest, stamp


class StatsRequest(ApiRequest, frozen=True, kw_only=True):
    """What to count."""

    sessions: tuple[str, ...] = ()
    """Sessions in the store, by id or a unique beginning; with no `files` either: all of them."""
    files: tuple[str, ...] = ()
    """Files of sessions that need not be in the store."""
    agents: bool = True
    """Whether to count sub-agents, too."""


class TokensAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Tokens; null where nobody counted, which is not zero."""

    input: int | None
    """Put before the model, without what came from a cache or went into it."""
    output: int | None
    """Written by the model."""
    cache_read: int | None
    """Read from a cache."""
    cache_write: int | None
    """Written into a cache."""


class PromptsAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What stood in the user's place, by record."""

    human: int
    """A person wrote it."""
    injected: int
    """Another agent or the harness put it there."""
    tool_result: int
    """A tool answered."""


class FiguresAnswer(ApiAnswer, frozen=True, kw_only=True):
    """The numbers of a session, or of several."""

    usage: TokensAnswer
    """Tokens, each request once."""
    prompts: PromptsAnswer
    """Prompts, by who made them."""
    injected: dict[str, int]
    """Injected prompts, by what they are."""
    tools: dict[str, int]
    """Calls, by the tool's name; the most frequent first."""
    responses: int
    """Messages of the model."""
    errors: int
    """Errors."""
    compactions: int
    """Compactions."""
    requests: int
    """Requests whose usage is known, each once."""
    models: dict[str, TokensAnswer]
    """Tokens by model, where they are known per request."""
    cost_usd_micros: int | None
    """What it cost in millionths of a dollar; null where nobody said."""
    started: str | None
    """When it began."""
    ended: str | None
    """When it ended."""


class StatsAnswer(FiguresAnswer, frozen=True, kw_only=True):
    """The numbers of one session."""

    session: str
    """Its id; of a file that was named, its path."""
    runtime: str
    """The program that held it; empty for a file."""
    title: str
    """What it is called."""
    source: str | None
    """The file it was read from."""
    parent: str | None
    """The session that spawned it, for a sub-agent."""
    agents: list[StatsAnswer]
    """The numbers of its sub-agents."""
    with_agents: FiguresAnswer | None
    """Everything together, where it has sub-agents."""


class StatsSum(FiguresAnswer, frozen=True, kw_only=True):
    """The numbers of several sessions."""

    sessions: int
    """How many."""


class StatsTotal(ApiAnswer, frozen=True, kw_only=True):
    """The last line of several sessions."""

    total: StatsSum
    """Everything together; what a fork copied counts once."""


def stats(repo: Repo, request: StatsRequest) -> Iterator[StatsAnswer | StatsTotal]:
    """Tokens, prompts and tools, each counted once; of several sessions a total."""
    wanted: list[str | Path] = [*request.sessions, *(Path(file) for file in request.files)]
    for found in repo.stats(wanted, agents=request.agents):
        if isinstance(found, TotalFigures):
            total = StatsSum(**figures_fields(found.figures), sessions=found.sessions)
            yield StatsTotal(total=total)
        else:
            yield _answer(found)


def _answer(found: SessionFigures) -> StatsAnswer:
    return StatsAnswer(
        **figures_fields(found.figures),
        session=found.session,
        runtime=found.runtime,
        title=found.title,
        source=found.source or None,
        parent=found.parent or None,
        agents=[_answer(agent) for agent in found.agents],
        with_agents=FiguresAnswer(**figures_fields(found.with_agents)) if found.with_agents else None,
    )


def figures_fields(figures: Figures) -> dict[str, Any]:
    """The fields of figures, as answers have them."""
    prompts = figures.prompts
    return {
        **{name: getattr(figures, name) for name in Figures.__struct_fields__},
        "usage": tokens_answer(figures.usage),
        "prompts": PromptsAnswer(human=prompts.human, injected=prompts.injected, tool_result=prompts.tool_result),
        "models": {model: tokens_answer(tokens) for model, tokens in figures.models.items()},
        "started": stamp(figures.started),
        "ended": stamp(figures.ended),
    }


def tokens_answer(tokens: Tokens) -> TokensAnswer:
    """Tokens, as an answer."""
    return TokensAnswer(
        input=tokens.input, output=tokens.output, cache_read=tokens.cache_read, cache_write=tokens.cache_write
    )
