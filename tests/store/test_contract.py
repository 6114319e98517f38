"""Both stores keep the contract."""

from __future__ import annotations

import contextlib

import pytest

from harken.store import MemoryStore, open_store
from harken.testing.store import StoreContract


class TestMemory(StoreContract):
    @pytest.fixture
    def store(self):
        return MemoryStore()


class TestSqlite(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with contextlib.closing(open_store(tmp_path / "store.db")) as store:
            yield store
