"""Whatever is wrong with the index, its store or one of its commits: the rest is found, and what is missing is told."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import harken
from harken.errors import Closed, Conflict, HarkenError
from harken.formats.base import Format
from harken.index import StoreIndex, follow
from harken.repo import Repo
from harken.store import SessionRow
from harken.store.tombstones import ErasureOrder
from support import index_worker
from support.contexts import Ticking, chain, keep, turn
from support.indexes import digest, found

WORKER = Path(index_worker.__file__)


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db", clock=Ticking()) as repo:
        yield repo


def fresh(repo: Repo) -> dict[str, list[tuple[object, ...]]]:
    """What an index says that is built at once."""
    with StoreIndex(repo.store, None) as index:
        index.catch_up()
        return digest(index)


def damage_second_frame(store: Path) -> None:
    """Put zeros in the place of the bytes of the second commit."""
    with contextlib.closing(sqlite3.connect(store)) as connection, connection:
        assert 1 == connection.execute("UPDATE loose SET data = zeroblob(length(data)) WHERE rowid = 2").rowcount


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a session whose commits have summaries."""
    path = tmp_path_factory.mktemp("killed") / "store.db"
    with harken.open(path, clock=Ticking()) as repo:
        parent = None
        for number in range(8):
            parent = keep(repo, turn(number), parent, session_id="s")
            repo.annotate(parent, f"summary {number}")
    return path


class TestKilled:
    def kill(self, store: Path, folder: Path, statement: int) -> int:
        """Copy the store, kill whoever indexes it at a statement, and go on; the answer is how many there were."""
        shutil.copy(store, folder / "store.db")
        done = subprocess.run(
            [sys.executable, WORKER, folder / "store.db", str(statement)], capture_output=True, text=True, timeout=60
        )
        assert (-9 if statement else 0) == done.returncode, done.stderr
        with harken.open(folder / "store.db") as repo:
            assert "" == repo.index.catch_up().rebuilt
            assert fresh(repo) == digest(repo.index)
        return int(done.stdout or 0)

    def test_in_the_middle_it_goes_on(self, store: Path, tmp_path: Path) -> None:
        self.kill(store, tmp_path, 60)

    @pytest.mark.faults
    def test_at_any_statement_it_goes_on(self, store: Path, tmp_path: Path) -> None:
        (tmp_path / "0").mkdir()
        count = self.kill(store, tmp_path / "0", 0)
        for statement in range(1, count, 5):
            (tmp_path / str(statement)).mkdir()
            self.kill(store, tmp_path / str(statement), statement)

        assert count > 100


