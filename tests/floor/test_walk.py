"""The script that counts which files a datum visits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_four_journeys_are_counted() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "walk"], capture_output=True, text=True, timeout=120)

    assert 0 == done.returncode, done.stderr
    rows = [line for line in done.stdout.splitlines()[1:] if not line.startswith("  ")]
    assert 4 == len(rows)
    assert all(5 < int(row.split()[-3]) < 60 for row in rows), done.stdout
