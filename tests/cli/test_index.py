"""`harken index`, and the commands behind which the index follows."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.index import StoreIndex, connecting
from harken.repo import Repo
from support.claude_lines import assistant, dump, user
from support.contexts import chain, keep, turn

Run = Any


def session_file(folder: Path, *more: str) -> Path:
    """A session of Claude Code, with an answer to each further prompt."""
    records = [user("u0", None, "where is the walrus"), assistant("a0", "u0", "in the harbour", "m0")]
    for number, words in enumerate(more, 1):
        records += [user(f"u{number}", f"a{number - 1}", words, number)]
        records += [assistant(f"a{number}", f"u{number}", f"about {words}", f"m{number}", number)]
    path = folder / "S.jsonl"
    path.write_bytes(dump(*records))
    return path


def words_in(where: Path) -> list[str]:
    return sorted(path.name for path in where.parent.iterdir() if "-index" in path.name)


class TestTheCommand:
    def test_brings_the_index_up_to_date_and_says_what_it_holds(self, repo: Repo, run: Run) -> None:
        chain(repo, [1, 2])
        (before,) = run("index", "--status", "--json").json
        (after,) = run("index", "--json").json

        assert (0, before["last"], 0) == (before["at"], before["behind"], before["messages"])
        assert (after["last"], 0, 8) == (after["at"], after["behind"], after["messages"])
        assert after["taken"] == before["behind"] > 0

    def test_builds_it_anew_on_request(self, repo: Repo, run: Run) -> None:
        chain(repo, [1, 2])
        (first,) = run("index", "--json").json
        (second,) = run("index", "--rebuild", "--json").json

        assert ("", "asked for") == (first["rebuilt"], second["rebuilt"])
        assert first["messages"] == second["messages"]

    def test_fits_a_narrow_window(self, repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        chain(repo, [1])

        monkeypatch.setenv("COLUMNS", "60")
        lines = run("index", "--status").lines

        assert 60 >= max(map(len, lines))
        assert str(repo.index.path) == "".join(line[10:] for line in lines[:-4])
        lines = [line for line in lines if not line.startswith(" ")]
        assert ["file", "size", "sessions", "messages", "changes"] == [line.split()[0] for line in lines]
        assert "changes   0 of 2 (2 behind)" == lines[-1]

    def test_looking_and_building_anew_exclude_each_other(self, repo: Repo, run: Run) -> None:
        done = run("index", "--status", "--rebuild")

        assert 2 == done.code
        assert "give one of the two" in done.err

    def test_what_cannot_be_read_is_named(self, repo: Repo, run: Run) -> None:
        repo.checkpoint(b"dot dash", format="morse-v1", session_id="s")

        done = run("index", "--json")
        (problem,) = done.json[0]["problems"]

        assert ("s", "morse-v1 cannot be read here") == (problem["session"], problem["why"])
        assert "of s: morse-v1 cannot be read here" in run("index").err

    @pytest.mark.parametrize("asked", [[], ["--status"], ["--rebuild"], ["--json"]])
    def test_what_is_damaged_is_an_error_behind_the_rest(
        self, repo: Repo, run: Run, where: Path, asked: list[str]
    ) -> None:
        keep(repo, turn(1), session_id="s")
        repo.index.catch_up()
        repo.close()
        with contextlib.closing(sqlite3.connect(where)) as damaged, damaged:
            assert 1 == damaged.execute("DELETE FROM loose").rowcount
        where.with_name(where.name + "-index").unlink()
        run("search", "question")
        done = run("index", *asked)

        assert (9, True) == (done.code, bool(done.out))
        assert "this is not all: 1 part of the store cannot be read" in done.err

    def test_what_cannot_be_read_is_told_by_whoever_asks(self, repo: Repo, run: Run) -> None:
        repo.checkpoint(b"dot dash", format="morse-v1", session_id="s")

        (*_, rest) = run("search", "question", "--json").json

        assert 1 == rest["missing"]
        for asked in (["search", "question"], ["sql", "SELECT 1"]):
            assert "1 part of the store cannot be read" in run(*asked).err

    def test_a_folder_in_its_place_is_an_error_that_says_so(self, repo: Repo, run: Run, where: Path) -> None:
        repo.checkpoint(b"dot dash", format="morse-v1", session_id="s")
        where.with_name(where.name + "-index").mkdir()

        for asked in ("--status", "--rebuild"):
            assert (4, True) == ((done := run("index", asked)).code, "-index is no index of Harken's" in done.err)
        assert 0 == run("search", "question").code


class TestItFollows:
    def test_behind_an_import(self, run: Run, where: Path, tmp_path: Path) -> None:
        (*_, last) = run("import", str(session_file(tmp_path)), "--json").json
        (status,) = run("index", "--status", "--json").json

        assert "" == last["report"]["index"]
        assert (0, 3) == (status["behind"], status["messages"])

    def test_unless_it_is_told_not_to(self, run: Run, where: Path, tmp_path: Path) -> None:
        run("import", str(session_file(tmp_path)), "--no-index")

        assert [] == words_in(where)

    def test_a_dry_run_makes_none(self, run: Run, where: Path, tmp_path: Path) -> None:
        run("import", str(session_file(tmp_path)), "--dry-run")

        assert [] == words_in(where)

    def test_an_import_whose_index_fails_is_done_and_says_so(
        self, run: Run, where: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise OSError("no space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(StoreIndex, "catch_up", fail)
            done = run("import", str(session_file(tmp_path)))

        assert 0 == done.code
        assert "the index is behind: no space left on device" in done.err
        assert 1 == len(run("sessions").lines)


ASKED = (["search", "question"], ["sql", "SELECT role FROM messages"], ["stats", "--by", "session"])
TABLES = ["export", "--to", "parquet", "tables", "--force"]


class TestWhereTheStoreIsDamaged:
    @pytest.mark.parametrize("table", ["changes", "commits", "loose", "artifacts"])
    @pytest.mark.parametrize("asked", [*ASKED, TABLES], ids=lambda words: words[0])
    def test_what_there_is_comes_before_the_error(
        self, repo: Repo, run: Run, where: Path, asked: list[str], table: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(where.parent)
        for number in range(4):
            keep(repo, turn(number), session_id=f"s{number}")
        repo.close()
        with contextlib.closing(sqlite3.connect(where)) as damaged, damaged:
            what = "data = zeroblob(length(data))" if table == "loose" else "sum = x'00000000'"
            damaged.execute(f"UPDATE {table} SET {what} WHERE rowid = (SELECT min(rowid) FROM {table})")
        done, as_json = run(*asked), run(*asked, "--json")

        assert (9, 9) == (done.code, as_json.code)
        assert ("" != done.out) and ([] != as_json.json)
        assert "error: " in done.err
        assert "corrupt" == json.loads(as_json.err.splitlines()[-1])["error"]["code"]


class TestWhereThereIsNoRoom:
    """One rule: what is not whole is an error behind what there is."""

    @pytest.fixture
    def no_room(self, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
        """SQLite can make the index's file no bigger than its tables need, or than it is."""
        empty = tmp_path_factory.mktemp("empty") / "store.db"
        with harken.open(empty) as store:
            store.index.catch_up()
        with contextlib.closing(sqlite3.connect(f"{empty}-index")) as index:
            ((needed,),) = index.execute("PRAGMA page_count")

        class FullDisk(sqlite3.Connection):
            def __init__(self, path: Path | str, **how: Any) -> None:
                super().__init__(path, **how)
                if str(path).endswith("-index"):
                    self.execute(f"PRAGMA max_page_count = {needed}")

        monkeypatch.setitem(connecting.HOW, "factory", FullDisk)

    @pytest.mark.usefixtures("no_room")
    @pytest.mark.parametrize("last", [1, 2])
    def test_the_answer_is_whole_and_comes_from_memory(self, repo: Repo, run: Run, last: int) -> None:
        for number in range(last):
            chain(repo, range(150 * number, 150 * number + 150))
            asked = run("sql", "SELECT count(*) AS n FROM messages WHERE role = 'human'", "--json")

        assert (0, [{"n": 150 * last}]) == (asked.code, asked.json)
        assert "the index is held in memory, since its file cannot be written: no room to write" in asked.err
        (*hits, rest) = run("search", "question", "-n", "20", "--json").json
        assert (20, 0, True) == (len(hits), rest["behind"], "no room to write" in rest["problem"])
        assert 0 == run("search", "question").code
        done = run("stats", "--by", "day", "--json")
        assert (0, 0, True) == (done.code, json.loads(done.out)["behind"], "held in memory" in done.err)
        assert (0, False) == ((done := run("sessions")).code, "index" in done.err)

    @pytest.mark.usefixtures("no_room")
    @pytest.mark.parametrize("asked", ASKED, ids=lambda words: words[0])
    def test_what_cannot_be_held_in_memory_either_is_an_error_behind_what_there_is(
        self, repo: Repo, run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        chain(repo, [1])
        assert 0 == run("index").code
        chain(repo, range(2, 300))
        monkeypatch.setattr("harken.index.file.COPIED", 0)
        done, as_json = run(*asked), run(*asked, "--json")

        assert (1, 1) == (done.code, as_json.code)
        assert "error: this is not all: the index is behind the store by " in done.err
        assert ("harken_error", True) == (
            (error := json.loads(as_json.err)["error"])["code"],
            "no room to write" in error["message"],
        )
        assert ("" != done.out) and ([] != as_json.json)
