"""A watch looks at what the system says has changed, and at everything now and then."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import harken
from harken.runtimes.files import walk
from harken.runtimes.lookout import NOTICED, POLLED, SETTLED, WHOLE_LOOK, Lookout
from support.sessions import conversation

PATIENCE = 30.0
"""Seconds after which a notice is given up; it comes within some milliseconds."""


class Watched:
    """A folder that is watched, with a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.time, self.walks = folder, 0.0, 0
        self.lookout = Lookout(
            self._all,
            roots=lambda: [folder] if folder.exists() else [],
            suffixes=[".jsonl"],
            monotonic=lambda: self.time,
        )

    def _all(self) -> Iterator[Path]:
        self.walks += 1
        yield from (found for found in walk(self.folder, (".jsonl",)) if isinstance(found, Path))

    def look(self) -> set[str]:
        return {str(Path(str(found)).relative_to(self.folder)) for found in self.lookout.find()}

    def settle(self) -> None:
        """Everything was looked at, and looked at again when it was quiet."""
        self.look()
        self.time += SETTLED
        self.look()

    def look_until(self, found: Callable[[set[str]], bool]) -> set[str]:
        """Look until something is found; a notice comes when the system gets to it."""
        deadline = time.monotonic() + PATIENCE
        while not found(looked := self.look()):
            assert time.monotonic() < deadline, f"no notice came; the last look was at {looked}"
        return looked


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    folder = tmp_path / "projects"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.jsonl").write_text("{}\n")
    made = Watched(folder)
    yield made
    made.lookout.close()


