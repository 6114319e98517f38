"""`harken` in a process of its own, forked from one that has loaded the code and done nothing else: a command begins at
once, and remembers nothing of others. Where it matters how a program starts, `python -m harken` is started."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

PACKAGES = ("api", "cli", "formats", "repo", "runtimes", "store", "views")
"""Whose modules are loaded beforehand; a command loads what it needs of them, and nothing is done by loading."""
SECONDS = 120


class Forker:
    """The process that has loaded Harken."""

    def __init__(self) -> None:
        environment = os.environ | {"LANG": "C.UTF-8"}
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def harken(
        self, words: Sequence[str], environment: dict[str, str], folder: Path
    ) -> subprocess.CompletedProcess[str]:
        """How the command ended, and what it printed."""
        with tempfile.TemporaryDirectory() as printed:
            request = {"words": words, "environment": environment, "folder": str(folder), "printed": printed}
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            status = int(self._process.stdout.readline())
            out, err = (Path(printed, name).read_text(encoding="utf-8") for name in ("out", "err"))
        return subprocess.CompletedProcess(list(words), status, out, err)

    def close(self) -> None:
        """End it."""
        self._process.communicate(timeout=SECONDS)


def become(request: dict[str, object]) -> None:
    """In the new process: be the program that was asked for."""
    words, environment, folder, printed = request.values()
    assert isinstance(words, list) and isinstance(environment, dict)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{printed}/{name}", os.O_WRONLY | os.O_CREAT), number)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(str(folder))
    sys.path[:0] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv = ["harken", *words]
    signal.alarm(SECONDS)  # nobody waits for ever

    from harken.__main__ import main

    main()


def serve() -> None:
    """Fork for each line; the answer is the exit status."""
    for package in PACKAGES:
        folder = importlib.import_module(f"harken.{package}")
        for module in pkgutil.walk_packages(folder.__path__, f"harken.{package}."):
            importlib.import_module(module.name)
    while line := sys.stdin.readline():
        child = os.fork()
        if not child:
            return become(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


if __name__ == "__main__":
    serve()
