"""Where a resumed session is written, and that it is there whole or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import msgspec
import pytest

from harken import runtimes
from harken.errors import BadRequest, HarkenError
from harken.events import Prompt
from harken.events.cbor import encode_events
from harken.ids import time_ordered_uuid
from harken.repo import Repo
from harken.runtimes import Place
from harken.runtimes.claude_code import slug
from harken.runtimes.resume import Destination, choose_home, resume, write_new
from harken.store import MemoryStore

NOON = 1_794_744_000_000_000  # 2026-11-15T12:00:00Z


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/home/ada/my.project", "-home-ada-my-project"),
        ("/srv/a_b c", "-srv-a-b-c"),
        ("/tmp/naïve", "-tmp-na-ve"),
        ("/", "-"),
    ],
)
def test_a_folders_name_in_claude_code(folder: str, name: str) -> None:
    assert slug(Path(folder)) == name


def test_a_long_folder_is_cut_and_told_apart_by_a_hash() -> None:
    """The program looks for a session in every folder, so only the first 200 characters have to be its own."""
    long = "/" + "a" * 300
    name = slug(Path(long))
    assert name[:201] == "-" + "a" * 199 + "-"
    assert name != slug(Path("/" + "a" * 301))
    assert name[201:].isalnum()


def place(runtime: str, home: Path, cwd: Path) -> Place:
    writer = runtimes.get(runtime).resume
    assert writer is not None
    return writer.place(home, cwd, NOON)


def test_claude_codes_place(tmp_path: Path) -> None:
    found = place("claude-code", tmp_path / ".claude", tmp_path / "work")
    assert found.path == tmp_path / ".claude" / "projects" / slug(tmp_path / "work") / f"{found.session}.jsonl"
    assert found.command == ("claude", "--resume", found.session)
    assert uuid.UUID(found.session).version == 4


def test_codexs_place(tmp_path: Path) -> None:
    found = place("codex", tmp_path, tmp_path)
    assert found.path == tmp_path / "sessions/2026/11/15" / f"rollout-2026-11-15T12-00-00-{found.session}.jsonl"
    assert found.command == ("codex", "resume", found.session)


def test_time_ordered_ids_are_what_they_say() -> None:
    made = [uuid.UUID(time_ordered_uuid(NOON + step * 1000)) for step in range(50)]
    assert {one.version for one in made} == {7}
    assert {one.variant for one in made} == {uuid.RFC_4122}
    assert [one.int >> 80 for one in made] == [NOON // 1000 + step for step in range(50)]
    assert len(set(made)) == 50


@pytest.mark.parametrize(("name", "folder"), [("claude-code", ".claude"), ("codex", ".codex")])
def test_a_home_is_the_runtimes_own_folder_or_a_users_that_contains_it(tmp_path: Path, name: str, folder: str) -> None:
    """#37: one meaning for every runtime; a user's home is accepted where it can be told."""
    runtime = runtimes.get(name)

    def chosen(home: Path | None) -> Path:
        return choose_home(Destination(runtime=runtime, cwd=tmp_path, environ={"HOME": "/home/ada"}, home=home))

    assert Path("/home/ada", folder) == chosen(None)
    assert Path("/home/ada", folder) == chosen(Path("/home/ada")), "the home of the user who asks"
    assert tmp_path == chosen(tmp_path), "a new folder is the runtime's own"
    (tmp_path / folder).mkdir()
    assert tmp_path / folder == chosen(tmp_path)
    assert tmp_path / folder == chosen(tmp_path / folder)
    runtime.roots(tmp_path)[0].mkdir()
    assert tmp_path == chosen(tmp_path), "sessions lie in it"


def test_a_folder_that_the_program_cannot_be_told_to_use_is_refused(tmp_path: Path) -> None:
    codex = msgspec.structs.replace(runtimes.get("codex"), environment=lambda home: {})
    repo = Repo(MemoryStore())
    commit = repo.checkpoint(encode_events([Prompt(content="hi")]), format="events-v1")
    to = Destination(runtime=codex, cwd=tmp_path, environ={"HOME": "/home/ada"}, home=tmp_path)

    with pytest.raises(BadRequest, match="Codex cannot be told to look in"):
        resume(repo.store, commit, to)

    assert [] == list(tmp_path.iterdir())


def test_what_is_written_is_whole_and_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "session.jsonl"
    write_new(path, b"line\n")
    assert path.read_bytes() == b"line\n"
    assert (os.stat(path).st_mode & 0o777, os.stat(path.parent).st_mode & 0o777) == (0o600, 0o700)
    assert os.listdir(path.parent) == ["session.jsonl"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(HarkenError, match="could not be written"):
        write_new(tmp_path / "file" / "session.jsonl", b"line\n")


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").mkdir()
    with pytest.raises(HarkenError):
        write_new(tmp_path / "session.jsonl", b"line\n")
    assert os.listdir(tmp_path) == ["session.jsonl"]
