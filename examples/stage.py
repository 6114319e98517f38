"""What the demonstrations share: where a run is kept, and a few lines that show it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from harken import SessionViewer

HERE = Path(__file__).parent


def script(name: str) -> str:
    """The model that plays a script from this folder."""
    return f"scripted:{HERE / name}"


def main(play: Callable[[Path], Awaitable[object]], show: Callable[[SessionViewer], None]) -> None:
    """Play into the file that is named, or into a temporary one, and show what happened."""
    file = Path(sys.argv[1] if len(sys.argv) > 1 else f"{tempfile.mkdtemp(prefix='harken-')}/session.jsonl")
    if file.exists():
        sys.exit(f"{file} exists already; name a new file")
    asyncio.run(_awaited(play(file)))
    show(SessionViewer(file))
    print(f"\nThe session is in {file}\nLook at it with: harken view timeline {file}")


async def _awaited(work: Awaitable[object]) -> object:
    return await work


def dialog(viewer: SessionViewer, *names: str) -> list[str]:
    """What agents said to each other, a line each."""
    return [f"{viewer.name(line['agent_id']) or 'you'}: {line['content']}" for line in viewer.extract_dialog(names)]
