"""Threads of Codex that come from other threads: sub-agents, and forks that only point at what they go on from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import harken
from harken import runtimes
from harken.formats import codex
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from support.rollouts import Rollout, texts_of

PARENT, CHILD, FORK = (f"019b88e5-a2e4-7b90-8953-00000000000{n}" for n in (1, 2, 3))


def import_all(repo: Any, folder: Path) -> None:
    for _ in Importer(repo.store, [runtimes.get("codex")]).run(walk(folder)):
        pass


def first_commit(repo: Any, session: str) -> Any:
    return repo.store.get_commit(repo.store.walk(repo.show(session).id)[-1].id)


def test_a_sub_agents_chain_says_which_call_started_it(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    parent = Rollout(id=PARENT).turn("go").call("c7", "spawn_agent")
    parent.event("collab_agent_spawn_end", call_id="c7", new_thread_id=CHILD).output("c7")
    (files / f"rollout-2026-01-02T00-00-00-{PARENT}.jsonl").write_bytes(parent.data)
    child = Rollout(id=CHILD, parent_thread_id=PARENT, source={"subagent": "x"}).turn("look")
    (files / f"rollout-2026-01-02T00-00-01-{CHILD}.jsonl").write_bytes(child.data)

    with harken.open(tmp_path / "store.db") as repo:
        import_all(repo, files)

        assert {"session": PARENT, "call_id": "c7", "inherits": False} == first_commit(repo, CHILD).spawned_from
        assert child.data == repo.materialize(CHILD).bytes, "it was told its prompt, and no more"


def test_a_fork_that_only_points_knows_what_it_goes_on_from(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    base = Rollout(id=PARENT).turn("one")
    position = {"thread_id": PARENT, "end_ordinal_exclusive": 7, "end_byte_offset": len(base.data)}
    (files / f"rollout-2026-01-02T00-00-00-{PARENT}.jsonl").write_bytes(base.turn("two").data)
    fork = Rollout(id=FORK, forked_from_id=PARENT, history_base=position).turn("three")
    (files / f"rollout-2026-01-02T00-00-01-{FORK}.jsonl").write_bytes(fork.data)

    with harken.open(tmp_path / "store.db") as repo:
        import_all(repo, files)

        whole = repo.materialize(FORK).bytes
        assert ["one", "answer to one", "three", "answer to three"] == texts_of(codex.request_items(whole))
        assert fork.data == repo.materialize(FORK, stop="root").bytes
