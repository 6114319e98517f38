"""A user's home with runtimes of others installed, and `harken` as that user calls it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.forked import Forker


@dataclass
class Desk:
    """A user's home with the demo runtimes installed, and `harken` as that user calls it."""

    folder: Path
    environment: dict[str, str]
    forker: Forker

    def call(self, *words: str, check: int | None = 0, **more: str) -> str:
        """A program's output; its exit status has to be as expected."""
        done = subprocess.run(
            words, env=self.environment | more, cwd=self.folder, capture_output=True, text=True, timeout=120
        )
        return self._checked(done, check)

    def harken(self, *words: str, check: int | None = 0, **more: str) -> str:
        """What the command prints."""
        done = self.forker.harken(words, self.environment | more, self.folder)
        return self._checked(done, check)

    def lines(self, *words: str, **more: Any) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.harken(*words, "--json", **more).splitlines()]

    def sessions(self, name: str) -> list[dict[str, Any]]:
        """What an import says of the runtime's sessions."""
        return [line for line in self.lines("import") if line.get("runtime") == name]

    def conversation(self, ref: str) -> list[str]:
        events = self.harken("materialize", ref, "--format", "session-log-v2")
        return [line["content"] for line in map(json.loads, events.splitlines()) if line.get("content")]

    def _checked(self, done: subprocess.CompletedProcess[str], check: int | None) -> str:
        assert check in (None, done.returncode), f"{done.args}: {done.stdout}{done.stderr}"
        self.errors = done.stderr
        return done.stdout
