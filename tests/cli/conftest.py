"""The command line, called in this process with a store of its own."""

from __future__ import annotations

import time
from typing import Any

import pytest

from support.command_line import Done as Done
from support.command_line import Run as Run
from support.command_line import repo as repo
from support.command_line import run as run
from support.command_line import where as where


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the local time zone for a test."""

    def to(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    to("UTC")
    yield to
    monkeypatch.undo()
    time.tzset()
