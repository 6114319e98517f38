"""Every session, written as a trajectory: it is valid, and it says what the session says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from atif import Trajectory

from harken import formats
from harken.events import Event
from harken.events.tally import Tally
from harken.testing.formats import unsaid
from support.every_session import session_sources, told
from support.std_sessions import DEMONSTRATIONS, EXAMPLES, play

ATIF = formats.get("atif-v1")
SOURCES = session_sources()


@pytest.mark.parametrize(("path", "name"), SOURCES, ids=[f"{name}-{Path(path).name}" for path, name in SOURCES])
def test_a_session_is_a_valid_trajectory_that_says_the_same(path: str, name: str) -> None:
    for what, events in told(path, name):
        check(what, events)


@pytest.mark.parametrize("name", DEMONSTRATIONS)
def test_a_demonstration_is_one_too(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    file = tmp_path / "session.jsonl"
    play(name, file)

    for what, events in told(str(file), "session-log-v2"):
        check(what, events)


def check(what: str, events: Sequence[Event]) -> None:
    written = ATIF.write(events)
    again = ATIF.read(written.data)

    assert not unsaid(events, written, again), what
    before, after = Tally.of(events).figures(), Tally.of(again).figures()
    if not any(loss.what == "figures of runs" for loss in written.losses):
        assert (before.usage, before.cost_usd_micros) == (after.usage, after.cost_usd_micros), what
    if written.data:
        validate(written.data)


def validate(data: bytes) -> None:
    """By the models of the format, and by the rule that they leave out: a result names a call of its own step."""
    Trajectory.model_validate_json(data)
    waiting = [json.loads(data)]
    while waiting:
        one = waiting.pop()
        assert one["steps"]
        for step in one["steps"]:
            calls = {call["tool_call_id"] for call in step.get("tool_calls", ())}
            results = step.get("observation", {"results": []})["results"]
            assert {result["source_call_id"] for result in results if "source_call_id" in result} <= calls
        waiting += one.get("subagent_trajectories", ())
