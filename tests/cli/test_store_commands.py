"""The commands that look after the store: gc, fsck, backup."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.repo import Repo
from support.contexts import START, chain, flat, heard

Run = Any


class TestGc:
    def test_removes_what_expired_and_keeps_every_commit(self, repo: Repo, run: Run) -> None:
        tip = chain(repo, range(3))
        repo.materialize(tip, format="bureau-agent-v1")
        old = repo.put(b"for a day", policy="ephemeral", expires=START)

        (would,) = run("gc", "--dry-run", "--json").json
        assert (True, 1) == (would["dry_run"], would["expired"])
        assert repo.store.has(old)

        assert [f"art-{old[:12]} removed"] == run("gc").lines
        assert not repo.store.has(old)
        assert flat(range(3)) == heard(repo, tip)

    def test_makes_remembered_conversations_again(self, repo: Repo, run: Run) -> None:
        tip = chain(repo, range(3))
        before = repo.materialize(tip, format="bureau-agent-v1")

        assert 0 == run("gc").code

        assert before == repo.materialize(tip, format="bureau-agent-v1")


class TestFsck:
    def test_a_store_that_is_whole_is_exit_0(self, repo: Repo, run: Run) -> None:
        chain(repo, range(3))

        done = run("fsck", "--read-data", "--json")

        assert (0, True, 3) == (done.code, done.json[-1]["report"]["ok"], done.json[-1]["report"]["commits"])

    def test_damage_is_named_is_exit_9_and_is_mended_only_on_request(self, run: Run, where: Path) -> None:
        with harken.open(where) as repo:
            tip = chain(repo, range(3))
            repo.annotate(tip, "a remark")
        with sqlite3.connect(where) as file:
            file.execute("UPDATE annotations SET value = 'forged'")
        file.close()

        done = run("fsck")
        assert (9, True) == (done.code, "corrupt" in done.out)
        assert 9 == run("fsck").code, "looking changes nothing"

        mended = run("fsck", "--repair")
        assert (0, True) == (mended.code, "(repaired)" in mended.out)
        assert "before-repair" in mended.err
        assert 0 == run("fsck", "--read-data").code

    def test_an_evicted_artifact_is_not_corrupt(self, repo: Repo, run: Run) -> None:
        tip = chain(repo, range(2))
        with repo.store.write() as writer:
            writer.evict(tip.artifact)

        done = run("fsck", "--read-data", "--json")

        assert (0, ["evicted"]) == (done.code, [row["severity"] for row in done.json[:-1]])
        assert 3 == run("materialize", tip.short).code
        assert 0 == run("show", tip.short).code


class TestBackup:
    def test_is_a_store_like_the_original(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        tip = chain(repo, range(3))
        target = tmp_path / "copy.db"

        (made,) = run("backup", str(target), "--json").json

        assert target.stat().st_size == made["size"]
        assert 0o600 == stat.S_IMODE(target.stat().st_mode)
        with harken.open(target) as copy:
            assert flat(range(3)) == heard(copy, tip.id)

    def test_never_replaces_a_file(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        chain(repo, [1])
        (tmp_path / "copy.db").write_text("mine")

        assert 4 == run("backup", str(tmp_path / "copy.db")).code
        assert "mine" == (tmp_path / "copy.db").read_text()


@pytest.mark.parametrize("command", ["gc", "fsck", "log", "sessions"])
def test_a_file_that_is_no_store_is_refused(run: Run, where: Path, command: str) -> None:
    where.parent.mkdir(parents=True, mode=0o700)
    where.write_bytes(b"this is no database, and never was one" * 100)

    done = run(command)

    assert done.code in (1, 2, 9)
    assert done.err.startswith("error: ")


READING = [
    ["agents", "s"],
    ["annotate", "r", "x"],
    ["backup", "copy.db"],
    ["branch"],
    ["compact", "r"],
    ["diff", "a", "b"],
    ["fork", "r", "--name", "n"],
    ["fsck"],
    ["fsck", "--repair"],
    ["gc"],
    ["log"],
    ["materialize", "r"],
    ["moves"],
    ["pin", "r"],
    ["resolve", "p"],
    ["sessions"],
    ["show", "r"],
    ["snapshot", "r"],
    ["stats"],
    ["tag"],
    ["undo"],
]


@pytest.mark.parametrize("args", READING, ids=" ".join)
def test_looking_for_something_never_makes_a_store(run: Run, tmp_path: Path, args: list[str]) -> None:
    typo = tmp_path / "typo.db"

    done = run("--store", str(typo), *args)

    assert (3, "", True) == (done.code, done.out, str(typo) in done.err)
    assert [] == [path for path in tmp_path.iterdir() if "typo" in path.name]


def test_putting_something_in_makes_a_store(run: Run, where: Path) -> None:
    assert 0 == run("checkpoint", "--format", "morse-v1", stdin=b"dot").code
    assert where.exists()


@pytest.mark.parametrize("command", ["fsck", "checkpoint"])
def test_an_empty_word_is_no_store(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(tmp_path)

    assert 2 == run("--store", "", command).code
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("others", [True, False])
def test_doctor_does_not_advise_to_shut_a_folder_that_others_use(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: bool
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    if others:
        (folder / "somebody-elses").touch()
    monkeypatch.setenv("HARKEN_STORE", str(folder / "store.db"))
    with harken.open(folder / "store.db"):
        pass

    done = run("doctor")

    assert others is (f"chmod 700 {folder}" not in done.out + done.err)
