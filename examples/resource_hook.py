"""Resource constraints: a hook agent counts the searchers and denies the fourth."""

from __future__ import annotations

from pathlib import Path

from stage import main, script

from harken import SessionViewer, load_session
from harken.agents import HookAgent

MONITOR = HookAgent(
    name="ResourceMonitor",
    points=("tool",),
    instructions="Monitor resource usage: there may be three subagents, and no more.",
)


async def play(file: Path) -> str:
    """Ask for more searchers than there may be."""
    root, session = load_session(file, language_model=script("resource_hook.toml"), hooks=[MONITOR])
    with session:
        root.harken("Search the archive with four searchers.")
        return await root.response()


def show(viewer: SessionViewer) -> None:
    """Who was made, what was denied, and what the hook thought."""
    print("Agents:", ", ".join(viewer.list_agents().values()))
    for case in viewer.interventions():
        print(f"{case['hook']} stepped in: {case['heard']}")
    print("\nThe hook's own transcript\n")
    print(viewer.extract_agent_perspective("ResourceMonitor"))


if __name__ == "__main__":
    main(play, show)
