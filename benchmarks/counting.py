"""What is counted twice: small homes whose true cost is known, counted by Harken and by ccusage, in one run.

The homes are those of the tests (`tests/support/double_counting.py`). Then both count 2,000 generated sessions, and with
HARKEN_CORPUS the corpus as well, and the time each takes is printed. ccusage comes from npm, into a folder that this script makes; where it cannot be had,
its columns are empty. It is asked without the network, so that its prices are those it was built with.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import archive

import harken

VERSION = "20.0.24"
SESSIONS, BYTES, ROUNDS = 2000, 440_000_000, 5
LIMIT = 0.25
TESTS = Path(__file__).parent.parent / "tests"


def ccusage(tools: Path) -> str | None:
    """The peer's program, installed if it can be."""
    program = tools / "ccusage" / "node_modules" / ".bin" / "ccusage"
    if not program.exists():
        try:
            (tools / "ccusage").mkdir(parents=True, exist_ok=True)
            npm = ["npm", "install", "--no-fund", "--no-audit", "--include=optional", f"ccusage@{VERSION}"]
            subprocess.run(npm, cwd=tools / "ccusage", check=True, capture_output=True, timeout=300)
            subprocess.run([program, "--version"], check=True, capture_output=True, timeout=60)
        except (subprocess.SubprocessError, OSError):
            return None
    return str(program.resolve())


def theirs(program: str, home: Path, empty: Path) -> float:
    """What ccusage says that everything in a home cost, in micro-dollars."""
    total = 0.0
    for runtime, variable in (("claude", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME")):
        if (home / runtime).exists():
            environ = {**os.environ, "HOME": str(empty), "TZ": "UTC", variable: str(home / runtime)}
            words = [program, runtime, "daily", "--json", "--offline"]
            done = subprocess.run(words, env=environ, check=True, capture_output=True, timeout=120)
            totals = json.loads(done.stdout)["totals"]
            total += totals.get("totalCost", totals.get("costUSD", 0))
    return total * 1e6


def ours(home: Path) -> int:
    """What Harken says, by its index."""
    with harken.open("memory:") as repo:
        list(repo.import_sessions([home]))
        spent, _ = repo.usage()
        return spent.total().price_usd_micros or 0


def main(out) -> None:
    with contextlib.suppress(ValueError):
        sys.path.remove(str(TESTS))
    sys.path.insert(0, str(TESTS))
    from support.double_counting import CASES

    program = ccusage(Path(".tools"))
    out(f"## Counting once (micro-dollars; ccusage {VERSION if program else 'could not be installed here'})")
    out("| what is told more than once | true | harken | error | ccusage | error |")
    out("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="harken-bench-") as folder:
        empty = Path(folder) / "empty"
        empty.mkdir()
        for number, case in enumerate(CASES):
            home = Path(folder) / str(number)
            true = round(sum(used.micros for used in case.write(home)))
            mine = ours(home)
            peer = theirs(program, home, empty) if program else None
            told = "| | |" if peer is None else f"| {peer:,.0f} | {error(peer, true)} |"
            out(f"| {case.name} | {true:,} | {mine:,} | {error(mine, true)} {told}")
        count_many(out, program, Path(folder) / "many", empty)
        if corpus := os.environ.get("HARKEN_CORPUS"):
            count_corpus(out, program, Path(corpus), Path(folder) / "corpus", empty)


def count_many(out, program: str | None, home: Path, empty: Path) -> None:
    """How long it takes to count many sessions that Harken has in its store, its index up to date; medians of processes
    that take turns."""
    size = archive.make(home / "claude" / "projects", SESSIONS, BYTES)
    with harken.open(home / "store.db") as repo:
        list(repo.import_sessions([home / "claude"]))
        repo.index.catch_up()
    commands: dict[str, Callable[[], object]] = {
        name: lambda words=words: subprocess.run(
            [sys.executable, "-m", "harken", "--store", home / "store.db", *words], check=True, capture_output=True
        )
        for name, words in {
            "`harken stats --since 1990-01-01`": ["stats", "--since", "1990-01-01"],
            "`harken stats`, nothing in its 30 days": ["stats"],
            "`harken sessions`": ["sessions"],
            "`harken --version`": ["--version"],
        }.items()
    }
    if program:
        commands["ccusage daily"] = lambda: theirs(program, home, empty)
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            start = time.perf_counter()
            command()
            times[name].append(time.perf_counter() - start)
    peer = median(times["ccusage daily"]) if program else None
    out("")
    out(f"| {SESSIONS:,} sessions of {size / 1e6:.0f} MB, load {os.getloadavg()[0]:.1f} | ms | × ccusage | limit |")
    out("|---|---|---|---|")
    for name, taken in times.items():
        ratio = f"{median(taken) / peer:.2f}" if peer else ""
        out(f"| {name} | {median(taken) * 1e3:.0f} | {ratio} | {LIMIT if 'stats' in name else '–'} |")


def count_corpus(out, program: str | None, corpus: Path, home: Path, empty: Path) -> None:
    """Everything in the corpus, and how long it takes once Harken has it in its store."""
    for place, kind in (("claude/projects", "claude_code"), ("codex/sessions", "codex_rollout")):
        (home / place).parent.mkdir(parents=True)
        (home / place).symlink_to(corpus / kind)
    with harken.open(home / "store.db") as repo:
        list(repo.import_sessions([corpus / "claude_code", corpus / "codex_rollout"]))
        repo.index.catch_up()
    words = [
        sys.executable,
        "-m",
        "harken",
        "--store",
        str(home / "store.db"),
        "stats",
        "--since",
        "1990-01-01",
        "--json",
    ]
    start = time.perf_counter()
    done = subprocess.run(words, check=True, capture_output=True)
    mine = time.perf_counter() - start
    cost = json.loads(done.stdout.splitlines()[-1])["price_usd_micros"]
    out("")
    out(f"The corpus: harken {cost:,} in {mine:.2f} s" + ("" if program else "."))
    if program:
        start = time.perf_counter()
        peer = theirs(program, home, empty)
        took = time.perf_counter() - start
        out(f"ccusage {peer:,.0f} in {took:.2f} s: {mine / took:.2f} × its time, {error(cost, peer)} beside it.")


def error(said: float, true: float) -> str:
    return "0" if round(said) == round(true) else f"{(said - true) / true:+.1%}"


if __name__ == "__main__":
    main(print)
