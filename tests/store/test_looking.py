"""Looking at a store changes nothing: on a medium that cannot be written to, and where there is no store at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from pathlib import Path

import pytest

import harken
import harken.store.read_only
from harken import Repo
from harken.cli import main
from harken.errors import BadRequest, Corrupt, HarkenError, NotFound
from harken.store import open_store
from harken.testing.repo import grow
from support.rollouts import Rollout
from support.users import as_a_user


@pytest.fixture
def path(folder):
    """A store that was closed, with a session in it."""
    with harken.open(folder / "store.db") as repo:
        grow(repo, 3, session_id="winter")
        repo.fork("winter", "review")
    for file in folder.iterdir():
        file.chmod(0o444)
    return folder / "store.db"


def protect(folder: Path, *, file: int, around: int) -> None:
    (folder / "store.db").chmod(file)
    folder.chmod(around)


def files_in(folder: Path) -> dict[str, tuple[int, int]]:
    """The files there with size and time; the cache beside a store holds nothing of its own."""
    found = {one.name: (one.stat().st_size, one.stat().st_mtime_ns) for one in folder.iterdir()}
    return {name: facts for name, facts in found.items() if "-cache" not in name}


def look(repo: Repo) -> tuple[object, ...]:
    """What can be asked of a store."""
    made = repo.materialize("winter", format="codex-v1")
    return (
        [shown.summary for shown in repo.log()],
        made.bytes,
        repo.get(repo.commit("review").artifact),
        repo.sessions(),
        repo.names(),
        [figures.figures for figures in repo.stats()],
        repo.since(0),
        repo.fsck(read_data=True).ok,
    )


@pytest.mark.parametrize(("file", "around"), [(0o444, 0o555), (0o444, 0o777), (0o666, 0o555)])
def test_a_store_that_cannot_be_written_to_can_be_looked_at(path, file, around):
    """#21: mode 0400, a read-only folder; a read-only disk has both."""
    with harken.open(path) as repo:
        expected = look(repo)
    protect(path.parent, file=file, around=around)
    before = files_in(path.parent)

    with as_a_user(), harken.open(path) as repo:
        assert expected == look(repo)
        for change in (
            lambda: repo.checkpoint(b"x", format="blob-v1"),
            lambda: repo.fork("winter", "other"),
            lambda: repo.annotate("winter", "a remark"),
            lambda: repo.put(b"x"),
            lambda: repo.pin("winter"),
            lambda: repo.gc(),
        ):
            with pytest.raises(HarkenError, match="can only be read") as caught:
                change()
            assert caught.value.hint
        assert expected == look(repo)

    assert before == files_in(path.parent)


def test_a_store_that_cannot_be_written_to_can_be_backed_up(path, tmp_path):
    protect(path.parent, file=0o444, around=0o555)
    copies = Path(tempfile.mkdtemp(prefix="harken-copies-"))
    copies.chmod(0o777)
    try:
        with as_a_user(), harken.open(path) as repo:
            repo.backup(copies / "copy.db")
        with harken.open(copies / "copy.db") as copy:
            assert 3 == len(list(copy.log()))
            grow(copy, 4)
    finally:
        shutil.rmtree(copies)


def test_what_could_be_collected_can_be_asked_of_a_store_that_cannot_be_written_to(path, monkeypatch):
    with harken.open(path) as repo:
        expected = repo.gc(dry_run=True, keep_cache=True)
    protect(path.parent, file=0o444, around=0o555)
    before = files_in(path.parent)
    copies = Path(tempfile.mkdtemp(prefix="harken-copies-"))
    copies.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    try:
        with as_a_user(), harken.open(path) as repo:
            assert expected == repo.gc(dry_run=True, keep_cache=True)
        assert [] == os.listdir(copies)
    finally:
        shutil.rmtree(copies)
    assert before == files_in(path.parent)


def test_a_resume_from_a_store_that_cannot_be_written_to_is_refused_before_there_is_a_file(path):
    """The session was written first, and then nobody could remember it."""
    protect(path.parent, file=0o444, around=0o555)
    home = Path(tempfile.mkdtemp(prefix="harken-home-"))
    home.chmod(0o777)
    try:
        with as_a_user(), harken.open(path) as repo, pytest.raises(HarkenError, match="can only be read") as caught:
            repo.resume("winter", "codex", cwd="/", home=home)

        assert caught.value.hint
        assert [] == list(home.iterdir())
    finally:
        shutil.rmtree(home)


def test_changes_that_are_still_in_the_log_are_seen_or_the_store_is_refused(folder):
    """A copy of a store that was in use, on a medium that cannot be written to."""
    with contextlib.closing(open_store(folder / "live.db")) as live:
        with live.write() as writer:
            name = writer.put(b"only in the log")
        for suffix in ("", "-wal"):
            shutil.copy(folder / f"live.db{suffix}", folder / f"store.db{suffix}")
        assert (folder / "store.db-wal").stat().st_size
    for one in folder.iterdir():
        one.chmod(0o444)
    folder.chmod(0o555)

    with as_a_user():
        try:
            with contextlib.closing(open_store(folder / "store.db")) as store:
                assert b"only in the log" == store.get(name)
        except HarkenError as problem:
            assert "store.db-wal" in str(problem)


