"""Our own stores pass the suite that a remote client will have to pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import Repo
from harken.testing import RepoContract
from support.contexts import Ticking


class TestMemory(RepoContract):
    @pytest.fixture
    def repo(self) -> Iterator[Repo]:
        with harken.open("memory:", clock=Ticking()) as repo:
            yield repo


class TestSqlite(RepoContract):
    @pytest.fixture
    def repo(self, tmp_path: Path) -> Iterator[Repo]:
        with harken.open(tmp_path / "store.db", clock=Ticking()) as repo:
            yield repo
