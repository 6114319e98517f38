"""Frozen: the commits that a log becomes. If this fails, the names of everything ever kept would change."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import harken
from harken import ids

VECTORS = Path(__file__).parent / "vectors"


@pytest.mark.parametrize("where", ["memory:", "store.db"])
def test_a_log_becomes_the_commits_it_always_became(where: str, tmp_path: Path) -> None:
    path = tmp_path / "jill.jsonl"
    shutil.copy(VECTORS / "jill.jsonl", path)

    with harken.open(where if where == "memory:" else tmp_path / where) as repo:
        with repo.session(path):
            pass
        made = {
            row.session: [
                [c.id, c.seal, c.commit_type, c.checkpoint, c.message_count] for c in reversed(repo.history(row.tip))
            ]
            for row in repo.sessions()
        }

    assert json.loads((VECTORS / "jill.json").read_text()) == made


def test_bytes_of_bureau_keep_their_names() -> None:
    """One prompt event, as Bureau writes it: the artifact's name is Bureau's, and so is the commit's."""
    data = bytes.fromhex(
        "81a364747970656670726f6d70746670726f6d7074a266736f7572636567696e697469616c67636f6e74656e74626869"
        "6974696d657374616d701a699adaa8"
    )
    with harken.open("memory:") as repo:
        commit = repo.checkpoint(data, format="events-v1", created_at="2026-02-22T10:30:00Z", template="t")
        named = ids.commit_id("", "art-0100aa23ef97", "2026-02-22T10:30:00Z", "t")

        assert ("art-0100aa23ef97", named) == (ids.artifact_ref(commit.artifact), commit.id)
        assert data == repo.materialize(commit).bytes
