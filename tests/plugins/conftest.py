"""The demo runtimes, installed in a home of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.desk import Desk
from support.installing import install

PROJECT = Path(__file__).parent


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
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
    )


@pytest.fixture
def session(desk: Desk, name: str) -> str:
    """A session of one prompt, made by the program itself."""
    desk.call(name, "ask", "one")
    [line] = desk.sessions(name)
    return str(line["session"])
