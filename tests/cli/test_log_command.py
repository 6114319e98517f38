"""`harken log` and `harken show`: what they print, for people and for programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harken.repo import Repo
from harken.store import Commit, SqliteStore
from support.contexts import chain, keep, turn

if TYPE_CHECKING:
    Run = Any


class TestLog:
    def test_lists_the_chain_newest_first(self, repo: Repo, run: Run) -> None:
        tip = chain(repo, [1, 2])
        repo.fork(tip, "review")

        done = run("log", "review")

        assert 0 == done.code
        assert [tip.short, repo.history(tip)[1].short] == [line.split()[0] for line in done.lines]
        assert "(review)  question 2 → Read: x → answer 2" in done.lines[0]

    def test_json_has_the_commits_fields(self, repo: Repo, run: Run) -> None:
        tip = keep(repo, turn(2), chain(repo, [1]), session_id="s", principal="p", template="t")

        first, second = run("log", "s", "--json").json

        assert (tip.id, tip.short, second["id"]) == (first["id"], first["short"], first["parent"])
        expected = {
            "commit_type",
            "format",
            "template",
            "principal",
            "machine",
            "session_id",
            "checkpoint",
            "ticket_id",
        }
        expected |= {"thread_id", "summary", "message_count", "token_count", "created_at", "artifact", "seal", "names"}
        assert expected <= first.keys()

    def test_a_time_that_nothing_tells_is_unknown_and_not_1970(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "s.jsonl"
        path.write_text('{"type":"summary","summary":"A title","leafUuid":"u"}\n')
        (session,) = [result.session for result in repo.import_sessions([path])]
        known = chain(repo, [1, 2])

        assert [repo.commit(session).short, "?"] == run("log", session).lines[0].split()[:2]
        drawn = [line.split()[1] for line in run("log", "--graph").lines if "ctx-" in line]
        assert [known.short, repo.commit(session).short] == [drawn[0], drawn[-1]], "an unknown time is the oldest"
        assert "time  " not in run("show", session).out
        assert [None, None] == [run(word, session, "--json").json[0]["time"] for word in ("log", "show")]

    def test_draws_what_is_left_where_a_session_with_sub_agents_was_forgotten(self, repo: Repo, run: Run) -> None:
        asked = keep(repo, turn(1), session_id="one")
        origin = {"session": "one", "call_id": "call", "inherits": False}
        below = keep(repo, turn(2), session_id="below", spawned_from=origin)
        other = keep(repo, turn(3), session_id="other")
        repo.forget(asked.short, who="me")

        drawn = run("log", "--graph")

        assert (0, {asked.short, below.short, other.short}) == (
            drawn.code,
            {word for word in drawn.out.split() if word.startswith("ctx-")},
        )

    def test_stops_at_a_limit(self, repo: Repo, run: Run) -> None:
        chain(repo, range(5))

        assert 2 == len(run("log", "-n", "2").lines)

    def test_draws_branches(self, repo: Repo, run: Run) -> None:
        root = chain(repo, [0])
        repo.fork(chain(repo, [1], root), "one")
        repo.fork(repo.compact(chain(repo, [2], root), "in short"), "two")

        done = run("log", "--graph", "one")

        drawn = [line[:3].rstrip() for line in done.lines]
        assert ["◆", "●", "│ ●", "├─╯", "●"] == drawn

    def test_draws_sub_agents_where_they_were_spawned(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        with repo.session(tmp_path / "cafe.jsonl") as session:
            session.log_agent_created("a1")
            calls = [{"id": "c1", "function": {"name": "task", "arguments": "{}"}}]
            made = session.log_transcript_entry("a1", {"role": "assistant", "tool_calls": calls})
            session.log_agent_created("a2", cause=made, name="Jill")
            session.log_transcript_entry("a2", {"role": "assistant", "content": "I am Jill"})
            session.log_transcript_entry("a1", {"role": "tool", "tool_call_id": "c1", "content": "made"})
            session.log_transcript_entry("a1", {"role": "assistant", "content": "done"})

        drawn = run("log", "--graph", "cafe").lines

        assert ["●", "│", "├─╯", "●"] == [line.split()[0] for line in drawn]
        assert "I am Jill" in drawn[1]

    def test_hides_what_a_grown_file_superseded(self, repo: Repo, run: Run) -> None:
        root = chain(repo, [0])
        old, new = chain(repo, [1], root), chain(repo, [2], root)
        repo.annotate(old, new.id, key="superseded_by")

        assert [new.short, root.short] == [line.split()[0] for line in run("log").lines]
        assert {new.short, old.short, root.short} == {line.split()[0] for line in run("log", "--all").lines}
        assert old.short not in run("log", "--graph", root.short).out
        assert old.short in run("log", "--graph", "--all", root.short).out

    def test_a_long_summary_is_still_one_line(self, repo: Repo, run: Run) -> None:
        repo.annotate(chain(repo, [1]), "word\n" * 250_000)

        assert [True] == [len(line) < 300 for line in run("log").lines]
        assert len(run("log", "--json").json[0]["summary"]) > 1_000_000

    def test_a_few_of_many_are_as_many_as_asked_for(self, repo: Repo, run: Run) -> None:
        tip = chain(repo, range(90))
        for number in range(100, 180):
            repo.annotate(keep(repo, turn(number), tip), tip.short, key="superseded_by")

        for args in (["-n", "3"], ["-n", "3", tip.short], ["--graph", "-n", "3"], ["--graph", "-n", "3", tip.short]):
            shown = [line for line in run("log", *args).lines if "ctx-" in line]
            assert [commit.short for commit in repo.history(tip, limit=3)] == [
                next(word for word in line.split() if word.startswith("ctx-")) for line in shown
            ]

    @pytest.mark.parametrize(
        "args", [["-n", "3"], ["--graph", "-n", "3"], ["--graph", "-n", "3", "main"]], ids=" ".join
    )
    def test_a_few_of_many_are_read_and_not_all(
        self, repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch, args: list[str]
    ) -> None:
        repo.fork(chain(repo, range(300)), "main")
        read: list[str] = []
        plain = SqliteStore._commits

        def counting(store: SqliteStore, rows: Any) -> list[Commit]:
            commits = plain(store, rows)
            read.extend(commit.id for commit in commits)
            return commits

        monkeypatch.setattr(SqliteStore, "_commits", counting)

        assert 3 == len([line for line in run("log", *args).lines if "ctx-" in line])
        assert len(set(read)) < 100

    def test_the_graph_is_plain_where_the_terminal_is(self, repo: Repo, where: Path) -> None:
        tip = chain(repo, range(2))
        repo.compact(tip, "in short")
        keep(repo, turn(5), tip)
        command = [sys.executable, "-c", "from harken.cli import main; main(['log', '--graph'])"]
        poor = os.environ | {"HARKEN_STORE": str(where), "PYTHONIOENCODING": "ascii"}

        out = subprocess.run(command, env=poor, capture_output=True, check=True).stdout.decode("ascii")

        assert ["*", "| #", "+-'", "*", "*"] == [line.partition("  ctx-")[0] for line in out.splitlines()]

    def test_an_empty_store_has_no_commits(self, repo: Repo, run: Run) -> None:
        assert (0, "") == (run("log").code, run("log").out)


class TestShow:
    def test_has_the_facts_and_the_content(self, repo: Repo, run: Run) -> None:
        commit = keep(repo, turn(1), session_id="s", ticket_id="tkt-7")
        repo.annotate(commit, "read the parser", who="me")

        out = run("show", "s@m1a").out

        for words in (commit.id, "tkt-7", "read the parser", "2 messages", "question 1", "Read: x", "(me)"):
            assert words in out

    def test_json_has_the_annotations_and_the_children(self, repo: Repo, run: Run) -> None:
        root = chain(repo, [1])
        child = chain(repo, [2], root)
        repo.annotate(root, "a label", key="label")

        (shown,) = run("show", root.short, "--json").json

        assert [child.id] == shown["children"]
        assert ["a label"] == [note["value"] for note in shown["annotations"]]
