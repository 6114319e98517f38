"""A crash in the middle of a discussion: a process is killed (SIGKILL) between two words, another one goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from cafe import play as play_cafe
from cafe import show as show
from stage import main, script

from harken import load_session
from harken.events import Event

LAST_WORDS = "Whatever about?"


async def die(file: Path) -> None:
    """Play the café until Jack has asked about the novel, and die before anybody hears it."""

    def kill(events: list[Event]) -> None:
        if any(LAST_WORDS in getattr(event, "content", "") for event in events):
            os.kill(os.getpid(), signal.SIGKILL)

    root, session = load_session(file, name="Narrator", language_model=script("cafe.toml"), observers=[kill])
    with session:
        root.harken("Create Jack and Jill and let them meet in a café.")
        await root.response()


async def play(file: Path) -> str:
    """Let another process die, then do what is left to do."""
    dead = subprocess.run([sys.executable, __file__, "--die", str(file)], check=False)
    assert dead.returncode == -signal.SIGKILL
    before = file.read_bytes()
    assert LAST_WORDS.encode() in before.splitlines()[-1]
    reply = await play_cafe(file)
    assert file.read_bytes().startswith(before)
    return reply


if __name__ == "__main__":
    if sys.argv[1:2] == ["--die"]:
        asyncio.run(die(Path(sys.argv[2])))
    else:
        main(play, show)
