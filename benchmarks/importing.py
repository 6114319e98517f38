"""First import, with and without the index, no-op import and one appended line, against agentsview's sync and a bare
orjson pass, in one run. The index leaves the numbers to whoever asks first; agentsview's leaves out what tools answered.

CPU time is what is compared for the first import: it is what a shared machine disturbs least. agentsview comes from
its wheel, in an environment of its own that this script makes; where it cannot be had, its columns are empty.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import archive

ORJSON_PASS = """
import sys, pathlib, orjson
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.jsonl")):
    with open(path, "rb") as file:
        for line in file:
            orjson.loads(line)
"""


TRAMPOLINE = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


PROCESSES = """
import json, resource, runpy, sys
sys.argv = ["harken", *sys.argv[1:]]
sys.stdout = open("/dev/null", "w")
try:
    runpy.run_module("harken", run_name="__main__")
except SystemExit as ended:
    code = ended.code
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps([code, *(each.ru_utime + each.ru_stime for each in used)]), file=sys.__stdout__)
"""


def measure_processes(arguments: list[str]) -> tuple[float, float]:
    """CPU seconds of a `harken` command: of the process itself (all its threads), and of the workers it started."""
    command = [sys.executable, "-c", PROCESSES, *arguments]
    code, own, workers = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if code:
        raise RuntimeError(f"harken ended with {code}")
    return own, workers


def measure(command: list[str], env: dict[str, str] | None = None) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak megabytes of a command, started by a small process of its own: a child's
    peak begins with the size of whoever started it."""
    trampoline = [sys.executable, "-S", "-c", TRAMPOLINE, *command]
    done = subprocess.run(trampoline, env=env, capture_output=True, text=True, check=True)
    code, wall, cpu, peak = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"{command[0]} ended with {code}")
    return wall, cpu, peak


def agentsview(tools: Path) -> str | None:
    """The peer's program, installed if it can be."""
    program = tools / "agentsview" / "bin" / "agentsview"
    if not program.exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", tools / "agentsview"], check=True)
            pip = [tools / "agentsview" / "bin" / "pip", "install", "-q", "agentsview==0.46.1"]
            subprocess.run(pip, check=True, capture_output=True, timeout=300)
        except (subprocess.SubprocessError, OSError):
            return None
    return str(program)


def main(out, *, files: int = 800, total: int = 400_000_000) -> None:
    work = Path(tempfile.mkdtemp(prefix="harken-bench-"))
    try:
        home = work / "home"
        projects = home / ".claude" / "projects"
        size = archive.make(projects, files, total)
        age = time.time() - 3600
        for path in projects.rglob("*.jsonl"):
            os.utime(path, (age, age))
        _run(out, work, home, projects, size, files)
        if corpus := os.environ.get("HARKEN_CORPUS"):
            _run_real(out, work / "real", Path(corpus) / "claude_code")
    finally:
        shutil.rmtree(work)


def _run_real(out, work: Path, sessions: Path) -> None:
    """Import and index of real sessions beside agentsview's first sync of the same files."""
    projects = work / "home" / ".claude" / "projects"
    shutil.copytree(sessions, projects)
    command = [sys.executable, "-m", "harken", "--store", str(work / "store.db"), "import", str(projects)]
    ours = measure(command)
    out("")
    out("| real sessions of Claude Code | wall s | CPU s | peak MB | ratio |")
    out("|---|---|---|---|---|")
    peer = agentsview(Path(".tools"))
    theirs = measure([peer, "sync"], _peer_env(work / "home")) if peer else None
    ratio = f"{ours[1] / theirs[1]:.2f} of agentsview's CPU, limit 1.1" if theirs else ""
    out(f"| harken, first import with the index | {ours[0]:.2f} | {ours[1]:.2f} | {ours[2]:.0f} | {ratio} |")
    if theirs:
        out(f"| agentsview 0.46.1, first sync | {theirs[0]:.2f} | {theirs[1]:.2f} | {theirs[2]:.0f} | 1 |")


def _peer_env(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], "AGENTSVIEW_NO_DAEMON": "1"}


def first_imports(harken: list[str], work: Path, projects: Path, turns: int) -> tuple[float, float]:
    """The wall seconds of a first import with one job and with two, the best of some turns. They are taken in turns, so
    that what else the machine does falls on both alike."""
    seconds: dict[str, list[float]] = {"1": [], "2": []}
    for turn in range(turns):
        for jobs, found in seconds.items():
            store = work / f"turn-{turn}-{jobs}"
            command = [*harken, str(store / "store.db"), "import", str(projects), "--no-index", "--jobs", jobs]
            found.append(measure(command)[0])
            shutil.rmtree(store)
    return min(seconds["1"]), min(seconds["2"])


