"""The file watcher: an agent wakes when a file changes, and tells another."""

from __future__ import annotations

from pathlib import Path

from stage import main, script

from harken import Session, SessionViewer
from harken.agents import Agent, Call, FileWatcher


async def report(call: Call, text: str) -> str:
    """Tell the main agent something."""
    chief = call.agent.parent
    assert chief is not None
    await call.deliver(text, [chief], prefix=f"[{call.agent.label}]: ")
    return "The main agent has been told."


async def play(file: Path) -> str:
    """Change a file, look, and let both agents have their say."""
    data = file.with_name("data.json")
    data.write_text("[1]")
    with Session(file) as session:
        chief = Agent(session, name="Main", language_model=script("file_watcher.toml"))
        watcher = FileWatcher(chief.spawn("Watcher", "You look after files.", tools=[report]), [data])
        assert await watcher.check() == []
        data.write_text("[1, 2]")
        await watcher.check()
        return await chief.response()


def show(viewer: SessionViewer) -> None:
    """Both sides."""
    for name in ("Watcher", "Main"):
        print(f"{name}\n\n{viewer.extract_agent_perspective(name)}\n")


if __name__ == "__main__":
    main(play, show)
