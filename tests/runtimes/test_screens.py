"""On the screen: what the printed command shows to a person, and that the conversation can be gone on with there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.conversations import heard, plain, prompt
from support.harken_cli import harken, take_in
from support.lab import Lab
from support.screen import Screen
from support.scripted_model import Say
from support.wire import Item

pytestmark = pytest.mark.runtimes
RUNTIMES = ("claude-code", "codex")
SAID = ("Please run it.", "I will look.", "It worked.", "Thank you — très bien ☕!", "You are welcome.")
COMPLAINTS = ("no longer configured", "could not be restored", "Error", "error", "the program ended")
NEXT = "And now?"
LIST = {"claude-code": ["claude", "--resume"], "codex": ["codex", "resume"]}


def written_for(lab: Lab, ref: str, target: str) -> dict[str, Any]:
    """Resume in a program, in the home it lives in."""
    home = lab.home / ".claude" if target == "claude-code" else lab.codex_home
    [written] = harken(lab, "resume", ref, "--in", target, "--home", str(home))
    return written


def held_elsewhere(lab: Lab, source: str, target: str) -> dict[str, Any]:
    """A conversation of one program, written for the other, whose home has been used before."""
    held = plain(lab, source)
    if source != target:
        lab.model.play([Say("Another conversation.")])
        prompt(lab, target, "Something else.")
    take_in(lab)
    return written_for(lab, held.session, target)


def go_on(lab: Lab, screen: Screen, target: str) -> None:
    """See the conversation, say one thing more, see the answer; and the model was told everything."""
    shown = screen.wait_for(*SAID)
    assert [words for words in COMPLAINTS if words in shown] == []
    lab.model.play([Say("Gladly.")])
    screen.say(NEXT)
    shown = screen.wait_for(*SAID, NEXT, "Gladly.")
    assert [words for words in COMPLAINTS if words in shown] == []
    told = [item for item in heard(lab, target) if item.kind in ("user", "assistant")]
    roles = ("user", "assistant", "assistant", "user", "assistant", "user")
    assert told == [Item(role, text) for role, text in zip(roles, (*SAID, NEXT), strict=True)]


@pytest.mark.parametrize("target", RUNTIMES)
@pytest.mark.parametrize("source", RUNTIMES)
def test_the_printed_command_shows_the_conversation_and_goes_on_with_it(lab: Lab, source: str, target: str) -> None:
    """#24: Codex ended with a sentence about its provider, or showed nothing. #36: Claude Code missed its model."""
    written = held_elsewhere(lab, source, target)

    with Screen(lab, written["command"], cwd=written["cwd"], environment=written["environment"]) as screen:
        go_on(lab, screen, target)


@pytest.mark.parametrize("source", RUNTIMES)
def test_codex_resumes_it_as_the_last_session(lab: Lab, source: str) -> None:
    """#24: `codex resume --last` did not see it."""
    held_elsewhere(lab, source, "codex")

    with Screen(lab, ["codex", "resume", "--last"]) as screen:
        go_on(lab, screen, "codex")


@pytest.mark.parametrize("target", RUNTIMES)
@pytest.mark.parametrize("source", RUNTIMES)
def test_the_list_of_sessions_has_it(lab: Lab, source: str, target: str) -> None:
    """#24: the picker of Codex did not see it. Claude Code's lists no session that was held without a screen."""
    held_elsewhere(lab, source, target)
    # Claude Code calls a session by its last prompt where it has noted which one that is.
    name = SAID[3] if source == target == "claude-code" else SAID[0]

    with Screen(lab, LIST[target]) as screen:
        screen.wait_for(name)
        screen.press("Enter")
        screen.wait_for(*SAID)


def test_a_conversation_goes_from_screen_to_screen_and_back(lab: Lab) -> None:
    """What was said on the screen of Codex is on the screen of Claude Code, where the conversation began."""
    written = held_elsewhere(lab, "claude-code", "codex")
    with Screen(lab, written["command"], cwd=written["cwd"], environment=written["environment"]) as screen:
        go_on(lab, screen, "codex")
    take_in(lab)

    back = written_for(lab, written["session"], "claude-code")

    with Screen(lab, back["command"], cwd=back["cwd"], environment=back["environment"]) as screen:
        screen.wait_for(*SAID, NEXT, "Gladly.")
        lab.model.play([Say("Once more.")])
        screen.say("And here?")
        shown = screen.wait_for(*SAID, NEXT, "Gladly.", "And here?", "Once more.")
    assert [words for words in COMPLAINTS if words in shown] == []
    assert heard(lab, "claude-code")[-1] == Item("user", "And here?")


@pytest.mark.parametrize("target", RUNTIMES)
def test_a_session_is_called_on_the_screen_what_it_was_called(lab: Lab, target: str) -> None:
    """#36: its name was lost."""
    held = plain(lab, "claude-code")
    [file] = lab.claude_sessions()
    with file.open("a") as more:
        more.write(json.dumps({"type": "custom-title", "customTitle": "The Great Plan", "sessionId": held.session}))
        more.write("\n")
    take_in(lab)
    written_for(lab, held.session, target)

    with Screen(lab, LIST[target]) as screen:
        screen.wait_for("The Great Plan")
        screen.press("Enter")
        screen.wait_for(*SAID)
