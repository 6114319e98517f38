"""Imports that meet each other, or a writer, half-way. The delay is certain: the other's work is done just then."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.runtimes.base import Runtime
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult
from harken.runtimes.sources import Reading, Resumption, read_source
from support.sessions import conversation

from .conftest import age

CLAUDE = runtimes.get("claude-code")


def take(store: Any, path: Path, **options: Any) -> list[ImportResult]:
    return list(Importer(store, [CLAUDE], **options).run([path]))


def meanwhile(then: Callable[[], object]) -> Callable[[Path, Resumption | None], Reading]:
    """A reader that has read everything when `then` happens, once."""
    waiting = [then]

    def read(path: Path, since: Resumption | None) -> Reading:
        said = list(read_source(path, [CLAUDE], since))
        while waiting:
            waiting.pop()()
        yield from said

    return read


def during_scan(then: Callable[[], object], *, at: int = 1) -> Runtime:
    """Claude Code, but `then` happens while a part is being scanned."""
    calls = 0

    def scan(data: bytes, state: bytes) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            then()
        return CLAUDE.read.scan(data, state)

    import msgspec

    return msgspec.structs.replace(CLAUDE, read=msgspec.structs.replace(CLAUDE.read, scan=scan))


class TestTwoImports:
    def test_one_that_read_early_and_lands_late_takes_nothing_back(self, repo: Any, tmp_path: Path) -> None:
        """#42"""
        path = tmp_path / "aaa.jsonl"
        lines = conversation("aaa", 6).lines
        path.write_bytes(b"".join(lines[:8]))

        def the_faster_one() -> None:
            path.write_bytes(b"".join(lines))
            with harken.open(repo.store.location) as other:
                take(other.store, path)

        (late,) = take(repo.store, path, read=meanwhile(the_faster_one))

        assert b"".join(lines) == repo.materialize("aaa", stop="root").bytes
        assert ("unchanged", repo.show("aaa").id) == (late.status, late.tip)

    def test_two_files_of_one_session_imported_at_once_are_both_listed(self, repo: Any, tmp_path: Path) -> None:
        """#42"""
        paths = [tmp_path / name / "aaa.jsonl" for name in ("one", "two")]
        for number, path in enumerate(paths, 2):
            path.parent.mkdir()
            path.write_bytes(conversation("aaa", number, salt=path.parent.name).data)

        def the_other() -> None:
            with harken.open(repo.store.location) as other:
                take(other.store, paths[1])

        take(repo.store, paths[0], read=meanwhile(the_other))

        assert paths[1].read_bytes() == repo.materialize("aaa", stop="root").bytes
        assert paths[0].read_bytes() == repo.materialize("aaa~1", stop="root").bytes

    def test_a_file_that_others_keep_importing_is_given_up_for_now(self, repo: Any, tmp_path: Path) -> None:
        path = tmp_path / "aaa.jsonl"
        session = conversation("aaa", 2)
        path.write_bytes(session.data)

        def read(path: Path, since: Resumption | None) -> Reading:
            said = list(read_source(path, [CLAUDE], since))
            session.prompt("and on")
            path.write_bytes(session.data)
            with harken.open(repo.store.location) as other:
                take(other.store, path)
            yield from said

        results = take(repo.store, path, read=read)

        assert ["failed"] == [result.status for result in results]
        assert session.data == repo.materialize("aaa", stop="root").bytes


class TestAWriter:
    @pytest.mark.parametrize("at", [1, 2, 3])
    def test_a_file_rewritten_while_it_is_read_never_becomes_a_splice(
        self, repo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
    ) -> None:
        """#41"""
        monkeypatch.setattr("harken.runtimes.sources.PART", 4000)
        monkeypatch.setattr("harken.runtimes.files.CHUNK", 1000)
        monkeypatch.setattr("harken.runtimes.importer.BATCH", 4000)
        path = tmp_path / "aaa.jsonl"
        old, new = (conversation("aaa", 30, salt=salt).data for salt in ("x", "y"))
        path.write_bytes(old)
        age(path)
        runtime = during_scan(lambda: path.write_bytes(new), at=at)

        list(Importer(repo.store, [runtime]).run([path]))

        (row,) = repo.store.sessions()
        assert new == repo.materialize("aaa", stop="root").bytes
        for tip in row.older:
            assert old.startswith(repo.materialize(repo.commit(tip), stop="root").bytes)

    def test_a_rewrite_within_the_same_tick_is_seen_too(self, repo: Any, tmp_path: Path) -> None:
        """#41: same size, same time, same inode."""
        path = tmp_path / "aaa.jsonl"
        old, new = (conversation("aaa", 3, salt=salt).data for salt in ("x", "y"))
        path.write_bytes(old)
        stamp = path.stat().st_mtime_ns

        def rewrite() -> None:
            path.write_bytes(new)
            os.utime(path, ns=(stamp, stamp))

        list(Importer(repo.store, [during_scan(rewrite)]).run([path]))

        assert new == repo.materialize("aaa", stop="root").bytes

    def test_a_file_that_is_rewritten_all_the_time_is_a_failure_of_its_own(self, repo: Any, tmp_path: Path) -> None:
        path, other = tmp_path / "aaa.jsonl", tmp_path / "bbb.jsonl"
        path.write_bytes(conversation("aaa").data)
        other.write_bytes(conversation("bbb").data)
        turns = iter(range(100))

        def read(path: Path, since: Resumption | None) -> Reading:
            def rewrite() -> None:
                if path.name == "aaa.jsonl":
                    path.write_bytes(conversation("aaa", salt=str(next(turns))).data)

            return read_source(path, [during_scan(rewrite)], since)

        results = list(Importer(repo.store, [CLAUDE], read=read).run([path, other]))

        assert {"aaa.jsonl": "failed", "bbb.jsonl": "new"} == {Path(r.source).name: r.status for r in results}

    def test_a_file_that_only_grows_while_it_is_read_is_kept_as_it_was(self, repo: Any, tmp_path: Path) -> None:
        path = tmp_path / "aaa.jsonl"
        lines = conversation("aaa", 4).lines
        path.write_bytes(b"".join(lines[:6]))

        def grow() -> None:
            path.write_bytes(b"".join(lines))

        (result,) = Importer(repo.store, [during_scan(grow)]).run([path])

        assert ("new", b"".join(lines[:6])) == (result.status, repo.materialize("aaa", stop="root").bytes)
        (result,) = take(repo.store, path)
        assert ("grown", b"".join(lines)) == (result.status, repo.materialize("aaa", stop="root").bytes)


