"""SQL reads the views of the index and can do nothing else."""

from __future__ import annotations

import re
import resource
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harken
from harken.errors import BadRequest, HarkenError, NotFound
from harken.index.views import NAMES, VIEWS
from harken.repo import Repo
from harken.repo.finding import sql_views
from support.sessions import conversation
from support.viewed import cafe, write_log

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"^```sql\n(.*?)^```", (ROOT / "docs" / "guides" / "sql.md").read_text("utf-8"), re.M | re.S)


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    folder = tmp_path_factory.mktemp("sql")
    for name in ("aaa", "bbb"):
        (folder / f"{name}.jsonl").write_bytes(conversation(name, 3).data)
    with harken.open(folder / "store.db") as opened:
        list(opened.import_sessions([folder / "aaa.jsonl", folder / "bbb.jsonl"]))
        opened.index.catch_up()
        yield opened


def refused(repo: Repo, query: str, **budget: float) -> HarkenError:
    with pytest.raises(HarkenError) as problem:
        repo.sql(query, **budget)  # type: ignore[arg-type]
    return problem.value


class TestTheViews:
    @pytest.mark.parametrize("view", VIEWS, ids=NAMES)
    def test_have_the_columns_that_are_documented(self, repo: Repo, view: harken.index.views.IndexView) -> None:  # type: ignore[name-defined]
        found = repo.sql(f"SELECT * FROM {view.name}")

        assert tuple(column.name for column in view.columns) == found.columns

    def test_say_what_the_sessions_say(self, repo: Repo) -> None:
        asked = "SELECT session, runtime, human, calls FROM sessions ORDER BY session"

        assert [("aaa", "claude-code", 3, 3), ("bbb", "claude-code", 3, 3)] == repo.sql(asked).rows

    def test_say_where_the_time_of_a_session_went(self, repo: Repo) -> None:
        spent = repo.report("aaa")
        parts = ["prompt", "response", "thinking", "tool", "compaction", "idle"]
        asked = ", ".join(f"{part}_seconds" for part in parts)
        (row,) = repo.sql(f"SELECT turns, seconds, characters_out, {asked} FROM figures WHERE session = 'aaa'").rows

        times = [getattr(spent.profile.whole, part) / 1e6 for part in parts]
        said = (spent.lifecycle.turns, spent.lifecycle.duration / 1e6, spent.amplification.characters_out)  # type: ignore[operator]
        assert (*said, *times) == row

    def test_have_a_row_for_each_message(self, repo: Repo) -> None:
        counted = repo.sql("SELECT role, count(*) FROM messages WHERE session = 'aaa' GROUP BY role ORDER BY role").rows

        assert {"human": 3, "call": 3, "result": 3}.items() <= dict(counted).items()

    def test_name_messages_as_other_commands_do(self, repo: Repo) -> None:
        ((ref, commit),) = repo.sql(
            "SELECT session || '@' || message, commit_id FROM messages WHERE role = 'human' ORDER BY time LIMIT 1"
        ).rows

        assert commit == repo.commit(ref).id

    def test_have_times_that_the_date_functions_take(self, repo: Repo) -> None:
        ((day, minutes),) = repo.sql("SELECT date(started), strftime('%M', started) FROM sessions LIMIT 1").rows

        assert re.fullmatch(r"\d{4}-\d\d-\d\d", day)
        assert minutes.isdecimal()

    def test_count_what_is_counted_elsewhere(self, repo: Repo) -> None:
        *_, total = repo.stats()

        ((output,),) = repo.sql("SELECT sum(output) FROM usage WHERE counted").rows

        assert total.figures.usage.output == (output or 0)

    def test_say_who_told_whom(self, tmp_path: Path) -> None:
        log = tmp_path / "cafe.jsonl"
        write_log(log, cafe())
        with harken.open(tmp_path / "store.db") as kept:
            list(kept.import_sessions([log]))
            heard = kept.sql("SELECT source_message, source, message, target FROM flow WHERE how = 'substance'").rows
            spoken = {event.message_id: event for event in kept.events(log)}

        assert heard
        for source_message, source, message, target in heard:
            assert (spoken[message].substance, spoken[message].agent_id) == (source_message, target)
            assert spoken[source_message].agent_id == source

    def test_are_found_by_name(self) -> None:
        assert ["calls"] == [view.name for view in sql_views("calls")]
        with pytest.raises(NotFound, match="there is no view 'cals'"):
            sql_views("cals")

    @pytest.mark.parametrize("query", EXAMPLES, ids=lambda query: query.split("\n")[0][:40])
    def test_answer_the_questions_of_the_guide(self, repo: Repo, query: str) -> None:
        assert repo.sql(query).columns

    def test_are_all_asked_in_the_guide(self) -> None:
        assert set() == set(NAMES) - set(re.findall(r"(?:FROM|JOIN) (\w+)", " ".join(EXAMPLES)))


