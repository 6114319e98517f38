"""The store against plain JSONL: appending turn by turn, room on disk, loading, forking, materializing, many writers.

Appends are interleaved in one run: a turn into the store, the same turn into a JSONL file (reopen, write, fsync) and
into a second JSONL file as control, each first in turn, so that a busy machine or disk slows all three alike.
Ratios are of medians. Where nothing is synced, processor time counts, the least of several rounds: others on the
machine disturb that little.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import orjson
import zstandard

import harken
from harken import ids
from harken.formats.base import concatenate
from harken.store import Draft, SqliteStore, open_store

sys.path.insert(0, str(Path(__file__).parent))
from turns import Turn, conversation, encoded, recorded, said

SIZES = (100, 1000, 3000)
T0 = 1_771_756_200_000_000
WRITERS = 20


def append_jsonl(path: Path, data: bytes) -> float:
    begun = time.perf_counter()
    with path.open("ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return time.perf_counter() - begun


class Chain:
    """A conversation that grows in a store, one durable checkpoint a turn."""

    def __init__(self, path: Path) -> None:
        self.store, self.tip, self.count = open_store(path), "", 0

    def append(self, data: bytes) -> float:
        begun = time.perf_counter()
        with self.store.write() as writer:
            draft = Draft(
                artifact=writer.put(data),
                parent=self.tip,
                format="openai-chat-v1",
                time=T0 + self.count * 1_000_000,
                checkpoint="turn_boundary",
                principal="bench",
                session_id="conversation",
                message_count=4,
            )
            self.tip = writer.commit(draft).id
        self.count += 1
        return time.perf_counter() - begun

    def close(self) -> None:
        self.store.close()


class Kept:
    """Turns, checkpointed as a program does it: counted, with a session that follows."""

    def __init__(self, path: Path, format: str) -> None:
        self.repo, self.tip, self.format = harken.open(path), None, format
        self.spent = 0.0

    def append(self, data: bytes) -> float:
        begun, used = time.perf_counter(), time.process_time()
        self.tip = self.repo.checkpoint(data, format=self.format, parent=self.tip, session_id="conversation")
        self.spent += time.process_time() - used
        return time.perf_counter() - begun


def measure_checkpoints(turns: list[bytes], format: str, folder: Path) -> tuple[float, float, float, float]:
    """The median checkpoint, it and the store's writer alone against plain JSONL, and its processor time."""
    kept, chain = Kept(folder / "kept.db", format), Chain(folder / "store.db")
    took: dict[str, list[float]] = {"kept": [], "store": [], "jsonl": []}
    doers: list[tuple[str, Callable[[bytes], float]]] = [
        ("kept", kept.append),
        ("store", chain.append),
        ("jsonl", lambda line: append_jsonl(folder / "a.jsonl", line)),
    ]
    for n, line in enumerate(turns):
        for name, append in doers[n % 3 :] + doers[: n % 3]:
            took[name].append(append(line))
    kept.repo.close()
    chain.close()
    bare = median(took["jsonl"])
    return median(took["kept"]), median(took["kept"]) / bare, median(took["store"]) / bare, kept.spent / len(turns)


def load_store(path: Path, tip: str) -> list[object]:
    """Open the store and make Python objects of the whole conversation."""
    store = open_store(path)
    links = store.walk(tip)
    links.reverse()
    loaded: list[object] = []
    for delta in store.get_many([link.artifact for link in links]):
        loaded += orjson.loads(b"[" + delta.rstrip(b"\n").replace(b"\n", b",") + b"]")
    store.close()
    return loaded


def load_jsonl(path: Path) -> list[object]:
    with path.open() as file:
        return [json.loads(line) for line in file]


