"""Searchers side by side: three agents work at once, a limit stops them half-way, and a higher one lets them go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from stage import main, script

from harken import LimitReached, SessionViewer, load_session
from harken.agents import AgentPool, ModelOptions, RunLimits, parsed, tool


class Report(msgspec.Struct):
    """The form that the editor's answer has to have."""

    found: int
    best: str


@tool(redo=True)
async def look_up(book: str, word: str) -> str:
    """Look a word up in a book. It only looks, so after a crash it may be done again."""
    await asyncio.sleep(0.01)
    return f"The {book} has a page about {word}."


async def play(file: Path) -> str:
    """Let the searchers run into their limit, then raise it and go on."""
    model, form = script("searchers.toml"), ModelOptions(response_format=Report)
    editor, session = load_session(
        file, name="Editor", language_model=model, tools=[look_up], options=form, limits=RunLimits(steps=4)
    )
    with session:
        editor.harken("What do the books say?")
        try:
            await editor.response()
        except LimitReached as stopped:
            print(f"Stopped: {stopped}")
    editor, session = load_session(file, tools=[look_up], limits=RunLimits(steps=20))
    with session:
        reply = await editor.resume()
        assert reply is not None
        print(f"{parsed(reply, Report)} after {AgentPool.of(session).used().steps} messages of models")
        return reply


def show(viewer: SessionViewer) -> None:
    """What each of them did."""
    for name in ("Ann", "Bob", "Cleo"):
        print(f"\n{name}\n\n{viewer.extract_agent_perspective(name)}")


if __name__ == "__main__":
    main(play, show)
