"""A café in which Jill is played by Claude Code and Jack by Codex: `python cafe_worker.py STORE LOG WORK`.

Run again, it does whatever is left to do, and prints the last word.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import harken
from harken.agents import ScriptedModel
from harken.repo.voices import RuntimeUse

FREE = {
    "claude-code": ("--dangerously-skip-permissions",),
    "codex": ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
}
MEETING = {"prompt": "You meet in a café.", "speakers": ["Jill", "Jack"], "rounds": 2}
SCRIPT = {"agents": {"root": [{"call": {"tool": "discuss", "arguments": MEETING}}, "They have met."]}}


def play(store: Path, log: Path, work: Path) -> str:
    """Do whatever is left to do, and give the last word."""
    use = RuntimeUse(environ=dict(os.environ), cwd=work, arguments=FREE)
    with harken.open(store) as repo, repo.session(log, runtimes=use) as session:
        root, _ = harken.load_session(session, name="root")
        root.language_model = ScriptedModel(SCRIPT, name="scripted:café")
        for name, model in {"Jill": "runtime:claude-code", "Jack": "runtime:codex"}.items():
            if name not in root.subagents:
                root.spawn(name, f"You are {name}.", language_model=model)
        if not root.transcript:
            root.harken("Let them meet.")
        return asyncio.run(root.resume()) or str(root.transcript[-1]["content"])


if __name__ == "__main__":
    print(play(*map(Path, sys.argv[1:4])))
