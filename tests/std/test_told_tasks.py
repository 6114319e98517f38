"""Assignments, completions and links of exported documents, held against a second look at the raw files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.formats.std.document import dumps
from harken.repo import Repo
from support.plain_tasks import PlainTask, plain_tasks
from support.recordings import FOLDER
from support.std_sessions import DEMONSTRATIONS, EXAMPLES, families, play

Json = dict[str, Any]
COMPOSED = {"ses_stage0_small"}
"""Put together by hand from single lines of many sessions: nobody was given anything in it."""


@pytest.fixture
def repo() -> Iterator[Repo]:
    with harken.open("memory:") as opened:
        yield opened


def told(data: Json) -> dict[str, PlainTask]:
    """What a document says of each of its agents."""
    ends = {
        message["from_agent"]["agent_id"]: message["payload"]["status"]
        for message in data["messages"]
        if message["message_type"] in ("task_completion", "review_result")
    }
    given = {
        message["to_agent"]["agent_id"]: message["payload"]["task"]["task_description"]
        for message in data["messages"]
        if message["message_type"] == "task_assignment"
    }
    made_up = {call["call_id"] for call in data["tool_calls"] if call.get("x_harken_derived") or "x_harken_id" in call}
    return {
        (agent := sub["agent"]["agent_id"]): PlainTask(
            call="" if sub["triggered_by_call_id"] in made_up else sub["triggered_by_call_id"],
            words=given[agent],
            end=ends.get(agent, ""),
            calls=tuple(call["call_id"] for call in sub["tool_calls"] if "x_harken_id" not in call),
        )
        for sub in data["sub_sessions"]
    }


def told_again(data: Json, folder: Path) -> Json:
    """What a document says of messages that is made from the session which an export was imported as."""
    file = folder / f"{data['session_id']}.json"
    file.write_bytes(dumps(data))
    with harken.open("memory:") as repo:
        for _ in repo.import_sessions([file]):
            pass
        (session,) = [row.session for row in repo.sessions() if row.tip and not row.parent]
        again = repo.document(session, kind="std-008").document.data
    return {key: again[key] for key in ("messages", "collaboration")}


def check_links(data: Json) -> None:
    """Both ends of every link, and every message about a task in its place."""
    main = data["collaboration"]["orchestrator"]["agent_id"]
    subs = {sub["sub_session_id"]: sub for sub in data["sub_sessions"]}
    calls = {call["call_id"]: call for call in data["tool_calls"]}
    messages = {message["message_id"]: message for message in data["messages"]}
    for name, sub in subs.items():
        assert name == calls[sub["triggered_by_call_id"]]["subagent_info"]["sub_session_id"]
        assert sub["parent_session_id"] in {data["session_id"], *subs}
    for message in data["messages"]:
        request = messages.get(message.get("reply_to", ""))
        if message["message_type"] in ("task_completion", "task_progress"):
            assert request is not None
            assert ("task_assignment", main) == (request["message_type"], request["from_agent"]["agent_id"])
            assert request["payload"]["task"]["task_id"] == message["payload"]["task_id"] == message["correlation_id"]
            assert (request["to_agent"], request["from_agent"]) == (message["from_agent"], message["to_agent"])
            assert request["sequence_number"] < message["sequence_number"]


@pytest.mark.parametrize("folder", families(), ids=lambda path: "/".join(path.parts[-2:]))
def test_every_task_is_told_as_the_files_have_it(repo: Repo, folder: Path, tmp_path: Path) -> None:
    for _ in repo.import_sessions([folder]):
        pass
    expected = {name: tasks for name, tasks in plain_tasks(folder).items() if name not in COMPOSED}

    found = {name: repo.document(name, kind="std-008").document.data for name in expected if _is_here(repo, name)}

    assert expected.keys() == found.keys()
    assert expected or FOLDER not in folder.parents
    for name, data in found.items():
        assert expected[name] == told(data)
        check_links(data)
        assert told_again(data, tmp_path) == {key: data[key] for key in ("messages", "collaboration")}


def _is_here(repo: Repo, name: str) -> bool:
    return any(row.session == name and row.tip for row in repo.sessions())


@pytest.mark.parametrize("name", DEMONSTRATIONS)
def test_everything_that_agents_heard_from_each_other_is_a_message(
    repo: Repo, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    play(name, tmp_path / "session.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "session.jsonl").read_text("utf-8").splitlines()]

    data = repo.document(tmp_path / "session.jsonl", kind="std-008").document.data

    messages = data["messages"]
    assert told_again(data, tmp_path) == {key: data[key] for key in ("messages", "collaboration")}
    hooks = {line["agent_id"] for line in lines if line.get("role") == "hook"}
    said_by = {line["message_id"]: line["agent_id"] for line in lines}
    heard = [
        (said_by[line["substance"]], line["agent_id"], line["content"].partition("]: ")[2] or line["content"])
        for line in lines
        if line.get("role") == "user" and line.get("substance") in said_by and line["agent_id"] not in hooks
    ]
    told = [
        (message["from_agent"]["agent_id"], message["to_agent"]["agent_id"], _words(message["payload"]))
        for message in messages
        if message["message_type"] not in ("task_completion", "review_result") and "x_harken_unheard" not in message
    ]
    assert [] == [one for one in heard if one not in told]
    gathered = [line.get("cause") or [line["substance"]] for line in lines if _gathers(line)]
    assert sum(map(len, gathered)) == sum(message["message_type"] == "task_completion" for message in messages)


def _words(payload: Json) -> str:
    given = payload.get("task", {}).get("task_description")
    return str(given or payload.get("content") or payload.get("current_step") or payload.get("context"))


def _gathers(line: Json) -> bool:
    """Whether a line is the result of a call that has agents speak."""
    is_answer = line.get("role") == "tool" and line.get("name") in ("task", "discuss") and not line.get("is_error")
    return is_answer and ("cause" in line or "substance" in line)
