"""A session that tells no time, as a document."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from harken.repo import Repo

Run = Any


def test_a_session_without_a_time_is_as_old_as_its_file(run: Run, repo: Repo, tmp_path: Path) -> None:
    path = tmp_path / "d3b07384-d113-4ec6-a7d6-0c9f3d2b1a55.jsonl"
    line = {"type": "summary", "summary": "Mend the clock", "leafUuid": "d3b07384-d113-4ec6-a7d6-0c9f3d2b1a56"}
    path.write_text(json.dumps(line) + "\n")
    os.utime(path, (1_772_618_400, 1_772_618_400))
    list(repo.import_sessions([path]))

    kept, of_file = (json.loads(run("std", "export", name).out) for name in (path.stem, str(path)))

    assert "2026-03-04T10:00:00.000000Z" == kept["created_at"] == of_file["created_at"]
    assert kept["session_id"].startswith("2026-03-04-001-")
    assert "created_at" in kept["x_harken"]["derived"]
