"""The laboratory itself: the real programs play a script, and what they send is seen."""

from __future__ import annotations

import pytest

from support.conversations import HELD, heard, prompt
from support.lab import Lab
from support.scripted_model import Call, Say, Think
from support.wire import Item, anthropic_items, responses_items

pytestmark = pytest.mark.runtimes


def test_claude_code_plays_a_turn_with_a_tool_and_resumes_it(lab: Lab) -> None:
    call = Call("Bash", {"command": "echo from the tool", "description": "speak"})
    lab.model.play([Think("let me see"), Say("I will look."), call], [Say("It spoke.")])
    first = lab.claude("Please run it.")
    assert (first.code, first.lines[-1]["type"]) == (0, "result")
    [session] = lab.claude_sessions()
    lab.model.play([Say("It said something.")])
    assert lab.claude("And what did it say?", "--resume", session.stem).code == 0

    kinds = [(item.kind, item.text) for item in anthropic_items(lab.model.asked()[-1])]
    assert kinds == [
        ("user", "Please run it."),
        ("thinking", "let me see"),
        ("assistant", "I will look."),
        ("call", "Bash"),
        ("result", "from the tool"),
        ("assistant", "It spoke."),
        ("user", "And what did it say?"),
    ]


def test_codex_plays_a_turn_with_a_tool_and_resumes_it(lab: Lab) -> None:
    lab.model.play([Say("I will look."), Call("exec_command", {"cmd": "echo from the tool"})], [Say("It spoke.")])
    first = lab.codex("Please run it.")
    assert (first.code, first.lines[-1]["type"]) == (0, "turn.completed")
    lab.model.play([Say("It said something.")])
    assert lab.codex("resume", first.lines[0]["thread_id"], "And what did it say?").code == 0

    items = responses_items(lab.model.asked()[-1])
    assert [item.kind for item in items] == ["user", "assistant", "call", "result", "assistant", "user"]
    assert "from the tool" in items[3].text
    assert (items[0].text, items[-1].text) == ("Please run it.", "And what did it say?")


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
@pytest.mark.parametrize("conversation", HELD)
def test_a_program_that_resumes_by_itself_knows_what_it_knew(lab: Lab, conversation: str, runtime: str) -> None:
    """So its last request and the answer to it may stand for what a conversation amounts to."""
    held = HELD[conversation](lab, runtime)
    lab.model.play([Say("Yes.")])
    prompt(lab, runtime, "Go on.", held.session)
    assert heard(lab, runtime) == [*held.knew, Item("user", "Go on.")]


def test_the_programs_have_loopback_and_no_other_network(lab: Lab) -> None:
    interfaces = lab.run("ip", "-o", "link")
    assert [line.split(":")[1].strip() for line in interfaces.out.splitlines()] == ["lo"]
    assert lab.run("ip", "route").out == ""
