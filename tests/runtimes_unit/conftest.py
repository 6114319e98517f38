"""`harken run` against a stand-in for the runtime's program; see `support/fake_runtime.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.events import Event
from harken.events.cbor import decode_events
from support import fake_runtime

Steps = list[dict[str, Any]]


IMPATIENT = """
from harken.__main__ import main
from harken.runtimes import recording
recording.GIVE_UP_AFTER = 0.5
main()
"""


@dataclass
class Bench:
    """A store, a fake runtime on PATH, and `harken` as a user would call it."""

    folder: Path
    children: list[subprocess.Popen[str]] = field(default_factory=list)
    impatient: bool = False
    """Whether runs wait for the store for a moment only; a test knows that it stays locked."""

    @property
    def store(self) -> Path:
        return self.folder / "store.db"

    @property
    def environment(self) -> dict[str, str]:
        programs = fake_runtime.install(self.folder / "bin")
        (self.folder / "run").mkdir(exist_ok=True)
        return {
            "PATH": f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "HARKEN_STORE": str(self.store),
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "LANG": "C.UTF-8",
            fake_runtime.STEPS: str(self.folder / "steps.json"),
            fake_runtime.NOTES: str(self.folder / "notes.json"),
        }

    def start(self, steps: Steps, *words: str, **how: Any) -> subprocess.Popen[str]:
        """Begin `harken run` with the runtime playing these steps."""
        (self.folder / "steps.json").write_text(json.dumps(steps))
        child = subprocess.Popen(
            [sys.executable, *(["-c", IMPATIENT] if self.impatient else ["-m", "harken"]), "run", *words],
            env=self.environment,
            cwd=self.folder,
            text=True,
            stdin=how.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **how,
        )
        self.children.append(child)
        return child

    def run(self, steps: Steps, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """`harken run` to its end."""
        child = self.start(steps, *words, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE)
        out, err = child.communicate(stdin, timeout=60)
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    @property
    def notes(self) -> dict[str, Any]:
        """What the runtime noted of how it was called."""
        found: dict[str, Any] = json.loads((self.folder / "notes.json").read_text())
        return found

    def events(self, ref: str, *, store: str = "store.db", **how: Any) -> list[Event]:
        """The conversation at a commit or branch."""
        with harken.open(self.folder / store) as repo:
            return decode_events(repo.materialize(ref, format="events-v1", **how).bytes)

    def wait_for(self, name: str) -> None:
        """Wait until the runtime has made a file of that name."""
        self.wait_until((self.folder / name).exists)

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait until something has come about."""
        end = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < end, "it never came about"
            time.sleep(0.02)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    for child in made.children:
        if child.poll() is None:
            os.kill(child.pid, 9)
        child.communicate()
