"""Waking an agent from outside: anything may do it with a message, and a file watcher does it when files change."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

from harken.log import LoggedString

from .agent import Agent

Stamp = tuple[int, int, int]
"""When a file was last changed, how large it is, and which file it is."""


async def wake(agent: Agent, text: str) -> LoggedString:
    """Tell an agent that something has happened outside, and let it take a turn.

    One that is in the middle of a turn may answer in that same turn.
    """
    return await agent.turn.take(about=agent.harken(text, origin="trigger"))


def look(paths: Iterable[str | os.PathLike[str]]) -> dict[str, Stamp]:
    """The files there are, under the given paths (of a folder those directly in it), and the state of each."""
    found: dict[str, Stamp] = {}
    for given in paths:
        path = Path(given)
        try:
            files = sorted(path.iterdir()) if path.is_dir() else [path]
        except OSError:
            continue
        for file in files:
            try:
                state = file.stat()
            except OSError:
                continue
            if not file.is_dir():
                found[str(file)] = (state.st_mtime_ns, state.st_size, state.st_ino)
    return found


def differences(before: Mapping[str, Stamp], after: Mapping[str, Stamp]) -> list[str]:
    """What happened between two looks, one sentence for each file."""
    happened = [f"File created: {Path(path).name}" for path in after if path not in before]
    happened += [f"File changed: {Path(path).name}" for path in after if path in before and before[path] != after[path]]
    happened += [f"File deleted: {Path(path).name}" for path in before if path not in after]
    return happened


class FileWatcher:
    """Wakes an agent for each change of the files it watches; it looks every `interval` seconds."""

    def __init__(self, agent: Agent, paths: Iterable[str | os.PathLike[str]], *, interval: float = 0.5) -> None:
        self.agent = agent
        self.paths = list(paths)
        self.interval = interval
        self._before = look(self.paths)

    async def check(self) -> list[LoggedString]:
        """Look once; the agent's replies to what has changed since the last look."""
        after = look(self.paths)
        happened = differences(self._before, after)
        self._before = after
        return [await wake(self.agent, sentence) for sentence in happened]

    async def replies(self) -> AsyncIterator[LoggedString]:
        """Look again and again, until the caller has seen enough; each reply as it comes."""
        while True:
            for reply in await self.check():
                yield reply
            await asyncio.sleep(self.interval)
