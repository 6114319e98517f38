"""One service for all tests that change nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from harken.service.running import RunningService
from support.service import client, serving, small_store, token


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("service")
    with small_store(folder) as repo, serving(repo, path=folder / "run" / "socket") as running:
        yield running


@pytest.fixture
def admin(service: RunningService) -> Iterator[httpx.Client]:
    with client(service, token(service, "admin")) as asking:
        yield asking


@pytest.fixture
def reader(service: RunningService) -> Iterator[httpx.Client]:
    with client(service, token(service, "context/read", principal="reader", machine="desk")) as asking:
        yield asking


@pytest.fixture
def writer(service: RunningService) -> Iterator[httpx.Client]:
    with client(service, token(service, "context/write", principal="ci", machine="runner-1")) as asking:
        yield asking


@pytest.fixture
def stranger(service: RunningService) -> Iterator[httpx.Client]:
    with client(service) as asking:
        yield asking


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
