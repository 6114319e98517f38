"""Where a conversation can go on, and what would be lost there: known before anybody chooses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harken import runtimes as registry
from harken.errors import HarkenError
from harken.repo import Repo
from harken.runtimes import Runtime

from .base import ApiAnswer, ApiRequest
from .crossing import crosses
from .writing import LossAnswer

FIDELITIES = {"1": "exact", "2": "translated", "2s": "translated", "3": "text"}
"""What a tier means to whoever goes on; tier 4 has nothing that a runtime could go on with."""
RANKS = ("exact", "translated", "text", "no")


class FidelityRequest(ApiRequest, frozen=True, kw_only=True):
    """Which conversation is to go on."""

    ref: str
    """The commit, or whatever names one."""


class FidelityAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A runtime that could go on with it."""

    runtime: str
    """The runtime, as `resume` takes it."""
    label: str
    """What people call it."""
    fidelity: str
    """`exact` (its own records), `translated` (what could not be said is in `losses`), `text`, or `no` where it cannot
    go on with this."""
    tier: str
    """`1` native, `2` field, `2s` structural, `3` rendering, `4` raw."""
    losses: list[LossAnswer]
    """What the translation could not say."""
    messages: int | None
    """Messages that it would be given; null where nobody counted."""
    tokens: int | None
    """Tokens of these; null where nobody counted."""
    approximate: bool
    """Whether the tokens are an estimate."""
    problem: str
    """Why it cannot; empty where it can."""
    commit: str
    """The full name of the commit."""
    short: str
    """The short name of the commit."""


@crosses
def fidelity(repo: Repo, request: FidelityRequest) -> Iterator[FidelityAnswer]:
    """Every runtime that can continue conversations, and how much of this one it would be given: the most first."""
    commit = repo.commit(request.ref)
    found = [known for name in registry.names() if "resume" in (known := registry.get(name)).can]
    answers = [_answer(repo, commit.id, commit.short, runtime) for runtime in found]
    yield from sorted(answers, key=lambda one: (RANKS.index(one.fidelity), one.runtime))


def _answer(repo: Repo, commit: str, short: str, runtime: Runtime) -> FidelityAnswer:
    about: dict[str, Any] = {"runtime": runtime.name, "label": runtime.label, "commit": commit, "short": short}
    try:
        made = repo.materialize(commit, format=runtime.format)
    except HarkenError as problem:
        nothing: dict[str, Any] = {"losses": [], "messages": None, "tokens": None, "approximate": False}
        return FidelityAnswer(**about, fidelity="no", tier="4", problem=str(problem), **nothing)
    reached = FIDELITIES.get(made.tier, "no")
    return FidelityAnswer(
        **about,
        fidelity=reached,
        tier=made.tier,
        losses=[LossAnswer(what=loss.what, count=loss.count, why=loss.why) for loss in made.losses],
        messages=made.message_count,
        tokens=made.token_count,
        approximate=made.approximate,
        problem="" if reached != "no" else f"it is kept as {made.format}, which {runtime.label} cannot continue",
    )
