"""One bad row stops nothing else, and is said; a store that cannot be written to for now can be looked at."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

import harken
from harken.cli import main
from harken.errors import Corrupt, PartlyCorrupt
from harken.testing.repo import grow
from support.claude_lines import assistant, dump, user
from support.faults import Fault, run

WORKER = Path(__file__).parents[1] / "faults" / "looking_worker.py"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with two sessions, the newest commit of one of which is gone."""
    with harken.open(tmp_path / "store.db") as repo:
        for name in ("one", "two"):
            grow(repo, 3, session_id=name)
        tip = repo.commit("one").seal
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        assert 1 == connection.execute("DELETE FROM commits WHERE seal = ?", (bytes.fromhex(tip),)).rowcount
        connection.commit()
    return tmp_path / "store.db"


def test_one_lost_commit_costs_its_own_session_only(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with harken.open(path) as repo:
        with pytest.raises(PartlyCorrupt, match="1 of 2 sessions cannot be read: 'one'") as caught:
            repo.sessions()
        assert ["two"] == [row.session for row in caught.value.rest]
        assert 3 == len(repo.history("two"))
        with pytest.raises(Corrupt):
            repo.history("one")
    with pytest.raises(SystemExit) as end:
        main(["--store", str(path), "sessions", "--json"])
    said = capsys.readouterr()
    assert 9 == end.value.code
    assert "two" in said.out
    assert "'one'" in said.err


def test_a_commit_of_another_session_still_says_which_session_it_is_of(path: Path) -> None:
    with harken.open(path) as repo:
        commits = repo.history("two")
        lost = next(commit for commit in repo.store.commits() if commit.session_id == "one")

        assert {"two"} == {repo.agents(commit.short)[0].session for commit in commits}
        with pytest.raises(Corrupt):
            repo.agents(lost.short)


def test_an_import_goes_on_beside_a_session_that_cannot_be_read(path: Path, tmp_path: Path) -> None:
    session = tmp_path / "11111111-2222-3333-4444-555555555555.jsonl"
    session.write_bytes(dump(user("u1", None, "hello"), assistant("a1", "u1", "good day", "m1", 1)))
    with harken.open(path) as repo:
        assert ["new"] == [one.status for one in repo.import_sessions([session])]


def test_on_a_disk_without_any_room_a_store_can_be_looked_at(tmp_path: Path) -> None:
    with harken.open(tmp_path / "store.db") as repo:
        grow(repo, 3, session_id="winter")
    before = (tmp_path / "store.db").read_bytes()
    watched = [tmp_path, *(tmp_path / f"store.db{suffix}" for suffix in ("", "-wal", "-shm", "-lock", "-cache"))]

    outcome = run(WORKER, tmp_path / "store.db", paths=watched, fault=Fault("ENOSPC", "pwrite64", 1, after=True))

    assert 0 == outcome.returncode, outcome.errors
    assert ["winter 3", "HarkenError"] == [line.split(":")[0] for line in outcome.lines]
    assert "can only be read now" in outcome.lines[1]
    assert before == (tmp_path / "store.db").read_bytes()


def test_a_row_that_is_not_what_was_written_costs_its_own_file_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """#40: an import and its report, and what is said of a name that nobody has."""
    files = [tmp_path / f"{digit * 8}-2222-3333-4444-555555555555.jsonl" for digit in "1234"]
    for file in files:
        said = user("u1", None, "hello", sessionId=file.stem)
        file.write_bytes(dump(said, assistant("a1", "u1", "good day", file.stem, 1, sessionId=file.stem)))
    with harken.open(tmp_path / "store.db") as repo:
        assert ["new"] * 2 == [one.status for one in repo.import_sessions(files[:2])]
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        changed = connection.execute("UPDATE sessions SET title = 'forged' WHERE session = ?", (files[0].stem,))
        assert 1 == changed.rowcount
        connection.commit()
    with harken.open(tmp_path / "store.db") as repo:
        told = {one.source: one.status for one in repo.import_sessions(files)}
    assert ["failed", "unchanged", "new", "new"] == [told[str(file)] for file in files]
    with pytest.raises(SystemExit) as end:
        main(["--store", str(tmp_path / "store.db"), "import", *map(str, files)])
    assert 1 == end.value.code
    assert "is not what was written" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        main(["--store", str(tmp_path / "store.db"), "show", "nobody"])
    assert 3 == end.value.code, "not there, whatever else is wrong"
