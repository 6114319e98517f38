"""Files whose names are not UTF-8, and sessions whose ids are no text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from support.sessions import ClaudeSession

from .conftest import Import, age

ODD = os.fsdecode(b"caf\xe9.jsonl")


def session(name: str, *words: str) -> ClaudeSession:
    made = ClaudeSession(name, salt=words[0])
    for word in words:
        made.prompt(word)
        made.answer(f"{word}!")
    return made


class TestAFileWhoseNameIsNotUtf8:
    @pytest.mark.parametrize("beside", [0, 20], ids=["alone", "among those that workers read"])
    def test_is_imported_as_any_other(self, repo: Any, take_in: Import, tmp_path: Path, beside: int) -> None:
        folder = tmp_path / "files"
        folder.mkdir()
        (folder / ODD).write_bytes(session("aaa", "one", "two").data)
        for number in range(beside):
            (folder / f"{number}.jsonl").write_bytes(session(f"s{number}", "one").data)

        taken = take_in(folder)

        assert {"new"} == {result.status for result in taken.values()}
        row = repo.store.find_session("aaa")
        assert (str(folder / ODD), 4) == (row.source, row.messages)

    def test_is_known_again_and_may_grow(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        path = tmp_path / "files" / ODD
        path.parent.mkdir()
        path.write_bytes(session("aaa", "one").data)
        age(path)
        take_in(path.parent)

        again = take_in(path.parent)["aaa"]
        path.write_bytes(session("aaa", "one", "two").data)
        grown = take_in(path.parent)["aaa"]

        assert ("unchanged", "grown", 4) == (again.status, grown.status, repo.store.find_session("aaa").messages)

    def test_that_cannot_be_read_fails_alone(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        folder = tmp_path / "files"
        folder.mkdir()
        broken = folder / f"{ODD}.zst"
        broken.write_bytes(b"(\xb5/\xfd no zstd")
        age(broken)
        for name in ("aaa", "zzz"):
            (folder / f"{name}.jsonl").write_bytes(session(name, "one").data)

        for _ in range(2):
            take_in(folder)

            assert ["aaa", "zzz"] == sorted(row.session for row in repo.store.sessions())

    def test_may_lie_in_a_folder_with_such_a_name(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        folder = tmp_path / os.fsdecode(b"\xff")
        folder.mkdir()
        (folder / "a.jsonl").write_bytes(session("aaa", "one").data)

        assert {"aaa": "new"} == {name: result.status for name, result in take_in(folder).items()}


class TestASessionIdThatIsNoText:
    def test_is_not_taken_for_another_one(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        folder = tmp_path / "files"
        folder.mkdir()
        for name, odd in (("b", "\ud800"), ("c", "\ud801")):
            (folder / f"{name}.jsonl").write_bytes(session(odd, name).data)

        taken = take_in(folder)

        assert ["b", "c"] == sorted(name[0] for name in taken)
        assert {"new"} == {result.status for result in taken.values()}
        assert {"b", "c"} == {row.title for row in repo.store.sessions()}
