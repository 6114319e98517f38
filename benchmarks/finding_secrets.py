"""How quickly rules look through text for secrets: text of this project, repeated, with a secret here and there."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from harken import secrets

SIZE, ROUNDS, LIMIT = 32 << 20, 5, 50


def text() -> bytes:
    """So many bytes of documents and code, in which every megabyte has a key."""
    folder = Path(__file__).resolve().parent.parent
    found = b"".join(path.read_bytes() for path in sorted((*folder.glob("docs/**/*.md"), *folder.glob("src/**/*.py"))))
    key = b" sk-" + b"ant-api03-" + b"aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY "
    piece = (found * (1 + (1 << 20) // len(found)))[: (1 << 20) - len(key)] + key
    return piece * (SIZE // len(piece))


def main(out) -> None:
    data, times = text(), []
    for _ in range(ROUNDS):
        start = time.process_time()
        found = sum(1 for _ in secrets.find(data))
        times.append(time.process_time() - start)
    speed = len(data) / median(times) / 1e6
    out("| looking for secrets | MB/s of CPU | limit |")
    out("|---|---|---|")
    out(f"| {len(secrets.RULES)} rules, {len(data) / 1e6:.0f} MB, {found} found | {speed:.0f} | at least {LIMIT} |")


if __name__ == "__main__":
    main(print)
