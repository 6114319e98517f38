"""The completion scripts, as shells read them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harken.repo import Repo
from harken.store import SessionRow
from support.contexts import keep, turn

Run = Any

PROGRAM = Path(sys.executable).with_name("harken")
COMPLETE = """\
eval "$(harken completion bash)" || exit 9
COMP_WORDS=(harken mater) COMP_CWORD=1
_harken_completion harken
printf '%s\\n' "${COMPREPLY[@]}"
"""


def test_bash_completes_once_the_script_is_loaded(tmp_path: Path) -> None:
    environ = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    done = subprocess.run(["bash", "-c", COMPLETE], env=environ, capture_output=True, text=True, cwd=tmp_path)

    assert (0, "materialize\n", "") == (done.returncode, done.stdout, done.stderr)


ONE_BY_ONE = """\
eval "$(harken completion bash)" || exit 9
compopt() { :; }
complete_words() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_POINT=${#COMP_LINE}
    _harken_completion harken
    echo "${COMPREPLY[*]}"
}
COMP_LINE='harken log win'; complete_words harken log win
COMP_LINE='harken search runtime:co'; complete_words harken search runtime : co
COMP_LINE='harken search runtime:'; complete_words harken search runtime :
COMP_LINE='harken search role: runt'; complete_words harken search role : runt
COMP_LINE='harken diff x: w'; complete_words harken diff x : w
COMP_LINE='harken diff x: '; complete_words harken diff x : ''
"""


def test_bash_completes_sessions_where_a_file_may_stand_and_values_behind_a_colon(repo: Repo, tmp_path: Path) -> None:
    """Bash takes `runtime:codex` for three words, of which the last one is completed."""
    keep(repo, turn(1), session_id="winter-1", template="codex")
    with repo.store.write() as writer:
        writer.save_session(SessionRow(session="winter-1", runtime="codex", tip=repo.history("winter-1")[0].id))
    repo.index.catch_up()
    environ = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    done = subprocess.run(["bash", "-c", ONE_BY_ONE], env=environ, capture_output=True, text=True, cwd=tmp_path)

    commit = repo.history("winter-1")[0].short
    assert ["winter-1", "codex", "codex", "runtime:", "winter-1", f"winter-1 {commit}"] == done.stdout.splitlines()
    assert "" == done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_as_many_lines_as_it_was_written_in(run: Run, shell: str) -> None:
    done = run("completion", shell)

    assert (0, True) == (done.code, len(done.lines) > 5)
    assert "\\n" not in done.lines[0]
    program = shutil.which(shell)
    if program is not None:
        assert 0 == subprocess.run([program, "-n"], input=done.data, check=False).returncode
