"""A stand-in for a runtime's program: does what a list of steps tells it to, and notes how it was called.

`install` puts it into a folder as `claude` and `codex`; with that folder first on PATH, `harken run` starts it. Steps:

    {"line": {...}}       print an object as a line          {"raw": "text"}     print text as it is
    {"lines": [how many, how long]}
    {"tool": [argv…]}     run a program, keep its output     {"stderr": "text"}  print on stderr
    {"start": [argv…]}    begin to run a program             {"end": true}       keep its output once it is over
    {"stdin": true}       read stdin to its end, keep it     {"wait": "path"}
    {"await": "SIGTERM"}  wait for a signal, then go on      {"die": "SIGKILL"}  {"exit": status}
    {"touch": "path"}     make a file, for others to wait on; `wait` waits until others have made one
    {"write": ["path", "text"]}
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

STEPS = "FAKE_STEPS"
NOTES = "FAKE_NOTES"


def install(folder: Path) -> Path:
    """Put the program into a folder under both names; the answer is the folder, for PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("claude", "codex"):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} "$@"\n')
        program.chmod(0o755)
    return folder


def play(steps: list[dict[str, Any]], notes: dict[str, Any]) -> int:
    """Take the steps one after the other; the answer is the exit status."""
    caught: list[str] = []
    for wanted in ("SIGTERM", "SIGINT", "SIGUSR1", "SIGHUP"):
        if any(step.get("await") == wanted for step in steps):
            signal.signal(getattr(signal, wanted), lambda number, _: caught.append(signal.Signals(number).name))
    for step in steps:
        ((what, value),) = step.items()
        match what:
            case "line":
                print(json.dumps(value), flush=True)
            case "lines":
                for _ in range(value[0]):
                    print("x" * value[1], flush=True)
            case "raw":
                print(value, end="", flush=True)
            case "stderr":
                print(value, file=sys.stderr, flush=True)
            case "tool":
                done = subprocess.run(value, capture_output=True, text=True)
                notes["tools"].append([done.returncode, done.stdout, done.stderr])
            case "start":
                started = subprocess.Popen(value, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            case "end":
                out, err = started.communicate()
                notes["tools"].append([started.returncode, out, err])
            case "stdin":
                notes["stdin"] = sys.stdin.read()
            case "wait":
                end = time.monotonic() + 30
                while not Path(value).exists() and time.monotonic() < end:
                    time.sleep(0.01)
            case "write":
                Path(value[0]).parent.mkdir(parents=True, exist_ok=True)
                Path(value[0]).write_text(value[1])
            case "touch":
                Path(value).touch()
            case "await":
                end = time.monotonic() + 20
                while value not in caught and time.monotonic() < end:
                    time.sleep(0.01)
                notes["signals"] = caught
            case "die":
                save(notes)
                os.kill(os.getpid(), value if isinstance(value, int) else getattr(signal, value))
            case "exit":
                return int(value)
    return 0


def save(notes: dict[str, Any]) -> None:
    """Leave what was noted for the test to read."""
    Path(os.environ[NOTES]).write_text(json.dumps(notes))


def main() -> None:
    """Play the steps that the environment names."""
    notes: dict[str, Any] = {"argv": sys.argv[1:], "env": dict(os.environ), "tools": [], "cwd": os.getcwd()}
    status = play(json.loads(Path(os.environ[STEPS]).read_text()), notes)
    save(notes)
    sys.exit(status)


if __name__ == "__main__":
    main()
