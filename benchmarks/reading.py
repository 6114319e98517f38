"""How fast each format of JSON lines is scanned for an import and read into events, against a bare `orjson.loads` of the
same lines in the same run.

One generated conversation is written in every format, so what is said is alike for all. With HARKEN_CORPUS two tables
follow. Real conversations of Claude Code in every format: what people and models said, and what tools answered, is as
long as it really is. And sessions that the programs themselves wrote; of some there are only small ones, made with a
model that says a few words: the records of the largest are said again and again under other names, behind its
beginning. There a line costs more than its bytes. Processor time, the best of several rounds that take turns, so that
what else the machine does falls on all alike.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import archive
import orjson

from harken import runtimes
from harken.formats import get

LIMIT = 100
SIZE, ROUNDS = 6_000_000, 5
ENOUGH = 4_000_000
REAL = {
    "claude-code": ("claude_code", "*.jsonl"),
    "codex": ("codex_rollout", "*.jsonl"),
    "copilot-cli": ("copilot_cli", "*.jsonl"),
    "gemini-cli": ("recorded_runtimes/gemini/tmp-proj/chats", "session-*.jsonl"),
    "pi": ("pi", "*.jsonl"),
    "qwen-code": ("recorded_runtimes/qwen/projects", "*/chats/*.jsonl"),
}


SAID = re.compile(rb'\{"(?:(?:id|uuid)":"([^"]{36})"|\$set":\{"lastUpdated")')
"""A record with a name, or the line that follows one in a session of Gemini CLI."""
NAME = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def made() -> dict[str, list[bytes]]:
    """One conversation as a session of every runtime."""
    original = archive.session(3, SIZE)
    events = get("claude-code-v1").read(original)
    return {name: [original if name == "claude-code" else get(f"{name}-v1").adopt(events).data] for name in REAL}


def carried(corpus: Path) -> dict[str, list[bytes]]:
    """The largest real conversations of Claude Code as sessions of every runtime."""
    folder, pattern = REAL["claude-code"]
    there = sorted((path.read_bytes() for path in (corpus / folder).rglob(pattern)), key=len, reverse=True)[:8]
    said = [get("claude-code-v1").read(data) for data in there]
    others = {name: [get(f"{name}-v1").adopt(events).data for events in said] for name in REAL if name != "claude-code"}
    return {"claude-code": there, **others}


def recorded(corpus: Path) -> dict[str, list[bytes]]:
    """Sessions that the programs wrote, the largest first; where these are small, one long session made of one."""
    found: dict[str, list[bytes]] = {}
    for name, (folder, pattern) in REAL.items():
        there = [path.read_bytes() for path in (corpus / folder).rglob(pattern)]
        there = sorted(filter(None, there), key=len, reverse=True)[:8]
        if there:
            found[name] = [lengthened(there[0])] if sum(map(len, there)) < ENOUGH // 8 else there
            found[name] *= max(1, ENOUGH // sum(map(len, found[name])))
    return found


def lengthened(session: bytes) -> bytes:
    """The session, and behind it its records again and again: each round has names of its own, and the first record of a
    round follows the last of the one before. Headers and repetitions of the history, which a program writes when it goes
    on with a session, stand in the first round alone."""
    said = [line for line in session.splitlines(keepends=True) if SAID.match(line)]
    names = [found[1] for line in said if (found := SAID.match(line)) and found[1]]
    links = dict.fromkeys(names)
    rounds, before = [session], names[-1]
    for number in range(1, ENOUGH // sum(map(len, said))):
        new = {name: b"%08x" % number + name[8:] for name in links}
        follows = re.compile(rb'"parentUuid":(?:null|"%s")' % names[0])
        first = follows.sub(b'"parentUuid":"%s"' % before, said[0])
        rounds += [NAME.sub(lambda found, new=new: new.get(found[0], found[0]), line) for line in [first, *said[1:]]]
        before = new[names[-1]]
    return b"".join(rounds)


def bare(files: list[bytes]) -> None:
    for data in files:
        for line in data.splitlines():
            try:
                orjson.loads(line)
            except orjson.JSONDecodeError:
                continue


def fastest(works: dict[str, Callable[[], None]]) -> dict[str, float]:
    """The least processor seconds of each, taken in turns."""
    least = dict.fromkeys(works, float("inf"))
    for _ in range(ROUNDS):
        for name, work in works.items():
            begun = time.process_time()
            work()
            least[name] = min(least[name], time.process_time() - begun)
    return least


def scan_all(name: str, files: list[bytes]) -> None:
    scan = runtimes.get(name).read.scan
    for data in files:
        scan(data, b"")


def read_all(name: str, files: list[bytes]) -> None:
    read = get(f"{name}-v1").read
    for data in files:
        read(data)


def table(out: Callable[[str], object], title: str, sessions: dict[str, list[bytes]]) -> None:
    out(f"| {title} | MB | a line, bytes | orjson, MB/s | scanned, MB/s | × orjson | into events, MB/s | × orjson |")
    out("|---|---|---|---|---|---|---|---|")
    for name, files in sessions.items():
        size = sum(map(len, files))
        took = fastest(
            {
                "bare": lambda files=files: bare(files),
                "scan": lambda name=name, files=files: scan_all(name, files),
                "read": lambda name=name, files=files: read_all(name, files),
            }
        )
        lines = sum(data.count(b"\n") for data in files)
        cells = [f"{size / 1e6:.1f}", f"{size / lines:,.0f}"]
        cells.append(f"{size / took['bare'] / 1e6:.0f}")
        for what in ("scan", "read"):
            cells += [f"{size / took[what] / 1e6:.0f}", f"{took[what] / took['bare']:.2f}"]
        out(f"| {name} | {' | '.join(cells)} |")


def main(out: Callable[[str], object]) -> None:
    out(f"## Reading sessions (processor time, the best of {ROUNDS}; limit: {LIMIT} MB/s)")
    table(out, "one generated conversation", made())
    if corpus := os.environ.get("HARKEN_CORPUS"):
        out("")
        table(out, "real conversations", carried(Path(corpus)))
        out("")
        table(out, "recorded sessions", recorded(Path(corpus)))


if __name__ == "__main__":
    main(print)
