"""The guide says what is so."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

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


@pytest.mark.parametrize("code", blocks("python"))
def test_the_code_in_it_compiles(code: str) -> None:
    compile(code, "guide", "exec")


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
