"""On the wire: a conversation that Harken carried over is, in the next request, what it was in the last one.

The oracle is the program that held the conversation: its own last request and the answer to it. The judged is the
program that goes on with what Harken wrote: the first request it sends.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import harken as api
from harken.events import Prompt, Response, ToolCall, ToolResult
from harken.formats import get
from support.conversations import HELD, Held, heard, plain, prompt
from support.harken_cli import harken, take_in
from support.lab import Lab
from support.programs import program
from support.scripted_model import Say
from support.wire import Item

pytestmark = pytest.mark.runtimes
RUNTIMES = ("claude-code", "codex")
NEXT = "And now?"


def carry_on(lab: Lab, ref: str, target: str) -> tuple[list[Item], dict[str, Any]]:
    """Resume in a program, say one thing more, and read what it sent."""
    home = program(target).home(lab)
    [written] = harken(lab, "resume", ref, "--in", target, "--home", str(home))
    lab.model.play([Say("Gladly.")])
    prompt(lab, target, NEXT, written["session"])
    return heard(lab, target), written


@pytest.mark.parametrize("target", RUNTIMES)
@pytest.mark.parametrize("source", RUNTIMES)
@pytest.mark.parametrize("conversation", HELD)
def test_the_next_request_says_everything_once_and_in_order(
    lab: Lab, conversation: str, source: str, target: str
) -> None:
    held = HELD[conversation](lab, source)
    take_in(lab)
    sent, written = carry_on(lab, held.session, target)
    assert sent == [*carried(held, target), Item("user", NEXT)]
    assert written["session"] != held.session
    assert (written["tier"] == "1") is (source == target)
    assert sorted(loss["what"] for loss in written["losses"]) == expected_losses(conversation, source, target)
    # Of what belongs to the conversation, each is counted: one thought, one failed command.
    assert {loss["count"] for loss in written["losses"] if loss["what"] in ("thinking", "error mark")} <= {1}


def carried(held: Held, target: str) -> list[Item]:
    """What the target has to know: everything, but for reasoning that is sealed for another's model."""
    return [item for item in held.knew if held.runtime == target or item.kind != "thinking"]


def expected_losses(conversation: str, source: str, target: str) -> list[str]:
    """What cannot be carried, in words: none within a runtime, between two what belongs to the first alone."""
    if source == target:
        return []
    lost = {"instructions of the runtime", "notice of the runtime"} if source == "codex" else {"notice of the runtime"}
    if conversation == "plain":
        lost.add("thinking")
    if (conversation, target) == ("parallel", "codex"):
        lost.add("error mark")
    return sorted(lost)


@pytest.mark.parametrize("target", RUNTIMES)
@pytest.mark.parametrize("source", RUNTIMES)
def test_a_fork_from_the_middle_knows_nothing_of_what_came_later(lab: Lab, source: str, target: str) -> None:
    held = plain(lab, source)
    take_in(lab)
    ref = before(lab, held, "Thank you")
    sent, _ = carry_on(lab, ref, target)
    known = carried(held, target)
    cut = next(at for at, item in enumerate(known) if item.text.startswith("Thank you"))
    assert sent == [*known[:cut], Item("user", NEXT)]


@pytest.mark.parametrize("target", RUNTIMES)
@pytest.mark.parametrize("source", RUNTIMES)
def test_a_fork_from_before_a_compaction_knows_what_was_folded_away(lab: Lab, source: str, target: str) -> None:
    held = HELD["compacted"](lab, source)
    requests = [program(source).items(body) for body in lab.model.asked()]
    then = next(items for items in requests if items[-1].text.startswith("Thank you"))
    earlier = Held(source, held.session, then[:-1])
    assert earlier.knew[-1] == Item("assistant", "It worked.")
    take_in(lab)
    sent, _ = carry_on(lab, holding(lab, held, "It worked."), target)
    assert sent == [*carried(earlier, target), Item("user", NEXT)]


