"""What is worth a look: a command that failed again and again. Pure folds over calls in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

LEAST = 3
"""Failures in a row that are worth a look."""


class TriedCall(NamedTuple):
    """A call, as far as it matters here."""

    agent: str
    tool: str
    what: str
    time: int | None
    failed: bool
    record: str
    event: int


class FailedRun(NamedTuple):
    """The same call that failed several times, with no success between."""

    times: int
    last: TriedCall


def failed_runs(calls: Iterable[TriedCall], least: int = LEAST) -> list[FailedRun]:
    """Every longest run of failures of one call, whatever else was called between; in the order of their last."""
    running: dict[tuple[str, str, str], FailedRun] = {}
    found: list[FailedRun] = []
    for call in calls:
        if not call.what:
            continue  # nobody can say whether it was the same
        key = (call.agent, call.tool, call.what)
        if call.failed:
            running[key] = FailedRun(running[key].times + 1 if key in running else 1, call)
        elif key in running:
            found.append(running.pop(key))
    found += running.values()
    worth = [run for run in found if run.times >= least]
    return sorted(worth, key=lambda run: run.last.time or 0)
