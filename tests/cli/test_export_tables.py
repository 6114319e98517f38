"""`harken export --to parquet DIR` writes tables, and says what it wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from harken.repo import Repo
from support.contexts import keep, turn

Run = Any


def test_a_line_tells_of_each_file(repo: Repo, run: Run, tmp_path: Path) -> None:
    keep(repo, turn(1), session_id="s", principal="p", template="claude-code")

    done = run("export", "--to", "parquet", str(tmp_path / "tables"))

    assert 0 == done.code
    assert f"         1 row  {tmp_path / 'tables' / 'sessions.parquet'}" in done.lines
    assert {Path(line.split()[-1]) for line in done.lines} == set((tmp_path / "tables").iterdir())


def test_nothing_else_is_said_at_the_end_of_the_process(repo: Repo, tmp_path: Path) -> None:
    keep(repo, turn(1), session_id="s")
    words = ("--store", str(repo.store.location), "export", "--to", "parquet", str(tmp_path / "tables"))

    done = subprocess.run([sys.executable, "-m", "harken", *words], capture_output=True, text=True, check=True)

    assert "" == done.stderr


def test_what_is_there_is_not_replaced(repo: Repo, run: Run, tmp_path: Path) -> None:
    run("export", "--to", "parquet", str(tmp_path / "tables"))

    assert 4 == run("export", "--to", "parquet", str(tmp_path / "tables")).code
    assert 0 == run("export", "--to", "parquet", str(tmp_path / "tables"), "--force").code


def test_without_a_store_nothing_is_written(run: Run, tmp_path: Path) -> None:
    """A folder that is there is no session's file that would do without a store."""
    (tmp_path / "tables").mkdir()

    assert 3 == run("export", "--to", "parquet", str(tmp_path / "tables")).code
    assert [] == list((tmp_path / "tables").iterdir())


def test_options_that_are_for_a_session_are_refused(repo: Repo, run: Run) -> None:
    assert "without -o" in run("export", "--to", "parquet", "tables", "-o", "x").err
    assert "--no-agents is for a session" in run("export", "--to", "parquet", "tables", "--no-agents").err
