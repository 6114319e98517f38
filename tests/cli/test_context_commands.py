"""The other commands about contexts, and what holds for every command: what they print, and how they end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import harken
from harken.cli import COMMANDS
from harken.events import Prompt, Response
from harken.log import Session
from harken.repo import Repo
from support.contexts import chain, heard, keep, turn

if TYPE_CHECKING:
    Run = Any


HOSTILE = "\x1b]0;owned\x07\u202e"


class TestTheRest:
    def test_snapshot(self, repo: Repo, run: Run) -> None:
        tip = chain(repo, range(3))

        (made,) = run("snapshot", tip.short, "--json").json

        assert ("snapshot", tip.id) == (made["commit_type"], made["parent"])

    def test_resolve(self, repo: Repo, run: Run) -> None:
        commit = keep(repo, turn(1), principal="me", created_at="2026-01-01T10:00:00Z")

        assert [commit.short] == run("resolve", "me").lines
        assert [commit.id] == [row["id"] for row in run("resolve", "me", "2026-01-01T11:00:00+01:00", "--json").json]
        assert 3 == run("resolve", "me", "2026-01-01T10:59:59+01:00").code
        assert 2 == run("resolve", "me", "teatime").code

    def test_annotate(self, repo: Repo, run: Run) -> None:
        commit = chain(repo, [1])

        assert 0 == run("annotate", commit.short, "found it").code
        assert 0 == run("annotate", commit.short, "-", "--key", "label", stdin=b"from stdin").code

        said = [(note.key, note.value, note.who) for note in repo.show(commit).annotations]
        assert [("summary", "found it", "tester"), ("label", "from stdin", "tester")] == said

    def test_pin(self, repo: Repo, run: Run) -> None:
        tip = chain(repo, [1, 2])
        artifacts = [commit.artifact for commit in repo.history(tip)]

        assert 0 == run("pin", tip.short).code
        assert ["pin", "pin"] == [repo.store.info(artifact).policy for artifact in artifacts]
        assert [{"policy": "default", "artifacts": 1}] == [
            {k: row[k] for k in ("policy", "artifacts")}
            for row in run("pin", "--off", "--only", tip.short, "--json").json
        ]
        assert ["default", "pin"] == [repo.store.info(artifact).policy for artifact in artifacts]

    def test_diff(self, repo: Repo, run: Run) -> None:
        base = chain(repo, [1])
        here, there = chain(repo, [2], base), keep(repo, [Response(content="else", message_id="x")], base)

        done = run("diff", here.short, there.short)

        assert f"common ancestor: {base.short}" == done.lines[0]
        assert ["-"] * 4 + ["+"] == [line[0] for line in done.lines[1:]]
        first, *rest = run("diff", here.short, there.short, "--json").json
        assert (base.id, 5) == (first["ancestor"], len(rest))
        assert {"side": "there", "type": "response"} == {"side": rest[-1]["side"], "type": rest[-1]["event"]["type"]}

    def test_sessions(self, repo: Repo, run: Run) -> None:
        tip = keep(repo, turn(1), session_id="winter", template="claude-code")
        keep(repo, turn(2), session_id="summer", template="codex")

        rows = run("sessions", "--json").json

        assert ["summer", "winter"] == [row["session"] for row in rows], "newest first"
        rows.reverse()
        expected = {"session", "runtime", "title", "tip", "started", "ended", "messages", "parent"}
        assert expected <= rows[0].keys()
        assert (tip.short, 2, None, "claude-code") == tuple(
            rows[0][k] for k in ("tip", "messages", "parent", "runtime")
        )
        assert ["summer"] == [row["session"] for row in run("sessions", "--runtime", "codex", "--json").json]
        assert ["winter"] == [row["session"] for row in run("sessions", "win", "--json").json]
        assert 2 == len(run("sessions").lines)

    def test_agents(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "cafe.jsonl"
        with repo.session(path) as session:
            session.log_agent_created("a1", name="root")
            made = session.log_transcript_entry("a1", {"role": "assistant", "content": "go"})
            session.log_agent_created("a2", cause=made, name="Jill")
            session.log_transcript_entry("a2", {"role": "assistant", "content": "I am Jill"})

        for name in (str(path), "cafe", session.session_id):
            rows = run("agents", name, "--json").json
            assert [("a1", "root", 1), ("a2", "Jill", 1)] == [(r["agent"], r["name"], r["messages"]) for r in rows]
            assert [repo.commit(f"{session.session_id}@{made}").short] == [r["tip"] for r in rows[:1]]
        assert 2 == len(run("agents", "cafe").lines)
        assert 3 == run("agents", "nobody").code

    def test_an_agents_agent_is_below_it_wherever_one_looks(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "cafe.jsonl"
        with repo.session(path) as session:
            made = ""
            for agent in ("a1", "a2", "a3"):
                session.log_agent_created(agent, cause=made or None, name=agent)
                made = session.log_transcript_entry(agent, {"role": "assistant", "content": "go"})

        for name in (str(path), "cafe"):
            rows = run("agents", name, "--json").json
            assert [("a1", None), ("a2", "a1"), ("a3", "a2")] == [(r["agent"], r["parent"]) for r in rows]

    def test_a_log_tells_its_agents_without_a_store(self, run: Run, where: Path, tmp_path: Path) -> None:
        with Session(tmp_path / "cafe.jsonl") as session:
            session.log_agent_created("a1", name="root")

        assert ["a1"] == [row["agent"] for row in run("agents", str(tmp_path / "cafe.jsonl"), "--json").json]
        assert not where.exists()


class TestDoctor:
    @pytest.mark.parametrize("word", ["{folder}", "sqlite:{folder}/harken.db", "sqlite://{folder}/harken.db"])
    def test_knows_every_word_for_a_store(self, run: Run, tmp_path: Path, word: str) -> None:
        with harken.open(tmp_path) as repo:
            chain(repo, [1])

        done = run("--store", word.format(folder=tmp_path), "doctor", "--json")

        found = {row["check"]: row["detail"] for row in done.json}
        assert (str(tmp_path / "harken.db"), True) == (found["store"], "the last commit" in found["opens"])

    @pytest.mark.parametrize("word", ["", "postgres://x/y"])
    def test_fails_for_what_is_no_store(self, run: Run, word: str) -> None:
        assert 1 == run("--store", word, "doctor").code

    def test_a_fresh_installation_without_a_store_is_well(self, run: Run, where: Path) -> None:
        done = run("doctor", "--json")

        assert "is not there yet" in next(row["detail"] for row in done.json if row["check"] == "store")
        assert not where.exists(), "looking changes nothing"

    def test_warns_of_files_that_others_may_read(self, repo: Repo, run: Run, where: Path) -> None:
        chain(repo, [1])
        where.chmod(0o644)

        warnings = [row for row in run("doctor", "--json").json if row["status"] == "warning"]

        assert [f"chmod 600 {where}"] == [row["hint"] for row in warnings]

    def test_says_that_a_store_does_not_open(self, run: Run, where: Path) -> None:
        where.parent.mkdir(parents=True, mode=0o700)
        where.write_bytes(b"this is no database, and never was one" * 100)
        where.chmod(0o600)

        done = run("doctor", "--json")

        assert 1 == done.code
        assert ["failure"] == [row["status"] for row in done.json if row["check"] == "opens"]


class TestEverywhere:
    @pytest.mark.parametrize(
        "args",
        [
            ["log", "nowhere"],
            ["show", "nowhere"],
            ["materialize", "nowhere"],
            ["fork", "nowhere", "--name", "n"],
            ["compact", "nowhere"],
            ["snapshot", "nowhere"],
            ["tag", "n", "nowhere"],
            ["pin", "nowhere"],
            ["annotate", "nowhere", "x"],
            ["diff", "nowhere", "nowhere"],
        ],
        ids=lambda args: args[0],
    )
    def test_an_unknown_ref_is_exit_3_with_candidates(self, repo: Repo, run: Run, args: list[str]) -> None:
        repo.fork(chain(repo, [1]), "nowhere-else")

        done = run(*args)

        assert (3, "", True) == (done.code, done.out, "close to it: nowhere-else" in done.err)

    @pytest.mark.parametrize(
        "args",
        [["log", "-n", "-1"], ["show"], ["fork", "x"], ["materialize"], ["diff", "a"], ["checkpoint", "--type", "x"]],
        ids=lambda args: args[0],
    )
    def test_wrong_arguments_are_exit_2(self, run: Run, args: list[str]) -> None:
        assert 2 == run(*args).code

    def test_arguments_that_are_not_utf8_are_kept_and_shown(self, repo: Repo, run: Run) -> None:
        commit = keep(repo, turn(1), session_id="s\udcff")

        assert 0 == run("annotate", commit.short, "odd \udcff").code
        assert ["odd \udcff"] == [row["summary"] for row in run("log", "--json").json]
        assert ["s\udcff"] == [row["session"] for row in run("sessions", "--json").json]
        assert "odd \\xdcff" in run("log").out

    def test_nothing_hostile_reaches_the_terminal(self, repo: Repo, run: Run) -> None:
        """Escape sequences in texts, names and summaries are shown, not obeyed."""
        tip = keep(repo, [Prompt(content=HOSTILE + "a"), Response(content=HOSTILE + "b")], session_id="s" + HOSTILE)
        repo.annotate(tip, "summary " + HOSTILE)
        other = keep(repo, [Response(content=HOSTILE)], tip, ticket_id=HOSTILE)

        for args in (
            ["log"],
            ["log", "--graph"],
            ["log", "--json"],
            ["show", tip.short],
            ["show", other.short],
            ["sessions"],
            ["sessions", "--json"],
            ["diff", tip.short, other.short],
            ["agents", "s"],
            ["log", HOSTILE],
        ):
            done = run(*args)
            for character in HOSTILE:
                if not character.isprintable():
                    assert character not in done.out + done.err, args

    @pytest.mark.parametrize(
        "name",
        [
            "agents",
            "annotate",
            "backup",
            "branch",
            "checkpoint",
            "compact",
            "diff",
            "doctor",
            "fork",
            "fsck",
            "gc",
            "log",
            "materialize",
            "moves",
            "pin",
            "resolve",
            "sessions",
            "show",
            "snapshot",
            "tag",
            "undo",
        ],
    )
    def test_help_is_there_and_loads_no_store(self, run: Run, where: Path, name: str) -> None:
        done = run(name, "--help")

        assert (0, True) == (done.code, COMMANDS[name][1] in done.out)
        assert not where.exists()


class TestChat:
    def test_is_kept_in_the_store_that_is_named(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "evening.jsonl"
        script = tmp_path / "script.json"
        script.write_text('{"agents": {"root": {"otherwise": "Good evening to you."}}}')
        typed = b"one\ntwo\nthree\nfour\n/compact all was well\nfive\n"

        done = run("chat", "--file", str(path), "--model", f"scripted:{script}", stdin=typed)

        assert (0, True) == (done.code, "the oldest turns are folded" in done.err), done.err
        prompts = [event.content for event in heard(repo, "evening") if isinstance(event, Prompt)]
        assert ["one", "all was well", "four", "five"] == prompts
        everything = [event.content for event in heard(repo, "evening", stop="root") if isinstance(event, Prompt)]
        assert ["one", "two", "three", "four", "five"] == everything
