"""Characters who know different things: a tool of our own whispers, and the views say who knew what, and when."""

from __future__ import annotations

from pathlib import Path

from stage import main, script

from harken import SessionViewer, load_session
from harken.agents import Call

SECRET = "The butler took the letter."


async def whisper(call: Call, to: str, text: str) -> str:
    """Tell one subagent something that the others do not hear."""
    await call.deliver(text, [call.agent.subagents[to]])
    return f"{to} has heard it."


async def play(file: Path) -> str:
    """One of three is told the secret; later he tells it to all."""
    root, session = load_session(file, language_model=script("characters.toml"), tools=[whisper])
    with session:
        root.harken("Stage the scene of the stolen letter.")
        return await root.response()


def show(viewer: SessionViewer) -> None:
    """Who knew it before it was said aloud, and who after."""
    aloud = next(line["message_id"] for line in viewer.extract_dialog(["Watson"]) if line["content"] == SECRET)
    before = next(line["message_id"] for line in viewer.extract_dialog(["Watson"]) if "time to name" in line["content"])
    for name in ("Holmes", "Watson", "Lestrade"):
        then = viewer.knows(name, SECRET, at=before)["knows"]
        now = viewer.knows(name, SECRET)["knows"]
        print(f"{name:9} knew it before it was said: {then!s:5}  knows it now: {now}")
    print("\nHeard in the room by", ", ".join(viewer.name(heard["agent_id"]) for heard in viewer.who_heard(aloud)))


if __name__ == "__main__":
    main(play, show)
