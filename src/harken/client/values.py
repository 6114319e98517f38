"""Answers of a service as the values that `Repo` gives: the way back of what `harken.api` tells."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from harken import clock
from harken.analytics.spending import PriceSum
from harken.api.base import FiguresAnswer, IndexedAnswer, TokensAnswer
from harken.api.runtimes import ImportAnswer
from harken.api.search import SearchHit
from harken.api.stats import PriceAnswer, StatsAnswer, StatsTotal
from harken.api.usage import SpendingAnswer, UsageTotal
from harken.api.values import CommitAnswer, NameAnswer, ShownCommit
from harken.api.verbatim import SessionRowAnswer
from harken.api.writing import LossAnswer, MaterializeAnswer
from harken.context import Materialized, Shown
from harken.context.names import REMEMBERED, Continued, Remembered
from harken.errors import Unreachable
from harken.events import Tokens
from harken.events.figures import Figures, Prompts
from harken.formats import Loss
from harken.index import IndexProgress
from harken.index.search import Hit
from harken.index.snippets import Snippet
from harken.index.spending import Spending
from harken.repo.counting import SessionFigures, TotalFigures
from harken.runtimes.memory import ImportResult
from harken.store import Annotation, Commit, Name, SessionRow

MICRO = 1_000_000


def instant(text: str | None) -> int | None:
    """The instant that an answer tells of."""
    return None if text is None else clock.parse_instant(text)


def same_fields(kind: type[Any], answer: msgspec.Struct) -> dict[str, Any]:
    """The fields that a value and the answer which tells of it have in common, lists as tuples."""
    found = {}
    for name in set(kind.__struct_fields__).intersection(answer.__struct_fields__):
        value = getattr(answer, name)
        found[name] = tuple(value) if isinstance(value, list) else value
    return found


# -- commits -----------------------------------------------------------------------------------------------------------


def commit_of(answer: CommitAnswer) -> Commit:
    """A commit."""
    fields = {name: getattr(answer, name) for name in Commit.__struct_fields__}
    return Commit(**fields | {"time": instant(answer.time) or 0})


def shown_of(answer: ShownCommit) -> Shown:
    """A commit with what was said about it."""
    notes = tuple(
        Annotation(commit=answer.id, key=note.key, value=note.value, time=instant(note.time) or 0, who=note.who)
        for note in answer.annotations
    )
    return Shown(
        **msgspec.structs.asdict(commit_of(answer)),
        summary=answer.summary,
        derived=answer.derived,
        names=tuple(answer.names),
        continued_by=tuple(answer.continued_by),
        annotations=notes,
    )


def name_of(answer: NameAnswer) -> Name:
    """A branch or a tag."""
    return Name(name=answer.name, kind=answer.kind, target=answer.target)


def losses_of(answers: list[LossAnswer]) -> tuple[Loss, ...]:
    """What a translation could not say."""
    return tuple(Loss(what=loss.what, count=loss.count, why=loss.why) for loss in answers)


def materialized_of(answer: MaterializeAnswer) -> Materialized:
    """A conversation."""
    return Materialized(**same_fields(Materialized, answer) | {"losses": losses_of(answer.losses)}, bytes=answer.body)


def row_of(answer: SessionRowAnswer) -> SessionRow:
    """The row of a session."""
    return SessionRow(**msgspec.structs.asdict(answer) | {"older": tuple(answer.older)})


def continued_of(shown: list[Shown]) -> dict[str, Continued]:
    """The sessions that Harken wrote to go on from these commits."""
    found: dict[str, Continued] = {}
    for one in shown:
        for note in one.annotations:
            if note.key == REMEMBERED:
                with contextlib.suppress(msgspec.MsgspecError):
                    kept = msgspec.json.decode(note.value, type=Remembered)
                    prefix = kept.prefix if kept.records is None else 0
                    found[kept.session] = Continued(
                        commit=one.id, session=kept.goes_on_from(one), time=note.time, prefix=prefix
                    )
    return found


# -- numbers -----------------------------------------------------------------------------------------------------------


def tokens_of(answer: TokensAnswer) -> Tokens:
    """Tokens."""
    return Tokens(**same_fields(Tokens, answer))


def figures_of(answer: FiguresAnswer) -> Figures:
    """The numbers of a session."""
    return Figures(
        **same_fields(Figures, answer)
        | {
            "usage": tokens_of(answer.usage),
            "prompts": Prompts(**same_fields(Prompts, answer.prompts)),
            "models": {model: tokens_of(tokens) for model, tokens in answer.models.items()},
            "started": instant(answer.started),
            "ended": instant(answer.ended),
        }
    )


def counted_of(answer: StatsAnswer | StatsTotal) -> SessionFigures | TotalFigures:
    """What `stats` says of a session, or of all together."""
    if isinstance(answer, StatsTotal):
        whole = answer.total
        return TotalFigures(
            sessions=whole.sessions, agents=whole.agents, unknown_costs=whole.unknown_costs, figures=figures_of(whole)
        )
    return _session_figures(answer)


def _session_figures(answer: StatsAnswer) -> SessionFigures:
    return SessionFigures(
        session=answer.session,
        runtime=answer.runtime,
        title=answer.title,
        source=answer.source or "",
        parent=answer.parent or "",
        figures=figures_of(answer),
        carried=_if_any(figures_of, answer.carried),
        agents=tuple(_session_figures(agent) for agent in answer.agents),
        with_agents=_if_any(figures_of, answer.with_agents),
        price=_price_of(answer.price),
        price_carried=_if_any(_price_of, answer.price_carried),
        price_with_agents=_if_any(_price_of, answer.price_with_agents),
        unknown_costs=answer.unknown_costs,
    )


def _if_any(make: Callable[[Any], Any], answer: Any) -> Any:
    return None if answer is None else make(answer)


def _price_of(answer: PriceAnswer) -> PriceSum:
    return PriceSum(usd_micros=answer.usd_micros, unpriced=answer.unpriced, unverified=answer.unverified)


def spending_of(answer: SpendingAnswer) -> Spending:
    """What was used; the answer names its sessions."""
    known = sum(answer.unpriced.values())
    price = answer.price_usd_micros
    return Spending(
        sessions=set(answer.session_ids),
        requests=answer.requests,
        tokens=tokens_of(answer.usage),
        cost=(price or 0) * MICRO,
        priced=0 if price is None else max(1, answer.requests - known) if answer.requests else None,
        unpriced=dict(answer.unpriced),
        unverified=dict(answer.unverified),
        said=[] if answer.cost_usd_micros is None else [answer.cost_usd_micros / MICRO],
        calls=answer.calls,
        failed=answer.failed,
        took=round(answer.took_seconds * MICRO),
        uncounted=answer.uncounted if isinstance(answer, UsageTotal) else 0,
    )


def progress_of(answer: IndexedAnswer | UsageTotal | None, rebuilt: str = "") -> IndexProgress:
    """How far the index is; None: nothing was said of it, since nothing is missing."""
    if answer is None:
        return IndexProgress(at=0, last=0)
    return IndexProgress(
        at=0,
        last=answer.behind,
        rebuilt=rebuilt,
        stale=answer.stale,
        problem=answer.problem,
        missing=answer.missing,
        damaged=answer.damaged,
    )


def hit_of(answer: SearchHit, commits: dict[str, str]) -> Hit:
    """A message that was found; `commits` has the full names of commits by their short ones."""
    texts = {name: getattr(answer, name) or "" for name in _HIT_TEXTS}
    return Hit(
        **texts,
        role=answer.role,
        time=instant(answer.time),
        commit="" if answer.role == "title" else commits.get(answer.commit or "", ""),
        score=answer.score,
        snippet=Snippet(answer.snippet, tuple((start, end) for start, end in answer.highlights)),
        copies=tuple(answer.copies),
        problem=answer.problem,
    )


_HIT_TEXTS = ("session", "runtime", "project", "title", "agent", "tool", "model", "message_id")


def import_of(answer: ImportAnswer) -> ImportResult:
    """What became of a file."""
    return ImportResult(
        **same_fields(ImportResult, answer)
        | {
            "status": "rewritten" if answer.rewritten else answer.status,
            "tip": answer.tip_id,
            "parent": answer.parent or "",
            "agents": tuple(answer.agents),
            "figures": figures_of(answer),
            "forked_from": answer.forked_from or "",
            "error": answer.error or "",
            "hint": answer.hint or "",
        }
    )


# -- reading -----------------------------------------------------------------------------------------------------------


def answer_as(told: Any, kinds: tuple[type[msgspec.Struct], ...]) -> Any:
    """What came over the wire as the answer that it is: of several kinds the one that has its keys."""
    keys = told.keys() if isinstance(told, dict) else set()
    kind = next((kind for kind in kinds if keys == set(kind.__struct_fields__)), kinds[0])
    try:
        return msgspec.convert(told, kind)
    except msgspec.ValidationError as problem:
        hint = "the service and this program have to be of the same version"
        raise Unreachable(f"an answer cannot be read: {problem}", hint=hint) from None


def only(kind: type[Any], answers: Iterator[Any]) -> Iterator[Any]:
    """Those of the answers that are of a kind; what comes last is often a report."""
    return (answer for answer in answers if isinstance(answer, kind))
