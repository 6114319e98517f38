"""Lanes of agents that went on working behind the result of the call that made them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import harken
from harken.api.lanes import LaneAnswer, LanesRequest, lanes
from harken.repo import Repo
from support.errands import FILE, SESSION, write_errands

START = 1_767_258_000_000_000
SECOND = 1_000_000


def drawn(home: Path, store: Path) -> dict[str, LaneAnswer]:
    with harken.open(store) as repo:
        assert isinstance(repo, Repo)
        list(repo.import_sessions([home]))
        repo.index.catch_up()
        return {lane.agent: lane for lane in lanes(repo, LanesRequest(session=SESSION)).lanes}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_errands(tmp_path / "home")
    return tmp_path / "home"


def test_an_agent_in_the_background_is_done_with_its_answer_and_not_with_its_launch(home: Path, tmp_path: Path) -> None:
    found = drawn(home, tmp_path / "store.db")

    launched, awaited = found["a0000001"], found["a0000002"]
    assert (START + SECOND, "main-1", 0) == launched.told
    assert (START + 30 * SECOND, "main-1", 0) == launched.returned
    assert launched.background
    assert (START + 9 * SECOND, "main-3", 0) == awaited.returned
    assert not awaited.background


def test_nobody_waits_for_an_agent_while_it_is_launched(home: Path, tmp_path: Path) -> None:
    spent = drawn(home, tmp_path / "store.db")["claude-code"].spent

    assert (6 * SECOND, SECOND) == (spent["waiting"], spent["tool"])


@pytest.mark.parametrize("lines", [4, 5], ids=["up to a call", "up to its result"])
def test_an_agent_in_the_background_that_did_not_answer_yet_gave_nothing_back(
    home: Path, tmp_path: Path, lines: int
) -> None:
    file = home / FILE.removesuffix(".jsonl") / "subagents" / "agent-a0000001.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:lines]))

    lane = drawn(home, tmp_path / "store.db")["a0000001"]

    assert lane.background
    assert lane.returned is None


def test_an_agent_that_was_called_again_was_done_with_its_first_answer(home: Path, tmp_path: Path) -> None:
    file = home / FILE.removesuffix(".jsonl") / "subagents" / "agent-a0000002.jsonl"
    last = json.loads(file.read_text().splitlines()[-1])
    again = {"role": "user", "content": "And the other names?"}
    answer = last["message"] | {"id": "msg_again", "content": [{"type": "text", "text": "They are good as well."}]}
    with file.open("a") as grown:
        for name, kind, time, message in (("n1", "user", 20, again), ("n2", "assistant", 25, answer)):
            more = {"uuid": name, "type": kind, "timestamp": f"2026-01-01T09:00:{time}.000Z", "message": message}
            grown.write(json.dumps(last | more | {"requestId": name}) + "\n")

    lane = drawn(home, tmp_path / "store.db")["a0000002"]

    assert START + 25 * SECOND == lane.segments[-1][1]
    assert (START + 9 * SECOND, "main-3", 0) == lane.returned
    assert not lane.background


def test_an_agent_whose_last_record_comes_a_moment_behind_its_result_was_waited_for(home: Path, tmp_path: Path) -> None:
    file = home / FILE.removesuffix(".jsonl") / "subagents" / "agent-a0000002.jsonl"
    *before, last = file.read_text().splitlines()
    late = json.loads(last) | {"timestamp": "2026-01-01T09:00:09.020Z"}
    file.write_text("\n".join([*before, json.dumps(late)]) + "\n")

    found = drawn(home, tmp_path / "store.db")

    assert not found["a0000002"].background
    assert (START + 9 * SECOND, "main-3", 0) == found["a0000002"].returned
    assert 6 * SECOND == found["claude-code"].spent["waiting"]
