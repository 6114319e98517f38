"""Four tools of half a second in one reply: how long the turn takes, side by side and one by one."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from harken import load_session
from harken.agents import ScriptedModel

SECONDS = 0.5
CALLS = 4
LIMIT = 0.8


async def sleep_in_the_loop() -> None:
    await asyncio.sleep(SECONDS)


def sleep_in_a_thread() -> None:
    time.sleep(SECONDS)


def turn(tool, parallel: int) -> float:
    calls = [{"tool": tool.__name__}] * CALLS
    model = ScriptedModel({"agents": {"root": [{"call": calls}, "Done."]}})
    with tempfile.TemporaryDirectory() as folder:
        root, session = load_session(Path(folder) / "log", language_model=model, tools=[tool], parallel=parallel)
        with session:
            root.harken("Go.")
            start = time.perf_counter()
            asyncio.run(root.response())
            return time.perf_counter() - start


def main(out) -> None:
    out(f"| {CALLS} tools of {SECONDS} s in one reply | side by side, s | one by one, s | limit |")
    out("|---|---|---|---|")
    for name, tool in {"coroutines": sleep_in_the_loop, "plain functions": sleep_in_a_thread}.items():
        out(f"| {name} | {turn(tool, CALLS):.2f} | {turn(tool, 1):.2f} | {LIMIT} s |")


if __name__ == "__main__":
    main(print)