def timed(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def spent(call: Callable[[], object]) -> float:
    """Processor seconds, our own and the system's."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


def measure(turns: list[Turn], folder: Path) -> dict[str, float]:
    """One conversation of that many turns."""
    lines = [encoded(turn) for turn in turns]
    raw = sum(map(len, lines))
    chain = Chain(folder / "store.db")
    took: dict[str, list[float]] = {"store": [], "jsonl": [], "control": []}
    doers: list[tuple[str, Callable[[bytes], float]]] = [
        ("store", chain.append),
        ("jsonl", lambda line: append_jsonl(folder / "a.jsonl", line)),
        ("control", lambda line: append_jsonl(folder / "b.jsonl", line)),
    ]
    for n, line in enumerate(lines):
        for name, append in doers[n % 3 :] + doers[: n % 3]:  # whoever comes first finds colder caches
            took[name].append(append(line))
    tip = chain.tip
    chain.close()
    disk = (folder / "store.db").stat().st_size
    ours, theirs = [], []
    for _ in range(5):
        ours.append(timed(lambda: load_store(folder / "store.db", tip)))
        theirs.append(timed(lambda: load_jsonl(folder / "a.jsonl")))
    assert load_store(folder / "store.db", tip) == load_jsonl(folder / "a.jsonl")
    fork, grew = forks(folder / "store.db", tip)
    store, jsonl = took["store"], took["jsonl"]
    return {
        "p50": median(store),
        "p99": sorted(store)[int(len(store) * 0.99)],
        "ratio": median(store) / median(jsonl),
        "control": median(took["control"]) / median(jsonl),
        "first": median(store[:100]) / median(jsonl[:100]),
        "flat": median(store[-100:]) / median(jsonl[-100:]),
        "disk": disk / raw,
        "load": median(ours),
        "load ratio": median(ours) / median(theirs),
        "fork": fork,
        "fork bytes": grew,
    }


def forks(path: Path, tip: str) -> tuple[float, float]:
    """Fork the conversation fifty times: median seconds, and bytes each."""
    store = open_store(path)
    before, took = path.stat().st_size, []
    for n in range(50):

        def fork(n: int = n) -> None:
            with store.write() as writer:
                writer.move(f"fork-{n}", kind="branch", to=tip, expect="", time=T0, who="bench", why="fork")

        took.append(timed(fork))
    store.close()
    return median(took), (path.stat().st_size - before) / 50


def materialize(folder: Path, turns: list[Turn], count: int) -> tuple[float, float, float]:
    """Walk and read a chain of that many commits, against the same bytes decompressed and hashed in one piece."""
    lines = [encoded(turn) for turn in turns]
    store = open_store(folder / "chain.db")
    assert isinstance(store, SqliteStore)
    tip = ""
    with store.write() as writer:
        for n in range(count):
            data = b"%d\n" % n + lines[n % len(lines)]
            tip = writer.commit(Draft(artifact=writer.put(data), parent=tip, format="x", time=T0 + n)).id
    store.close()
    piece = b"".join(b"%d\n" % n + lines[n % len(lines)] for n in range(count))
    (folder / "piece.zst").write_bytes(zstandard.ZstdCompressor(level=3).compress(piece))
    (folder / "piece.name").write_text(ids.artifact_id(piece))

    def whole() -> None:
        read = zstandard.ZstdDecompressor().decompress((folder / "piece.zst").read_bytes())
        assert (folder / "piece.name").read_text() == ids.artifact_id(read)

    def ours() -> None:
        opened = open_store(folder / "chain.db")
        links = opened.walk(tip)
        links.reverse()
        assert len(piece) == len(concatenate(opened.get_many([link.artifact for link in links])))
        opened.close()

    def walk() -> None:
        opened.walk(tip)

    opened = open_store(folder / "chain.db")
    rounds = [(spent(ours), spent(whole), spent(walk)) for _ in range(7)]
    opened.close()
    return (min(r[0] for r in rounds), min(r[1] for r in rounds), min(r[2] for r in rounds))


def make_chain(path: Path, count: int, format: str, delta: Callable[[int], bytes]) -> None:
    """A chain of that many commits, under the name `main`."""
    store, tip = open_store(path), ""
    with store.write() as writer:
        for n in range(count):
            artifact = writer.put(delta(n))
            tip = writer.commit(Draft(artifact=artifact, parent=tip, format=format, time=T0 + n * 1_000_000)).id
        writer.move("main", kind="branch", to=tip, expect="", time=T0)
    store.close()


def log(path: Path, count: int, *options: str) -> float:
    """Processor seconds of `harken log` over that chain, the least of three runs."""
    command = [sys.executable, "-m", "harken", "--store", str(path), "log", "main", *options]
    used = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert count == subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.count(b"\n")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(used)


def statements(path: Path, act: Callable[[Any], object]) -> int:
    """How many statements SQLite is given meanwhile."""
    said: list[str] = []
    with harken.open(path) as repo:
        store = repo.store
        assert isinstance(store, SqliteStore)
        connection = store.db.acquire()  # one thread uses one connection again and again
        connection.set_trace_callback(said.append)
        store.db.release(connection)
        act(repo)
        return len(said)


def opening(path: Path) -> tuple[float, float]:
    """Processor seconds of opening a store, and of `harken sessions` on it; the least of some."""
    opened = min(spent(lambda: open_store(path).close()) for _ in range(20))
    command = [sys.executable, "-m", "harken", "--store", str(path), "sessions"]
    listed = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        listed.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return opened, min(listed)


_WRITER = """
import sys, time
sys.path.insert(0, sys.argv[3])
from store import Chain
from pathlib import Path
chain, took = Chain(Path(sys.argv[1])), []
chain.tip = ""
data = [(f"{sys.argv[2]} {n} " * 300).encode() for n in range(100)]
print("ready", flush=True)
sys.stdin.readline()
for line in data:
    took.append(chain.append(line))
chain.close()
print(*took, flush=True)
"""


def many_writers(path: Path) -> list[float]:
    """Twenty processes, a hundred checkpoints each, all at once: seconds of every checkpoint."""
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", _WRITER, str(path)]
    writers = [
        subprocess.Popen([*command, f"w{n}", here], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    took = [float(word) for writer in writers for word in writer.communicate()[0].split()]
    assert len(took) == WRITERS * 100
    return took


def main(out: Callable[[str], object]) -> None:
    """Print the tables."""
    turns = conversation(SIZES[-1])
    out("## The store, a checkpoint each turn of about 4 KB, against plain JSONL in the same run")
    columns = ["turns", "append p50", "p99", "× JSONL", "control", "first 100 ×", "last 100 ×"]
    columns += ["disk × raw", "load", "× json.loads", "fork", "bytes a fork"]
    out(f"| {' | '.join(columns)} |")
    out("|---" * len(columns) + "|")
    for size in SIZES:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            got = measure(turns[:size], Path(folder))
        cells = [f"{size}", f"{got['p50'] * 1e3:.2f} ms", f"{got['p99'] * 1e3:.2f} ms"]
        cells += [f"{got[name]:.2f}" for name in ("ratio", "control", "first", "flat")]
        cells += [f"{got['disk']:.3f}", f"{got['load'] * 1e3:.1f} ms", f"{got['load ratio']:.2f}"]
        cells += [f"{got['fork'] * 1e3:.2f} ms", f"{got['fork bytes']:.0f}"]
        out(f"| {' | '.join(cells)} |")
    out("")
    out("| the store | measured | limit |")
    out("|---|---|---|")
    for what, figure, limit in figures(turns):
        out(f"| {what} | {figure} | {limit} |")


def figures(turns: list[Turn]) -> Iterator[tuple[str, str, str]]:
    """What is measured, the figure, and what it may be; each as soon as it is known."""
    real, generated = recorded(600), [encoded(turn) for turn in turns[:600]]
    for what, lines, format in (("real", real, "claude-code-v1"), ("generated", generated, "openai-chat-v1")):
        with workplace() as folder:
            p50, ratio, alone, used = measure_checkpoints(lines, format, folder)
        size = sum(map(len, lines)) / len(lines) / 1000
        told = f"{p50 * 1e3:.2f} ms, {used * 1e6:.0f} µs of the processor; the store's writer alone {alone:.2f} ×"
        yield (
            f"`Repo.checkpoint` of {what} records, {size:.1f} KB a turn",
            f"{ratio:.2f} × plain JSONL ({told})",
            "1.3 ×",
        )
    with workplace() as folder:
        kept = Kept(folder / "s.db", "claude-code-v1")
        for n in range(120):
            kept.append(said(n))
        kept.repo.close()
        tip = kept.tip
        once = statements(
            folder / "s.db",
            lambda repo: repo.checkpoint(said(120), format="claude-code-v1", parent=tip, session_id="conversation"),
        )
        listed = statements(folder / "s.db", lambda repo: list(repo.log(tip, limit=100)))
        opened, sessions = opening(folder / "s.db")
    yield "statements of the first checkpoint after opening", f"{once}", "–"
    yield "statements of a list of 100 commits", f"{listed}", "10"
    yield "opening a store, processor time", f"{opened * 1e3:.1f} ms", "–"
    yield "`harken sessions`, processor time", f"{sessions * 1e3:.0f} ms", "–"
    with workplace() as folder:
        ours, whole, walk = materialize(folder, turns, 10_000)
    told = f"{ours / whole:.2f} × the same bytes read, decompressed and hashed in one piece ({ours * 1e3:.0f} ms)"
    yield "a chain of 10,000 commits of 4 KB, materialized", told, "2.5 ×"
    yield "the same chain, walked", f"{walk * 1e3:.1f} ms", "–"
    kinds = (("that nobody reads", "x", lambda n: b"%d" % n), ("of readable turns", "claude-code-v1", said))
    for what, format, delta in kinds:
        with workplace() as folder:
            make_chain(folder / "log.db", 100_000, format, delta)
            for options in ((), ("--json",)):
                used = log(folder / "log.db", 100_000, *options)
                yield (
                    f"`harken log {' '.join(options)}`, 100,000 commits {what}".replace(" `", "`"),
                    f"{used:.2f} s",
                    "3 s",
                )
    with workplace() as folder:
        took = sorted(many_writers(folder / "store.db"))
    told = f"p50 {median(took) * 1e3:.1f} ms, p99 {took[int(len(took) * 0.99)] * 1e3:.1f} ms"
    yield (
        f"{WRITERS} processes at once, 100 checkpoints each",
        f"no error, {told}, worst {took[-1] * 1e3:.1f} ms",
        "no error",
    )


@contextmanager  # a folder on the disk that is measured
def workplace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        yield Path(folder)


if __name__ == "__main__":
    main(print)
