"""What the guides show works as it stands there, and they explain every name that is promised."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import harken
from harken.store.arguments import public_methods
from support.fake_runtime import NOTES, STEPS, install
from support.stream_lines import init, result, says

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (GUIDES / name).read_text("utf-8"), re.S)


def test_the_first_example_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}

    exec(compile(blocks("context.md")[0], "context.md", "exec"), names)

    repo = names["repo"]
    assert 3 == len(repo.store.commits())  # type: ignore[attr-defined]
    assert 3 == repo.materialize("review", stop="root").message_count  # type: ignore[attr-defined]
    repo.close()  # type: ignore[attr-defined]


def test_the_guide_for_programs_runs_from_its_first_line_to_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "steps.json").write_text(json.dumps([init(), says("Fixed."), result("Fixed.")]))
    monkeypatch.setenv("PATH", f"{install(tmp_path / 'bin')}:{os.environ['PATH']}")
    monkeypatch.setenv(STEPS, str(tmp_path / "steps.json"))
    monkeypatch.setenv(NOTES, str(tmp_path / "notes.json"))
    names: dict[str, object] = {"__name__": "guide"}

    for number, code in enumerate(blocks("embedding.md")):
        exec(compile(code, f"embedding.md, block {number}", "exec"), names)

    out = capsys.readouterr().out
    assert "not_found" in out
    assert "Fixed." in out


def test_the_guide_for_programs_needs_no_inner_module() -> None:
    imported = set(re.findall(r"^ *(?:from|import) (harken[\w.]*)", "\n".join(blocks("embedding.md")), re.M))

    assert {"harken"} == imported


@pytest.mark.parametrize("name", sorted(set(harken.__all__) - {"__version__"}))
def test_every_promised_name_is_explained_and_used(name: str) -> None:
    assert re.search(rf"\b{name}\b", (GUIDES / "embedding.md").read_text("utf-8"))
    assert re.search(rf"\b{name}\b", "\n".join(blocks("embedding.md"))), "in code that the test above runs"


@pytest.mark.parametrize("name", [name for name, _ in public_methods(harken.Repo)])
def test_every_sentence_of_repo_is_in_the_guide(name: str) -> None:
    assert re.search(rf"`(repo\.)?{name}\b", (GUIDES / "embedding.md").read_text("utf-8"))


@pytest.mark.parametrize("subject", ["Threads, processes, fork", "Async", "Closing", "Following the store"])
def test_what_a_program_has_to_know_has_a_chapter(subject: str) -> None:
    assert f"\n## {subject}\n" in (GUIDES / "embedding.md").read_text("utf-8")
