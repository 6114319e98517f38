"""Formats and runtimes of others pass the shipped suites, in an environment where they are installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.installing import install

HERE = Path(__file__).parent


def test_the_plugins_pass_the_contracts(tmp_path: Path) -> None:
    environment = install(HERE, tmp_path / "installed") | {"HOME": str(tmp_path), "LANG": "C.UTF-8"}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", str(HERE / "contracts.py")]

    done = subprocess.run(argv, env=environment, cwd=HERE, capture_output=True, text=True, timeout=280)

    assert 0 == done.returncode, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "failed" not in done.stdout
