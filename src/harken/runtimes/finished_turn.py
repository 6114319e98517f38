"""A turn that was over when whoever had asked for it died: what the program said is in a spool, or already stored.

It is known by whom it was for, by when it was asked for and by its prompt, and that it was over by what the program
printed at its end. So nothing that a program does in a turn is done twice where it came to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from harken.context.live import recorded_events
from harken.context.names import LIVE_BRANCH
from harken.errors import Conflict
from harken.events import Event, Metric, Prompt, Response, System, ToolCall
from harken.store import Store

from .as_model import Played, RuntimePart
from .display import parse
from .spooled import SpoolResult, store_spools, thread_of

SUCCESS = "success"


class FinishedAnswer(msgspec.Struct, frozen=True):
    """What a program answered in a turn that was over."""

    text: str
    has_ended: bool
    """Whether it is known that the program ended by itself behind it."""


def find_finished_turn(store: Store, part: RuntimePart, asked_at: int) -> Played | None:
    """The turn that was asked for at that time, where it was over; None where it has to be played."""
    _store_what_is_left(store, part)
    for session in _sessions(store, part):
        branch = store.find_name(LIVE_BRANCH + session)
        if branch is None:
            continue
        said = answer_to(recorded_events(store, branch.target)[0], part.told.prompt, asked_at)
        if said is not None:
            return Played(
                text=said.text,
                status=0,
                session=session,
                context_id=branch.target,
                is_cut_off=not said.has_ended,
            )
    return None


def _store_what_is_left(store: Store, part: RuntimePart) -> None:
    """Store the spools of the runtime; one of this thread that cannot be stored may hold the turn."""

    def is_ours(result: SpoolResult) -> bool:
        return result.is_left and thread_of(result.path) == part.thread_id

    problem = next(filter(is_ours, store_spools(store, runtime=part.runtime.name)), None)
    if problem is not None:
        raise Conflict(f"the last turn may have been over: {problem.problem}", hint=problem.hint)


def _sessions(store: Store, part: RuntimePart) -> Iterator[str]:
    """The runtime's own sessions in which it spoke for the same agent, the newest first."""
    rows = [row for row in store.sessions() if row.thread_id == part.thread_id and not row.parent]
    rows.sort(key=lambda row: row.ended or 0, reverse=True)
    return (row.session for row in rows if row.runtime == part.runtime.name)


def answer_to(events: Iterable[Event], prompt: str, asked_at: int) -> FinishedAnswer | None:
    """What a recording has as the answer to a prompt that was given no earlier than that; None where it has none, or
    the turn was not over, or failed. A program may answer more than once."""
    answers: list[str] = []
    words, is_asked, is_over, has_ended = "", False, False, False
    for event in events:
        match event:
            case Prompt() if event.source == "user":
                is_asked = event.content == prompt and event.time is not None and event.time >= asked_at
                answers, words, is_over, has_ended = [], "", False, False
            case Response():
                words, is_over = event.content, False
            case ToolCall():
                is_over = False
            case Metric() if event.ends_run:
                is_over = event.status == SUCCESS
                answers.append(words)
            case System(subtype="shutdown"):
                has_ended = True
                is_over = is_over and parse(event.metadata).get("exit_status") == 0
            case _:
                pass
    return FinishedAnswer("\n\n".join(answers), has_ended) if is_asked and is_over else None
