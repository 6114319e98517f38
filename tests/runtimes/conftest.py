"""A laboratory for each test; see `support/lab.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.lab import Lab, installed


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """Both programs and a scripted model, in a network of their own. The script must cover what they asked."""
    if not installed():
        pytest.fail("Claude Code and Codex are not installed; run scripts/runtimes")
    laboratory = Lab(tmp_path / "lab")
    try:
        yield laboratory
        assert laboratory.model.surprises == []
    finally:
        laboratory.close()
