"""The steel man: a hook sends an early agreement back with a reminder, and hears it again before it goes out."""

from __future__ import annotations

from pathlib import Path

from stage import dialog, main, script

from harken import SessionViewer, load_session
from harken.agents import HookAgent

STEEL_MAN = HookAgent(
    name="SteelMan",
    points=("finished",),
    instructions="Nobody may agree before he has put the strongest case for the other side.",
)


async def play(file: Path) -> str:
    """A discussion that would be over too soon."""
    root, session = load_session(file, language_model=script("steel_man.toml"), hooks=[STEEL_MAN])
    with session:
        root.harken("Let an optimist and a skeptic talk about cities.")
        return await root.response()


def show(viewer: SessionViewer) -> None:
    """What the skeptic went through, and what the optimist got to hear."""
    print(viewer.extract_agent_perspective("Skeptic"))
    print("\nWhat the optimist heard and said\n")
    print(viewer.extract_agent_perspective("Optimist"))
    print("\nThe dialog, with the draft that nobody heard\n", *dialog(viewer, "Optimist", "Skeptic"), sep="\n")


if __name__ == "__main__":
    main(play, show)
