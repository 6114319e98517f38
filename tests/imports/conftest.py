"""A store, and an import into it, in the words of the tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import clock, runtimes
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from harken.runtimes.memory import ImportResult

Import = Callable[..., dict[str, ImportResult]]


@pytest.fixture
def repo(tmp_path: Path) -> Any:
    with harken.open(tmp_path / "store" / "store.db") as opened:
        yield opened


@pytest.fixture
def take_in(repo: Any) -> Import:
    """Import everything below a folder; the answer is what became of each session."""

    def run(root: Path, **options: Any) -> dict[str, ImportResult]:
        importer = Importer(repo.store, [runtimes.get(name) for name in runtimes.names()], **options)
        return {outcome.session or outcome.source: outcome for outcome in importer.run(walk(root))}

    return run


def age(path: Path, seconds: int = 10) -> None:
    """Make a file look as if it had been left alone for a while."""
    instant = clock.now() * 1000 - seconds * 10**9
    os.utime(path, ns=(instant, instant))
