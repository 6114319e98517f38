"""The completion scripts, as shells read them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_as_many_lines_as_it_was_written_in(run: Run, shell: str) -> None:
    done = run("completion", shell)

    assert (0, True) == (done.code, len(done.lines) > 5)
    assert "\\n" not in done.lines[0]
    program = shutil.which(shell)
    if program is not None:
        assert 0 == subprocess.run([program, "-n"], input=done.data, check=False).returncode
