"""The example of the guide for plug-in authors does what the guide says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.installing import install

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "plugins.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


@pytest.fixture
def quill(tmp_path: Path) -> dict[str, str]:
    """The package of the guide, installed; the answer is the environment it is in."""
    project, example, suite = (text for kind, text in BLOCK.findall(GUIDE.read_text()) if kind in ("toml", "python"))
    package = tmp_path / "project" / "harken_quill"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(example)
    (tmp_path / "project" / "pyproject.toml").write_text(project)
    (tmp_path / "test_quill.py").write_text(suite)
    installed = install(tmp_path / "project", tmp_path / "installed")
    return installed | {"HOME": str(tmp_path), "HARKEN_STORE": str(tmp_path / "store.db"), "LANG": "C.UTF-8"}


def call(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *words],
        env=environment,
        cwd=environment["HOME"],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert 0 == done.returncode, done.stdout[-6000:] + done.stderr
    return done.stdout


def test_the_example_passes_the_contracts(quill: dict[str, str]) -> None:
    assert " passed" in call(quill, "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "test_quill.py")


def test_its_sessions_are_imported_and_go_on_elsewhere_and_back(quill: dict[str, str], tmp_path: Path) -> None:
    lines = [("human", "Hello?"), ("model", "Hello."), ("human", "And?"), ("model", "That is all.")]
    (tmp_path / ".quill").mkdir()
    with (tmp_path / ".quill" / "one.jsonl").open("w") as file:
        for number, (who, text) in enumerate(lines):
            file.write(json.dumps({"quill": 1, "id": f"m{number}", "session": "one", "who": who, "text": text}) + "\n")

    imported = json.loads(call(quill, "harken", "import", "--runtime", "quill", "--json").splitlines()[0])
    there = json.loads(call(quill, "harken", "resume", "one", "--in", "codex", "--json"))
    call(quill, "harken", "import")
    back = json.loads(call(quill, "harken", "resume", there["session"], "--in", "quill", "--json"))

    assert ("one", "quill", 4, 2) == tuple(imported[key] for key in ("session", "runtime", "records", "commits"))
    written = map(json.loads, Path(back["path"]).read_text().splitlines())
    assert [text for _, text in lines] == [line["text"] for line in written]
