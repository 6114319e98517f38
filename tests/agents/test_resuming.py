"""Whatever the log held when the process died, the resumed session comes to the same end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harken import SessionViewer
from harken.agents import Approve, Change, Deny, HookAgent, Moment, hook, load_session
from harken.agents.models import ScriptedModel

SCRIPT = {
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
        "Reviewer": {
            "rules": [{"when": "too early", "say": "DENY. Say who you are first."}],
            "otherwise": "APPROVE",
        },
    }
}


@hook("delivery")
def redact(moment: Moment) -> Change | None:
    return Change(moment.text.replace("1234", "[REDACTED]")) if "1234" in moment.text else None


@hook("prompt", tree=False)
def remind(moment: Moment) -> Approve:
    return Approve(say="Keep it short.")


HOOKS = [
    redact,
    remind,
    HookAgent(name="Guard", points=("tool",), instructions="Watch the tools."),
    HookAgent(name="Reviewer", points=("finished",), instructions="Nobody speaks too early."),
]


def open_cafe(path: Path):
    return load_session(path, language_model=ScriptedModel(SCRIPT, name="scripted:"), hooks=HOOKS, ack="os")


def heard_by_everybody(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Each agent's transcript by name, as roles and words: all that must be the same in the end."""
    viewer = SessionViewer(path)
    return {
        viewer.list_agents()[agent_id] + f"#{number}": [
            (entry["role"], entry.get("content", "")) for entry in viewer.get_transcript(agent_id)
        ]
        for number, agent_id in enumerate(viewer.list_agents())
    }


def dialog(path: Path) -> list[tuple[str, str]]:
    viewer = SessionViewer(path)
    names = viewer.list_agents()
    people = [agent_id for agent_id, name in names.items() if name in {"Jack", "Jill", "Ann"}]
    return [(names[line["agent_id"]], line["content"]) for line in viewer.extract_dialog(people)]


def play(path: Path) -> str:
    """Do whatever is left to do."""
    root, session = open_cafe(path)
    with session:
        if not any(entry["role"] == "user" and "hook" not in entry for entry in root.transcript):
            root.harken("Create Jack and Jill")
            return asyncio.run(root.response())
        reply = asyncio.run(root.resume())
        return reply or root.transcript[-1]["content"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "cafe.jsonl"
    play(path)
    return path


def test_the_script_has_everything_that_can_be_interrupted(whole: Path) -> None:
    text = whole.read_text()

    assert [
        ("agent_001", "You meet."),
        ("Jack", "Hi, I'm Jack. password: 1234"),
        ("Jill", "too early"),
        ("Jill", "Hello, I'm Jill."),
        ("Jill", "Do you come here often?"),
        ("Jack", "Tea?"),
        ("Jill", "Tea it is."),
    ] == [line for line in dialog(whole) if line[0] in {"Jack", "Jill"} or line[1] == "You meet."]
    assert "[Jack]: Hi, I'm Jack. password: [REDACTED]" in text
    assert "[Reviewer]: Say who you are first." in text


def test_a_log_cut_after_any_line_is_resumed_to_the_same_end(whole: Path, tmp_path: Path) -> None:
    lines = whole.read_bytes().splitlines(keepends=True)
    expected, spoken = heard_by_everybody(whole), dialog(whole)
    path = tmp_path / "cut.jsonl"
    for cut in range(len(lines)):
        path.write_bytes(b"".join(lines[:cut]))

        reply = play(path)

        assert "They have met." == reply, f"cut after line {cut}"
        assert spoken == dialog(path), f"cut after line {cut}"
        assert expected == heard_by_everybody(path), f"cut after line {cut}"
