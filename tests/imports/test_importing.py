"""What goes in comes back, once, under the same names, however it came."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zstandard

import harken
from harken import runtimes
from harken.context.chains import recall
from harken.runtimes.importer import Importer
from support.sessions import ClaudeSession, conversation, rollout

from .conftest import Import, age

THREAD = "019b88e0-0000-7000-8000-000000000001"


class TestBytes:
    def test_every_file_comes_back_byte_for_byte(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        files = tmp_path / "projects"
        files.mkdir()
        (files / "aaa.jsonl").write_bytes(conversation("aaa", 5).data)
        (files / f"rollout-2026-02-22T10-30-00-{THREAD}.jsonl").write_bytes(rollout(THREAD))

        outcomes = take_in(files)

        assert {"aaa": "new", THREAD: "new"} == {name: outcome.status for name, outcome in outcomes.items()}
        for outcome in outcomes.values():
            assert Path(outcome.source).read_bytes() == repo.materialize(outcome.session, stop="root").bytes

    @pytest.mark.parametrize(
        "dirt",
        [
            b'{"type":"user","uuid":"cut sho',
            b'not json at all\n{"type":"telepathy","uuid":"x"}\n',
            b'{"type":"mode","mode":"a"}{"type":"mode","mode":"b"}\n',
            b"\n\n\r\n",
            b"\xff\xfe\x00\n",
            b'{"type":"user","message":{"content":"\\ud800"}}\n',
            b'{"type":"user","n":' + b"9" * 5000 + b"}\n",
            b"[" * 100_000 + b"\n",
        ],
    )
    def test_what_cannot_be_read_is_kept_too(self, repo: Any, take_in: Import, tmp_path: Path, dirt: bytes) -> None:
        data = conversation("dirty").data + dirt
        (tmp_path / "dirty.jsonl").write_bytes(data)

        take_in(tmp_path)

        assert data == repo.materialize("dirty", stop="root").bytes

    def test_a_compressed_rollout_comes_back_as_what_it_unpacks_to(
        self, repo: Any, take_in: Import, tmp_path: Path
    ) -> None:
        (tmp_path / f"rollout-x-{THREAD}.jsonl.zst").write_bytes(zstandard.compress(rollout(THREAD)))

        take_in(tmp_path)

        assert rollout(THREAD) == repo.materialize(THREAD, stop="root").bytes


_WATCHING: list[list[str]] = []


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """The files that this process opens within the block."""
    if not _WATCHING:
        sys.addaudithook(lambda event, words: _WATCHING[-1].append(str(words[0])) if event == "open" else None)
    _WATCHING.append([])
    yield _WATCHING[-1]


class TestAgain:
    def test_a_second_import_adds_nothing_and_reads_nothing(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(conversation("aaa").data)
        age(path)
        first = take_in(tmp_path)["aaa"]
        with opened_files() as opened:
            again = take_in(tmp_path)["aaa"]

        assert str(path) not in opened, "#39: told by the interpreter, whoever runs the test"
        assert ("unchanged", 0, 0) == (again.status, again.commits, again.bytes)
        assert first.tip == again.tip

    def test_two_stores_give_the_same_names(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        (tmp_path / "aaa.jsonl").write_bytes(conversation("aaa", 4).data)
        tip = take_in(tmp_path)["aaa"].tip

        with harken.open(tmp_path / "other" / "store.db") as other:
            importer = Importer(other.store, [runtimes.get("claude-code")])
            (outcome,) = importer.run([tmp_path / "aaa.jsonl"])

        assert tip == outcome.tip

    def test_a_file_imported_as_it_grew_ends_where_a_fresh_import_ends(
        self, repo: Any, take_in: Import, tmp_path: Path
    ) -> None:
        lines = conversation("aaa", 4).lines
        path = tmp_path / "grown" / "aaa.jsonl"
        path.parent.mkdir()
        for count in range(1, len(lines) + 1):
            path.write_bytes(b"".join(lines[:count]))
            grown = take_in(path.parent)["aaa"]

        with harken.open(tmp_path / "other" / "store.db") as other:
            (fresh,) = Importer(other.store, [runtimes.get("claude-code")]).run([path])

        assert fresh.tip == grown.tip
        assert fresh.total_commits == grown.total_commits
        assert fresh.figures == grown.figures
        assert path.read_bytes() == repo.materialize("aaa", stop="root").bytes

    def test_a_line_cut_in_the_middle_is_completed_by_the_next_import(
        self, repo: Any, take_in: Import, tmp_path: Path
    ) -> None:
        data = conversation("aaa").data
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(data[:-20])
        take_in(tmp_path)
        path.write_bytes(data)

        outcome = take_in(tmp_path)["aaa"]

        assert "grown" == outcome.status
        assert data == repo.materialize("aaa", stop="root").bytes

    def test_the_old_tail_says_what_came_in_its_place(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        session = conversation("aaa")
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(session.data)
        old = take_in(tmp_path)["aaa"].tip
        session.side({"type": "mode", "mode": "default"})
        path.write_bytes(session.data)

        new = take_in(tmp_path)["aaa"].tip

        assert [new] == [note.value for note in repo.store.annotations(old) if note.key == "superseded_by"]

    def test_a_tail_that_came_back_is_superseded_no_more(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        """#32: a file that grew and was put back stood at a commit that `log` did not show."""
        session = conversation("aaa")
        path, short = tmp_path / "aaa.jsonl", session.data
        path.write_bytes(short)
        old = take_in(tmp_path)["aaa"].tip
        session.side({"type": "mode", "mode": "default"})
        path.write_bytes(session.data)
        long = take_in(tmp_path)["aaa"].tip
        path.write_bytes(short)

        back = take_in(tmp_path)["aaa"].tip

        assert old == back
        assert [False] == [shown.superseded for shown in repo.log() if shown.id == back]
        assert back in {commit.id for commit in repo.family("aaa").commits}
        assert long == repo.show("aaa~1").id

    def test_a_tail_that_a_cut_closes_after_all_is_superseded_no_more(
        self, repo: Any, take_in: Import, tmp_path: Path
    ) -> None:
        """#32: half of the next line came in between."""
        session = conversation("aaa", 2)
        session.prompt("next")
        path = tmp_path / "aaa.jsonl"
        for end in (len(session.data) - len(session.lines[-1]), len(session.data) - 20, len(session.data)):
            path.write_bytes(session.data[:end])
            take_in(tmp_path)

        assert not any(shown.superseded for shown in repo.log("aaa"))
        assert {commit.id for commit in repo.history("aaa")} <= {shown.id for shown in repo.log()}

    def test_the_end_of_another_file_of_the_session_is_not_superseded(
        self, repo: Any, take_in: Import, tmp_path: Path
    ) -> None:
        session = conversation("aaa")
        (tmp_path / "copy").mkdir()
        for folder in (tmp_path, tmp_path / "copy"):
            (folder / "aaa.jsonl").write_bytes(session.data)
        old = take_in(tmp_path)["aaa"].tip
        session.side({"type": "mode", "mode": "default"})
        (tmp_path / "aaa.jsonl").write_bytes(session.data)

        take_in(tmp_path)

        assert [False] == [shown.superseded for shown in repo.log() if shown.id == old]
        assert old == repo.show("aaa~1").id

    def test_a_rewritten_file_branches_off_and_keeps_its_old_tip(
        self, repo: Any, take_in: Import, tmp_path: Path
    ) -> None:
        first, second = conversation("aaa", 3), conversation("aaa", 2)
        second.prompt("another way")
        second.answer("was taken")
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(first.data)
        old = take_in(tmp_path)["aaa"].tip
        path.write_bytes(second.data)

        outcome = take_in(tmp_path)["aaa"]

        assert "rewritten" == outcome.status
        assert second.data == repo.materialize("aaa", stop="root").bytes
        assert first.data == repo.materialize("aaa~1", stop="root").bytes
        assert (old,) == repo.store.find_session("aaa").older

    def test_a_file_that_moved_is_the_same_session(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        path = tmp_path / "one" / "aaa.jsonl"
        path.parent.mkdir()
        path.write_bytes(conversation("aaa").data)
        take_in(tmp_path)
        path.parent.rename(tmp_path / "two")

        outcomes = take_in(tmp_path)

        assert {"aaa"} == set(outcomes)
        assert 1 == len(repo.store.sessions())

    def test_two_files_of_one_session_are_one_session_at_the_one_that_was_last_active(
        self, repo: Any, take_in: Import, tmp_path: Path
    ) -> None:
        files = {}
        for folder, turns in (("one", 2), ("two", 3)):
            (tmp_path / folder).mkdir()
            files[folder] = conversation("aaa", turns, salt=folder).data
            (tmp_path / folder / "aaa.jsonl").write_bytes(files[folder])

        take_in(tmp_path)

        assert ["aaa"] == [row.session for row in repo.store.sessions()]
        assert files["two"] == repo.materialize("aaa", stop="root").bytes
        assert files["one"] == repo.materialize("aaa~1", stop="root").bytes


class TestRelations:
    def test_a_sub_agents_file_is_a_session_below_its_parents(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        parent = ClaudeSession("aaa")
        parent.prompt("go")
        parent.call("Task", "found it", agent="b1")
        folder = tmp_path / "aaa" / "subagents"
        folder.mkdir(parents=True)
        (tmp_path / "aaa.jsonl").write_bytes(parent.data)
        (folder / "agent-b1.jsonl").write_bytes(conversation("aaa", 1, agent="b1", salt="b1").data)
        (folder / "agent-b1.meta.json").write_text('{"agentType":"search"}')

        outcomes = take_in(tmp_path)

        child = outcomes["aaa/b1"]
        assert "aaa" == child.parent
        root = repo.store.chain(child.tip)[-1]
        assert {"session": "aaa", "call_id": "toolu_aaa_2", "inherits": False} == root.spawned_from
        assert "claude-code:aaa/b1" == root.principal

    def test_side_chains_inside_a_file_get_chains_of_their_own(
        self, repo: Any, take_in: Import, tmp_path: Path
    ) -> None:
        main, side = conversation("aaa", 2), ClaudeSession("aaa", salt="side")
        side.prompt("look it up", isSidechain=True)
        side.answer("here it is", isSidechain=True)
        data = b"".join([*main.lines[:4], *side.lines, *main.lines[4:]])
        (tmp_path / "aaa.jsonl").write_bytes(data)

        take_in(tmp_path)

        (row,) = [row for row in repo.store.sessions() if row.parent == "aaa"]
        assert side.data == repo.materialize(row.session, stop="root").bytes
        assert data == repo.materialize("aaa", stop="root").bytes
        assert b"look it up" not in repo.materialize("aaa").bytes

    def test_a_copy_is_linked_to_its_original_and_its_usage_counts_once(
        self, repo: Any, take_in: Import, tmp_path: Path
    ) -> None:
        original = conversation("aaa", 6)
        copied = original.data.replace(b'"aaa"', b'"bbb"')
        more = ClaudeSession("bbb", salt="more")
        more.prompt("and now?")
        more.answer("something else")
        (tmp_path / "aaa.jsonl").write_bytes(original.data)
        (tmp_path / "bbb.jsonl").write_bytes(copied + more.data)

        outcomes = take_in(tmp_path)

        assert outcomes["bbb"].forked_from in {commit.id for commit in repo.store.chain(outcomes["aaa"].tip)}
        assert copied + more.data == repo.materialize("bbb", stop="root").bytes

    def test_side_files_are_kept_with_their_session(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        (tmp_path / "aaa.jsonl").write_bytes(conversation("aaa").data)
        results = tmp_path / "aaa" / "tool-results"
        results.mkdir(parents=True)
        (results / "x.txt").write_text("a long output")

        take_in(tmp_path)

        (row,) = repo.store.sessions()
        (source,) = recall(row).values()
        (side,) = source.side_files.items()
        assert ("aaa/tool-results/x.txt", b"a long output") == (side[0], repo.store.get(side[1].artifact))


class TestTrouble:
    def test_a_pipe_a_loop_and_a_file_nobody_may_read_are_reported_and_the_rest_goes_in(
        self, take_in: Import, tmp_path: Path
    ) -> None:
        files = tmp_path / "files"
        files.mkdir()
        (files / "good.jsonl").write_bytes(conversation("good").data)
        os.mkfifo(files / "pipe.jsonl")
        (files / "loop.jsonl").symlink_to(files / "loop.jsonl")
        (files / "self").symlink_to(files)

        outcomes = take_in(files)

        assert "new" == outcomes["good"].status
        failed = {
            Path(outcome.source).name: outcome.error for outcome in outcomes.values() if outcome.status == "failed"
        }
        assert {"pipe.jsonl", "loop.jsonl"} == set(failed)
        assert "not a regular file" in failed["pipe.jsonl"]

    def test_a_file_that_is_no_session_is_passed_over(self, take_in: Import, tmp_path: Path) -> None:
        (tmp_path / "notes.jsonl").write_text('{"a":1}\n{"b":2}\n')

        (outcome,) = take_in(tmp_path).values()

        assert "skipped" == outcome.status

    def test_a_broken_archive_is_a_failure_of_its_own(self, take_in: Import, tmp_path: Path) -> None:
        (tmp_path / "x.jsonl.zst").write_bytes(zstandard.compress(rollout(THREAD))[:-30])

        (outcome,) = take_in(tmp_path).values()

        assert "failed" == outcome.status

    def test_a_dry_run_keeps_nothing(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        (tmp_path / "aaa.jsonl").write_bytes(conversation("aaa").data)

        outcome = take_in(tmp_path, dry_run=True)["aaa"]

        assert "new" == outcome.status
        assert [] == repo.store.sessions()

    def test_a_file_longer_than_a_step_goes_in_by_steps(
        self, repo: Any, take_in: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("harken.runtimes.sources.PART", 2000)
        monkeypatch.setattr("harken.runtimes.files.CHUNK", 500)
        monkeypatch.setattr("harken.runtimes.importer.BATCH", 4000)
        session = conversation("aaa", 20)
        session.prompt("long " * 2000)
        (tmp_path / "aaa.jsonl").write_bytes(session.data)
        by_steps = take_in(tmp_path)["aaa"]
        monkeypatch.undo()

        with harken.open(tmp_path / "other" / "store.db") as other:
            (at_once,) = Importer(other.store, [runtimes.get("claude-code")]).run([tmp_path / "aaa.jsonl"])

        assert (at_once.tip, at_once.figures, at_once.total_records) == (
            by_steps.tip,
            by_steps.figures,
            by_steps.total_records,
        )


class TestOddNames:
    def test_a_file_may_have_a_number_sign_in_its_name(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        path = tmp_path / "a#b.jsonl"
        path.write_bytes(conversation("aaa", 2).data)
        age(path)
        take_in(tmp_path)

        again = take_in(tmp_path, read=lambda path, since: pytest.fail("it is read again"))["aaa"]

        assert "unchanged" == again.status


class TestMoved:
    def test_a_long_file_that_moved_is_not_appended_to_itself(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        data = conversation("aaa", 8).data
        (tmp_path / "one").mkdir()
        (tmp_path / "one" / "aaa.jsonl").write_bytes(data)
        tip = take_in(tmp_path)["aaa"].tip
        (tmp_path / "one").rename(tmp_path / "two")

        outcome = take_in(tmp_path)["aaa"]

        assert ("unchanged", tip) == (outcome.status, outcome.tip)
        assert data == repo.materialize("aaa", stop="root").bytes

    def test_a_file_that_moved_and_grew_goes_on(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        session = conversation("aaa", 4)
        (tmp_path / "one").mkdir()
        (tmp_path / "one" / "aaa.jsonl").write_bytes(session.data)
        take_in(tmp_path)
        (tmp_path / "one").rename(tmp_path / "two")
        session.prompt("and on")
        (tmp_path / "two" / "aaa.jsonl").write_bytes(session.data)

        outcome = take_in(tmp_path)["aaa"]

        assert "grown" == outcome.status
        assert session.data == repo.materialize("aaa", stop="root").bytes

    def test_a_rollout_that_was_compressed_meanwhile_is_the_same_session(
        self, repo: Any, take_in: Import, tmp_path: Path
    ) -> None:
        path = tmp_path / f"rollout-x-{THREAD}.jsonl"
        path.write_bytes(rollout(THREAD, 6))
        tip = take_in(tmp_path)[THREAD].tip
        path.unlink()
        path.with_name(path.name + ".zst").write_bytes(zstandard.compress(rollout(THREAD, 6)))

        assert tip == take_in(tmp_path)[THREAD].tip
        assert rollout(THREAD, 6) == repo.materialize(THREAD, stop="root").bytes


class TestRewritten:
    def test_every_old_end_stays_the_newest_first(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        path = tmp_path / "aaa.jsonl"
        versions = [conversation("aaa", 3, salt=salt).data for salt in ("x", "y", "z")]
        for data in versions:
            path.write_bytes(data)
            take_in(tmp_path)

        assert versions[2] == repo.materialize("aaa", stop="root").bytes
        assert versions[1] == repo.materialize("aaa~1", stop="root").bytes
        assert versions[0] == repo.materialize("aaa~2", stop="root").bytes

    @pytest.mark.parametrize("change", ["drop", "replace"])
    def test_a_change_behind_the_last_cut_is_a_rewrite_too(
        self, repo: Any, take_in: Import, tmp_path: Path, change: str
    ) -> None:
        session = conversation("aaa", 3)
        path = tmp_path / "aaa.jsonl"
        path.write_bytes(session.data)
        take_in(tmp_path)
        changed = b"".join(session.lines[:-1]) + (
            b"" if change == "drop" else session.lines[-1].replace(b"answer", b"ANSWER")
        )
        path.write_bytes(changed)

        outcome = take_in(tmp_path)["aaa"]

        assert "rewritten" == outcome.status
        assert outcome.bytes >= 0
        assert changed == repo.materialize("aaa", stop="root").bytes
        assert session.data == repo.materialize("aaa~1", stop="root").bytes


class TestNames:
    @pytest.mark.parametrize("together", [True, False])
    def test_the_rows_of_many_files_do_not_depend_on_the_order_they_came_in(
        self, tmp_path: Path, together: bool
    ) -> None:
        """#25"""
        paths = [tmp_path / f"{number}" / "aaa.jsonl" for number in range(4)]
        for number, path in enumerate(paths):
            path.parent.mkdir()
            path.write_bytes(conversation("aaa", 1 + number // 2, salt=str(number)).data)
        seen = set()
        for turn, order in enumerate(itertools.permutations(paths)):
            with harken.open(tmp_path / f"{turn}.db") as repo:
                for batch in [order] if together else [[path] for path in order]:
                    for _ in Importer(repo.store, [runtimes.get("claude-code")]).run(batch):
                        pass
                (row,) = repo.store.sessions()
                seen.add((row.tip, row.older, row.source, row.title, row.started, row.ended, row.messages))

        assert 1 == len(seen)

    def test_a_side_file_tells_which_call_started_an_agent(self, repo: Any, take_in: Import, tmp_path: Path) -> None:
        folder = tmp_path / "aaa" / "subagents"
        folder.mkdir(parents=True)
        (tmp_path / "aaa.jsonl").write_bytes(conversation("aaa", 1).data)
        (folder / "agent-b1.jsonl").write_bytes(conversation("aaa", 1, agent="b1", salt="b1").data)
        (folder / "agent-b1.meta.json").write_text('{"toolUseId":"toolu_7"}')

        root = repo.store.chain(take_in(tmp_path)["aaa/b1"].tip)[-1]

        assert "toolu_7" == root.spawned_from["call_id"]

    def test_a_thread_that_another_started_is_recorded_as_itself(
        self, repo: Any, take_in: Import, tmp_path: Path
    ) -> None:
        child = THREAD.replace("1", "2")
        lines = rollout(child).splitlines(keepends=True)
        meta = json.loads(lines[0])
        meta["payload"]["source"] = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD}}}
        (tmp_path / f"rollout-a-{THREAD}.jsonl").write_bytes(rollout(THREAD))
        (tmp_path / f"rollout-b-{child}.jsonl").write_bytes(json.dumps(meta).encode() + b"\n" + b"".join(lines[1:]))

        outcome = take_in(tmp_path)[child]

        root = repo.store.chain(outcome.tip)[-1]
        assert (THREAD, child, f"codex:{child}") == (outcome.parent, root.session_id, root.principal)

    def test_a_copy_says_on_its_first_commit_what_it_goes_on_from(
        self, repo: Any, take_in: Import, tmp_path: Path
    ) -> None:
        original = conversation("aaa", 4).data
        (tmp_path / "aaa.jsonl").write_bytes(original)
        (tmp_path / "bbb.jsonl").write_bytes(original.replace(b'"aaa"', b'"bbb"'))

        outcomes = take_in(tmp_path)

        assert outcomes["bbb"].forked_from == repo.store.chain(outcomes["bbb"].tip)[-1].forked_from

    def test_a_relative_of_claude_code_is_not_taken_for_it(self, take_in: Import, tmp_path: Path) -> None:
        record = {
            "uuid": "u1",
            "parentUuid": None,
            "sessionId": "s",
            "type": "user",
            "message": {"role": "user", "parts": []},
        }
        (tmp_path / "x.jsonl").write_text(json.dumps(record) + "\n")

        (outcome,) = take_in(tmp_path).values()

        assert ("new", "qwen-code") == (outcome.status, outcome.runtime)

    @pytest.mark.parametrize("tokens", [-5, 10**40])
    def test_a_count_that_cannot_be_is_none(self, take_in: Import, tmp_path: Path, tokens: int) -> None:
        session = ClaudeSession("aaa")
        session.prompt("go")
        session.answer("done", tokens=tokens)
        (tmp_path / "aaa.jsonl").write_bytes(session.data)

        assert take_in(tmp_path)["aaa"].figures.usage.output is None
