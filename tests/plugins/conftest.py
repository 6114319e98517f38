"""The demo runtimes, installed in a home of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.desk import Desk
from support.forked import Forker
from support.installing import install

PROJECT = Path(__file__).parent


@pytest.fixture(scope="session")
def forker() -> Iterator[Forker]:
    forker = Forker()
    yield forker
    forker.close()


@pytest.fixture
def desk(tmp_path: Path, forker: Forker) -> Desk:
    environment = install(PROJECT, tmp_path / "installed")
    (tmp_path / "run").mkdir()
    return Desk(
        tmp_path,
        environment
        | {
            "HOME": str(tmp_path),
            "HARKEN_STORE": str(tmp_path / "store.db"),
            "XDG_RUNTIME_DIR": str(tmp_path / "run"),
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "LANG": "C.UTF-8",
        },
        forker,
    )


@pytest.fixture
def session(desk: Desk, name: str) -> str:
    """A session of one prompt, made by the program itself."""
    desk.call(name, "ask", "one")
    [line] = desk.sessions(name)
    return str(line["session"])
