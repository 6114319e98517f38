"""Brings the index of a store up to date in small steps, and is killed at one of SQLite's statements.

Arguments: the store, and before which statement; 0 is never. Prints how many statements there were.
"""

from __future__ import annotations

import os
import signal
import sys

import harken
from harken.index import follow

STEP = 9
"""Changes of a step."""


def main(store: str, last: int) -> None:
    follow.CHANGES = STEP
    count = 0

    def trace(_: str) -> None:
        nonlocal count
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)

    with harken.open(store) as repo:
        repo.index._writer().set_trace_callback(trace)
        repo.index.catch_up()
        print(count)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
