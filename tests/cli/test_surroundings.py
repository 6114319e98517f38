"""Commands in odd surroundings: a folder that was removed, no home, Ctrl-C before anything is loaded."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from harken.errors import NotFound
from harken.repo import Repo
from support.contexts import chain

INTERRUPTED_AT = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["harken", "sessions"]
from harken.__main__ import main
main()
"""


def harken(*words: str, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harken", *words]
    return subprocess.run(command, cwd=cwd, env=os.environ | environ, capture_output=True, text=True, timeout=60)


@pytest.fixture
def removed(tmp_path: Path) -> str:
    """What a shell says to be in a folder that is not there any more."""
    folder = tmp_path / "removed"
    folder.mkdir()
    return f"cd {folder} && rmdir {folder} && exec "


@pytest.mark.parametrize(
    "words",
    ["import x.jsonl", "import .", "backup copy.db", "agents .", "--store here.db import", "materialize b -o out"],
)
def test_a_removed_working_folder_is_said_to_be_removed(tmp_path: Path, repo: Repo, removed: str, words: str) -> None:
    """#51"""
    repo.fork(chain(repo, [1]), "b")
    environ = os.environ | {"HARKEN_STORE": repo.store.location, "HOME": str(tmp_path)}

    done = subprocess.run(
        ["/bin/sh", "-c", f"{removed} {sys.executable} -m harken {words}"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )

    told = "error: the working folder is not there any more\nhint: change to a folder that is\n"
    assert (3, told) == (done.returncode, done.stderr)


def test_a_conversation_is_not_resumed_in_a_folder_that_is_not_there(tmp_path: Path, repo: Repo) -> None:
    tip = chain(repo, [1])

    with pytest.raises(NotFound, match="there is no folder"):
        repo.resume(tip, "codex", cwd=tmp_path / "nowhere", home=tmp_path / "home")

    assert [] == list(tmp_path.glob("home/**/*.jsonl"))


def test_an_empty_home_is_no_home() -> None:
    """What the user's account says is taken, as where HOME is not set, and not the root of the file system."""
    done = harken("doctor", HOME="", HARKEN_STORE="", XDG_DATA_HOME="")

    expected = str(Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local/share/harken/store.db")
    assert expected in done.stdout


class TestCtrlC:
    @pytest.mark.parametrize("module", ["click", "harken.cli", "harken.errors"])
    def test_while_the_command_line_is_loaded_ends_it_without_a_word(self, module: str) -> None:
        command = [sys.executable, "-c", INTERRUPTED_AT.format(module=module)]

        done = subprocess.run(command, capture_output=True, text=True, timeout=60)

        assert (-2, "", "") == (done.returncode, done.stdout, done.stderr), "a shell calls it 130"

    @pytest.mark.parametrize("module", ["harken.cli.sessions", "harken.repo"])
    def test_while_the_command_is_loaded_is_one_line(self, tmp_path: Path, module: str) -> None:
        command = [sys.executable, "-c", INTERRUPTED_AT.format(module=module)]
        environ = os.environ | {"HARKEN_STORE": str(tmp_path / "store.db")}

        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)

        assert (130, "", "interrupted") == (done.returncode, done.stdout, done.stderr.strip())