def test_an_empty_log_that_was_left_behind_does_no_harm(path):
    Path(f"{path}-wal").touch(mode=0o444)
    protect(path.parent, file=0o444, around=0o555)

    with as_a_user(), harken.open(path) as repo:
        assert 3 == len(list(repo.log()))


def test_commands_that_look_can_look_and_others_say_why_they_cannot(path, capsys):
    protect(path.parent, file=0o444, around=0o555)

    def run(*words: str) -> tuple[int, str, str]:
        with as_a_user(), pytest.raises(SystemExit) as end:
            main(["--store", str(path), *words])
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    code, out, _ = run("log", "--json")
    assert (0, 3) == (code, len(out.splitlines()))
    assert 0 == run("fsck")[0]
    code, _, error = run("tag", "v1", "winter")
    assert 1 == code
    assert "can only be read" in error


def test_an_import_says_once_that_nothing_can_be_written(path, capsys):
    sources = path.parent / "sources"
    sources.mkdir()
    for number in range(3):
        (sources / f"{number}.jsonl").write_bytes(
            Rollout().turn(f"question {number}").data.replace(b"019b", b"%04d" % number)
        )
    protect(path.parent, file=0o444, around=0o555)

    with as_a_user(), pytest.raises(SystemExit) as end:
        main(["--store", str(path), "import", "--jobs", "1", str(sources)])

    said = capsys.readouterr()
    assert (1, "") == (end.value.code, said.out)
    assert 1 == said.err.count("can only be read")


@pytest.mark.parametrize("command", [["log"], ["sessions"], ["fsck"], ["stats"], ["show", "x"]])
def test_looking_does_not_make_a_store_of_an_empty_file(tmp_path, command, capsys):
    """#21"""
    empty = tmp_path / "empty.db"
    empty.touch()

    with pytest.raises(SystemExit) as end:
        main(["--store", str(empty), *command])

    assert 3 == end.value.code
    assert "is empty" in capsys.readouterr().err
    assert 0 == empty.stat().st_size
    assert ["empty.db"] == os.listdir(tmp_path)
    with pytest.raises(NotFound):
        harken.open(empty, create=False)


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("size", [0, 1, 99])
def test_a_store_that_was_cut_off_does_not_become_a_new_one(path, create, size):
    """#15"""
    os.truncate(path, size)
    with pytest.raises(Corrupt, match="cut off"):
        open_store(path, create=create)
    assert size == path.stat().st_size


def test_an_empty_file_may_become_a_store(tmp_path):
    (tmp_path / "new.db").touch()
    with contextlib.closing(open_store(tmp_path / "new.db")) as store:
        assert [] == store.commits()


@pytest.mark.parametrize("create", [True, False])
def test_what_is_no_file_is_refused_and_does_not_hang(tmp_path, create):
    """#21: a pipe that nobody writes to."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    signal.alarm(30)  # ends the whole run if it hangs
    try:
        for path in (pipe, "/dev/null"):
            with pytest.raises(BadRequest, match="is not a file"):
                open_store(path, create=create)
    finally:
        signal.alarm(0)
    assert ["pipe"] == os.listdir(tmp_path)


def test_what_others_write_while_one_looks_is_seen_and_called_no_damage(folder, path):
    """A reader who may not write, and an owner who begins to write after the reader has looked."""
    with as_a_user():
        reader = harken.open(path)
        before = len(reader.sessions()), reader.last_change()
    path.chmod(0o644)
    with harken.open(path) as owner:
        for number in range(40):
            grow(owner, 3, session_id=f"later-{number}")
        for file in folder.iterdir():
            file.chmod(0o644)
        with as_a_user():
            assert (before[0] + 40, owner.last_change()) == (len(reader.sessions()), reader.last_change())
    with as_a_user():
        assert before[0] + 40 == len(reader.sessions())
        assert 3 == len(reader.history("later-39"))
        assert reader.fsck().ok
        reader.close()


def test_a_thread_that_looked_before_leaves_no_old_answer_to_others(folder, path):
    """It had a connection from before others wrote, and gave it back when another thread had seen the change."""
    inside, go = threading.Event(), threading.Event()
    with as_a_user():
        reader = harken.open(path)
        before = len(reader.sessions())

        def look_for_long() -> None:
            with reader.store.db.snapshot():
                reader.last_change()
                inside.set()
                go.wait(60)

        thread = threading.Thread(target=look_for_long)
        thread.start()
        inside.wait(60)
    path.chmod(0o644)
    with harken.open(path) as owner:
        grow(owner, 3, session_id="later")
    with as_a_user():
        assert before + 1 == len(reader.sessions())
        go.set()
        thread.join(60)
        assert before + 1 == len(reader.sessions())
        reader.close()
