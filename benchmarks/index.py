"""The index: what it costs beyond an import, how large it is, how soon an appended line is found, how much memory it takes.

Processor time counts, the least of several rounds, since others on the machine disturb that little. The archive is that
of the import benchmark; real sessions come from the folder that `HARKEN_CORPUS` names, where there is one. Beside ours
stands SQLite's full-text index alone, over the same texts in one transaction: nobody who builds on it can be quicker.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import archive
import importing

import harken
from harken.context.describe import delta_events
from harken.index import rows
from harken.index.words import prepare

FILES, TOTAL = 200, 100_000_000
ROUNDS = 3
APPENDS = 40
LIMIT_CPU, LIMIT_SIZE, LIMIT_FOUND, LIMIT_MEMORY = 9.0, 0.15, 50.0, 200.0


def main(out: Callable[[str], object]) -> None:
    work = Path(tempfile.mkdtemp(prefix="harken-index-"))
    try:
        archive.make(work / "generated", FILES, TOTAL)
        places = {"generated": [work / "generated"]}
        if corpus := os.environ.get("HARKEN_CORPUS"):
            places["real sessions"] = [Path(corpus) / "claude_code", Path(corpus) / "codex_rollout"]
        out("| index | ms of CPU per raw MB | of it SQLite alone | numbers | file / raw | memory, MB |")
        out("|---|---|---|---|---|---|")
        for name, folders in places.items():
            _measure(out, name, work / f"{name}.db", folders)
        out("")
        _found(out, work / "generated.db", work)
    finally:
        shutil.rmtree(work)


def _measure(out: Callable[[str], object], name: str, path: Path, folders: list[Path]) -> None:
    with harken.open(path) as repo:
        for _ in repo.import_sessions(folders):
            pass
        commits = repo.store.commits()
        raw = sum(info.size for info in repo.store.infos(list({commit.artifact for commit in commits})).values())
        texts = [
            told.text for commit in commits for event in delta_events(repo.store, commit) if (told := rows.said(event))
        ]
    alone = _sqlite_alone(path.with_suffix(".fts"), [prepare(text) for text in texts])
    del texts
    words, numbers = zip(*(_build(path) for _ in range(ROUNDS)), strict=True)
    size = path.with_name(f"{path.name}-index").stat().st_size
    memory = _memory(path)
    per = 1e9 / raw
    out(
        f"| {name}, {raw / 1e6:.0f} MB | {min(words) * per:.1f} (goal {LIMIT_CPU:.0f}) | {alone * per:.1f} |"
        f" {min(numbers) * per:.1f} | {size / raw:.3f} (goal {LIMIT_SIZE}) | {memory:.0f} (goal {LIMIT_MEMORY:.0f}) |"
    )


def _build(path: Path) -> tuple[float, float]:
    """Processor time for words and rows, and for numbers, of an index that is built from nothing."""
    for part in path.parent.glob(f"{path.name}-index*"):
        part.unlink()
    with harken.open(path) as repo:
        begun = time.process_time()
        repo.index.catch_up(numbers=False)
        between = time.process_time()
        repo.index.catch_up()
        return between - begun, time.process_time() - between


def _sqlite_alone(path: Path, texts: list[str]) -> float:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61')")
        connection.execute("INSERT INTO words (words, rank) VALUES ('hashsize', ?)", (16 << 20,))
        begun = time.process_time()
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", enumerate(texts))
        connection.execute("COMMIT")
        return time.process_time() - begun


BUILDER = """
import sys, harken
with harken.open(sys.argv[1]) as repo:
    repo.index.rebuild()
"""


def _memory(path: Path) -> float:
    """Megabytes that a process takes that builds the index."""
    return importing.measure([sys.executable, "-c", BUILDER, str(path)])[2]


def _found(out: Callable[[str], object], path: Path, work: Path) -> None:
    """How long after the end of an import a line that was appended to a file can be found."""
    source = max((work / "generated").rglob("*.jsonl"), key=lambda file: file.stat().st_size)
    line = source.read_bytes().splitlines()[-1]
    took = []
    with harken.open(path) as repo:
        repo.index.catch_up()
        for number in range(APPENDS):
            word = f"zyzzyva{number}"
            with source.open("ab") as file:
                file.write(_said_again(line, number, word))
            for _ in repo.import_sessions([source]):
                pass
            begun = time.perf_counter()
            repo.index.catch_up(numbers=False)
            hits = repo.index.query("SELECT n FROM words JOIN messages ON n = words.rowid WHERE words MATCH ?", (word,))
            took.append((time.perf_counter() - begun) * 1000)
            assert len(hits) == 1, f"{word} was found {len(hits)} times"
    out(
        f"A line that is appended is found {median(took):.1f} ms after the import's end (median of {APPENDS}; worst"
        f" {max(took):.1f}, goal {LIMIT_FOUND:.0f})."
    )


def _said_again(line: bytes, number: int, word: str) -> bytes:
    import orjson

    record = orjson.loads(line)
    record |= {"uuid": f"00000000-0000-4000-8000-{number:012d}", "type": "user"}
    record["message"] = {"role": "user", "content": f"say {word}"}
    return orjson.dumps(record) + b"\n"


if __name__ == "__main__":
    main(print)
