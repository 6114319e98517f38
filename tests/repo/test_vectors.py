"""Frozen: the commits that a log becomes. If this fails, the names of everything ever kept would change."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import harken

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
