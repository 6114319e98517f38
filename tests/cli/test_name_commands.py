"""The commands about branches: `fork`, `branch`, `moves`, `undo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import harken
from harken.repo import Repo
from harken.store import Draft
from support.contexts import START, chain, keep, turn
from support.sessions import conversation

if TYPE_CHECKING:
    Run = Any


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
            run("moves", "b").lines[0].split()[8].strip(":"),
            next(one["tip"] for one in run("sessions", "--json").json if one["session"] == "two"),
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
