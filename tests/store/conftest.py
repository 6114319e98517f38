"""A store in a file of its own, for the tests that need nothing else."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harken.store import Store, open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that any user can reach."""
    path = Path(tempfile.mkdtemp(prefix="harken-looking-"))
    path.chmod(0o755)
    yield path
    path.chmod(0o755)
    shutil.rmtree(path)


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with contextlib.closing(open_store(path)) as store:
        yield store
