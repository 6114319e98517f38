"""The guide says what is so."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

import pytest

from harken import agents
from support.stage import open_stage, say

GUIDE = (Path(__file__).parents[2] / "docs/guides/agents.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_the_script_in_it_plays(tmp_path: Path) -> None:
    (script,) = blocks("toml")
    root, session = open_stage(tmp_path / "log", tomllib.loads(script)["agents"])
    with session:
        assert "There he is." == say(root, "Make Jack.")
        assert "Hm." == say(root, "Well?")


def test_the_code_in_it_runs_from_its_first_line_to_its_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"Annotated": Annotated, "re": re, "__name__": "guide"}
    names |= {name: getattr(agents, name) for name in agents.__all__}

    for code in blocks("python"):
        exec(compile(code.replace("anthropic/claude-sonnet-4-5", "demo"), "agents.md", "exec"), names)
    names["session"].close()

    assert {"cafe.jsonl", "log.jsonl"} <= {path.name for path in tmp_path.iterdir()}
    assert {"look_up", "broadcast", "recruit"} <= names.keys()


def imports() -> dict[str, list[str]]:
    """The names that the table of imports has, by the module they are imported from."""
    rows = re.findall(r"^\| `(harken[\w.]*)` \| (.+?) \|$", GUIDE, re.MULTILINE)
    return {module: re.findall(r"`(\w+)`", names) for module, names in rows}


def test_it_says_where_every_name_is_imported_from() -> None:
    assert sorted(agents.__all__) == sorted(imports()["harken.agents"])
    for module, names in imports().items():
        for name in names:
            assert hasattr(importlib.import_module(module), name), f"from {module} import {name}"


def test_what_people_know_from_elsewhere_has_a_name_here() -> None:
    """Every name of ours in the page for those who come from another framework is one."""
    page = (Path(__file__).parents[2] / "docs/guides/coming-from.md").read_text()
    ours = {name for names in imports().values() for name in names}
    rows = [row.split("|")[1:-1] for row in page.splitlines() if row.startswith("| ") and "`" in row]
    named = {name for row in rows for name in re.findall(r"`(\w+)\(", row[-1])}

    assert rows
    assert named <= ours | {"spawn", "resume", "compact", "used", "discuss", "task"}


def test_the_code_for_those_who_come_from_elsewhere_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs/guides/coming-from.md").read_text()
    names: dict[str, Any] = {"__name__": "guide"}

    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(code, "coming-from.md", "exec"), names)

    expected = ["It rains.", "Since this morning.", "They have a motto.", "accuracy 100%"]
    assert expected == capsys.readouterr().out.splitlines()
    assert "The session is closed." == names["chair"].transcript[-1]["content"]


def test_it_counts_the_demonstrations() -> None:
    examples = Path(__file__).parents[2] / "examples"
    found = [path for path in examples.glob("*.py") if path.stem not in {"stage", "show"}]

    assert 12 == len(found)
    assert "twelve demonstrations" in GUIDE
