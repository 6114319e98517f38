"""What `harken watch` costs while nothing happens, with the system's notices and without, and how soon a line is kept."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FILES = int(os.environ.get("WATCHED_FILES", "50000"))
SESSIONS = int(os.environ.get("WATCHED_SESSIONS", "2000"))
"""How many of the files are sessions; to a watch that waits, a file is a file."""
IDLE = float(os.environ.get("WATCHED_SECONDS", "60"))
PER_FOLDER = 500
LIMIT = 0.1
"""Percent of one processor while nothing happens."""


def session(number: int, turns: int = 1) -> bytes:
    """A session of Claude Code's, as small as can be."""
    name = f"{number:08x}-0000-4000-8000-000000000000"
    lines, parent = [], None
    for turn in range(2 * turns):
        uuid = f"{number:08x}-{turn:04x}-4000-8000-000000000001"
        role = "assistant" if turn % 2 else "user"
        message = {"role": role, "content": f"word {turn} of {number}"}
        if role == "assistant":
            message |= {"id": f"msg_{number}_{turn}", "model": "m", "content": [{"type": "text", "text": "yes"}]}
        time_ = f"2026-01-01T00:{turn // 60:02}:{turn % 60:02}.000Z"
        line = {"parentUuid": parent, "type": role, "uuid": uuid, "sessionId": name, "timestamp": time_}
        lines.append(json.dumps(line | {"message": message}) + "\n")
        parent = uuid
    return "".join(lines).encode()


def archive(home: Path) -> Path:
    """So many files, old enough to be settled; the path of a session among them."""
    for number in range(FILES):
        folder = home / ".claude" / "projects" / f"-work-{number // PER_FOLDER}"
        if number % PER_FOLDER == 0:
            folder.mkdir(parents=True)
        path = folder / f"{number:08x}-0000-4000-8000-000000000000.jsonl"
        path.write_bytes(session(number) if number < SESSIONS else b'{"note": 1}\n')
        os.utime(path, (1.7e9, 1.7e9))
    return home / ".claude" / "projects" / "-work-0" / f"{0:08x}-0000-4000-8000-000000000000.jsonl"


def processor_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settle(pid: int) -> None:
    """Wait until it has looked at everything twice: once to begin with, and again when all of it is quiet."""
    busy = [processor_seconds(pid)]
    # The second look comes five seconds behind the first; both take longer on a busy machine.
    while len(busy) < 6 or busy[-1] - busy[-5] > 0.1:
        time.sleep(5.0)
        busy.append(processor_seconds(pid))


def measure(home: Path, store: Path, path: Path, *options: str) -> tuple[float, float, float, int]:
    """Processor seconds until it waits, percent of a processor while it does, seconds until a line is kept, memory."""
    command = [sys.executable, "-m", "harken", "--store", str(store), "watch", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"HOME": str(home)}) as process:
        assert process.stdout is not None
        settle(process.pid)
        began, before = time.monotonic(), processor_seconds(process.pid)
        time.sleep(IDLE)
        idle = (processor_seconds(process.pid) - before) / (time.monotonic() - began) * 100
        kept, turns = path.stat().st_size, path.read_bytes().count(b"\n") // 2
        at = time.monotonic()
        path.write_bytes(session(0, turns + 2))
        while json.loads(process.stdout.readline())["total_bytes"] <= kept:
            pass  # of what was written before
        took = time.monotonic() - at
        status = Path(f"/proc/{process.pid}/status").read_text()
        memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        process.terminate()
    return before, idle, took, memory


def main(out) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home, store = Path(folder, "home"), Path(folder, "store.db")
        path = archive(home)
        subprocess.run(
            [sys.executable, "-m", "harken", "--store", str(store), "import"],
            env=os.environ | {"HOME": str(home)},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        out(
            f"| `harken watch` over {FILES:,} files, {SESSIONS:,} of them sessions | start, CPU s | idle, % of a processor | limit | a line kept after | MB |"
        )
        out("|---|---|---|---|---|---|")
        ways = {"polling": ["--poll"]}
        if importlib.util.find_spec("watchfiles"):
            ways = {"notices (`watchfiles`)": []} | ways
        for name, options in ways.items():
            start, idle, took, memory = measure(home, store, path, *options)
            limit = f"{LIMIT} %" if not options else "10 %"
            out(f"| {name} | {start:.1f} | {idle:.2f} | {limit} | {took:.2f} s | {memory / 1024:.0f} |")


if __name__ == "__main__":
    main(print)
