"""The guide says what is so."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    "name",
    [
        "Answer",
        "Approve",
        "Call",
        "Rewrite",
        "Deny",
        "FileWatcher",
        "HookAgent",
        "MissingHook",
        "ModelError",
        "Moment",
        "Retries",
        "Reply",
        "hook",
        "load_session",
        "wake",
    ],
)
def test_the_names_in_it_exist(name: str) -> None:
    assert re.search(rf"\b{name}\b", GUIDE)
    assert hasattr(agents, name)


def test_it_counts_the_demonstrations() -> None:
    examples = Path(__file__).parents[2] / "examples"
    found = [path for path in examples.glob("*.py") if path.stem not in {"stage", "show"}]

    assert 11 == len(found)
    assert "eleven demonstrations" in GUIDE
