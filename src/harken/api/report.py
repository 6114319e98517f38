"""Everything that is counted about one session: its time, its tools, its files, and who told whom."""

from __future__ import annotations

from typing import Any

import msgspec

from harken.repo import Repo

from .base import ApiAnswer, OneSessionRequest, stamp
from .crossing import crosses


class ReportRequest(OneSessionRequest, frozen=True, kw_only=True):
    """Which session."""

    window_seconds: int = 0
    """How long the windows are in which the profile is told, too; 0 for none."""


class ReportAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A session, its sub-agents included. Instants and durations inside are microseconds; the guide about numbers
    explains the keys."""

    session: str
    """As it was asked for."""
    outcome: str | None
    """How its last run ended, in the runtime's words; null where the source does not say."""
    started: str | None
    """When it began."""
    ended: str | None
    """When its last run ended, else when something was last written."""
    duration_seconds: float | None
    """How long that took."""
    turns: int
    """Times that a person said something."""
    errors: int
    """Errors."""
    profile: dict[str, Any]
    """Time by `prompt`, `response`, `tool`, `thinking`, `compaction` and `idle`: `whole`, by `agents`, in `windows`."""
    amplification: dict[str, Any]
    """Prompts, responses, calls, characters in and out, and their ratios."""
    compactions: dict[str, Any]
    """Each compaction, how many there are in an hour, and the curve: tokens before the model, request by request."""
    tools: dict[str, dict[str, Any]]
    """By tool: calls, failed, unanswered, retries, took and median."""
    delegation: dict[str, Any]
    """What its own agent did, and what it had others do."""
    files: dict[str, dict[str, int]]
    """By path: how often calls read, write, edit and delete it."""
    flow: list[dict[str, Any]]
    """Who told whom: messages and characters that one agent heard of another."""
    activity: dict[str, Any]
    """Events by weekday (Monday first) and hour of the local time zone."""


@crosses
def report(repo: Repo, request: ReportRequest) -> ReportAnswer:
    """Where a session's time went, what came of what people said, its tools and files, and who told whom."""
    found = repo.report(request.place(), window=request.window_seconds * 1_000_000)
    life, gain = found.lifecycle, found.amplification
    ratios = {name: getattr(gain, name) for name in ("responses_per_prompt", "calls_per_prompt", "characters_ratio")}
    return ReportAnswer(
        session=request.session or request.file,
        outcome=life.outcome,
        started=stamp(life.started),
        ended=stamp(life.ended),
        duration_seconds=None if life.duration is None else life.duration / 1e6,
        turns=life.turns,
        errors=life.errors,
        profile=msgspec.to_builtins(found.profile),
        amplification=msgspec.to_builtins(gain) | ratios,
        compactions=msgspec.to_builtins(found.compactions),
        tools={
            name: {
                "calls": use.calls,
                "failed": use.failed,
                "unanswered": use.unanswered,
                "retries": use.retries,
                "took": use.took,
                "median": use.median,
            }
            for name, use in found.tools.items()
        },
        delegation=msgspec.to_builtins(found.delegation),
        files={path: msgspec.to_builtins(use) for path, use in found.files.items()},
        flow=[msgspec.to_builtins(edge) for edge in found.flow],
        activity=msgspec.to_builtins(found.activity),
    )