class TestWithNotices:
    def test_everything_is_looked_at_twice_and_then_what_changes(self, watched: Watched) -> None:
        assert {"a.jsonl", "b.jsonl", "c.jsonl"} == watched.look()
        assert set() == watched.look()
        watched.time += SETTLED
        assert {"a.jsonl", "b.jsonl", "c.jsonl"} == watched.look()

        with (watched.folder / "b.jsonl").open("a") as file:
            file.write("{}\n")

        assert {"b.jsonl"} == watched.look_until(bool)
        assert (2, 0.0) == (watched.walks, watched.lookout.pause)

    def test_a_file_is_looked_at_until_it_has_been_quiet(self, watched: Watched) -> None:
        watched.settle()
        (watched.folder / "d.jsonl").write_text("{}\n")
        watched.look_until(bool)

        watched.time += SETTLED - 1
        assert {"d.jsonl"} == watched.look()
        watched.time += 1
        assert {"d.jsonl"} == watched.look()
        assert set() == watched.look()

    def test_files_in_a_folder_that_is_moved_there_are_found(self, watched: Watched, tmp_path: Path) -> None:
        (tmp_path / "new" / "deep").mkdir(parents=True)
        (tmp_path / "new" / "deep" / "x.jsonl").write_text("{}\n")
        watched.settle()

        (tmp_path / "new").rename(watched.folder / "new")

        assert {"new/deep/x.jsonl"} == watched.look_until(bool)

    @pytest.mark.parametrize("beside", ["a/tool-results/out.txt", "a.meta.json", "a.jsonl-wal"])
    def test_what_lies_beside_a_session_is_a_notice_of_it(self, watched: Watched, beside: str) -> None:
        (watched.folder / beside).parent.mkdir(parents=True, exist_ok=True)
        watched.settle()

        (watched.folder / beside).write_text("more")

        assert {"a.jsonl"} == watched.look_until(bool)

    def test_a_name_that_is_no_utf_8_is_found(self, watched: Watched) -> None:
        watched.settle()
        try:
            with open(os.fsencode(watched.folder) + b"/\xff.jsonl", "w") as file:
                file.write("{}\n")
        except OSError:  # a file system that has only UTF-8 has no such names
            return

        assert "\udcff.jsonl" in watched.look_until(bool)

    def test_a_file_that_is_gone_is_passed_over(self, watched: Watched) -> None:
        watched.settle()

        (watched.folder / "a.jsonl").unlink()
        (watched.folder / "z.jsonl").write_text("{}\n")

        assert {"z.jsonl"} == watched.look_until(bool)

    def test_a_folder_that_goes_and_comes_back_is_looked_at_whole(self, watched: Watched, tmp_path: Path) -> None:
        watched.settle()
        watched.folder.rename(tmp_path / "away")
        assert set() == watched.look()

        (tmp_path / "away").rename(watched.folder)
        (watched.folder / "d.jsonl").write_text("{}\n")

        assert {"a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl"} == watched.look()

    def test_everything_is_looked_at_now_and_then_all_the_same(self, watched: Watched) -> None:
        watched.settle()

        watched.time += WHOLE_LOOK - 1
        assert set() == watched.look()
        watched.time += 1
        assert {"a.jsonl", "b.jsonl", "c.jsonl"} == watched.look()

    def test_the_less_often_the_more_there_is(self, watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
        many = int(2 * WHOLE_LOOK / NOTICED)
        monkeypatch.setattr(watched.lookout, "_find_all", lambda: [watched.folder / "a.jsonl"] * many)
        watched.settle()

        watched.time += 2 * WHOLE_LOOK - 1
        assert set() == watched.look()
        watched.time += 1
        assert {"a.jsonl"} == watched.look()

    def test_what_failed_is_looked_at_again_until_it_was(self, watched: Watched) -> None:
        watched.settle()

        watched.lookout.look_again(str(watched.folder / "b.jsonl"))

        assert {"b.jsonl"} == watched.look()
        assert set() == watched.look()

    def test_trouble_with_the_store_has_everything_looked_at_again(self, watched: Watched) -> None:
        watched.settle()

        watched.lookout.look_again()

        assert {"a.jsonl", "b.jsonl", "c.jsonl"} == watched.look()

    def test_a_look_that_was_broken_off_is_made_again(self, watched: Watched) -> None:
        next(watched.lookout.find())

        assert {"a.jsonl", "b.jsonl", "c.jsonl"} == watched.look()

    def test_a_file_that_was_named_is_looked_at_each_time(self, tmp_path: Path) -> None:
        file = tmp_path / "session"
        file.write_text("{}\n")
        lookout = Lookout(lambda: [file], roots=lambda: [file], suffixes=[".jsonl"])

        assert [[file]] * 3 == [list(lookout.find()) for _ in range(3)]
        lookout.close()


class TestWithoutNotices:
    @pytest.fixture(autouse=True)
    def none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "watchfiles._rust_notify", None)

    def test_everything_is_looked_at_each_time(self, watched: Watched) -> None:
        assert [{"a.jsonl", "b.jsonl", "c.jsonl"}] * 3 == [watched.look() for _ in range(3)]
        assert 3 * POLLED == watched.lookout.pause

    def test_what_failed_needs_no_note(self, watched: Watched) -> None:
        watched.lookout.look_again("b.jsonl")

        assert {"a.jsonl", "b.jsonl", "c.jsonl"} == watched.look()


@pytest.mark.parametrize("poll", [False, True])
def test_a_session_that_grows_is_kept_whole(tmp_path: Path, poll: bool) -> None:
    home = tmp_path / ".claude" / "projects" / "-work"
    home.mkdir(parents=True)
    path, lines = home / "aaa.jsonl", conversation("aaa", 3).lines
    path.write_bytes(b"".join(lines[:4]))
    os.utime(path, (1e9, 1e9))
    import threading

    stop = threading.Event()
    with harken.open(tmp_path / "store.db") as repo:
        for told in repo.watch(environ={"HOME": str(tmp_path)}, interval=0.01, poll=poll, stop=stop):
            if told.status == "new":
                with path.open("ab") as file:
                    file.write(b"".join(lines[4:]))
                os.utime(path, (1e9 + 100, 1e9 + 100))
            elif told.total_bytes == path.stat().st_size:
                stop.set()

        assert path.read_bytes() == repo.materialize("aaa", stop="root").bytes
