"""Trajectories are imported like sessions of any program."""

from __future__ import annotations

import json
from pathlib import Path

from harken import Repo, runtimes
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult
from support.recordings import corpus_files
from support.trajectories import FIRST_PART, PLAIN, SECOND_PART, trajectory, with_agents

RUNTIME = runtimes.get("atif")


def take(repo: Repo, path: Path) -> list[ImportResult]:
    return list(Importer(repo.store, [runtimes.get(name) for name in runtimes.names()]).run(walk(path, (".json",))))


def test_a_trajectory_comes_back_byte_for_byte_and_costs_nothing_twice(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "x.trajectory.json"
    path.write_bytes(PLAIN)

    (first,), (again,) = take(repo, path), take(repo, path)

    assert ("run-1", "atif", "new", "unchanged") == (first.session, first.runtime, first.status, again.status)
    assert PLAIN == repo.materialize("run-1", stop="root").bytes
    assert "What is there?" == next(row.title for row in repo.store.sessions())


def test_one_that_names_no_session_is_called_after_its_file(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    path.write_bytes(trajectory({"source": "user", "message": "Hello"}))

    assert take(repo, path)[0].session.startswith("trajectory-")


def test_a_trajectory_that_is_written_again_is_the_same_session(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    whole = json.loads(PLAIN)
    path.write_text(json.dumps({**whole, "steps": whole["steps"][:2]}))
    (first,) = take(repo, path)
    path.write_bytes(PLAIN)
    (second,) = take(repo, path)

    assert first.session == second.session
    assert PLAIN == repo.materialize(second.session, stop="root").bytes


def test_a_continuation_goes_on_from_the_part_before_it(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "trajectory.json").write_bytes(FIRST_PART)
    (tmp_path / "trajectory.cont-1.json").write_bytes(SECOND_PART)

    found = {outcome.session: outcome for outcome in take(repo, tmp_path)}

    assert {"run-2", "run-2-cont-1"} == found.keys()
    assert found["run-2"].tip == repo.store.get_commit(found["run-2-cont-1"].tip).forked_from


def test_a_continuation_that_only_its_file_names_is_another_session(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "trajectory.cont-2.json"
    path.write_bytes(PLAIN)

    assert "run-1-cont-2" == take(repo, path)[0].session


def test_agents_inside_have_chains_of_their_own_and_count_once(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(with_agents())
    take(repo, path)

    rows = {row.session: row for row in repo.store.sessions()}
    assert {"run-3", *(f"run-3/agent_00{at}" for at in (2, 3, 4))} == rows.keys()
    facts, chains = RUNTIME.read.scan(with_agents(), b""), RUNTIME.read.side_chains(with_agents())
    assert ({"agent_002": "c1", "agent_003": "c2"}, {"agent_003": "agent_002"}) == (facts.calls, facts.makers)
    alone = [RUNTIME.read.scan(chain, b"").tally for chain in chains.values()]
    assert all(set(tally.requests) <= set(facts.tally.requests) for tally in alone)
    made = json.loads(repo.materialize("run-3/agent_002", format="openai-chat-v1").bytes)
    assert ["Find it."] == [message["content"] for message in made["messages"] if message["role"] == "user"]


def test_trajectories_of_others_are_read_whole() -> None:
    for path in corpus_files("atif/**/*.json"):
        facts = RUNTIME.read.scan(path.read_bytes(), b"")

        assert (0, True) == (facts.opaque, facts.messages > 0), path


def test_it_goes_on_as_a_trajectory_and_as_a_request(repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(PLAIN)
    take(repo, path)

    made = json.loads(repo.materialize("run-1", format="openai-chat-v1").bytes)

    assert ["system", "user", "assistant", "tool", "assistant"] == [message["role"] for message in made["messages"]]
