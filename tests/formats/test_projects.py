"""Which project a session belongs to."""

from __future__ import annotations

import json

from harken.formats.projects import project_of
from support.claude_lines import dump, user
from support.rollouts import Rollout


def test_it_is_the_folder_of_the_first_record_that_names_one() -> None:
    records = dump(
        {"type": "summary", "summary": 'a "cwd" in words'},
        user("U", None, "hi", cwd="/work/one"),
        user("V", "U", "hi", cwd="/work/two"),
    )

    assert "/work/one" == project_of(records)
    assert "/work/codex" == project_of(Rollout(cwd="/work/codex").user("hi").data)


def test_a_folder_in_a_tools_arguments_is_not_the_sessions() -> None:
    line = {"type": "assistant", "message": {"content": [{"type": "tool_use", "input": {"cwd": "/elsewhere"}}]}}

    assert "" == project_of(json.dumps(line).encode() + b"\n")


def test_what_cannot_be_read_names_no_folder() -> None:
    broken = b'{"cwd":"/a"\n{"cwd":3}\n{"cwd":""}\n["cwd"]\n'

    assert "" == project_of(broken)
    assert "/b" == project_of(broken + b'{"cwd":"/b"}')
    assert "\N{REPLACEMENT CHARACTER}" == project_of(b'{"cwd":"\\ud800"}')
