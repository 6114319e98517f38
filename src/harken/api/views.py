"""Views of a session: who said, heard and knew what. One operation for each view, and one for the events beneath.

A session is one in the store or a log file. Whoever asks for several views of one session may pass the `viewer` that
`Repo.view` gave, so that the session is read once; over a wire each question opens it anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harken.repo import Repo
from harken.views import SessionViewer
from harken.views.flow import Flow

from .base import OneSessionRequest
from .crossing import crosses
from .values import EventLine, event_line
from .view_answers import (
    ComparisonAnswer,
    CompiledAnswer,
    DialogAnswer,
    DiffPieceAnswer,
    FlowAnswer,
    HeardAnswer,
    InterventionAnswer,
    KnowsAnswer,
    PathStepAnswer,
    PerspectiveAnswer,
    ProblemAnswer,
    ProblemCounts,
    ProblemsReport,
    SequenceAnswer,
    TimelineAnswer,
    TraceAnswer,
    TreeAnswer,
)


def _view(repo: Repo, asked: OneSessionRequest, viewer: SessionViewer | None) -> SessionViewer:
    return repo.view(asked.place()) if viewer is None else viewer


class EventsRequest(OneSessionRequest, frozen=True, kw_only=True):
    """Whose events to list; a file may be of any format that Harken reads."""


@crosses
def events(repo: Repo, request: EventsRequest) -> Iterator[EventLine]:
    """Everything the agents of a session said, heard and did, as one stream in the order of time."""
    return map(event_line, repo.events(request.place()))


class ViewRequest(OneSessionRequest, frozen=True, kw_only=True):
    """Which session to look at."""


class AgentsViewRequest(OneSessionRequest, frozen=True, kw_only=True):
    """Which session to look at, and whose side of it."""

    agents: tuple[str, ...] = ()
    """Agents, by id or by a name that only one of them has; empty for all."""


@crosses
def view_dialog(
    repo: Repo, request: AgentsViewRequest, *, viewer: SessionViewer | None = None
) -> Iterator[DialogAnswer]:
    """What agents said to each other, each thing once, in the words of the one who said it."""
    view = _view(repo, request, viewer)
    return (DialogAnswer(**one) for one in view.extract_dialog(request.agents or view.list_agents()))


class PerspectiveRequest(AgentsViewRequest, frozen=True, kw_only=True):
    """Whose perspective."""

    system: bool = False
    """Whether to give the instructions, too."""


@crosses
def view_perspective(
    repo: Repo, request: PerspectiveRequest, *, viewer: SessionViewer | None = None
) -> Iterator[PerspectiveAnswer]:
    """What agents heard, did, received and said; several are interleaved, as with an inner voice."""
    view = _view(repo, request, viewer)
    agents = request.agents or tuple(view.list_agents())
    return (PerspectiveAnswer(**one) for one in view.perspective(agents, system=request.system))


class FlowRequest(AgentsViewRequest, frozen=True, kw_only=True):
    """Which contents to follow."""

    message: str = ""
    """The content of this message alone; empty for all that the agents said or heard."""


@crosses
def view_flow(repo: Repo, request: FlowRequest, *, viewer: SessionViewer | None = None) -> Iterator[FlowAnswer]:
    """Each text, what caused it, to whom it went, and the tool results it went into."""
    view = _view(repo, request, viewer)
    found = [view.content_flow(request.message)] if request.message else view.flow(request.agents or None)
    return map(_flow, found)


def _flow(one: Flow) -> FlowAnswer:
    heard = [HeardAnswer(**each) for each in one["heard"]]
    return FlowAnswer(**_with(one, heard=heard, results=[CompiledAnswer(**each) for each in one["results"]]))


@crosses
def view_tree(repo: Repo, request: ViewRequest, *, viewer: SessionViewer | None = None) -> Iterator[TreeAnswer]:
    """The agents and who made whom, parents before their children."""
    return (TreeAnswer(**one) for one in _view(repo, request, viewer).agent_tree())


@crosses
def view_timeline(
    repo: Repo, request: AgentsViewRequest, *, viewer: SessionViewer | None = None
) -> Iterator[TimelineAnswer]:
    """Every event in the order it happened, or those of some agents."""
    return (TimelineAnswer(**one) for one in _view(repo, request, viewer).timeline(request.agents or None))


@crosses
def view_sequence(
    repo: Repo, request: AgentsViewRequest, *, viewer: SessionViewer | None = None
) -> Iterator[SequenceAnswer]:
    """Who said what to whom."""
    return (SequenceAnswer(**one) for one in _view(repo, request, viewer).sequence(request.agents or None))


class MessageViewRequest(OneSessionRequest, frozen=True, kw_only=True):
    """Which session to look at, and which message of it."""

    message: str
    """The id of the message."""


@crosses
def view_heard(
    repo: Repo, request: MessageViewRequest, *, viewer: SessionViewer | None = None
) -> Iterator[HeardAnswer]:
    """Everybody to whom the content of a message came: when, in which wording, over how many hops."""
    return (HeardAnswer(**one) for one in _view(repo, request, viewer).who_heard(request.message))


@crosses
def view_interventions(
    repo: Repo, request: ViewRequest, *, viewer: SessionViewer | None = None
) -> Iterator[InterventionAnswer]:
    """Every delivery that was changed or blocked on its way."""
    return (InterventionAnswer(**one) for one in _view(repo, request, viewer).interventions())


class CompareRequest(OneSessionRequest, frozen=True, kw_only=True):
    """Which deliveries to compare with what was said."""

    message: str = ""
    """All deliveries of this message; empty for those of any message that were changed."""


@crosses
def view_compare(
    repo: Repo, request: CompareRequest, *, viewer: SessionViewer | None = None
) -> Iterator[ComparisonAnswer]:
    """What was said beside what was heard, word by word."""
    for one in _view(repo, request, viewer).said_vs_heard(request.message or None):
        yield ComparisonAnswer(**_with(one, diff=[DiffPieceAnswer(**piece) for piece in one["diff"]]))


class KnowsRequest(OneSessionRequest, frozen=True, kw_only=True):
    """Who, and what."""

    agent: str
    """The agent, by id or by a name that only one of them has."""
    what: str
    """The id of a message, or some words."""
    at: str | int | None = None
    """What counts is what had happened by then: a time (RFC 3339, or seconds since 1970), or the last message that
    counts; None for everything."""


@crosses
def view_knows(repo: Repo, request: KnowsRequest, *, viewer: SessionViewer | None = None) -> KnowsAnswer:
    """Whether a message or some words had reached an agent, and by which path."""
    one = _view(repo, request, viewer).knows(request.agent, request.what, at=request.at)
    return KnowsAnswer(**_with(one, path=[PathStepAnswer(**step) for step in one["path"]]))


class WhoKnowsRequest(OneSessionRequest, frozen=True, kw_only=True):
    """What, and by when."""

    what: str
    """The id of a message, or some words."""
    at: str | int | None = None
    """What counts is what had happened by then, as in `view_knows`; None for everything."""


@crosses
def view_who_knows(
    repo: Repo, request: WhoKnowsRequest, *, viewer: SessionViewer | None = None
) -> Iterator[KnowsAnswer]:
    """Of every agent whether a message or some words had reached it, and by which path; the session is read once."""
    view = _view(repo, request, viewer)
    for agent in view.list_agents():
        one = view.knows(agent, request.what, at=request.at)
        yield KnowsAnswer(**_with(one, path=[PathStepAnswer(**step) for step in one["path"]]))


@crosses
def trace(repo: Repo, request: MessageViewRequest, *, viewer: SessionViewer | None = None) -> Iterator[TraceAnswer]:
    """The way of a message: all that led to it, itself, and one step on from it."""
    for one in _view(repo, request, viewer).trace(request.message):
        yield TraceAnswer(step=one["step"], **one["event"])


@crosses
def view_problems(
    repo: Repo, request: ViewRequest, *, viewer: SessionViewer | None = None
) -> Iterator[ProblemAnswer | ProblemsReport]:
    """Which lines of a session log are wrong, and how many there are; the views show the rest."""
    view = _view(repo, request, viewer)
    for one in view.problems:
        yield ProblemAnswer(**one)
    counts = ProblemCounts(problems=view.problem_count, records=len(view.index.records), agents=len(view.index.agents))
    yield ProblemsReport(report=counts)


def _with(row: Mapping[str, Any], **typed: Any) -> dict[str, Any]:
    """The keys of a view's row, some of them as answers."""
    return {**row, **typed}
