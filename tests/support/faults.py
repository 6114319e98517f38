"""Faults on purpose: run a worker under strace and make its Nth system call of a kind fail, or kill it there.

A worker is a Python script that says on stdout, one line each, what has been acknowledged to it. Only calls on the
paths a test names are counted and hit, so the interpreter's own reading and writing stays out of the way.

    points = sweep(WORKER, log, paths=[log, log.parent])          # one clean run, counted
    for fault in sample(points, 12):                              # or all of them
        outcome = run(WORKER, log, paths=[log, log.parent], fault=fault)
        assert set(outcome.lines) <= what_is_there_now()

SIGKILL strikes on entry: the call it names has not happened. `when` counts per thread and per call, so a fault is a
pair of the two. See `FAULTS` for what else can be made to happen.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

WRITE_PATH = (
    "openat",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "ftruncate",
    "fallocate",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "flock",
)
"""Every call by which a program changes what a disk holds, and those that get it there."""

FAULTS = {
    "kill": "signal=SIGKILL",
    "EIO": "error=EIO",
    "ENOSPC": "error=ENOSPC",
    "EINTR": "error=EINTR",
    "EMFILE": "error=EMFILE",
    "short": "retval=3",  # claims three bytes and writes none, for write-like calls only
    "lie": "retval=0",  # a disk that says it has synced
    "slow": "delay_enter=30ms",
}
_CALL = re.compile(r"^(\d+) +(\w+)\(", re.M)


class Fault(NamedTuple):
    """What happens at which call: the `n`th `syscall` of a thread, and with `after` every later one too."""

    what: str
    syscall: str
    n: int
    after: bool = False

    def __str__(self) -> str:
        return f"{self.what}-{self.syscall}-{self.n}{'+' if self.after else ''}"


class Outcome(NamedTuple):
    """How the worker ended and what it said."""

    returncode: int
    lines: list[str]
    errors: str
    calls: Counter[str]
    """How often each call was made, at most, by any one thread."""

    @property
    def killed(self) -> bool:
        return self.returncode in (-9, 137)


def run(
    worker: Path,
    *args: object,
    paths: Iterable[Path],
    fault: Fault | None = None,
    syscalls: Sequence[str] = WRITE_PATH,
    timeout: float = 60,
) -> Outcome:
    """Run the worker once, perhaps with a fault; calls are counted on `paths` alone."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace")
        traced = [fault.syscall] if fault else list(syscalls)
        command = ["strace", "-qq", "-f", "-o", str(trace), "-e", "trace=" + ",".join(traced)]
        if not (fault and fault.what == "kill"):
            command.append("--seccomp-bpf")  # twice as fast, but strace then forgets to send the signal
        for path in paths:
            command += ["-P", os.path.realpath(path)]
        if fault:
            when = f"{fault.n}+" if fault.after else str(fault.n)
            command += ["-e", f"inject={fault.syscall}:{FAULTS[fault.what]}:when={when}"]
        # The interpreter itself, not a shim that forks, and without `site`, which would only make noise.
        command += [os.path.realpath(sys.executable), "-S", str(worker), *map(str, args)]
        done = subprocess.run(command, env=_environment(), capture_output=True, text=True, timeout=timeout, check=False)
        calls = _count(trace.read_text(errors="replace"))
    return Outcome(done.returncode, done.stdout.splitlines(), done.stderr, calls)


def sweep(
    worker: Path,
    *args: object,
    paths: Iterable[Path],
    what: Sequence[str] = ("kill",),
    syscalls: Sequence[str] = WRITE_PATH,
    after: bool = False,
) -> list[Fault]:
    """Every fault of these kinds that the worker can meet, found by one clean run of it (which leaves its files)."""
    clean = run(worker, *args, paths=paths, syscalls=syscalls)
    assert clean.returncode == 0, clean.errors
    assert clean.calls, "nothing of what the worker does was seen; are the paths right?"
    return [
        Fault(kind, syscall, n, after)
        for kind in what
        for syscall in syscalls
        for n in range(1, clean.calls[syscall] + 1)
        if kind != "short" or "write" in syscall
    ]


def sample(faults: Sequence[Fault], count: int) -> list[Fault]:
    """Some of them, spread evenly; each kind of call is there before any is there twice."""
    first: dict[tuple[str, str], Fault] = {}
    for fault in faults:
        first.setdefault((fault.what, fault.syscall), fault)
    chosen = list(first.values())[:count]
    others = [fault for fault in faults if fault not in chosen]
    missing = min(count - len(chosen), len(others))
    chosen += [others[i * len(others) // missing] for i in range(missing)]
    return chosen


def _environment() -> dict[str, str]:
    environment = {key: os.environ[key] for key in ("PATH", "LANG", "TMPDIR", "HOME") if key in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment["PYTHONUNBUFFERED"] = "1"
    return environment


def _count(trace: str) -> Counter[str]:
    by_thread = Counter(_CALL.findall(trace))
    calls: Counter[str] = Counter()
    for (_, syscall), count in by_thread.items():
        calls[syscall] = max(calls[syscall], count)
    return calls


def start_fresh(folder: Path) -> Path:
    """An empty folder for the next run of a sweep."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
