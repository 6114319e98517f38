"""How long it takes until a command answers: `import harken`, `harken --help`, against an empty interpreter."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

ROUNDS = 15
CASES = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import harken": [sys.executable, "-c", "import harken"],
    "harken --help": [sys.executable, "-m", "harken", "--help"],
    "harken --version": [sys.executable, "-m", "harken", "--version"],
}
LIMITS = {"import harken": 100, "harken --help": 150}


def main(out) -> None:
    times = {name: [] for name in CASES}
    for _ in range(ROUNDS):
        for name, command in CASES.items():
            start = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            times[name].append(time.perf_counter() - start)
    bare = median(times["python -c pass"])
    out("| start-up | ms (median) | beyond the bare interpreter | limit |")
    out("|---|---|---|---|")
    for name, values in times.items():
        limit = f"{LIMITS[name]} ms" if name in LIMITS else "–"
        out(f"| `{name}` | {median(values) * 1e3:.0f} | {(median(values) - bare) * 1e3:.0f} | {limit} |")


if __name__ == "__main__":
    main(print)
