"""A store for trajectories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """An empty store."""
    with harken.open(tmp_path / "kept" / "store.db") as opened:
        yield opened
