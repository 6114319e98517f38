"""Search over a generated archive and over real sessions: 200 varied queries, without and with ten snippets.

The archive is that of the import benchmark. Real sessions come from the folder that `HARKEN_CORPUS` names; without one
there are only the generated. agentsview's search stands beside ours as a command, where that program is installed.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import archive
import importing

import harken
from harken import clock
from harken.index.query import parse
from harken.index.search import search

QUERIES = 200
SHOWN = 10
LIMIT, LIMIT_WITH_SNIPPETS = 6.0, 15.0
"""Milliseconds of the slowest of twenty queries."""
COMMANDS = 20


def main(out: Callable[[str], object], *, files: int = 800, total: int = 400_000_000) -> None:
    work = Path(tempfile.mkdtemp(prefix="harken-search-"))
    try:
        home = work / "home"
        projects = home / ".claude" / "projects"
        size = archive.make(projects, files, total)
        out("| search, milliseconds | p50 | p95 | worst | |\n|---|---|---|---|---|")
        store = _stored(work / "generated.db", [projects])
        queries = list(_varied(_generated_words()))
        _measure(out, store, queries, f"generated, {size / 1e6:.0f} MB")
        if corpus := os.environ.get("HARKEN_CORPUS"):
            places = [Path(corpus) / "claude_code", Path(corpus) / "codex_rollout"]
            real = _stored(work / "real.db", places)
            size = sum(path.stat().st_size for place in places for path in place.rglob("*.jsonl"))
            _measure(out, real, list(_varied(_real_words(real))), f"real sessions, {size / 1e6:.0f} MB")
        _commands(out, store, home, queries)
    finally:
        shutil.rmtree(work)


def _stored(path: Path, places: list[Path]) -> Path:
    with harken.open(path) as repo:
        for _ in repo.import_sessions(places):
            pass
        repo.index.catch_up()
    return path


# -- queries -----------------------------------------------------------------------------------------------------------


class Words:
    """What there is to look for: words from the most frequent on, names, and CJK words."""

    def __init__(self, words: list[str], names: list[str], cjk: list[str]) -> None:
        self.words, self.names, self.cjk = words, names, cjk or words


def _generated_words() -> Words:
    names = [name for seed in range(40) for name in archive.Writer(seed).names[:20]]
    return Words(
        archive.vocabulary()[0], names, [word for at in range(3) for word in archive.cjk_vocabulary(at)[0][:400]]
    )


def _real_words(store: Path) -> Words:
    """The words of the store itself, by how often they come."""
    counted: Counter[str] = Counter()
    with harken.open(store) as repo:
        for hit in repo.search("since:2000-01-01", limit=1000).hits:
            counted.update(hit.snippet.text.split())
    found = [word.strip(".,:;()'`\"").lower() for word, _ in counted.most_common()]
    words = [word for word in dict.fromkeys(found) if word.isalpha() and len(word) > 2 and word.isascii()]
    names = [word for word in dict.fromkeys(found) if "_" in word and word.replace("_", "").isalnum()]
    return Words(words, names or words, [word for word in words if not word.isascii()])


def _varied(from_: Words) -> Iterator[str]:
    r = random.Random(5)

    def word() -> str:
        return r.choice(from_.words[: r.choice([50, 500, 5000, len(from_.words)])])

    ways: list[Callable[[], str]] = [
        word,
        word,
        lambda: f"{word()} {word()}",
        lambda: f"{word()} {word()} {word()}",
        lambda: f"{word()} OR {word()}",
        lambda: f"{word()} -{word()}",
        lambda: f'"{word()} {word()}"',
        lambda: word()[:4] + "*",
        lambda: r.choice(from_.names),
        lambda: r.choice(from_.names).replace("_", " ").split()[0],
        lambda: r.choice(from_.cjk),
        lambda: r.choice(from_.cjk)[0],
        lambda: f"{word()} role:{r.choice(['human', 'assistant', 'call', 'result'])}",
        lambda: f"{word()} tool:{r.choice(['bash', 'read', 'edit'])} since:2020-01-01",
        lambda: f"{word()} {word()} runtime:claude-code -role:result",
    ]
    for at in range(QUERIES):
        yield ways[at % len(ways)]()


# -- measuring ---------------------------------------------------------------------------------------------------------


def _measure(out: Callable[[str], object], store: Path, queries: list[str], what: str) -> None:
    with harken.open(store) as repo:
        index = repo.index
        reached = index.catch_up()
        for snippets, limit in ((False, LIMIT), (True, LIMIT_WITH_SNIPPETS)):
            took = []
            for query in queries:
                asked = parse(query)
                begun = time.thread_time()
                with contextlib.suppress(harken.NotFound):  # a filter that nothing has
                    search(index, repo.store, asked, reached, limit=SHOWN, present=clock.now(), snippets=snippets)
                took.append((time.thread_time() - begun) * 1000)
            name = f"{what}, {f'{SHOWN} snippets' if snippets else 'hits alone'}"
            out(f"| {name}, CPU | {_figures(took)} | limit {limit:.0f} for p95 |")


def _figures(took: list[float]) -> str:
    took = sorted(took)
    return f"{took[len(took) // 2]:.1f} | {took[len(took) * 95 // 100]:.1f} | {took[-1]:.1f}"


def _commands(out: Callable[[str], object], store: Path, home: Path, queries: list[str]) -> None:
    """The same words as commands, each with the start of its program."""
    words = [query for query in queries if query.isalnum()][:COMMANDS]
    ours = [sys.executable, "-m", "harken", "--store", str(store), "search", "--json"]
    out(f"| `harken search`, wall of the command | {_figures([_wall([*ours, word]) for word in words])} | |")
    program = Path(".tools") / "agentsview" / "bin" / "agentsview"
    if not program.exists():
        out("| agentsview | is not installed here | | | |")
        return
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    importing.measure([str(program), "sync"], env | {"AGENTSVIEW_NO_DAEMON": "1"})
    try:
        for name, more in (("substring", []), ("full text", ["--fts"])):
            theirs = [str(program), "session", "search", *more, "--json"]
            _wall([*theirs, "first"], env)  # its daemon, which answers, is started by the first question
            took = _figures([_wall([*theirs, word], env) for word in words])
            out(f"| agentsview 0.46.1, {name}, wall of the command | {took} | |")
    except subprocess.SubprocessError as problem:
        out(f"| agentsview 0.46.1 | failed: {problem} | | | |")
    finally:
        subprocess.run([str(program), "daemon", "stop"], env=env, capture_output=True, check=False)


def _wall(command: list[str], env: dict[str, str] | None = None) -> float:
    begun = time.perf_counter()
    subprocess.run(command, env=env, capture_output=True, check=True)
    return (time.perf_counter() - begun) * 1000


if __name__ == "__main__":
    main(print)
