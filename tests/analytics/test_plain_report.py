"""Every figure of `stats SESSION --details`, of real sessions, against a second count of the plain JSON."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harken.analytics import activity, flow, lifecycle, report
from harken.analytics.profile import TimeSpent
from harken.clock import SECOND
from harken.formats import get
from support import plain_report
from support.recordings import FOLDER, named, session_files, streams

HOUR = 3600 * SECOND
STATES = ("prompt", "response", "tool", "thinking", "compaction", "idle")
LOGS = sorted((Path(__file__).parents[1] / "golden" / "session-log" / "v2").glob("*.jsonl"))
FILES = [
    *(("claude-code-v1", plain_report.claude, path) for path in session_files("claude-code")),
    *(("codex-v1", plain_report.codex, path) for path in session_files("codex")),
]
"""Recorded sessions, and those of the corpus where there is one."""


@pytest.fixture(autouse=True, scope="module")
def _greenwich() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def spent(told: TimeSpent) -> dict[str, int]:
    return {state: micros for state in STATES if (micros := getattr(told, state))}


@pytest.mark.parametrize(
    ("name", "count", "path"), FILES, ids=lambda value: named(value) if isinstance(value, Path) else ""
)
def test_every_figure_is_that_of_the_plain_lines(name: str, count: object, path: Path) -> None:
    data = path.read_bytes()
    found = report.of(get(name).read(data), window=HOUR)
    plain = count(data)  # type: ignore[operator]
    steps, kinds = plain.steps, Counter(step.kind for step in plain.steps)
    stretches = plain_report.spent(steps)

    # Where the time went: as a whole, per agent, and in windows.
    assert dict(kinds) == found.profile.whole.events
    assert plain_report.by_state(stretches) == spent(found.profile.whole)
    agents = {step.agent for step in steps}
    by_agent = {agent: plain_report.by_state([one for one in stretches if one.agent == agent]) for agent in agents}
    assert by_agent == {agent: spent(told) for agent, told in found.profile.agents.items()}
    windows = {window.start: spent(window.spent) for window in found.profile.windows}
    assert plain_report.by_window(stretches, HOUR) == {start: told for start, told in windows.items() if told}

    # When.
    hours = enumerate(found.activity.hours)
    assert plain_report.by_hour(steps) == {(day, hour): n for day, row in hours for hour, n in enumerate(row) if n}
    assert sum(step.time is None for step in steps) == found.activity.unknown

    # What came of what people said.
    texts = {kind: sum(len(step.text) for step in steps if step.kind == kind) for kind in ("prompt", "response")}
    counts = (kinds["prompt"], kinds["response"], kinds["call"], texts["prompt"], texts["response"])
    assert counts == msgspec.structs.astuple(found.amplification)

    # Tools and files.
    tools = {tool: (u.calls, u.failed, u.unanswered, u.retries, [*u.durations]) for tool, u in found.tools.items()}
    assert plain_report.by_tool(steps) == tools
    touched = {file: Counter(msgspec.structs.asdict(use)) for file, use in found.files.items()}
    assert plain_report.by_file(steps) == {file: +use for file, use in touched.items()}

    # How it went.
    life = found.lifecycle
    times = [instant for _, instant in plain.times]
    first, last = min(times, default=None), max(times, default=None)
    assert (None, first, last) == (life.outcome, life.started, life.ended)
    assert (None if first is None or last is None else last - first) == life.duration
    assert (kinds["prompt"], kinds["compaction"], plain.errors) == (life.turns, life.compactions, life.errors)

    # What it did itself, and what it had others do.
    for mine, theirs in zip(
        plain_report.delegation(plain), (found.delegation.own, found.delegation.delegated), strict=True
    ):
        told = (theirs.agents, theirs.responses, theirs.calls, theirs.requests)
        assert (mine.agents, mine.responses, mine.calls, mine.requests) == told
        assert mine.tokens == msgspec.structs.asdict(theirs.tokens)

    # The context.
    assert plain_report.curve(plain) == [point.tokens for point in found.compactions.curve]
    if name == "claude-code-v1":
        each = [(one.trigger, one.before, one.after, one.took) for one in found.compactions.compactions]
        assert plain_report.compactions(plain) == each
    elapsed = (last or 0) - (first or 0)
    assert (kinds["compaction"] / (elapsed / HOUR) if elapsed else None) == found.compactions.per_hour


def test_the_most_sessions_at_once_are_those_of_the_plain_lines() -> None:
    files = [[instant for _, instant in count(path.read_bytes()).times] for _, count, path in FILES]
    spans = [(min(times), max(times)) for times in files if times]

    assert plain_report.peak(spans) == activity.peak(spans).sessions > 1


@pytest.mark.parametrize("path", streams("claude-code"), ids=named)
def test_the_outcome_is_that_of_the_last_result(path: Path) -> None:
    results = plain_report.results(path.read_bytes())

    found = lifecycle.of(get("claude-stream-v1").read(path.read_bytes()))

    assert (results[-1]["subtype"] if results else None) == found.outcome
    assert (sum(result.get("num_turns", 0) for result in results) or None) == found.told_turns


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_who_told_whom_is_that_of_the_plain_lines(path: Path) -> None:
    found = flow.of(get("session-log-v2").read(path.read_bytes()))

    assert plain_report.flow(path) == {(edge.source, edge.target): (edge.messages, edge.characters) for edge in found}


def test_there_are_cases_of_every_kind_without_a_corpus() -> None:
    recorded = [path for path in (path for _, _, path in FILES) if FOLDER in path.parents]

    assert len(recorded) > 30 and LOGS and any(map(plain_report.flow, LOGS))
