"""A sub-agent whose records do not name it: its file does, and what it did is its own in every question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.api.lanes import LanesRequest, lanes
from harken.formats.gemini_cli.records import agent_of

TOP, SUB = "afc18a3c-80c8-4ad7-ae8a-3cc4982da865", "99ab3399-b49e-4159-b16b-6f2d9807a575"


def header(session: str, kind: str) -> dict[str, Any]:
    start = "2026-11-15T13:20:00.000Z"
    return {"sessionId": session, "projectHash": "f" * 64, "startTime": start, "lastUpdated": start, "kind": kind}


def user(n: int, text: str) -> dict[str, Any]:
    return {"id": f"u{n}", "timestamp": f"2026-11-15T13:20:{n:02d}.000Z", "type": "user", "content": [{"text": text}]}


def model(n: int, text: str, tool: str = "", error: bool = False, **more: Any) -> dict[str, Any]:
    at = f"2026-11-15T13:20:{n:02d}.000Z"
    tokens = {"input": 10, "output": 2, "cached": 0, "thoughts": 0, "tool": 0, "total": 12}
    said = {"id": f"m{n}", "timestamp": at, "type": "gemini", "content": text, "tokens": tokens, "model": "gemini-pro"}
    if not tool:
        return said
    answer = {"error": "no such file"} if error else {"output": "done"}
    response = [{"functionResponse": {"id": f"c{n}", "name": tool, "response": answer}}]
    call = {"id": f"c{n}", "name": tool, "args": {"path": "notes.txt"}, "result": response, "timestamp": at}
    return said | {"toolCalls": [call | {"status": "error" if error else "success"} | more]}


MAIN = [
    header(TOP, "main"),
    user(1, "what fruit is in the notes?"),
    model(2, "", "invoke_agent", agentId=SUB),
    model(9, "the papaya"),
]
BELOW = [
    header(SUB, "subagent"),
    user(3, "read the notes and report"),
    model(4, "I look", "read_file"),
    model(5, "again", "read_file", error=True),
    model(6, "the fruit is a papaya"),
]


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """The files of a session and of its sub-agent, as Gemini CLI lays them out."""
    folder = tmp_path / "home" / ".gemini" / "tmp" / "proj" / "chats"
    (folder / TOP).mkdir(parents=True)
    write(folder / "session-2026-11-15T13-20-afc18a3c.jsonl", MAIN)
    write(folder / TOP / f"{SUB}.jsonl", BELOW)
    return folder


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def calls(repo: harken.Repo) -> list[tuple[object, ...]]:
    return list(repo.sql("SELECT agent, tool, failed FROM calls ORDER BY time").rows)


def test_a_file_says_in_its_header_whose_it_is() -> None:
    assert SUB == agent_of(b"".join(json.dumps(record).encode() + b"\n" for record in BELOW))
    assert "" == agent_of(b"".join(json.dumps(record).encode() + b"\n" for record in MAIN))
    assert "" == agent_of(b"")


def test_what_a_sub_agent_did_is_its_own_in_the_index(chats: Path, tmp_path: Path) -> None:
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([chats.parents[2]]))
        expected = [("", "invoke_agent", 0), (SUB, "read_file", 0), (SUB, "read_file", 1)]
        assert expected == [(agent or "", tool, failed) for agent, tool, failed in calls(repo)]
        hits = repo.search(f"agent:{SUB} papaya").hits
        assert [(f"{TOP}/{SUB}", SUB)] == [(f"{hit.session}/{hit.agent}", hit.agent) for hit in hits]


def test_a_sub_agent_has_a_lane_and_a_price_of_its_own(chats: Path, tmp_path: Path) -> None:
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([chats.parents[2]]))
        both = lanes(repo, LanesRequest(session=TOP)).lanes
        assert [("gemini-cli", 1, 0), (SUB, 2, 1)] == [(one.agent, one.calls, one.failed) for one in both]
        alone = lanes(repo, LanesRequest(session=f"{TOP}/{SUB}")).lanes
        assert [(SUB, 2, 1)] == [(one.agent, one.calls, one.failed) for one in alone]


def test_what_it_does_later_is_its_own_as_well(chats: Path, tmp_path: Path) -> None:
    with harken.open(tmp_path / "store.db") as repo:
        for many in range(2, len(BELOW) + 1):
            write(chats / TOP / f"{SUB}.jsonl", BELOW[:many])
            list(repo.import_sessions([chats.parents[2]]))
            repo.index.catch_up()
        grown = sorted(calls(repo), key=str)
    with harken.open(tmp_path / "other.db") as repo:
        list(repo.import_sessions([chats.parents[2]]))
        assert 3 == len(grown)
        assert sorted(calls(repo), key=str) == grown


def test_a_file_of_a_sub_agent_that_lies_alone_is_a_session_of_nobody_else(chats: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.jsonl"
    write(alone, BELOW)
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([alone]))
        assert {""} == {agent or "" for agent, _, _ in calls(repo)}
