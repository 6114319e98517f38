"""The Socratic teacher: an agent the student never sees reminds the tutor, and sends an answer back."""

from __future__ import annotations

from pathlib import Path

from stage import dialog, main, script

from harken import Session, SessionViewer
from harken.agents import Agent, HookAgent

TEACHER = HookAgent(
    name="Teacher",
    points=("prompt", "finished"),
    instructions="The tutor must never give an answer away; it asks until the student sees for himself.",
)


async def play(file: Path) -> str:
    """A student asks twice."""
    with Session(file) as session:
        tutor = Agent(
            session,
            "You are a friendly tutor.",
            name="Tutor",
            language_model=script("socratic.toml"),
            hooks=[TEACHER],
        )
        tutor.harken("Does a heavy stone fall faster than a light one?")
        await tutor.response()
        tutor.harken("Slower, because the light one holds it back. But together they are heavier, so faster!")
        return await tutor.response()


def show(viewer: SessionViewer) -> None:
    """The lesson, then what went on behind it."""
    print("What the tutor heard and said\n")
    print(viewer.extract_agent_perspective("Tutor"))
    print("\nWhat the teacher thought\n")
    print(*dialog(viewer, "Teacher"), sep="\n")


if __name__ == "__main__":
    main(play, show)
