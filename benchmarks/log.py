"""The session log against the bare system calls and the bare decoder: appending, loading, memory.

Each pair runs in turns, so that a busy machine slows both. The ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from harken.log import Session, scan

EVENTS = 100_000
DURABLE = 60
TURN = 20
WORDS = "the café was loud and neither of them had meant to stay so long over one cold cup of coffee "


def discussion(count: int) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """Agent, message and substance of a long talk: heard, said, called, answered."""
    heard = None
    for at in range(count):
        agent = f"agent_{at // 4 % 8 + 1:03d}"
        text = WORDS * (1 + at % 3) + str(at)
        match at % 4:
            case 0:
                yield agent, {"role": "user", "content": "[Jack]: " + text}, heard
            case 1:
                yield agent, {"role": "assistant", "content": text}, None
                heard = f"msg_{at + 9:03d}"
            case 2:
                call = {"name": "search", "arguments": orjson.dumps({"query": text[:80]}).decode()}
                calls = [{"id": f"call_{at}", "type": "function", "function": call}]
                yield agent, {"role": "assistant", "tool_calls": calls}, None
            case _:
                yield agent, {"role": "tool", "tool_call_id": f"call_{at - 1}", "content": text, "name": "search"}, None


def fill(path: Path, count: int, **options: Any) -> float:
    """Log a talk; the seconds the logging took."""
    with Session(path, **options) as session:
        for _ in range(8):
            session.log_agent_created(session.allocate_agent_id(), role="root")
        talk = list(discussion(count))
        start = time.perf_counter()
        for agent, message, substance in talk:
            session.log_transcript_entry(agent, message, substance)
        return time.perf_counter() - start


def bare_append(path: Path, lines: list[bytes]) -> float:
    """The same bytes with nothing but system calls."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    start = time.perf_counter()
    for line in lines:
        os.write(fd, line)
    seconds = time.perf_counter() - start
    os.close(fd)
    return seconds


def bare_decode(path: Path) -> float:
    start = time.perf_counter()
    with open(path, "rb") as file:
        for line in file:
            orjson.loads(line)
    return time.perf_counter() - start


def load(path: Path) -> float:
    start = time.perf_counter()
    Session.load(path, readonly=True)
    return time.perf_counter() - start


def in_turns(rounds: int, ours: Callable[[int], float], theirs: Callable[[int], float]) -> tuple[float, float, float]:
    """Median seconds of both, and the median ratio."""
    pairs = [(ours(at), theirs(at)) for at in range(rounds)]
    return median(a for a, _ in pairs), median(b for _, b in pairs), median(a / b for a, b in pairs)


def durable(folder: Path, lines: list[bytes]) -> tuple[float, float, float]:
    """Appending with a sync after each, in short turns, so that both meet the same disk."""
    talk = list(discussion(DURABLE * TURN))
    fd = os.open(folder / "bare", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with Session(folder / "durable") as session:

        def ours(at: int) -> float:
            start = time.perf_counter()
            for agent, message, substance in talk[at * TURN : at * TURN + TURN]:
                session.log_transcript_entry(agent, message, substance)
            return time.perf_counter() - start

        def theirs(at: int) -> float:
            start = time.perf_counter()
            for line in lines[at * TURN : at * TURN + TURN]:
                os.write(fd, line)
                os.fdatasync(fd)
            return time.perf_counter() - start

        found = in_turns(DURABLE, ours, theirs)
    os.close(fd)
    return found


def peak_memory(path: Path) -> int:
    """What loading adds to the memory of a process that has imported everything, in bytes."""
    program = (
        "import re, sys; from harken.log import Session\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "before = peak(); session = Session.load(sys.argv[1], readonly=True); print(peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024


def lines_of(path: Path) -> list[bytes]:
    return [record.raw + b"\n" for record in scan(path)]


def main(out: Callable[[str], object]) -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("HARKEN_BENCH_DIR")) as name:
        folder = Path(name)
        log = folder / "log.jsonl"
        fill(log, EVENTS, ack="os")
        lines = lines_of(log)
        out("| the session log | Harken | bare | ratio | limit |")
        out("|---|---|---|---|---|")
        ours, bare, ratio = durable(folder, lines[8:])
        out(
            f"| durable append (`write` + `fdatasync`), events/s | {TURN / ours:,.0f} | {TURN / bare:,.0f} "
            f"| {ratio:.2f}× the time | 1.25× |"
        )
        ours, bare, ratio = in_turns(
            5,
            lambda at: fill(folder / f"o{at}", EVENTS, ack="os"),
            lambda at: bare_append(folder / f"a{at}", lines),
        )
        out(
            f'| append with `ack="os"`, events/s | {EVENTS / ours:,.0f} | {EVENTS / bare:,.0f} '
            f"| {1 / ratio:.2f}× the rate | 100,000/s or 0.4× |"
        )
        ours, bare, ratio = in_turns(9, lambda _: load(log), lambda _: bare_decode(log))
        out(
            f"| load {EVENTS:,} events ({log.stat().st_size / 1e6:.0f} MB), against orjson on its lines, s "
            f"| {ours:.2f} | {bare:.2f} | {ratio:.2f}× the time | 3× |"
        )
        size, peak = log.stat().st_size, peak_memory(log)
        out(f"| memory of that load, MB | {peak / 1e6:.0f} | {size / 1e6:.0f} (the file) | {peak / size:.2f}× | 4× |")


if __name__ == "__main__":
    main(print)
