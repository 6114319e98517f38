"""The command line, called in this process with a store of its own."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.cli import main
from harken.repo import Repo
from support.contexts import Ticking


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    code: int
    data: bytes
    err: str

    @property
    def out(self) -> str:
        return self.data.decode()

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]


Run = Callable[..., Done]


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "data" / "store.db"
    monkeypatch.setenv("HARKEN_STORE", str(path))
    monkeypatch.setenv("USER", "tester")
    monkeypatch.delenv("COLUMNS", raising=False)  # a list is cut to a window only where there is one
    return path


@pytest.fixture
def repo(where: Path) -> Iterator[Repo]:
    """The store behind the commands, to prepare and to look at."""
    with harken.open(where, clock=Ticking()) as opened:
        yield opened


@pytest.fixture
def run(where: Path, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Call a command and see how it ends."""

    def call(*args: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        sys.stdout.flush()
        sys.stderr.flush()
        printed = capfdbinary.readouterr()
        return Done(int(ended.value.code or 0), printed.out, printed.err.decode())

    return call