FORBIDDEN = [
    ("SELECT * FROM main.messages", "there is no view messages"),
    ("SELECT * FROM words", "a query reads the views, and nothing else"),
    ("SELECT key FROM main.state", "there is no view state"),
    ("SELECT name FROM sqlite_master", "there is no view sqlite_master"),
    ("SELECT sql FROM sqlite_temp_master", "there is no view sqlite_temp_master"),
    ("SELECT * FROM pragma_table_info('messages')", "a query reads the views, and nothing else"),
    ("ATTACH ':memory:' AS other", "this is ATTACH"),
    ("DETACH main", "this is DETACH"),
    ("PRAGMA query_only = OFF", "this is PRAGMA"),
    ("SELECT load_extension('x')", "the function load_extension is not allowed"),
    ("INSERT INTO usage VALUES (1)", "this is INSERT"),
    ("DELETE FROM main.messages", "this is DELETE"),
    ("UPDATE main.messages SET role = ''", "this is UPDATE"),
    ("WITH x AS (SELECT 1) DELETE FROM main.messages", "this is DELETE"),
    ("DROP VIEW sessions", "nothing else"),
    ("DROP TABLE main.messages", "nothing else"),
    ("CREATE TABLE x (y)", "nothing else"),
    ("CREATE TEMP VIEW usage2 AS SELECT * FROM main.state", "nothing else"),
    ("CREATE VIRTUAL TABLE x USING fts5(y)", "nothing else"),
    ("VACUUM", "this is ATTACH"),
    ("VACUUM INTO '/tmp/x'", "this is ATTACH"),
    ("REINDEX", "this is REINDEX"),
    ("ANALYZE", "nothing else|this is ANALYZE"),
    ("BEGIN", "this is TRANSACTION"),
    ("SAVEPOINT x", "this is SAVEPOINT"),
    ("SELECT 1; DELETE FROM main.messages", "there is more than one statement"),
    ("-- nothing", "that is no query"),
    (" ", "there is no query"),
    ("SELECT ?", "a query has no parameters"),
    ("SELECT '\0'", ""),
    ("SELECT '\ud800'", ""),
]


