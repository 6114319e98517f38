"""A debate: two speak, one listens, and at last the listener speaks."""

from __future__ import annotations

from pathlib import Path

from stage import dialog, main, script

from harken import SessionViewer, load_session


async def play(file: Path) -> str:
    """Two rounds and a verdict; the second round remembers who speaks and who listens."""
    root, session = load_session(file, language_model=script("debate.toml"))
    with session:
        root.harken("Let Byron and Gandhi debate what changes the world, and have it judged.")
        return await root.response()


def show(viewer: SessionViewer) -> None:
    """The debate as the judge heard it."""
    print(*dialog(viewer, "Byron", "Gandhi", "Judge"), sep="\n\n")


if __name__ == "__main__":
    main(play, show)
