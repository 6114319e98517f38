"""Who asks: the process at the other end of the context socket, as the system tells of it.

A tool runs somewhere below the runtime. Its environment may name the agent that called it, and the command line of the
shell that the runtime started for it holds the command of the call. Where the system does not tell (`/proc` is not
there), nothing is known of a caller.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

MAX_DEPTH = 64
"""Processes between a tool and its runtime that are looked at."""
_QUOTES = re.compile(r"[\s'\"\\]+")


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A process that asks."""

    environ: dict[str, str] = {}
    commands: tuple[str, ...] = ()
    """The command lines of its ancestors below the runtime, the nearest first."""

    def runs(self, command: str) -> bool:
        """Whether it runs as a part of this command. A shell gets it with other quotes than the model wrote."""
        wanted = _QUOTES.sub("", command)
        return bool(wanted) and any(wanted in _QUOTES.sub("", line) for line in self.commands)


def find_caller(process: int, runtime: int, proc: Path = Path("/proc")) -> Caller:
    """What is known of a process that was started below the runtime's."""
    commands: list[str] = []
    at = process
    while at not in (0, 1, runtime) and len(commands) < MAX_DEPTH:
        if at != process:
            commands.append(_read(proc / str(at) / "cmdline").replace("\0", " "))
        at = _parent(proc, at)
    pairs = (pair.partition("=") for pair in _read(proc / str(process) / "environ").split("\0"))
    return Caller(environ={name: value for name, _, value in pairs if name}, commands=tuple(commands))


def _parent(proc: Path, process: int) -> int:
    """The process that started it; 0 where that is not known."""
    # The second field is the program's name in brackets, which may hold anything.
    words = _read(proc / str(process) / "stat").rpartition(")")[2].split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
