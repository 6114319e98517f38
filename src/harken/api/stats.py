"""Numbers: what sessions cost and what happened in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harken.analytics.spending import PriceSum
from harken.repo import Repo
from harken.repo.counting import SessionFigures, TotalFigures

from .base import ApiAnswer, ApiRequest, FiguresAnswer, figures_fields
from .crossing import crosses


class StatsRequest(ApiRequest, frozen=True, kw_only=True):
    """What to count."""

    sessions: tuple[str, ...] = ()
    """Sessions in the store, by id or a unique beginning; with no `files` either: all of them."""
    files: tuple[str, ...] = ()
    """Files of sessions that need not be in the store."""
    agents: bool = True
    """Whether to count sub-agents, too."""
    prices: str = ""
    """A file of prices whose entries stand over those that come with Harken; empty for none."""


class PriceAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What tokens cost at list price."""

    usd_micros: int | None
    """In millionths of a dollar; null where no price is known, the least it can be where some are not."""
    unpriced: dict[str, int]
    """Requests whose price nobody knows, by model."""
    unverified: dict[str, int]
    """Requests at a price which nobody compared with what was published, by model; they are in the price."""


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
    """Everything together, where it has sub-agents. A cost that is of all of them stands here alone."""
    unknown_costs: int
    """Of how many, the session and its sub-agents, nobody said what they cost; 0 where one figure is of them all."""
    carried: FiguresAnswer | None
    """How much of its own numbers it carried over from the session that it continues; that is in no total."""
    price: PriceAnswer
    """What its own requests cost at list price."""
    price_carried: PriceAnswer | None
    """How much of that it carried over."""
    price_with_agents: PriceAnswer | None
    """What everything together costs at list price, where it has sub-agents."""


class StatsSum(FiguresAnswer, frozen=True, kw_only=True):
    """The numbers of several sessions."""

    sessions: int
    """How many; a sub-agent counts with the session that spawned it."""
    agents: int
    """How many sub-agents of these were counted."""
    unknown_costs: int
    """Of how many of the two nobody said what they cost, alone or together with others; where it is not zero, the cost
    is the least it can be."""


class StatsTotal(ApiAnswer, frozen=True, kw_only=True):
    """The last line of several sessions."""

    total: StatsSum
    """Everything together; what a resume carried over or a fork copied counts where it was made."""


@crosses
def stats(repo: Repo, request: StatsRequest) -> Iterator[StatsAnswer | StatsTotal]:
    """Tokens, prompts and tools, each counted once; of several sessions a total."""
    wanted: list[str | Path] = [*request.sessions, *(Path(file) for file in request.files)]
    for found in repo.stats(wanted, agents=request.agents, prices=request.prices):
        if isinstance(found, TotalFigures):
            total = StatsSum(
                **figures_fields(found.figures),
                sessions=found.sessions,
                agents=found.agents,
                unknown_costs=found.unknown_costs,
            )
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
        unknown_costs=found.unknown_costs,
        carried=FiguresAnswer(**figures_fields(found.carried)) if found.carried else None,
        price=_price(found.price),
        price_carried=_price(found.price_carried) if found.price_carried else None,
        price_with_agents=_price(found.price_with_agents) if found.price_with_agents else None,
    )


def _price(found: PriceSum) -> PriceAnswer:
    return PriceAnswer(usd_micros=found.usd_micros, unpriced=found.unpriced, unverified=found.unverified)