class TestTheStoredPrefix:
    def edited(self, data: bytes) -> bytes:
        """The same length, another answer in the middle."""
        half = len(data) // 2
        return data[:half] + data[half:].replace(b"answer", b"ANSWER", 1)

    def test_an_edit_in_the_middle_is_seen(self, repo: Any, tmp_path: Path) -> None:
        """#43"""
        path = tmp_path / "aaa.jsonl"
        data = conversation("aaa", 400).data
        path.write_bytes(data)
        age(path, 100)
        take(repo.store, path)
        path.write_bytes(self.edited(data))
        age(path, 50)

        (result,) = take(repo.store, path)

        assert "rewritten" == result.status
        assert self.edited(data) == repo.materialize("aaa", stop="root").bytes
        assert data == repo.materialize("aaa~1", stop="root").bytes

    def test_an_edit_in_the_middle_of_a_file_that_also_grew_is_seen(self, repo: Any, tmp_path: Path) -> None:
        """#43: what was stored then was a version that never existed."""
        path = tmp_path / "aaa.jsonl"
        session = conversation("aaa", 400)
        path.write_bytes(session.data)
        age(path, 100)
        take(repo.store, path)
        session.prompt("more")
        path.write_bytes(self.edited(session.data))
        age(path, 50)

        (result,) = take(repo.store, path)

        assert "rewritten" == result.status
        assert self.edited(session.data) == repo.materialize("aaa", stop="root").bytes

    def test_a_file_that_was_only_touched_is_unchanged(self, repo: Any, tmp_path: Path) -> None:
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(conversation("aaa", 4).data)
        age(path, 100)
        (first,) = take(repo.store, path)
        age(path, 50)

        (again,) = take(repo.store, path)

        assert ("unchanged", first.tip) == (again.status, again.tip)

    def test_a_file_with_a_time_in_the_future_is_settled(self, repo: Any, tmp_path: Path) -> None:
        """#51"""
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(conversation("aaa", 4).data)
        age(path, -3600)
        take(repo.store, path)

        def read(path: Path, since: Resumption | None) -> Reading:
            raise AssertionError("it is read again")

        (again,) = take(repo.store, path, read=read)

        assert "unchanged" == again.status


class TestGone:
    """A file that goes away while it is imported fails alone."""

    def run(self, repo: Any, folder: Path, gone: Path, then: Callable[[Path], object]) -> dict[str, str]:
        for name in ("bbb", "ccc"):
            (folder / f"{name}.jsonl").write_bytes(conversation(name, 4).data)

        def read(path: Path, since: Resumption | None) -> Reading:
            try:
                yield from read_source(path, [CLAUDE], since)
            finally:
                if path == gone:
                    then(path)

        results = Importer(repo.store, [CLAUDE], read=read).run(sorted(folder.glob("*.jsonl*")))
        return {Path(result.source).name: result.status for result in results}

    def test_between_being_read_and_being_kept(
        self, repo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An overlong line is read again when it is kept."""
        monkeypatch.setattr("harken.runtimes.sources.LINE_LIMIT", 3000)
        monkeypatch.setattr("harken.formats.kit.jsonl.MAX_LINE", 2999)
        monkeypatch.setattr("harken.runtimes.files.CHUNK", 700)
        gone = tmp_path / "aaa.jsonl"
        gone.write_bytes(conversation("aaa", 4).data + b'{"type":"x","t":"' + b"a" * 9000 + b'"}\n')

        found = self.run(repo, tmp_path, gone, Path.unlink)

        assert {"aaa.jsonl": "failed", "bbb.jsonl": "new", "ccc.jsonl": "new"} == found

    def test_after_it_could_not_be_read(self, repo: Any, tmp_path: Path) -> None:
        """Failures of archives are remembered, by what `stat` says of them."""
        gone = tmp_path / "aaa.jsonl.zst"
        gone.write_bytes(b"(\xb5/\xfd no zstd")

        found = self.run(repo, tmp_path, gone, Path.unlink)

        assert {"aaa.jsonl.zst": "failed", "bbb.jsonl": "new", "ccc.jsonl": "new"} == found
