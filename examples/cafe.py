"""The café: Jack and Jill meet, and Jill has an inner voice that only she hears."""

from __future__ import annotations

from pathlib import Path

from stage import dialog, main, script

from harken import SessionViewer, load_session


async def play(file: Path) -> str:
    """The whole evening, or what is left of it."""
    root, session = load_session(file, name="Narrator", language_model=script("cafe.toml"))
    with session:
        if not root.transcript:
            root.harken("Create Jack and Jill and let them meet in a café.")
        return await root.resume() or root.transcript[-1]["content"]


def show(viewer: SessionViewer) -> None:
    """What the two said, and how it was for Jill."""
    print("The dialog\n", *dialog(viewer, "Jack", "Jill"), sep="\n")
    print("\nJill, and her inner voice\n")
    print(viewer.extract_agent_perspective(["Jill", "Inner"]))


if __name__ == "__main__":
    main(play, show)
