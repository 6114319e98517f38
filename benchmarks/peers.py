"""The same conversation in other people's stores, a durable checkpoint each turn, in one run with ours.

The peers are installed into an environment of their own (`.tools/peers`, never a dependency of ours); one that cannot
be installed or fails is named with the reason. A slow one is stopped after `CAP` seconds: its row then says at which
turn, and its disk and load are for that many turns. Peers that keep no history can only show the newest state.

python benchmarks/peers.py            all sizes
python benchmarks/peers.py 100        one size
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HOME = HERE.parent / ".tools" / "peers"
PACKAGES = [
    "langgraph",
    "langgraph-checkpoint-sqlite",
    "openai-agents",
    "google-adk",
    "aiosqlite",
    "sqlalchemy[asyncio]",
]
SIZES = (100, 1000, 3000)
CAP = 30.0
Turn = list[dict[str, Any]]


class Run:
    """Appends turns until they are done or the time is up."""

    def __init__(self, turns: list[Turn], folder: Path) -> None:
        self.turns, self.folder, self.took = turns, folder, []  # type: list[Turn], Path, list[float]
        self._end = time.perf_counter() + CAP

    def each(self, append: Callable[[Turn], object]) -> None:
        for turn in self.turns:
            begun = time.perf_counter()
            append(turn)
            self.took.append(time.perf_counter() - begun)
            if time.perf_counter() > self._end:
                break

    async def each_async(self, append: Callable[[Turn], Any]) -> None:
        for turn in self.turns:
            begun = time.perf_counter()
            await append(turn)
            self.took.append(time.perf_counter() - begun)
            if time.perf_counter() > self._end:
                break

    def check(self, messages: int) -> None:
        assert messages == 4 * len(self.took), f"{messages} messages came back of {4 * len(self.took)}"


# -- the peers; each appends every turn and gives back a function that loads the whole conversation ---------------------


def plain_jsonl(run: Run) -> Callable[[], int]:
    path = run.folder / "log.jsonl"

    def append(turn: Turn) -> None:
        with path.open("a") as file:
            file.write("".join(json.dumps(message, ensure_ascii=False) + "\n" for message in turn))
            file.flush()
            os.fsync(file.fileno())

    def load() -> int:
        with path.open() as file:
            return len([json.loads(line) for line in file])

    run.each(append)
    return load


def git_commit(run: Run) -> Callable[[], int]:
    path = run.folder / "log.jsonl"

    def git(*words: str) -> None:
        identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "gc.auto=0"]
        subprocess.run(["git", "-C", str(run.folder), *identity, *words], check=True, capture_output=True)

    def append(turn: Turn) -> None:
        with path.open("a") as file:
            file.write("".join(json.dumps(message, ensure_ascii=False) + "\n" for message in turn))
        git("add", "log.jsonl")
        git("commit", "-q", "-m", "turn")

    def load() -> int:
        shown = subprocess.run(
            ["git", "-C", str(run.folder), "show", "HEAD:log.jsonl"], check=True, capture_output=True
        )
        return len([json.loads(line) for line in shown.stdout.splitlines()])

    git("init", "-q")
    run.each(append)
    return load


def _langgraph(run: Run, channel: Any) -> Callable[[], int]:
    import sqlite3
    from typing import Annotated, TypedDict

    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    state = TypedDict("state", {"messages": Annotated[list, channel]})  # noqa: UP013
    config = {"configurable": {"thread_id": "1"}}

    def graph() -> tuple[Any, sqlite3.Connection]:
        connection = sqlite3.connect(run.folder / "graph.db", check_same_thread=False)
        builder = StateGraph(state)
        builder.add_node("answer", lambda _: {"messages": []})
        builder.add_edge(START, "answer")
        builder.add_edge("answer", END)
        return builder.compile(checkpointer=SqliteSaver(connection)), connection

    compiled, connection = graph()
    run.each(lambda turn: compiled.invoke({"messages": turn}, config))
    connection.close()

    def load() -> int:
        again, opened = graph()
        count = len(again.get_state(config).values["messages"])
        opened.close()
        return count

    return load


def langgraph_default(run: Run) -> Callable[[], int]:
    import operator

    return _langgraph(run, operator.add)


def langgraph_delta(run: Run) -> Callable[[], int]:
    from langgraph.channels import DeltaChannel

    def extend(state: list[Any], writes: list[list[Any]]) -> list[Any]:
        return [*state, *(message for write in writes for message in write)]

    return _langgraph(run, DeltaChannel(extend, list))


def openai_session(run: Run) -> Callable[[], int]:
    from agents import SQLiteSession

    session = SQLiteSession("bench", run.folder / "session.db")
    asyncio.run(run.each_async(session.add_items))
    session.close()

    def load() -> int:
        again = SQLiteSession("bench", run.folder / "session.db")
        return len(asyncio.run(again.get_items()))

    return load


def google_adk(run: Run) -> Callable[[], int]:
    from google.adk.events import Event
    from google.adk.sessions import DatabaseSessionService
    from google.genai import types

    where = f"sqlite+aiosqlite:///{run.folder / 'adk.db'}"
    names = {"app_name": "bench", "user_id": "u"}

    async def fill() -> None:
        service = DatabaseSessionService(where)
        session = await service.create_session(**names, session_id="s")

        async def append(turn: Turn) -> None:
            for message in turn:
                part = types.Part(text=json.dumps(message))
                content = types.Content(role=message["role"], parts=[part])
                await service.append_event(session, Event(author=message["role"], content=content))

        await run.each_async(append)

    async def read() -> int:
        session = await DatabaseSessionService(where).get_session(**names, session_id="s")
        assert session is not None
        return len([json.loads(event.content.parts[0].text) for event in session.events])  # type: ignore[union-attr, index, arg-type]

    asyncio.run(fill())
    return lambda: asyncio.run(read())


def harken(run: Run) -> Callable[[], int]:
    sys.path.insert(0, str(HERE))
    from turns import encoded

    import store as ours

    chain = ours.Chain(run.folder / "store.db")
    run.each(lambda turn: chain.append(encoded(turn)))
    tip = chain.tip
    chain.close()
    return lambda: len(ours.load_store(run.folder / "store.db", tip))


OURS = {"Harken": harken, "plain JSONL, fsync (no history)": plain_jsonl}
THEIRS = {
    "LangGraph, SQLite saver": langgraph_default,
    "LangGraph, DeltaChannel (beta)": langgraph_delta,
    "OpenAI Agents SQLiteSession (no history)": openai_session,
    "Google ADK, SQLite (no history)": google_adk,
    "git, a commit a turn": git_commit,
}


# -- running them ------------------------------------------------------------------------------------------------------


def one(name: str, size: int, conversation: Path) -> dict[str, Any]:
    """Run one peer here, in this process: append, close, measure the disk, load five times."""
    with tempfile.TemporaryDirectory(dir=conversation.parent) as folder:
        run = Run(json.loads(conversation.read_text())[:size], Path(folder))
        load = {**OURS, **THEIRS}[name](run)
        disk = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        loads = []
        for _ in range(5):
            begun = time.perf_counter()
            count = load()
            loads.append(time.perf_counter() - begun)
        run.check(count)
        raw = sum(
            len(json.dumps(message, ensure_ascii=False).encode()) + 1
            for turn in run.turns[: len(run.took)]
            for message in turn
        )
    took = sorted(run.took)
    return {
        "turns": len(took),
        "p50": took[len(took) // 2],
        "p99": took[int(len(took) * 0.99)],
        "disk": disk / raw,
        "load": sorted(loads)[2],
    }


def environment() -> str:
    """The peers' own interpreter, made if it is not there; the answer is why not, if it cannot be."""
    python = HOME / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True, capture_output=True)
    installed = subprocess.run([python, "-c", "import langgraph, agents, google.adk"], capture_output=True, check=False)
    if installed.returncode:
        command = [python, "-m", "pip", "install", "-q", *PACKAGES]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr.strip().splitlines()[-1]
    return ""


