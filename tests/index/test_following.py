"""The index says what the store says, however it came to be up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.events import ToolCall
from harken.index import StoreIndex, file
from harken.repo import Repo
from support.contexts import Ticking, chain, keep, turn
from support.indexes import digest, found

RECORDED = Path(__file__).parents[1] / "recorded"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db", clock=Ticking()) as repo:
        yield repo


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    """A store with sessions that the runtimes themselves wrote, sub-agents and forks among them."""
    with harken.open(tmp_path_factory.mktemp("recorded") / "store.db") as repo:
        list(repo.import_sessions([RECORDED]))
        repo.index.catch_up()
        yield repo


class TestWhatIsSaidIsFound:
    def test_messages_calls_and_results_have_their_roles_and_records(self, repo: Repo) -> None:
        keep(repo, turn(7), session_id="s")
        repo.index.catch_up()

        assert [("human", "m7a")] == found(repo.index, "question")
        assert [("call", "m7b")] == found(repo.index, "read")
        assert [("result", "m7c"), ("assistant", "m7d")] == found(repo.index, "result OR answer")
        assert [("Read", "c7", 0)] == repo.index.query("SELECT tool, call_id, failed FROM calls")
        assert [("Read",)] == repo.index.query("SELECT tool FROM messages WHERE role = 'result'")

    def test_of_a_message_that_came_again_the_last_is_there_with_its_call(self, repo: Repo) -> None:
        tip = None
        for path in ("/a", "/b", "/c"):
            asked = b'{"file_path": "%s"}' % path.encode()
            tip = keep(repo, [ToolCall(name="Read", id="c1", input=asked, message_id="m1")], tip, session_id="s")
        repo.index.catch_up()

        assert [("/c",)] == repo.index.query("SELECT what FROM calls")
        assert [("/c",)] == repo.index.query("SELECT path FROM touched")

    def test_so_are_titles_and_summaries(self, repo: Repo) -> None:
        commit = chain(repo, [1])
        repo.annotate(commit, "about the walrus")
        repo.index.catch_up()

        assert [("summary", None)] == found(repo.index, "walrus")

    def test_a_newer_summary_takes_the_place_of_the_older(self, repo: Repo) -> None:
        commit = chain(repo, [1])
        repo.annotate(commit, "about the walrus")
        repo.index.catch_up()
        repo.annotate(commit, "about the otter")
        repo.index.catch_up()

        assert [] == found(repo.index, "walrus")
        assert [("summary", None)] == found(repo.index, "otter")


class TestItIsTheSameHoweverItCameToBe:
    def test_deleted_and_built_again(self, recorded: Repo) -> None:
        before = digest(recorded.index)
        recorded.index.rebuild()

        assert before == digest(recorded.index)
        assert len(before["messages"]) > 100

    def test_step_by_step_or_at_once(self, repo: Repo) -> None:
        parent = None
        for number in range(6):
            parent = keep(repo, turn(number), parent, session_id="s")
            repo.index.catch_up()
        with StoreIndex(repo.store, None) as fresh:
            fresh.catch_up()

            assert digest(fresh) == digest(repo.index)

    def test_an_index_that_is_up_to_date_has_nothing_to_do(self, recorded: Repo) -> None:
        progress = recorded.index.catch_up()

        assert (0, 0, "") == (progress.taken, progress.behind, progress.rebuilt)


class TestEveryFileCanBeBuiltAnew:
    @pytest.mark.parametrize("damage", [b"", b"\0" * 5000, b"SQLite format 3\0" + b"\xff" * 5000])
    def test_a_damaged_file(self, repo: Repo, tmp_path: Path, damage: bytes) -> None:
        chain(repo, [1, 2])
        (tmp_path / "store.db-index").write_bytes(damage)
        progress = repo.index.catch_up()

        assert 0 == progress.behind
        assert bool(damage) == bool(progress.rebuilt)
        assert 2 == len(found(repo.index, "question"))

    @pytest.mark.parametrize("key", ["epoch", "schema", "words", "revision claude-code-v1"])
    def test_one_of_another_version_or_epoch(self, repo: Repo, key: str) -> None:
        chain(repo, [1, 2])
        repo.index.catch_up()
        with repo.index._transaction(None) as connection:
            connection.execute("UPDATE state SET value = 'other' WHERE key = ?", (key,))
        progress = repo.index.catch_up()

        assert progress.rebuilt
        assert 2 == len(found(repo.index, "question"))


def test_a_session_whose_id_is_no_utf_8_is_told_and_stops_no_other() -> None:
    with harken.open("memory:") as repo:
        keep(repo, turn(1), session_id="s\udcff", template="claude-code")
        keep(repo, turn(2), session_id="t", template="claude-code")
        for commit in list(repo.log()):
            repo.annotate(commit.id, "well")

        reached = repo.index.catch_up()

        assert 0 == reached.behind
        assert [("t",)] == repo.index.query("SELECT session FROM sessions")
        assert {r"s\udcff"} == {session for _, session, _ in repo.index.status().problems}


def test_words_are_joined_behind_much_that_was_taken_in(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = "SELECT count(DISTINCT id >> 37) FROM words_data WHERE id > 10"
    for number in range(4):
        keep(repo, turn(number), session_id=f"s{number}")
        repo.index.catch_up()
    assert [(4,)] == repo.index.query(pieces)

    monkeypatch.setattr(file, "MANY", 0)
    keep(repo, turn(4), session_id="s4")
    repo.index.catch_up()

    assert [(1,)] == repo.index.query(pieces)
    assert [f"m{number}a" for number in range(5)] == [record for _, record in found(repo.index, "question")]