class TestSeveralAtOnce:
    def test_two_followers_make_what_one_makes(self, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(follow, "CHANGES", 5)
        chain(repo, range(20))
        with StoreIndex.open(repo.store) as one, StoreIndex.open(repo.store) as two:
            threads = [threading.Thread(target=index.catch_up) for index in (one, two)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

            assert fresh(repo) == digest(one) == digest(two)

    def test_a_reader_is_not_kept_waiting_by_the_writer(self, repo: Repo) -> None:
        chain(repo, [1])
        repo.index.catch_up()
        chain(repo, [2])
        with StoreIndex.open(repo.store) as other:
            with repo.index._transaction(None):
                assert [("human", "m1a")] == found(other, "question")
                assert other.catch_up(seconds=0.05).behind > 0
            other.catch_up()

            assert 2 == len(found(other, "question"))

    def test_an_index_that_somebody_else_built_anew_is_taken_up(self, repo: Repo) -> None:
        chain(repo, [1])
        repo.index.catch_up()
        with StoreIndex.open(repo.store) as other:
            other.rebuild()
            chain(repo, [2])
            other.catch_up()
            repo.index.catch_up()

            assert fresh(repo) == digest(repo.index) == digest(other)

    def test_what_caught_up_is_asked_though_somebody_builds_it_anew(self, repo: Repo, tmp_path: Path) -> None:
        chain(repo, [1])
        reached = repo.index.catch_up(seconds=1)
        with StoreIndex.open(repo.store) as other:
            other._begin_anew("asked for")
            other.query("SELECT 1")  # the file is there, and nothing in it

            assert (0, [("human", "m1a")]) == (reached.behind, found(repo.index, "question"))
            with contextlib.closing(repo.index.connect()) as connection:
                assert (1,) == connection.execute("SELECT count(*) FROM calls").fetchone()
            assert 0 == repo.index.status().messages
            assert repo.index.catch_up().taken > 0

    def test_a_file_that_was_deleted_comes_back(self, repo: Repo, tmp_path: Path) -> None:
        chain(repo, [1])
        repo.index.catch_up()
        (tmp_path / "store.db-index").unlink()

        assert repo.index.catch_up().taken > 0
        assert [("human", "m1a")] == found(repo.index, "question")


class TestOneThatCannotBeRead:
    def test_an_evicted_commit_is_told_and_comes_back_with_its_bytes(self, repo: Repo) -> None:
        commits = [keep(repo, turn(number), session_id=f"s{number}") for number in range(3)]
        data = repo.store.get(commits[1].artifact)
        with repo.store.write() as writer:
            writer.evict(commits[1].artifact)
        repo.index.catch_up()

        assert ["m0a", "m2a"] == [record for _, record in found(repo.index, "question")]
        assert [(commits[1].id, "s1")] == [problem[:2] for problem in repo.index.status().problems]

        with repo.store.write() as writer:
            writer.put(data)
        repo.index.catch_up()

        assert ["m0a", "m1a", "m2a"] == sorted(record for _, record in found(repo.index, "question"))
        assert () == repo.index.status().problems

    def test_a_damaged_frame_stops_no_other_session(self, repo: Repo, tmp_path: Path) -> None:
        for number in range(3):
            keep(repo, turn(number), session_id=f"s{number}")
        repo.close()
        damage_second_frame(tmp_path / "store.db")
        with harken.open(tmp_path / "store.db") as opened:
            opened.index.catch_up()

            assert ["m0a", "m2a"] == [record for _, record in found(opened.index, "question")]
            assert ["s1"] == [session for _, session, _ in opened.index.status().problems]

    def test_a_damaged_last_row_of_the_feed_hides_nothing_before_it(self, repo: Repo, tmp_path: Path) -> None:
        for number in range(3):
            keep(repo, turn(number), session_id=f"s{number}")
        repo.close()
        with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as damaged, damaged:
            last = "SELECT max(n) FROM changes"
            assert 1 == damaged.execute(f"UPDATE changes SET what = x'00' WHERE n = ({last})").rowcount
        with harken.open(tmp_path / "store.db") as opened:
            assert 1 == opened.index.catch_up(seconds=1).damaged
            again = opened.index.catch_up()

            assert ["m0a", "m1a"] == [record for _, record in found(opened.index, "question")]
            assert (0, 0, 1) == (again.taken, again.behind, again.damaged)
            assert "of the table changes is not what was written" in opened.index.status().problems[0][2]

    def test_a_frame_that_is_missing_is_damage(self, repo: Repo, tmp_path: Path) -> None:
        for number in range(3):
            keep(repo, turn(number), session_id=f"s{number}")
        repo.close()
        with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as damaged, damaged:
            assert 1 == damaged.execute("DELETE FROM loose WHERE rowid = 2").rowcount
        with harken.open(tmp_path / "store.db") as opened:
            progress = opened.index.catch_up()

            assert (1, 1) == (progress.missing, progress.damaged)
            assert ["m0a", "m2a"] == [record for _, record in found(opened.index, "question")]

    @pytest.mark.parametrize("table", ["sessions", "commits", "artifacts"])
    def test_damaged_rows_stop_no_other_session(self, repo: Repo, tmp_path: Path, table: str) -> None:
        for number in range(6):
            keep(repo, turn(number), session_id=f"s{number}")
            with repo.store.write() as writer:
                writer.save_session(SessionRow(session=f"s{number}", runtime="r", title=f"t{number}"))
        repo.close()
        with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as damaged:
            some = f"SELECT n FROM {table} ORDER BY n LIMIT 2 OFFSET 1"
            damaged.execute(f"UPDATE {table} SET sum = x'00000000' WHERE n IN ({some})")
            damaged.commit()
        with harken.open(tmp_path / "store.db") as opened:
            told = [change for change in opened.since(0) if change.problem]
            progress = opened.index.catch_up()
            told_by_index = opened.index.status().problems

            assert (0, 0) == (progress.behind, progress.stale)
            assert {"m0a", "m3a", "m4a", "m5a"} <= {record for _, record in found(opened.index, "question")}
            assert 2 == len({change.problem for change in told}) == len(told_by_index)
            assert {""} == {change.subject for change in told}
            assert [f"t{n}" for n in range(6) if table != "sessions" or n not in (1, 2)] == [
                title for (title,) in opened.index.query("SELECT title FROM sessions WHERE title != '' ORDER BY title")
            ]

    @pytest.mark.parametrize("read", [2, 1000])
    def test_damaged_rows_of_the_feed_stop_nothing_behind_them(
        self, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: int
    ) -> None:
        monkeypatch.setattr(follow, "CHANGES", read)
        for number in range(8):
            keep(repo, turn(number), session_id=f"s{number}")
        repo.close()
        with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as damaged, damaged:
            rows = [n for (n,) in damaged.execute("SELECT n FROM changes ORDER BY n")]
            assert 8 == len(rows)
            damaged.execute(f"UPDATE changes SET what = x'90' WHERE n IN ({rows[2]}, {rows[3]}, {rows[5]})")
        with harken.open(tmp_path / "store.db") as opened:
            progress = opened.index.catch_up()

            assert (0, 2, 2) == (progress.behind, progress.missing, progress.damaged)
            assert ["m0a", "m1a", "m4a", "m6a", "m7a"] == sorted(r for _, r in found(opened.index, "question"))
            assert {f"changes {rows[1] + 1} to {rows[3]} of", f"changes {rows[4] + 1} to {rows[5]} of"} == {
                why.partition(" the store: row")[0] for _, _, why in opened.index.status().problems
            }

    def test_what_was_evicted_is_not_damaged(self, repo: Repo) -> None:
        commit = keep(repo, turn(1), session_id="s")
        with repo.store.write() as writer:
            writer.evict(commit.artifact)
        progress = repo.index.catch_up()

        assert (1, 0) == (progress.missing, progress.damaged)

    def test_a_format_that_breaks_in_any_way_stops_no_other(self, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(_: bytes) -> list[object]:
            raise ZeroDivisionError("a plug-in's fault")

        keep(repo, turn(1), session_id="good")
        repo.checkpoint(b"x", format="morse-v1", session_id="bad")
        real = follow.find
        bad = Format(name="morse-v1", reader=broken)  # type: ignore[arg-type]
        monkeypatch.setattr(follow, "find", lambda name: bad if name == bad.name else real(name))
        repo.index.catch_up()

        ((_, session, why),) = repo.index.status().problems
        assert ("bad", "ZeroDivisionError: a plug-in's fault") == (session, why)
        assert [("human", "m1a")] == found(repo.index, "question")

    def test_what_comes_after_an_evicted_delta_is_found(self, repo: Repo) -> None:
        first = keep(repo, turn(1), session_id="s")
        keep(repo, [event.replace(message_id="") for event in turn(2)], first, session_id="s")
        with repo.store.write() as writer:
            writer.evict(first.artifact)
        repo.index.catch_up()

        assert ["human"] == [role for role, _ in found(repo.index, "question")]


class TestTheStoreIsAnother:
    def test_a_repair_begins_the_index_anew(self, repo: Repo, tmp_path: Path) -> None:
        chain(repo, [1, 2])
        repo.index.catch_up()
        damage_second_frame(tmp_path / "store.db")
        repo.fsck(repair=True)
        progress = repo.index.catch_up()

        assert "repaired" in progress.rebuilt
        assert [("human", "m1a")] == found(repo.index, "question")
        assert 1 == len(repo.index.status().problems)

    def test_a_backup_has_an_index_of_its_own(self, repo: Repo, tmp_path: Path) -> None:
        chain(repo, [1])
        repo.index.catch_up()
        repo.backup(tmp_path / "copy.db")
        with harken.open(tmp_path / "copy.db") as copy:
            copy.index.catch_up()

            assert tmp_path / "copy.db-index" == copy.index.path
            assert digest(repo.index)["messages"] == digest(copy.index)["messages"]

    def test_where_nothing_can_be_written_the_index_is_in_memory(
        self, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        chain(repo, [1])
        repo.close()
        monkeypatch.setattr("harken.index.file.is_writable", lambda path: False)
        with harken.open(tmp_path / "store.db") as looking:
            looking.index.catch_up()

            assert None is looking.index.path
            assert [("human", "m1a")] == found(looking.index, "question")
        assert [] == list(tmp_path.glob("store.db-index*"))

    def test_a_reader_is_answered_though_nothing_can_be_written(
        self, repo: Repo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> int:
            raise OSError("no space left on device")

        chain(repo, [1])
        repo.index.catch_up()
        chain(repo, [2])
        monkeypatch.setattr(follow.Batch, "take", full)
        progress = repo.index.catch_up(seconds=1)

        assert ("no space left on device", True) == (progress.problem, progress.behind > 0)
        assert [("human", "m1a")] == found(repo.index, "question")
        with pytest.raises(OSError, match="no space"):
            repo.index.catch_up()

    def test_and_from_memory_where_not_even_a_file_can_be_made(self, repo: Repo, tmp_path: Path) -> None:
        chain(repo, [1])
        (tmp_path / "store.db-index").mkdir()
        progress = repo.index.catch_up(seconds=1)

        assert None is repo.index.path
        assert (0, True) == (progress.behind, bool(progress.problem))
        assert [("human", "m1a")] == found(repo.index, "question")

    def test_a_database_of_somebody_else_in_its_place_stays(self, repo: Repo, tmp_path: Path) -> None:
        chain(repo, [1])
        with contextlib.closing(sqlite3.connect(tmp_path / "store.db-index")) as theirs:
            theirs.execute("CREATE TABLE mine (word)")
        before = (tmp_path / "store.db-index").read_bytes()
        for write in (repo.index.catch_up, repo.index.rebuild):
            with pytest.raises(Conflict, match="is no index of Harken's"):
                write()
        progress = repo.index.catch_up(seconds=1)

        assert "is no index of Harken's" in progress.problem
        assert [("human", "m1a")] == found(repo.index, "question")
        assert before == (tmp_path / "store.db-index").read_bytes()

    @pytest.mark.parametrize("mine", [b"my notes", b"\xff\xfe\x00" * 3000])
    def test_what_never_was_an_index_stays(self, repo: Repo, tmp_path: Path, mine: bytes) -> None:
        chain(repo, [1])
        (tmp_path / "store.db-index").write_bytes(mine)
        with pytest.raises(Conflict, match="is no index of Harken's"):
            repo.index.rebuild()
        progress = repo.index.catch_up(seconds=1)

        assert "is no index of Harken's" in progress.problem
        assert [("human", "m1a")] == found(repo.index, "question")
        repo.forget(secret=["question 1"])
        assert mine == (tmp_path / "store.db-index").read_bytes()

    @pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
    def test_what_is_no_file_stays_and_is_not_waited_for(
        self, repo: Repo, tmp_path: Path, make: Callable[[Path], None]
    ) -> None:
        chain(repo, [1])
        make(tmp_path / "store.db-index")
        with pytest.raises(Conflict, match="is no index of Harken's"):
            repo.index.rebuild()
        report = repo.forget(secret=["question 1"])

        assert "is no index of Harken's" in repo.index.catch_up(seconds=1).problem
        assert [] == repo.unfinished_forgetting()
        assert report.places
        assert not (tmp_path / "store.db-index").is_file()

    def test_behind_a_link_it_is_removed_where_the_link_leads(self, repo: Repo, tmp_path: Path) -> None:
        chain(repo, [1])
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "store.db-index").symlink_to(tmp_path / "elsewhere" / "words")
        repo.index.catch_up()
        repo.forget(secret=["question 1"])

        assert [] == list((tmp_path / "elsewhere").iterdir())
        repo.index.catch_up()
        assert [("call", "m1b")] == found(repo.index, "read")
        assert (tmp_path / "elsewhere" / "words").is_file()

    @pytest.mark.parametrize("lost", [100, 4096])
    def test_an_index_whose_beginning_is_lost_is_built_anew(self, repo: Repo, tmp_path: Path, lost: int) -> None:
        chain(repo, [1])
        repo.index.catch_up()
        repo.close()
        with (tmp_path / "store.db-index").open("r+b") as file:
            file.write(b"?" * lost)
        with harken.open(tmp_path / "store.db") as opened:
            assert "damaged" in opened.index.catch_up().rebuilt
            assert [("human", "m1a")] == found(opened.index, "question")

    def test_where_nothing_can_be_written_the_file_that_is_there_is_gone_on_with(
        self, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        chain(repo, [1])
        repo.index.catch_up()
        chain(repo, [2])
        last = repo.last_change()
        repo.close()
        before = (tmp_path / "store.db-index").read_bytes()
        monkeypatch.setattr("harken.index.file.is_writable", lambda path: False)
        with harken.open(tmp_path / "store.db") as looking:
            progress = looking.index.catch_up()

            assert (last, 0, "") == (2 * progress.taken, progress.behind, progress.rebuilt)
            assert 2 == len(found(looking.index, "question"))
            assert fresh(looking) == digest(looking.index)
        assert ["store.db-index"] == [path.name for path in tmp_path.glob("store.db-index*")]
        assert before == (tmp_path / "store.db-index").read_bytes()

    def test_or_begun_anew_where_it_is_of_another_store(
        self, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        chain(repo, [1])
        with harken.open(tmp_path / "other.db") as other:
            chain(other, [2])
            other.index.catch_up()
        (tmp_path / "other.db-index").rename(tmp_path / "store.db-index")
        repo.close()
        monkeypatch.setattr("harken.index.file.is_writable", lambda path: False)
        with harken.open(tmp_path / "store.db") as looking:
            assert "replaced" in looking.index.catch_up().rebuilt
            assert [("human", "m1a")] == found(looking.index, "question")

    def test_a_closed_one_says_so_and_leaves_nothing_open(self, repo: Repo, tmp_path: Path) -> None:
        chain(repo, [1])
        repo.index.catch_up()
        repo.close()

        with pytest.raises(Closed):
            repo.index.catch_up()
        assert ["store.db-index"] == [path.name for path in tmp_path.glob("store.db-index*")]

    def test_nothing_can_be_written_through_a_query(self, repo: Repo) -> None:
        repo.index.catch_up()

        with pytest.raises((sqlite3.OperationalError, HarkenError)):
            repo.index.query("DELETE FROM state")


class TestWhatIsGoneFromTheStore:
    def test_what_was_erased_leaves_the_index_too(self, repo: Repo, tmp_path: Path) -> None:
        commit = keep(repo, turn(1), session_id="s")
        chain(repo, [2])
        repo.index.catch_up()
        repo.store.erase(ErasureOrder(time=1, artifacts={commit.artifact: ()}, at=repo.store.last_change()))
        progress = repo.index.catch_up()

        assert "something was erased" in progress.rebuilt
        assert [("human", "m2a")] == found(repo.index, "question")
        assert "" == repo.index.catch_up().rebuilt

    def test_a_session_that_made_way_for_another_is_there_under_its_new_name(self, repo: Repo) -> None:
        keep(repo, turn(1), session_id="s")
        row = repo.store.sessions()[0]
        repo.index.catch_up()
        with repo.store.write() as writer:
            writer.rename_session(row.session, "s-other")
        progress = repo.index.catch_up()

        assert "the session s is called otherwise now" == progress.rebuilt
        assert fresh(repo) == digest(repo.index)

    def test_also_where_it_has_gone_on_under_that_name(self, repo: Repo) -> None:
        first = keep(repo, turn(1), session_id="s")
        repo.index.catch_up()
        with repo.store.write() as writer:
            writer.rename_session("s", "s-other")
        keep(repo, turn(2), first, session_id="s-other")
        progress = repo.index.catch_up()

        assert "the session s is called otherwise now" == progress.rebuilt
        assert fresh(repo) == digest(repo.index)

    def test_also_while_the_index_is_being_built(self, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
        keep(repo, turn(1), session_id="s")
        keep(repo, turn(2), session_id="t")
        with monkeypatch.context() as small:
            small.setattr(follow.Batch.take, "__defaults__", (1,))
            while [("s",)] != repo.index.query("SELECT session FROM sessions WHERE runtime IS NOT NULL"):
                repo.index.catch_up(seconds=0)
        with repo.store.write() as writer:
            writer.rename_session("s", "s-other")
        repo.index.catch_up()

        assert fresh(repo) == digest(repo.index)
