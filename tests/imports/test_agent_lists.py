"""Lists of agents say what the views say: the same names, the same counts, the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.sessions import ClaudeSession, conversation

from .conftest import Import


def _as_viewed(repo: Any, session: str) -> list[tuple[str, str, int]]:
    return [(row["agent_id"], row["parent"] or "", row["messages"]) for row in repo.view(session).agent_tree()]


def _as_listed(repo: Any, session: str) -> list[tuple[str, str, int]]:
    return [(agent.agent, agent.parent, agent.messages) for agent in repo.agents(session)]


def _sub_agent(session: str, salt: str) -> ClaudeSession:
    side = ClaudeSession(session, salt=salt)
    side.prompt("look it up", isSidechain=True)
    side.answer("here it is", isSidechain=True)
    return side


def test_side_chains_inside_a_file_are_not_counted_as_the_main_agents(
    repo: Any, take_in: Import, tmp_path: Path
) -> None:
    main, side = conversation("aaa", 2), _sub_agent("aaa", "side")
    (tmp_path / "alone.jsonl").write_bytes(conversation("bbb", 2).data)
    (tmp_path / "aaa.jsonl").write_bytes(b"".join([*main.lines[:4], *side.lines, *main.lines[4:]]))

    take_in(tmp_path)

    ((_, _, alone),) = _as_listed(repo, "bbb")
    assert [alone, 2] == [messages for _, _, messages in _as_listed(repo, "aaa")]
    assert _as_viewed(repo, "aaa") == _as_listed(repo, "aaa")


def test_a_sub_agent_whose_records_have_no_agent_id_has_one_name(repo: Any, take_in: Import, tmp_path: Path) -> None:
    (tmp_path / "aaa.jsonl").write_bytes(conversation("aaa", 2).data)
    (tmp_path / "agent-hash1.jsonl").write_bytes(_sub_agent("aaa", "side").data)

    take_in(tmp_path)

    (_, listed) = _as_listed(repo, "aaa")
    assert ("hash1", "claude-code", 2) == listed
    assert _as_viewed(repo, "aaa") == _as_listed(repo, "aaa")
    assert [("hash1", "claude-code", 2)] == _as_listed(repo, "aaa/hash1")
    assert 2 == len(repo.view("aaa/hash1").perspective("hash1"))


def test_the_order_of_sub_agents_does_not_depend_on_the_order_of_import(
    repo: Any, take_in: Import, tmp_path: Path
) -> None:
    (tmp_path / "aaa.jsonl").write_bytes(conversation("aaa", 2).data)
    for name in ("c", "a", "b"):
        (tmp_path / f"agent-{name}.jsonl").write_bytes(_sub_agent("aaa", name).data)
        take_in(tmp_path)

    (told,) = repo.stats(["aaa"])
    assert ["a", "b", "c"] == [agent for agent, _, _ in _as_listed(repo, "aaa")][1:]
    assert ["aaa/a", "aaa/b", "aaa/c"] == [agent.session for agent in told.agents]
