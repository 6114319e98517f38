"""What the guide shows works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "context.md"


def test_the_first_example_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)[0]
    names: dict[str, object] = {}

    exec(compile(code, str(GUIDE), "exec"), names)

    repo = names["repo"]
    assert 3 == len(repo.store.commits())  # type: ignore[attr-defined]
    assert 3 == repo.materialize("review", stop="root").message_count  # type: ignore[attr-defined]
    repo.close()  # type: ignore[attr-defined]