def _run(out, work: Path, home: Path, projects: Path, size: int, files: int) -> None:
    harken = [sys.executable, "-m", "harken", "--store"]
    ours = [*harken, str(work / "store" / "store.db"), "import", str(projects), "--jobs", "1"]
    bare = measure([sys.executable, "-c", ORJSON_PASS, str(projects)])
    first = measure([*harken, str(work / "plain" / "store.db"), "import", str(projects), "--no-index", "--jobs", "1"])
    indexed = measure(ours)
    one, two = first_imports(harken, work, projects, 3)
    own, workers = measure_processes(
        ["--store", str(work / "cpu" / "store.db"), "import", str(projects), "--no-index", "--jobs", "2"]
    )
    measure([*ours[:5], "index"])  # else the first lists make the numbers of the sessions, and take longer
    looks = [(measure(ours), measure([*ours[:5], "sessions"])) for _ in range(5)]
    noop, listing = min(look[0] for look in looks), min(look[1] for look in looks)
    victim = sorted(projects.rglob("*.jsonl"))[5]
    with victim.open("ab") as file:
        file.write(b'{"type":"mode","mode":"default"}\n')
    grown = measure(ours)
    stored = sum(path.stat().st_size for path in (work / "plain").iterdir())
    out(
        f"{files} files, {size / 1e6:.0f} MB; stored in {stored / 1e6:.0f} MB ({stored / size:.2f} of the raw bytes).\n"
    )
    out("| what | wall s | CPU s | peak MB | ratio |")
    out("|---|---|---|---|---|")
    out(f"| orjson over every line | {bare[0]:.2f} | {bare[1]:.2f} | {bare[2]:.0f} | 1 |")
    out(
        f"| harken, first import | {first[0]:.2f} | {first[1]:.2f} | {first[2]:.0f} | {first[1] / bare[1]:.2f} × orjson (CPU), limit 2.5 |"
    )
    out(
        f"| harken, first import with two jobs | {two:.2f} | {own + workers:.2f} | | {two / one:.2f} of one job's wall "
        f"({one:.2f} s), limit 0.6; CPU: {own:.2f} s where it is kept, {workers:.2f} s in the worker; on two idle cores "
        f"{max(own, workers, (own + workers) / 2) / first[1]:.2f} at best |"
    )
    out(
        f"| harken, nothing new | {noop[0]:.3f} | {noop[1]:.3f} | {noop[2]:.0f} | "
        f"{noop[1] - listing[1]:+.3f} CPU s against `harken sessions`, limit 0.06 |"
    )
    peer = agentsview(Path(".tools"))
    if peer is None:
        out("| agentsview 0.46.1 | could not be installed here | | | |")
        return
    env = _peer_env(home)
    theirs = measure([peer, "sync"], env)
    warm = min(measure([peer, "sync"], env) for _ in range(3))
    out(
        f"| agentsview 0.46.1, first sync | {theirs[0]:.2f} | {theirs[1]:.2f} | {theirs[2]:.0f} | ours is {first[1] / theirs[1]:.3f} of its CPU without the index, limit 0.33 |"
    )
    out(
        f"| harken, first import with the index | {indexed[0]:.2f} | {indexed[1]:.2f} | {indexed[2]:.0f} | "
        f"{indexed[1] / theirs[1]:.2f} of agentsview's CPU, limit 0.65; {indexed[0] / theirs[0]:.2f} of its wall, limit 0.5 |"
    )
    out(
        f"| harken, nothing new | {noop[0]:.3f} | {noop[1]:.3f} | {noop[2]:.0f} | {noop[0] / warm[0]:.2f} × agentsview (wall), limit 0.5 |"
    )
    out(f"| agentsview, nothing new | {warm[0]:.3f} | {warm[1]:.3f} | {warm[2]:.0f} | 1 |")
    out(
        f"| harken, one line appended to one file | {grown[0]:.3f} | {grown[1]:.3f} | {grown[2]:.0f} | {(grown[0] - noop[0]) * 1e3:+.0f} ms against nothing new |"
    )


if __name__ == "__main__":
    main(print)
