"""Templates: a named TOML file that says what kind of agent to start."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from harken.errors import BadRequest, NotFound
from harken.runtimes import Template
from harken.runtimes.claude_code.launch import LAUNCH as CLAUDE_CODE
from harken.runtimes.codex.launch import LAUNCH as CODEX
from harken.runtimes.templates import find_template, parse_template

REVIEWER = """\
runtime = "claude-code"
model = "opus"
system_prompt = "You review."
arguments = ["--max-turns", "3"]
"""


def test_a_template_is_found_by_name_and_by_path(tmp_path: Path) -> None:
    (tmp_path / "reviewer.toml").write_text(REVIEWER)
    found = find_template("reviewer", tmp_path)
    assert found == find_template(str(tmp_path / "reviewer.toml"), Path("/nowhere"))
    assert (found.name, found.runtime, found.model) == ("reviewer", "claude-code", "opus")


def test_a_missing_template_names_those_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "reviewer.toml").write_text(REVIEWER)
    with pytest.raises(NotFound) as caught:
        find_template("reviwer", tmp_path)
    assert caught.value.hint == "there are: reviewer"


@pytest.mark.parametrize("name", ["../reviewer", "a/b", "", ".."])
def test_a_name_cannot_leave_the_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequest):
        find_template(name, tmp_path)


@pytest.mark.parametrize("text", ["runtime = 3", "model = 'x'", "runtime = 'codex'\nmodle = 'x'", "= broken", "\xff"])
def test_a_template_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_template("t", text.encode("latin-1"))


def test_claude_code_is_told_with_options() -> None:
    said = CLAUDE_CODE.template(parse_template("reviewer", REVIEWER.encode()), ["-p", "hi"])
    assert said == ["--model", "opus", "--system-prompt", "You review.", "--max-turns", "3", "-p", "hi"]


def test_codex_is_told_with_settings_whose_values_are_toml() -> None:
    hard = 'a "quoted" line\nwith é, \\ and \x7f'
    said = CODEX.template(Template(name="t", runtime="codex", append_system_prompt=hard), ["exec", "hi"])
    assert (said[:2], said[3:]) == (["exec", "-c"], ["hi"])
    assert tomllib.loads(said[2]) == {"developer_instructions": hard}