def measure(name: str, size: int, conversation: Path) -> dict[str, Any] | str:
    """One peer in a process of its own; the reason where it fails."""
    python = sys.executable if name in OURS else str(HOME / "bin" / "python")
    command = [python, str(Path(__file__).resolve()), "--one", name, str(size), str(conversation)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CAP * 10, check=False)
    except subprocess.TimeoutExpired:
        return "did not end"
    if done.returncode:
        return (done.stderr.strip() or "failed").splitlines()[-1][:100]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def row(name: str, size: int, got: dict[str, Any] | str) -> str:
    if isinstance(got, str):
        return f"| {name} | {size} | not measured: {got} | | | |"
    turns = f"{size}" if got["turns"] == size else f"{size}, stopped at {got['turns']}"
    times = f"{got['p50'] * 1e3:.2f} | {got['p99'] * 1e3:.2f}"
    return f"| {name} | {turns} | {times} | {got['disk']:.2f} | {got['load'] * 1e3:.1f} |"


def main(out: Callable[[str], object], sizes: tuple[int, ...] = SIZES) -> None:
    """Print the table."""
    sys.path.insert(0, str(HERE))
    from turns import conversation

    why = environment()
    out("## The same conversation in other stores, a checkpoint each turn of about 4 KB")
    out("| store | turns | append p50, ms | p99, ms | disk × raw | load, ms |")
    out("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        path = Path(folder) / "conversation.json"
        path.write_text(json.dumps(conversation(max(sizes))))
        for size in sizes:
            for name in [*OURS, *THEIRS]:
                if name.startswith("git") and shutil.which("git") is None:
                    got: dict[str, Any] | str = "git is not installed"
                elif name in THEIRS and why:
                    got = why
                else:
                    got = measure(name, size, path)
                out(row(name, size, got))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))))
    else:
        main(print, tuple(map(int, sys.argv[1:])) or SIZES)