def holding(lab: Lab, held: Held, text: str) -> str:
    """The commit in which the model says a text."""
    with api.open(lab.folder / "store.db") as repo:
        for commit in repo.history(held.session):
            events = get(commit.format).read(repo.get(commit.artifact))
            if any(isinstance(event, Response) and event.content == text for event in events):
                return commit.id
    raise AssertionError(f"no commit holds {text!r}")


def before(lab: Lab, held: Held, text: str) -> str:
    """The commit just before the one in which a person says a text."""
    with api.open(lab.folder / "store.db") as repo:
        for commit, parent in itertools.pairwise(repo.history(held.session)):
            events = get(commit.format).read(repo.get(commit.artifact))
            if any(isinstance(event, Prompt) and event.content.startswith(text) for event in events):
                return parent.id
    raise AssertionError(f"no commit holds {text!r}")


@pytest.mark.parametrize("target", RUNTIMES)
@pytest.mark.parametrize("source", RUNTIMES)
def test_a_sub_agent_can_be_gone_on_with_and_knows_only_what_it_was_told(lab: Lab, source: str, target: str) -> None:
    held = HELD["sub-agents"](lab, source)
    knew = [*program(source).items(lab.model.asked("SUB-ONE")[-1]), Item("assistant", "The report of SUB-ONE.")]
    take_in(lab)
    lab.fresh_model()
    for row in harken(lab, "sessions"):
        if row["parent"] == held.session:
            sent, _ = carry_on(lab, row["session"], target)
            if sent[0] == knew[0]:
                assert sent == [*knew, Item("user", NEXT)]
                return
    raise AssertionError("the sub-agent's session was not found")


def test_the_original_is_never_touched(lab: Lab) -> None:
    held = plain(lab, "claude-code")
    [file] = lab.claude_sessions()
    data, stat = file.read_bytes(), file.stat()
    take_in(lab)
    carry_on(lab, held.session, "claude-code")
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (data, stat.st_mtime_ns)


def test_what_is_written_is_for_its_owner_alone(lab: Lab) -> None:
    held = plain(lab, "claude-code")
    take_in(lab)
    for target in RUNTIMES:
        home = program(target).home(lab)
        [written] = harken(lab, "resume", held.session, "--in", target, "--home", str(home))
        found = lab.run("stat", "-c", "%a", written["path"])
        assert found.out.strip() == "600"


@pytest.mark.parametrize("target", RUNTIMES)
def test_the_continued_session_is_linked_to_its_source(lab: Lab, target: str) -> None:
    held = plain(lab, "claude-code")
    take_in(lab)
    [source] = [row for row in harken(lab, "sessions") if row["session"] == held.session]
    _, written = carry_on(lab, held.session, target)
    [line] = [line for line in take_in(lab) if line.get("session") == written["session"]]
    assert line["forked_from"] == source["tip"]


@pytest.mark.parametrize("target", RUNTIMES)
@pytest.mark.parametrize("names", [("call_0", "call_0", "call_0"), ("a_2", "a", "a_3"), ("read", "read_1", "x_2")])
def test_every_call_has_its_result_however_the_ids_of_calls_are_alike(
    lab: Lab, target: str, names: tuple[str, ...]
) -> None:
    """Some servers number calls anew in each reply, and Claude Code takes `a_2` for a second `a`."""
    with api.open(lab.folder / "store.db") as repo, repo.session(lab.folder / "log.jsonl") as session:
        session.log_agent_created("a")
        session.append([Prompt(agent_id="a", content="Look.")])
        for number, name in enumerate(names):
            session.append([ToolCall(agent_id="a", id=name, name="read", input=b'{"n":%d}' % number)])
            session.append([ToolResult(agent_id="a", id=name, name="read", output=f"result {number}")])
        session.append([Response(agent_id="a", content="Seen.")])
        ref = session.session_id
    sent, written = carry_on(lab, ref, target)
    assert ["result 0", "result 1", "result 2"] == [item.text for item in sent if item.kind == "result"]
    assert [] == written["losses"]
