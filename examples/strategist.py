"""Strategist and tactician: one plans over the whole and never touches the ground, the other takes the steps."""

from __future__ import annotations

from pathlib import Path

from stage import main, script

from harken import Session, SessionViewer
from harken.agents import Agent

SIGNAL = 68


def probe(place: int) -> str:
    """Look at one place of the field, 0 to 100, and say in which direction the signal lies."""
    if place == SIGNAL:
        return "here"
    return "higher" if place < SIGNAL else "lower"


async def play(file: Path) -> str:
    """The agents are made by hand here, to show that it takes no more than a session."""
    with Session(file) as session:
        strategist = Agent(
            session,
            "You plan. You never probe yourself; that is the tactician's work.",
            name="Strategist",
            language_model=script("strategist.toml"),
            tools=[probe],
        )
        strategist.harken("Find the signal.")
        return await strategist.response()


def show(viewer: SessionViewer) -> None:
    """Both sides of the work."""
    for name in ("Strategist", "Tactician"):
        print(f"{name}\n\n{viewer.extract_agent_perspective(name)}\n")


if __name__ == "__main__":
    main(play, show)
