"""The commands about contexts: what they print, for people and for programs, and how they end."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import harken
from harken.cli import COMMANDS
from harken.events import Prompt, Response
from harken.events.cbor import decode_events, encode_events
from harken.formats import bureau_agent
from harken.log import Session
from harken.repo import Repo
from harken.store import Commit, Draft, SqliteStore
from support.contexts import START, chain, flat, heard, keep, turn
from support.sessions import conversation

if TYPE_CHECKING:
    Run = Any

HOSTILE = "\x1b]0;owned\x07\u202e"


class TestLog:
    def test_lists_the_chain_newest_first(self, repo: Repo, run: Run) -> None:
        tip = chain(repo, [1, 2])
        repo.fork(tip, "review")

        done = run("log", "review")

        assert 0 == done.code
        assert [tip.short, repo.history(tip)[1].short] == [line.split()[0] for line in done.lines]
        assert "(review)  question 2 → Read → answer 2" in done.lines[0]

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

        for words in (commit.id, "tkt-7", "read the parser", "2 messages", "question 1", 'Read {"path":"x"}', "(me)"):
            assert words in out

    def test_json_has_the_annotations_and_the_children(self, repo: Repo, run: Run) -> None:
        root = chain(repo, [1])
        child = chain(repo, [2], root)
        repo.annotate(root, "a label", key="label")

        (shown,) = run("show", root.short, "--json").json

        assert [child.id] == shown["children"]
        assert ["a label"] == [note["value"] for note in shown["annotations"]]


class TestMaterialize:
    def test_writes_the_bytes_to_stdout(self, repo: Repo, run: Run) -> None:
        tip = chain(repo, [1, 2])

        done = run("materialize", tip.short)

        assert flat([1, 2]) == decode_events(done.data)
        assert "tier 1 (native): 4 messages" in done.err

    def test_writes_a_file_and_says_how_it_was_made(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        tip = chain(repo, [1])
        target = tmp_path / "out.cbor"

        (made,) = run("materialize", tip.short, "--format", "bureau-agent-v1", "-o", str(target), "--json").json

        expected = {"artifact", "format", "tier", "losses", "message_count", "token_count", "commit_count"}
        assert expected <= made.keys()
        assert "bytes" not in made
        assert ("bureau-agent-v1", "2s", "structural") == (made["format"], made["tier"], made["tier_name"])
        assert [{"what": "message_id", "count": 4}] == [
            {k: loss[k] for k in ("what", "count")} for loss in made["losses"]
        ]
        assert 4 == len(bureau_agent.FORMAT.read(target.read_bytes()))

    def test_a_file_is_the_users_own_and_appears_whole(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        tip, target = chain(repo, [1]), tmp_path / "out" / "here.cbor"
        target.parent.mkdir()
        target.write_bytes(b"old")
        target.chmod(0o644)
        number = target.stat().st_ino

        assert 0 == run("materialize", tip.short, "-o", str(target), "--force").code

        assert flat([1]) == decode_events(target.read_bytes())
        assert (0o600, True) == (stat.S_IMODE(target.stat().st_mode), number != target.stat().st_ino)
        assert [target] == list(target.parent.iterdir())

    def test_a_link_stays_a_link_and_a_device_a_device(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        tip, target, link = chain(repo, [1]), tmp_path / "real.cbor", tmp_path / "link.cbor"
        link.symlink_to(target)

        assert (0, 0) == (
            run("materialize", tip.short, "-o", str(link)).code,
            run("materialize", tip.short, "-o", "/dev/null").code,
        )

        assert (True, True) == (link.is_symlink(), target.is_file())
        assert Path("/dev/null").is_char_device()

    def test_stops_where_it_is_told(self, repo: Repo, run: Run) -> None:
        tip = repo.compact(chain(repo, [1, 2]), "in short")

        assert 1 == len(decode_events(run("materialize", tip.short).data))
        assert flat([1, 2]) == decode_events(run("materialize", tip.short, "--stop", "root").data)

    def test_a_folder_that_is_not_there_is_a_failure(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        done = run("materialize", chain(repo, [1]).short, "-o", str(tmp_path / "no" / "out"))

        assert (1, True) == (done.code, "cannot write" in done.err)

    def test_an_unknown_format_lists_what_there_is(self, repo: Repo, run: Run) -> None:
        done = run("materialize", chain(repo, [1]).short, "--format", "morse")

        assert (3, True) == (done.code, "events-v1" in done.err)


class TestCheckpoint:
    def test_reads_a_file_and_prints_the_new_name(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        file = tmp_path / "turn.cbor"
        file.write_bytes(encode_events(turn(1)))

        done = run("checkpoint", str(file), "--session", "s", "--summary", "the first turn")

        assert [repo.commit("s").short] == done.lines
        assert "the first turn" == repo.show("s").summary

    def test_reads_stdin_and_moves_the_branch(self, repo: Repo, run: Run) -> None:
        repo.fork(chain(repo, [1]), "b")

        (made,) = run(
            "checkpoint", "--format", "events-v1", "--parent", "b", "--json", stdin=encode_events(turn(2))
        ).json

        assert made["id"] == repo.commit("b").id
        assert flat([1, 2]) == heard(repo, "b")

    def test_asks_for_a_format_it_cannot_tell(self, run: Run) -> None:
        done = run("checkpoint", stdin=b"dot dash")

        assert (2, True) == (done.code, "name it: " in done.err)

    def test_takes_an_artifact(self, repo: Repo, run: Run) -> None:
        artifact = repo.put(encode_events(turn(1)))

        done = run("checkpoint", "--artifact", f"art-{artifact[:12]}", "--format", "events-v1")

        assert artifact == repo.commit(done.lines[0]).artifact

    def test_a_file_that_is_not_there_is_not_found(self, run: Run) -> None:
        assert 3 == run("checkpoint", "nowhere.cbor", "--format", "events-v1").code

    def test_bytes_that_are_no_array_are_a_bad_record(self, run: Run) -> None:
        assert 5 == run("checkpoint", "--format", "events-v1", stdin=b"not cbor").code


class TestNames:
    def test_a_fork_is_a_branch(self, repo: Repo, run: Run) -> None:
        tip = chain(repo, [1])

        assert ["b"] == run("fork", tip.short, "--name", "b", "--why", "a try").lines
        assert [f"{tip.short}  b"] == run("branch").lines
        assert ("a try", "tester") == (repo.store.moves()[0].why, repo.store.moves()[0].who)

    def test_a_fork_that_exists_is_a_conflict(self, repo: Repo, run: Run) -> None:
        repo.fork(chain(repo, [1]), "b")

        assert 4 == run("fork", "b", "--name", "b").code

    @pytest.mark.parametrize("kind", ["branch", "tag"])
    def test_are_made_moved_listed_and_removed(self, repo: Repo, run: Run, kind: str) -> None:
        first, second = chain(repo, [1]), chain(repo, [2])

        assert [f"{first.short}  n"] == run(kind, "n", first.short).lines
        assert 4 == run(kind, "n", second.short).code, "moving takes --move"
        assert 0 == run(kind, "--move", "n", second.short, "--why", "better").code
        named = {"name": "n", "kind": kind, "target": second.id, "short": second.short}
        assert [named] == run(kind, "--json").json
        assert 0 == run(kind, "--delete", "n").code
        assert [] == run(kind).lines
        assert ["delete", "better", "new"] == [move["why"] for move in run("moves", "n", "--json").json]
        assert 0 == run("undo", "n").code
        assert second.id == repo.commit("n").id

    @pytest.mark.parametrize("command", ["tag", "branch"])
    def test_what_is_not_there_cannot_be_moved(self, repo: Repo, run: Run, command: str) -> None:
        tip = chain(repo, [1])

        done = run(command, "--move", "nope", tip.short)

        assert (3, []) == (done.code, repo.store.names())

    def test_names_that_collide_are_printed_in_full(self, repo: Repo, run: Run) -> None:
        first = keep(repo, turn(1), created_at=START, session_id="one")
        twin = keep(repo, turn(1), created_at=START, session_id="two")
        child = keep(repo, turn(2), twin)
        repo.fork(twin, "b")
        repo.move("b", first, kind="branch")

        printed = [
            run("undo", "b").lines[0].split()[0],
            run("branch").lines[0].split()[0],
            run("moves", "b").lines[0].split()[7].strip(":"),
            next(line for line in run("sessions").lines if "  two" in line).split()[0],
            next(line for line in run("show", child.short).lines if line.startswith("parent")).split()[1],
        ]

        assert first.id[:8] == twin.id[:8]
        assert [twin.short] * 5 == printed

    def test_an_import_names_the_tip_as_every_other_command_does(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        """Two commits may share eight digits; each is named by as many as it takes."""
        path = tmp_path / "s" / "aaa.jsonl"
        path.parent.mkdir()
        path.write_bytes(conversation("aaa").data)
        parent = ""
        with harken.open(tmp_path / "other.db") as other, repo.store.write() as writer:
            list(other.import_sessions([path]))
            for commit in reversed(list(other.history("aaa"))):
                facts = {name: getattr(commit, name) for name in Draft.__struct_fields__}
                writer.put(other.store.get(commit.artifact))
                parent = writer.commit(Draft(**facts | {"session_id": "bbb", "parent": parent})).id

        line = run("import", str(path), "--json").json[0]

        assert parent[:8] == line["tip_id"][:8]
        assert parent != line["tip_id"] == repo.commit(line["tip"]).id

    def test_the_moves_of_a_name_that_never_was_are_an_error(self, repo: Repo, run: Run) -> None:
        repo.fork(chain(repo, [1]), "b")

        done = run("moves", "nosuchname")

        assert (3, b"") == (done.code, done.data)
        assert "hint" in done.err
        assert 0 == run("moves", "b").code

    def test_branches_that_harken_keeps_for_itself_are_listed_where_they_are_asked_for(
        self, repo: Repo, run: Run
    ) -> None:
        tip = chain(repo, [1])
        for name in ("mine", "live/abc", "resumed/abc"):
            repo.fork(tip, name)

        assert ["mine"] == [line.split()[-1] for line in run("branch").lines]
        assert 3 == len(run("branch", "--all").lines)
        for wrong in ("live/abd", "resumed/abd", "zzzz"):
            hint = run("show", wrong).err
            assert "live/" not in hint.replace(wrong, "")
            assert "resumed/" not in hint.replace(wrong, "")
        assert 0 == run("show", "live/abc").code

    def test_undo_takes_back_the_move_of_a_number(self, repo: Repo, run: Run) -> None:
        first = chain(repo, range(1))
        second = keep(repo, turn(1), first)
        third = keep(repo, turn(2), second)
        repo.fork(first, "b")
        repo.move("b", second, kind="branch")
        repo.move("b", third, kind="branch")

        assert 0 == run("undo", "b").code
        assert 0 == run("undo", "2").code
        assert first.id == repo.commit("b").id
        assert 0 == run("undo", "--move", "1").code
        assert [] == repo.store.names()
        assert 3 == run("undo", "77").code
        assert 2 == run("undo", "b", "--move", "1").code

    def test_undo_says_what_to_do_where_a_branch_went_on(self, repo: Repo, run: Run) -> None:
        first, second = chain(repo, [1]), chain(repo, [2])
        repo.fork(first, "b")
        repo.move("b", second, kind="branch")
        third = keep(repo, turn(3), "b")

        done = run("undo", "b")
        assert (4, True) == (done.code, f"harken branch --move b {first.short}" in done.err)
        assert third.short in done.err

        repo.move("b", first, kind="branch")
        done = run("undo", "2")
        assert (4, True) == (done.code, "`harken undo 3`" in done.err)

    def test_undo_without_anything_to_undo_is_not_found(self, run: Run) -> None:
        assert 3 == run("undo").code

    @pytest.mark.parametrize("args", [["branch", "n"], ["tag", "--move"], ["tag", "--delete", "n", "ref"]])
    def test_half_a_sentence_is_a_usage_error(self, repo: Repo, run: Run, args: list[str]) -> None:
        assert 2 == run(*args).code


class TestCompact:
    def test_says_that_a_session_stays_where_it_was(self, repo: Repo, run: Run) -> None:
        tip = keep(repo, turn(1), session_id="s")
        repo.fork(tip, "b")

        done = run("compact", "s")
        assert tip.id == repo.commit("s").id
        assert f"s stays where it was, without the summary; go on from {done.lines[0]}" in done.err
        assert "stays where it was" not in run("compact", "b").err

    def test_puts_its_own_words_on_top(self, repo: Repo, run: Run) -> None:
        repo.fork(chain(repo, range(3)), "b")

        done = run("compact", "b")

        assert [repo.commit("b").short] == done.lines
        assert "--stop root" in done.err

    def test_takes_a_summary_from_a_file_or_from_stdin(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        tip = chain(repo, range(3))
        (tmp_path / "notes.md").write_text("from the file")

        first = run("compact", tip.short, "--summary", str(tmp_path / "notes.md")).lines[0]
        second = run("compact", first, "--summary", "-", stdin=b"from stdin").lines[0]

        said = [event.content for ref in (first, second) for event in heard(repo, ref) if isinstance(event, Prompt)]
        assert ["from the file", "from stdin"] == said
        assert repo.commit(first).parent == repo.commit(second).parent

    def test_asks_a_model(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        script = tmp_path / "script.json"
        script.write_text('{"agents": {"*": {"rules": [{"when": "question 2", "say": "a model\'s summary"}]}}}')

        done = run("compact", chain(repo, range(3)).short, "--model", f"scripted:{script}")

        assert 0 == done.code, done.err
        assert "a model's summary" in str(heard(repo, done.lines[0])[0])

    def test_takes_a_summary_or_a_model(self, repo: Repo, run: Run) -> None:
        assert 2 == run("compact", chain(repo, [1]).short, "--summary", "-", "--model", "demo").code

    def test_a_summary_that_is_not_there_is_not_found(self, repo: Repo, run: Run) -> None:
        assert 3 == run("compact", chain(repo, [1]).short, "--summary", "nowhere.md").code


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
