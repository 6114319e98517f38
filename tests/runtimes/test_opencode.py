"""OpenCode itself: what it held is imported, goes on in it and elsewhere, and what others held goes on in it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from support.conversations import DOT, Held, heard, knew, plain, prompt, session_of, shell
from support.harken_cli import harken, take_in
from support.lab import Lab
from support.programs import program
from support.programs.opencode import compact
from support.scripted_model import Call, Say, Think
from support.wire import Item

pytestmark = pytest.mark.runtimes
OPENCODE, NEXT = "opencode", "And now?"


def everything(lab: Lab) -> Held:
    """Thinking, calls at once of which one fails, a picture, a sub-agent; then a second prompt."""
    picture = lab.work / "dot.png"
    picture.write_bytes(base64.b64decode(DOT))
    task = {"description": "look", "prompt": "SUB-ONE: look around", "subagent_type": "general"}
    lab.model.play([Say("Looking."), shell(OPENCODE, "echo inside")], [Say("The report of SUB-ONE.")], to="SUB-ONE")
    calls = [shell(OPENCODE, "echo one"), Call("read", {"filePath": "/nowhere/at/all"})]
    more = [Call("task", task), Call("read", {"filePath": str(picture)})]
    lab.model.play([Think("let me see"), Say("All at once."), *calls, *more], [Say("It worked.")])
    session = session_of(lab, OPENCODE, prompt(lab, OPENCODE, "Please do it all."))
    lab.model.play([Say("You are welcome.")])
    prompt(lab, OPENCODE, "Thank you — très bien ☕!", session)
    return Held(OPENCODE, session, knew(lab, OPENCODE, "You are welcome."))


def import_it(lab: Lab) -> dict[str, dict[str, Any]]:
    lines = harken(lab, "import", str(program(OPENCODE).home(lab)))
    return {line["session"]: line for line in lines if "session" in line}


def carry_on(lab: Lab, ref: str, target: str) -> tuple[list[Item], dict[str, Any]]:
    """Resume in a program, say one thing more, and read what it sent."""
    program(target).set_up(lab)
    [written] = harken(lab, "resume", ref, "--in", target, "--home", str(program(target).home(lab)))
    for command in written["prepare"]:
        done = lab.run(*command)
        assert done.code == 0, done.err + done.out
    lab.model.play([Say("Gladly.")])
    prompt(lab, target, NEXT, written["session"])
    return heard(lab, target), written


def test_what_it_held_goes_on_in_it_as_it_would_by_itself_and_elsewhere(lab: Lab) -> None:
    held = everything(lab)
    asked = len(lab.model.asked()) + len(lab.model.asked("SUB-ONE"))
    lines = import_it(lab)
    sub = next(line for line in lines.values() if line["parent"] == held.session)
    assert [0, 0] == [line["opaque"] for line in (lines[held.session], sub)]
    assert asked == lines[held.session]["requests"] + sub["requests"]
    assert 100 * asked == lines[held.session]["usage"]["input"] + sub["usage"]["input"]
    [call] = [item for item in held.knew if item.kind == "call" and item.text == "task"]
    [row] = [row for row in harken(lab, "sessions") if row["session"] == sub["session"]]
    assert held.session == row["parent"]

    # The same thing said to the original, by itself: what it sends is the judge.
    sent, written = carry_on(lab, held.session, OPENCODE)
    assert "1" == written["tier"] and written["losses"] == []
    assert [*held.knew, Item("user", NEXT)] == sent
    lab.model.play([Say("Gladly.")])
    prompt(lab, OPENCODE, NEXT, held.session)
    assert heard(lab, OPENCODE) == sent

    for target in ("claude-code", "codex"):
        sent, written = carry_on(lab, lines[held.session]["tip"], target)
        assert [item for item in held.knew if item.kind != "thinking"] == sent[:-1]
        lost = {loss["what"] for loss in written["losses"]}
        assert lost - {"thinking", "error mark"} == set(), written["losses"]
    again = import_it(lab)
    assert call.id in {item.id for item in held.knew}
    assert again


def test_after_a_compaction_the_summary_goes_on(lab: Lab) -> None:
    held = plain(lab, OPENCODE)
    compact(lab, held.session)
    lab.model.play([Say("Still here.")])
    prompt(lab, OPENCODE, "Are you there?", held.session)
    known = knew(lab, OPENCODE, "Still here.")
    assert ["What did we do so far?", "SUMMARY: they ran it.", "Are you there?", "Still here."] == [
        item.text for item in known
    ]
    lines = import_it(lab)
    assert 1 == lines[held.session]["compactions"]
    for target in (OPENCODE, "claude-code"):
        sent, _ = carry_on(lab, held.session, target)
        assert [*known, Item("user", NEXT)] == sent


@pytest.mark.parametrize("source", ["claude-code", "codex"])
def test_what_others_held_goes_on_in_it(lab: Lab, source: str) -> None:
    held = plain(lab, source)
    take_in(lab)
    sent, written = carry_on(lab, held.session, OPENCODE)
    assert [*(item for item in held.knew if item.kind != "thinking"), Item("user", NEXT)] == sent
    assert "thinking" in {loss["what"] for loss in written["losses"]}
    line = import_it(lab)[written["session"]]
    [row] = [row for row in harken(lab, "sessions") if row["session"] == held.session]
    assert row["tip"] == line["forked_from"]
    assert 1 == line["requests"], "what was carried over was paid for elsewhere"


def test_a_run_is_recorded_and_its_usage_counts_once_when_the_database_is_imported(lab: Lab) -> None:
    program(OPENCODE).set_up(lab)
    lab.model.play([Say("I will look."), shell(OPENCODE, "echo inside")], [Say("It worked.")])
    done = lab.run("harken", "run", OPENCODE, "--", "run", "--auto", "Look.")
    assert 0 == done.code, done.err
    assert "It worked." in done.out
    [row] = harken(lab, "sessions")
    [before] = [line for line in harken(lab, "stats", row["session"]) if "usage" in line]
    import_it(lab)
    [after] = [line for line in harken(lab, "stats", row["session"]) if "usage" in line]
    assert (200, 200) == (before["usage"]["input"], after["usage"]["input"])
    assert before["responses"] == after["responses"] == 2
