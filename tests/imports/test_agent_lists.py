"""Lists of agents say what the views say: the same names, the same counts, the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harken.errors import NotFound
from support.recordings import session_folders
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


def test_sessions_and_agents_give_each_row_the_same_number_of_messages(repo: Any) -> None:
    """Of every real file, with agents beside it and inside it."""
    list(repo.import_sessions(session_folders("claude-code")))
    rows = {row.session: row.messages for row in repo.sessions()}

    listed = [agent for row in repo.sessions() if not row.parent for agent in repo.agents(row.session)]

    assert {agent.session: agent.messages for agent in listed if agent.session} == rows


def test_a_list_says_which_model_each_agent_speaks_with(repo: Any, take_in: Import, tmp_path: Path) -> None:
    main, side = ClaudeSession("aaa"), ClaudeSession("aaa", agent="x1", salt="side")
    for teller, models in ((main, ("older", "newer", "<synthetic>")), (side, ("smaller",))):
        for model in models:
            teller.prompt("go on")
            teller.answer("done", model=model)
    (tmp_path / "aaa.jsonl").write_bytes(main.data)
    (tmp_path / "agent-x1.jsonl").write_bytes(side.data)

    take_in(tmp_path)

    assert ["newer", "smaller"] == [agent.language_model for agent in repo.agents("aaa")]
    assert ["newer", "smaller"] == [row["language_model"] for row in repo.view("aaa").agent_tree()]


def test_every_agent_in_the_list_is_found_under_its_session(repo: Any, take_in: Import, tmp_path: Path) -> None:
    (tmp_path / "aaaa.jsonl").write_bytes(conversation("aaaa", 2).data)
    (tmp_path / "agent-x1.jsonl").write_bytes(conversation("aaaa", 1, agent="x1", salt="side").data)

    take_in(tmp_path)

    for agent in repo.agents("aaaa"):
        assert agent.tip == repo.commit(f"aaaa/{agent.agent}").id, agent.agent
    assert ["aaaa"] == [found.session for found in repo.stats(["aaaa/claude-code"])]
    with pytest.raises(NotFound):
        repo.commit("aaaa/x1/claude-code")
