"""Files beside a session's own are kept as they are at last, whenever they are written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from harken import clock
from harken.context.chains import recall
from harken.store import SessionRow
from support.sessions import conversation

from .conftest import Import, age


def _kept(repo: Any, session: str) -> dict[str, bytes]:
    row: SessionRow = repo.store.find_session(session)
    (source,) = recall(row).values()
    return {name: repo.store.get(side.artifact) for name, side in source.side_files.items()}


def _session(folder: Path) -> Path:
    file = folder / "aaa.jsonl"
    file.write_bytes(conversation("aaa").data)
    age(file, 100)
    results = folder / "aaa" / "tool-results"
    results.mkdir(parents=True)
    return results


def test_a_side_file_that_is_completed_after_the_import_is_kept_whole(
    repo: Any, take_in: Import, tmp_path: Path
) -> None:
    result = _session(tmp_path) / "x.txt"
    result.write_bytes(b"half")
    take_in(tmp_path)

    result.write_bytes(b"half and half")
    age(result, 100)  # what a program says of the time does not hide the change
    take_in(tmp_path)

    assert {"aaa/tool-results/x.txt": b"half and half"} == _kept(repo, "aaa")


def test_a_side_file_that_comes_after_the_import_is_kept(repo: Any, take_in: Import, tmp_path: Path) -> None:
    results = _session(tmp_path)
    take_in(tmp_path)
    assert {} == _kept(repo, "aaa")

    (results / "y.txt").write_bytes(b"late")
    take_in(tmp_path)

    assert {"aaa/tool-results/y.txt": b"late"} == _kept(repo, "aaa")


def test_a_side_file_that_comes_late_tells_all_the_same_which_call_started_an_agent(
    repo: Any, take_in: Import, tmp_path: Path
) -> None:
    folder = tmp_path / "aaa" / "subagents"
    folder.mkdir(parents=True)
    (tmp_path / "aaa.jsonl").write_bytes(conversation("aaa", 1).data)
    (folder / "agent-b1.jsonl").write_bytes(conversation("aaa", 3, agent="b1", salt="b1").data)
    for path in (tmp_path / "aaa.jsonl", folder / "agent-b1.jsonl"):
        age(path, 100)
    before = take_in(tmp_path)["aaa/b1"]
    assert "" == repo.store.chain(before.tip)[-1].spawned_from["call_id"]

    (folder / "agent-b1.meta.json").write_text('{"toolUseId":"toolu_7"}')
    after = take_in(tmp_path)["aaa/b1"]

    assert ("unchanged", before.tip) == (after.status, after.tip)
    assert "toolu_7" == repo.store.chain(after.tip)[-1].spawned_from["call_id"]


def test_a_session_whose_side_files_are_old_is_not_read_again(repo: Any, take_in: Import, tmp_path: Path) -> None:
    (_session(tmp_path) / "x.txt").write_bytes(b"whole")
    later = clock.now() + 60_000_000
    take_in(tmp_path, now=lambda: later)
    before = repo.store.find_session("aaa")

    take_in(tmp_path, now=lambda: later + 1)

    assert before == repo.store.find_session("aaa")


def test_a_side_file_that_changes_while_it_is_read_is_read_again(
    repo: Any, take_in: Import, tmp_path: Path, monkeypatch: Any
) -> None:
    result = _session(tmp_path) / "x.txt"
    result.write_bytes(b"half")
    real, written = os.pread, []

    def pread(handle: int, size: int, offset: int) -> bytes:
        data = real(handle, size, offset)
        if data == b"half" and not written:
            written.append(result.write_bytes(b"half and half"))
        return data

    monkeypatch.setattr(os, "pread", pread)
    take_in(tmp_path)

    assert {"aaa/tool-results/x.txt": b"half and half"} == _kept(repo, "aaa")
