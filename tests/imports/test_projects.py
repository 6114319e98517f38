"""The folder that a session worked in, as its first record says that names one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from harken.context import project_of
from harken.context.chains import recall, remember
from harken.formats import claude_code, codex
from harken.runtimes.scans import line_scan
from support.claude_lines import assistant, user
from support.rollouts import Rollout

from .conftest import Import, age

SILENT = {"type": "summary", "summary": 'they said {"cwd": "/not/this"}', "leafUuid": "u1"}


def data_of(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def session(folder: Any = "/work/one", *, then: str = "/work/two") -> bytes:
    first, second = user("u1", None, "hello") | {"cwd": folder}, assistant("a1", "u1", "hi", "m1") | {"cwd": then}
    return data_of(SILENT, first, second)


def projects(repo: Any) -> dict[str, str]:
    return {row.session: project_of(row) for row in repo.sessions()}


def test_it_is_the_folder_of_the_first_record_that_names_one() -> None:
    assert "/work/one" == claude_code.scan(session()).project
    assert "/tmp" == codex.scan(Rollout().user("hello").data).project
    assert "/turn" == codex.scan(Rollout(cwd=None).add("turn_context", cwd="/turn").user("hello").data).project
    assert "/line" == line_scan("r", lambda line: [], lambda record: "")(data_of({}, {"cwd": "/line"}), b"").project


def test_what_is_no_text_names_none() -> None:
    assert "/work/two" == claude_code.scan(session(7)).project
    assert "" == claude_code.scan(session(None, then="")).project
    assert "/\N{REPLACEMENT CHARACTER}" == claude_code.scan(session("/\ud800")).project


def test_the_row_keeps_it_and_growth_does_not_change_it(repo: Any, take_in: Import, tmp_path: Path) -> None:
    path = tmp_path / "home" / "S.jsonl"
    path.parent.mkdir()
    path.write_bytes(session())
    take_in(path.parent)
    with path.open("ab") as file:
        file.write(data_of(user("u2", "a1", "and now?", 5) | {"cwd": "/work/three"}))

    assert "grown" == take_in(path.parent)["S"].status

    assert {"S": "/work/one"} == projects(repo)


def test_a_store_from_before_is_told_by_a_look_at_the_file(repo: Any, take_in: Import, tmp_path: Path) -> None:
    path = tmp_path / "home" / "S.jsonl"
    path.parent.mkdir()
    path.write_bytes(session())
    age(path)
    take_in(path.parent)
    (row,) = repo.sessions()
    before = {source: msgspec.structs.replace(known, project="") for source, known in recall(row).items()}
    with repo.store.write() as writer:  # as an earlier Harken wrote it: five entries to a source, and none of these
        state = remember(before).replace(b',""]}}\n', b"]}}\n")
        writer.save_session(msgspec.structs.replace(row, state=state))
    assert {"S": ""} == projects(repo)

    take_in(path.parent, verify=True)

    assert {"S": "/work/one"} == projects(repo)