class TestNothingElse:
    @pytest.mark.parametrize(("query", "told"), FORBIDDEN)
    def test_is_allowed(self, repo: Repo, query: str, told: str) -> None:
        repo.index.catch_up()
        before = repo.index.query("SELECT count(*) FROM messages")

        problem = refused(repo, query)

        assert (2, True) == (problem.exit_code, bool(problem.hint))
        assert re.search(told, str(problem))
        assert before == repo.index.query("SELECT count(*) FROM messages")

    @given(st.text(max_size=40))
    def test_happens_whatever_the_text_is(self, repo: Repo, text: str) -> None:
        """It is answered, or refused with a reason; no other error, and nothing is written."""
        try:
            repo.sql(text, seconds=5)
        except HarkenError as problem:
            assert problem.hint

    def test_is_left_open(self, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
        made: list[sqlite3.Connection] = []
        connect = repo.index.connect
        monkeypatch.setattr(repo.index, "connect", lambda: made.append(connect()) or made[-1])

        repo.sql("SELECT 1")
        refused(repo, "SELEC")

        for connection in made:
            with pytest.raises(sqlite3.ProgrammingError, match="closed"):
                connection.execute("SELECT 1")


class TestABudget:
    def test_of_time_ends_a_query_that_never_would(self, repo: Repo) -> None:
        endless = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"

        problem = refused(repo, endless, seconds=0.05)

        assert (1, "the query was stopped: it took longer than 0.05 seconds") == (problem.exit_code, str(problem))

    def test_of_time_ends_a_query_of_few_and_slow_calls(self, repo: Repo) -> None:
        slow = "instr(zeroblob(200000), CAST(zeroblob(100000) || 'x' AS BLOB))"
        query = f"WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t LIMIT 60) SELECT sum({slow}) FROM t"
        before = threading.active_count(), time.monotonic()

        problem = refused(repo, query.replace("zeroblob(200000)", "substr(zeroblob(200000), x * 0 + 1)"), seconds=0.1)

        assert "the query was stopped: it took longer than 0.1 seconds" == str(problem)
        assert (before[0], True) == (threading.active_count(), time.monotonic() - before[1] < 5)

    @pytest.mark.parametrize(
        "call", ["printf('%.2000000000c', 'a')", "format('%%%d%*d', 1, '2000000000', 1)", "printf('%-999999s', 1)"]
    )
    def test_of_width_ends_a_call_that_nothing_else_would(self, repo: Repo, call: str) -> None:
        assert "a width of 100,000 or more is not allowed" == str(refused(repo, f"SELECT {call}"))

    def test_of_length_ends_a_text_of_many_wide_places(self, repo: Repo) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        problem = refused(repo, "SELECT length(printf(replace(hex(zeroblob(2000)), '0', '%99999d')))")

        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert ("string or blob too big", True) == (str(problem), grown < (100 << 10))

    def test_leaves_what_else_is_printed_as_it_is(self, repo: Repo) -> None:
        values = "1.005, 42, 'ab', 'xyz', NULL, 3.14159, 6, 7, 1234567, 'it''s'"
        call = f"printf('%.2f|%5d|%-4s|%%|%c|%s|%08.3f|%*d|%,d|%Q', {values})"
        with closing(sqlite3.connect(":memory:")) as plain:
            expected = plain.execute(f"SELECT {call}").fetchall()

        assert expected == repo.sql(f"SELECT {call}").rows
        assert [(None,)] == repo.sql("SELECT printf(NULL)").rows

    def test_of_memory_ends_a_query_that_takes_it_all(self, repo: Repo) -> None:
        greedy = (
            "WITH RECURSIVE t(x, y) AS (SELECT 1, '' UNION SELECT x + 1, hex(randomblob(100000)) FROM t)"
            " SELECT count(*) FROM t"
        )

        problem = refused(repo, greedy, seconds=60, megabytes=8)

        assert "the query was stopped: it took more than 8 MB of memory" == str(problem)

    def test_of_length_ends_a_text_that_is_too_long(self, repo: Repo) -> None:
        assert "string or blob too big" == str(refused(repo, "SELECT zeroblob(100000000)"))

    def test_of_rows_says_that_there_are_more(self, repo: Repo) -> None:
        found = repo.sql("SELECT 1 FROM messages", rows=5)

        assert (5, True) == (len(found.rows), found.more)
        assert not repo.sql("SELECT 1 LIMIT 5", rows=5).more

    @pytest.mark.parametrize("budget", [{"rows": 0}, {"seconds": 0}, {"megabytes": -1}])
    def test_of_nothing_is_refused(self, repo: Repo, budget: dict[str, float]) -> None:
        assert "a query needs some time, memory and rows" == str(refused(repo, "SELECT 1", **budget))

    def test_is_no_longer_needed_when_somebody_interrupts(self, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
        """A signal comes while SQLite is at work, and its exception is lost there."""

        def interrupted() -> float:
            if sys._getframe(1).f_code.co_name == "_is_over":
                raise KeyboardInterrupt
            return 0.0

        monkeypatch.setattr("harken.index.asking.clock.monotonic", interrupted)
        endless = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"

        with pytest.raises(KeyboardInterrupt):
            repo.sql(endless)


WRONG = [
    ("SELECT titel FROM sessions", "line 1, column 8: no such column: titel", "did you mean title?"),
    ("SELECT 1\nFROM sesions", "line 2, column 6: no such table: sesions", "did you mean sessions?"),
    ("SELECT a.x\nFROM sessions a", "line 1, column 10: no such column: a.x", "--schema"),
    ("SELECT x FROM sessions x\n  WHERE\n x y 1", 'line 3, column 4: near "y": syntax error', "--schema"),
    ("SELECT x, y x y FROM y", 'line 1, column 15: near "y": syntax error', "--schema"),
    ("SELECT (", "line 1, column 9: incomplete input", "--schema"),
    ("SELECT nix(1)", "line 1, column 8: no such function: nix", "--schema"),
    ("SELECT * FROM main.calls", "line 1, column 20: there is no view calls", "write calls alone"),
]


class TestWhatIsWrong:
    @pytest.mark.parametrize(("query", "told", "hint"), WRONG)
    def test_is_told_with_its_place(self, repo: Repo, query: str, told: str, hint: str) -> None:
        problem = refused(repo, query)

        assert isinstance(problem, BadRequest)
        assert (told, True) == (str(problem), hint in (problem.hint or ""))


def test_columns_of_the_same_name_are_told_apart(repo: Repo) -> None:
    assert ("a", "a_2", "a_2_2") == repo.sql("SELECT 1 AS a, 2 AS a, 3 AS a_2").columns


def test_tables_that_are_functions_can_be_asked(repo: Repo) -> None:
    assert [(1,), (2,)] == repo.sql("SELECT value FROM json_each('[1, 2]')").rows


def test_a_store_in_memory_is_asked_alike() -> None:
    with harken.open("memory:") as repo:
        repo.checkpoint(conversation("aaa", 1).data, format="claude-code-v1", session_id="aaa")

        ((count,),) = repo.sql("SELECT count(*) FROM messages WHERE role = 'human'").rows

        assert 1 == count
        assert "this is DELETE" in str(refused(repo, "DELETE FROM main.messages"))


def test_a_damaged_index_is_built_anew_and_answers(tmp_path: Path) -> None:
    with harken.open(tmp_path / "store.db") as repo:
        repo.checkpoint(conversation("aaa", 50).data, format="claude-code-v1", session_id="aaa")
        asked = "SELECT role, count(*), sum(size), max(message) FROM messages GROUP BY role"
        expected = repo.sql(asked).rows
        path = repo.index.path
        repo.index.close()
    assert path is not None
    data = bytearray(path.read_bytes())
    for page in range(3 * 4096, len(data), 4096):
        data[page : page + 64] = b"\xa5" * 64
    path.write_bytes(data)

    with harken.open(tmp_path / "store.db") as repo:
        assert expected == repo.sql(asked).rows
