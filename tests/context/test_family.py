"""Which commits a drawing shows, and how few are read for it."""

from __future__ import annotations

import json

import pytest

from harken.context.family import LEAST, family
from harken.repo import Repo
from support.contexts import chain, keep, memory_repo, turn
from support.sessions import ClaudeSession


@pytest.fixture
def repo() -> Repo:
    return memory_repo()


def test_a_tree_is_the_chain_and_all_that_hangs_from_it(repo: Repo) -> None:
    root = keep(repo, turn(0), session_id="s")
    left, right = keep(repo, turn(1), root), keep(repo, turn(2), root)
    stranger = keep(repo, turn(3))

    assert {root.id, left.id, right.id} == {commit.id for commit in family(repo.store, of=left.id).commits}
    assert [stranger.id] == [commit.id for commit in family(repo.store, of=stranger.id).commits]
    assert 4 == len(family(repo.store).commits)


def test_agents_of_agents_belong_to_the_tree_they_were_spawned_in(repo: Repo) -> None:
    root = keep(repo, turn(0), session_id="s")
    child = keep(repo, turn(1), session_id="s/a", spawned_from={"session": "s", "commit": root.id})
    grandchild = keep(repo, turn(2), session_id="s/b", spawned_from={"session": "s/a", "call_id": "c1"})

    found = family(repo.store, of=root.id)

    assert [grandchild.id, child.id, root.id] == [commit.id for commit in found.commits]
    assert {child.id: root.id, grandchild.id: child.id} == found.spawned
    assert [grandchild.id] == [commit.id for commit in family(repo.store, of=grandchild.id).commits]


def test_agents_spawned_in_a_circle_or_in_another_store_end_somewhere(repo: Repo) -> None:
    root = keep(repo, turn(0), session_id="s")
    keep(repo, turn(1), session_id="a", spawned_from={"session": "b", "call_id": "c2"})
    keep(repo, turn(2), session_id="b", spawned_from={"session": "a", "call_id": "c1"})
    keep(repo, turn(3), session_id="c", spawned_from={"session": "d", "commit": "ab" * 32})

    assert [root.id] == [commit.id for commit in family(repo.store, of=root.id).commits]


def test_an_agent_hangs_at_the_commit_that_makes_its_call_and_at_none_that_only_names_it(repo: Repo) -> None:
    """#35: on its screen Claude Code writes down what it sends to the model before the call that is in it."""
    before, after = ClaudeSession("s"), ClaudeSession("s")
    before.prompt("begin")
    after.call("Agent", "done", prompt="look")
    call = json.loads(after.lines[0])["message"]
    before.side({"type": "api-request-blob", "sessionId": "s", "hash": "00", "message": call})
    root = repo.checkpoint(before.data, format="claude-code-v1", session_id="s")
    made = repo.checkpoint(after.data, format="claude-code-v1", parent=root, session_id="s")
    origin = {"session": "s", "call_id": call["content"][0]["id"]}
    child = keep(repo, turn(1), session_id="s/a", spawned_from=origin)
    heir = keep(repo, turn(2), session_id="s/b", spawned_from=origin | {"inherits": True})

    assert {child.id: made.id, heir.id: made.id} == family(repo.store, of=root.id).spawned
    assert made.id == (heir.spawned_from or {})["commit"], "what was handed over is what the caller knew"


def test_an_agent_hangs_at_the_first_commit_that_names_its_call_where_nobody_can_read_it(repo: Repo) -> None:
    root = repo.checkpoint(b"call toolu_1", format="unheard-of-v1", session_id="s")
    repo.checkpoint(b"result toolu_1", format="unheard-of-v1", parent=root, session_id="s")
    child = keep(repo, turn(1), session_id="s/a", spawned_from={"session": "s", "call_id": "toolu_1"})

    assert {child.id: root.id} == family(repo.store, of=root.id).spawned


def test_few_are_read_where_few_are_wanted(repo: Repo) -> None:
    tip = chain(repo, range(LEAST * 3))

    found = family(repo.store, of=tip.id, limit=3)

    assert (LEAST, tip.id, 1) == (len(found.commits), found.commits[0].id, len(found.beyond))


def test_an_old_tree_is_found_below_many_newer_commits(repo: Repo) -> None:
    old = chain(repo, range(5))
    chain(repo, range(10, 10 + LEAST * 2))

    assert 5 == len(family(repo.store, of=old.id, limit=3).commits)


def test_superseded_ends_are_left_out_unless_something_hangs_from_them(repo: Repo) -> None:
    root = chain(repo, [0])
    end, line = keep(repo, turn(1), root), keep(repo, turn(2), root)
    tip = keep(repo, turn(3), line)
    for commit in (end, line):
        repo.annotate(commit, tip.short, key="superseded_by")

    assert [tip.id, line.id, root.id] == [commit.id for commit in family(repo.store).commits]
    assert 4 == len(family(repo.store, superseded=True).commits)
