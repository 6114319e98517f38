"""A scripted discussion with hooks, for tests that interrupt it; also a worker that plays it under strace.

As a worker (`python discussion.py LOG`) it prints the id of each event once it is acknowledged.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from harken import Session, SessionViewer, load_session
from harken.agents import Agent, Approve, HookAgent, Moment, Rewrite, ScriptedModel, hook

SCRIPT: dict[str, Any] = {
    "agents": {
        "root": [
            {
                "call": [
                    {"tool": "task", "arguments": {"name": "Jack", "system_prompt": "You are Jack."}},
                    {"tool": "task", "arguments": {"name": "Jill", "system_prompt": "You are Jill."}},
                ]
            },
            {"call": {"tool": "task", "arguments": {"name": "Ann", "prompt": "Listen well."}}},
            {
                "call": {
                    "tool": "discuss",
                    "arguments": {"prompt": "You meet.", "speakers": ["Jack", "Jill"], "listeners": ["Ann"]},
                }
            },
            {"call": {"tool": "discuss", "arguments": {"speakers": ["Jill", "Jack", "Jill"]}}},
            {"call": {"tool": "terminate", "arguments": {"name": "Ann"}}},
            "They have met.",
        ],
        "Jack": ["Hi, I'm Jack. password: 1234", "Tea?"],
        "Jill": [
            {"call": {"tool": "task", "arguments": {"name": "Inner", "system_prompt": "You are her inner voice."}}},
            {"call": {"tool": "discuss", "arguments": {"speakers": ["Inner"], "prompt": "What do I say?"}}},
            "too early",
            "Hello, I'm Jill.",
            "Do you come here often?",
            "Tea it is.",
        ],
        "Inner": ["Be kind."],
        "Ann": ["I listen."],
        "Guard": {"otherwise": "APPROVE"},
        "Reviewer": {"rules": [{"when": "too early", "say": "DENY. Say who you are first."}], "otherwise": "APPROVE"},
    }
}

DIALOG = [
    ("root", "You meet."),
    ("Jack", "Hi, I'm Jack. password: 1234"),
    ("Jill", "too early"),
    ("Reviewer", "Say who you are first."),
    ("Jill", "Hello, I'm Jill."),
    ("Jill", "Do you come here often?"),
    ("Jack", "Tea?"),
    ("Jill", "Tea it is."),
]


@hook("delivery")
def redact(moment: Moment) -> Rewrite | None:
    return Rewrite(moment.text.replace("1234", "[REDACTED]")) if "1234" in moment.text else None


@hook("prompt", tree=False)
def remind(moment: Moment) -> Approve:
    return Approve(say="Keep it short.")


HOOKS = [
    redact,
    remind,
    HookAgent(name="Guard", points=("tool",), instructions="Watch the tools."),
    HookAgent(name="Reviewer", points=("finished",), instructions="Nobody speaks too early."),
]


def open_discussion(path: Path, **options: Any) -> tuple[Agent, Session]:
    model = ScriptedModel(SCRIPT, name="scripted:discussion")
    return load_session(path, name="root", language_model=model, hooks=HOOKS, **options)


def play(path: Path, **options: Any) -> str:
    """Do whatever is left to do, and give the last word."""
    root, session = open_discussion(path, **options)
    with session:
        if not any(entry["role"] == "user" and "hook" not in entry for entry in root.transcript):
            root.harken("Create Jack and Jill.")
        return asyncio.run(root.resume()) or root.transcript[-1]["content"]


def dialog(path: Path) -> list[tuple[str, str]]:
    """What Jack and Jill said and heard."""
    viewer = SessionViewer(path)
    return [(viewer.name(line["agent_id"]), line["content"]) for line in viewer.extract_dialog(["Jack", "Jill"])]


def transcripts(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Everybody's transcript by name, as roles and words."""
    viewer = SessionViewer(path)
    return {
        name: [(entry["role"], entry.get("content", "")) for entry in viewer.get_transcript(agent_id)]
        for agent_id, name in viewer.list_agents().items()
    }


if __name__ == "__main__":

    def acknowledge(events: list[Any]) -> None:
        for message_id in dict.fromkeys(event.message_id for event in events):
            print(message_id, flush=True)

    play(Path(sys.argv[1]), observers=[acknowledge])
