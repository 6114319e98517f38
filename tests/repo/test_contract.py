"""Our own stores pass the suite that a remote client will have to pass."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import Repo
from harken.store.arguments import public_methods
from harken.testing import RepoContract, repo_principals, repo_sessions, turns
from harken.testing import repo as repo_suite
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


def test_the_suite_calls_every_sentence() -> None:
    """What it leaves out, a remote client could leave out."""
    suite = "".join(inspect.getsource(module) for module in (repo_suite, repo_sessions, repo_principals, turns))

    assert set() == {name for name, _ in public_methods(Repo) if not re.search(rf"\brepo\.{name}\b", suite)}
