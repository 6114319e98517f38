"""The index says what the store says, however it came to be up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.events import ToolCall
from harken.index import StoreIndex, file
from harken.repo import Repo
from support.claude_lines import assistant, call, dump, result, user
from support.contexts import Ticking, chain, keep, turn
from support.indexes import digest, found
from support.rollouts import Rollout

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


def about_call(line: str, second: int) -> bytes:
    """A record about the call `c`; two may have the same name."""
    if line == "result":
        return dump(result(f"r{second}", None, "c", second))
    if line == "failure":
        block = {"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": True}
        return dump(user(f"r{second}", None, [block], second))
    block = call("c") | {"input": {"command": line}}
    return dump(assistant("named" if "named" in line else f"r{second}", None, [block], f"m{second}", second))


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

    def test_a_title_that_was_there_before_anything_had_a_time(self, repo: Repo, tmp_path: Path) -> None:
        path = tmp_path / "S.jsonl"
        titled = dump({"type": "ai-title", "aiTitle": "about the walrus", "sessionId": "S"})
        for data in (titled, titled + dump(user("u0", None, "where is it", 1))):
            path.write_bytes(data)
            list(repo.import_sessions([path]))
            repo.index.catch_up()
        with StoreIndex(repo.store, None) as fresh:
            fresh.catch_up()

            assert digest(fresh) == digest(repo.index)
        assert ["title"] == [hit.role for hit in repo.search("walrus since:2025-12-31").hits]

    @pytest.mark.parametrize(
        ("lines", "calls"),
        [
            (["result", "call"], [("Bash", None, None)]),
            (["call", "result", "failure"], [("Bash", 0, 1_000_000)]),
            (["call", "result", "call", "failure"], [("Bash", 0, 1_000_000), ("Bash", 1, 1_000_000)]),
            (["call", "call", "result"], [("Bash", None, None), ("Bash", 0, 1_000_000)]),
            (["named", "named anew", "result"], [("Bash", 0, 1_000_000)]),
        ],
    )
    def test_a_call_that_is_told_oddly(self, repo: Repo, lines: list[str], calls: list[tuple[object, ...]]) -> None:
        parent = None
        for second, line in enumerate(lines):
            delta = about_call(line, second)
            parent = repo.checkpoint(delta, parent=parent, format="claude-code-v1", session_id="s")
            repo.index.catch_up()
        with StoreIndex(repo.store, None) as fresh:
            fresh.catch_up()

            assert digest(fresh) == digest(repo.index)
        assert calls == repo.index.query("SELECT tool, failed, took FROM calls ORDER BY message")

    def test_what_a_thread_says_a_thousand_times_is_not_compared_with_all_of_it(self, tmp_path: Path) -> None:
        asked: list[int] = []
        for count in (50, 100):
            rollout = Rollout().turn("go")
            for _ in range(count):
                rollout.call("c", "shell", "{}").output("c", "done")
            path = tmp_path / str(count) / "rollout-2026-01-02T00-00-00-019b88e5-a2e4-7b90-8953-38fce393c653.jsonl"
            path.parent.mkdir()
            path.write_bytes(rollout.data)
            with harken.open(path.with_name("store.db")) as repo:
                list(repo.import_sessions([path]))
                statements: list[str] = []
                repo.index._writer().set_trace_callback(statements.append)
                repo.index.catch_up(numbers=False)

                assert [(count,)] == repo.index.query("SELECT count(*) FROM calls")
            asked.append(len(statements))

        assert asked[1] < 3 * asked[0]

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
