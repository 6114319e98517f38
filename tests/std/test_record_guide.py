"""What the guide shows of the recorder runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harken.formats.std.document import read
from support.std_checks import findings_of

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "session-documents.md"


def test_the_examples_of_the_guide_make_documents_without_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    section = GUIDE.read_text("utf-8").partition("\n## Record\n")[2].partition("\n## ")[0]
    names: dict[str, object] = {"__name__": "guide"}

    for code in re.findall(r"```python\n(.*?)```", section, re.S):
        exec(compile(code, "session-documents.md", "exec"), names)

    name = "2026-03-04-001-mend-the-clock-multi.json"
    assert [] == findings_of(read((tmp_path / name).read_bytes()).data, name)
    assert "success" == read((tmp_path / "crashed-multi.json").read_bytes()).data["status"]
    assert '"task_title": "Mend the clock"' in capsys.readouterr().out
