"""`harken run` around the real programs."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import harken as api
from harken.events import Event, Prompt, Response, ToolCall, ToolResult
from harken.events.cbor import decode_events
from support.conversations import heard, plain
from support.harken_cli import take_in
from support.lab import Lab, Run
from support.scenarios import waiting
from support.scripted_model import Call, Say
from support.wire import Item, anthropic_items

pytestmark = pytest.mark.runtimes

ASK = f"{Path(sys.executable).parent / 'harken'} current-context"
FREE = {
    "claude-code": ("--dangerously-skip-permissions",),
    "codex": ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
}
SAID = (Prompt, Response, ToolCall, ToolResult)


def wrapped(lab: Lab, runtime: str, prompt: str, *options: str, **how: Any) -> Run:
    """`harken run` with one prompt; the program may do anything in its own folder."""
    free = (*FREE[runtime], *how.pop("resume", ()))
    words = ("-p", prompt, *free) if runtime == "claude-code" else ("exec", *free, prompt)
    return lab.run("harken", "run", runtime, *options, "--", *words, **how)


def conversation(lab: Lab, ref: str) -> list[Event]:
    """What was said up to a commit, without metrics and notices."""
    with api.open(lab.folder / "store.db") as repo:
        events = decode_events(repo.materialize(ref, format="events-v1").bytes)
    return [event for event in events if isinstance(event, SAID)]


def ask(runtime: str) -> Call:
    if runtime == "claude-code":
        return Call("Bash", {"command": ASK, "description": "ask"})
    return Call("exec_command", {"cmd": ASK})


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_a_tool_learns_the_commit_that_holds_its_own_call(lab: Lab, runtime: str) -> None:
    """The message had no words, only the call: the commit is made before the tool runs all the same."""
    lab.model.play([ask(runtime)], [Say("Noted.")])
    done = wrapped(lab, runtime, "Note where you are.")
    assert (done.code, done.out) == (0, "Noted.\n"), done.err
    [answer] = [item.text for item in heard(lab, runtime) if item.kind == "result"]
    found = re.search(r"ctx-[0-9a-f]{8,}", answer)
    assert found is not None, answer
    prompt, call = conversation(lab, found[0])
    assert isinstance(prompt, Prompt)
    assert prompt.content == "Note where you are."
    assert isinstance(call, ToolCall)
    assert ASK.encode() in call.input


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_the_live_chain_holds_what_the_program_said_to_its_model(lab: Lab, runtime: str) -> None:
    lab.model.play([Say("Let me ask."), ask(runtime)], [Say("Noted.")])
    assert wrapped(lab, runtime, "Go.").code == 0
    with api.open(lab.folder / "store.db") as repo:
        [session] = [row.session for row in repo.sessions()]
    texts = [event.content for event in conversation(lab, f"live/{session}") if isinstance(event, (Prompt, Response))]
    assert texts == ["Go.", "Let me ask.", "Noted."]


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_when_the_run_is_over_the_session_stands_at_its_file_and_the_live_ids_are_kept(lab: Lab, runtime: str) -> None:
    lab.model.play([Say("Let me ask."), ask(runtime)], [Say("Noted.")])
    assert wrapped(lab, runtime, "Go.").code == 0
    with api.open(lab.folder / "store.db") as repo:
        [row] = repo.sessions()
        live, tip = repo.commit(f"live/{row.session}").id, repo.commit(row.session)
    assert (tip.id != live, tip.format) == (True, "claude-code-v1" if runtime == "claude-code" else "codex-v1")
    assert row.title == "Go."
    take_in(lab)
    with api.open(lab.folder / "store.db") as repo:
        assert (repo.commit(f"live/{row.session}").id, repo.commit(row.session).id) == (live, tip.id)


def test_when_a_run_of_codex_is_over_the_store_has_all_of_its_sub_agent(lab: Lab) -> None:
    lab.model.play([Say("Looking."), ask("codex")], [Say("The report of SUB-ONE.")], to="SUB-ONE")
    lab.model.play([Call("spawn_agent", {"message": "SUB-ONE: look"}, namespace="multi_agent_v1")], *[waiting] * 2)
    done = wrapped(lab, "codex", "Delegate.", "--ticket", "17", "--principal", "jill")
    assert (done.code, "could not be read" in done.err) == (0, False)
    [main, sub] = sorted(lab.run("harken", "sessions", "--json").lines, key=lambda row: row["parent"] or "")
    assert (main["title"], sub["parent"]) == ("Delegate.", main["session"])
    assert (sub["ticket_id"], sub["principal"]) == ("17", f"jill/{sub['session']}")
    assert sub["machine"] == main["machine"]
    told = conversation(lab, sub["session"])
    assert [event.content for event in told if isinstance(event, Response)] == ["Looking.", "The report of SUB-ONE."]
    before = lab.run("harken", "stats", "--json").lines
    take_in(lab)
    assert lab.run("harken", "stats", "--json").lines == before


@pytest.mark.parametrize("target", ["claude-code", "codex"])
def test_a_run_may_begin_where_another_conversation_ended(lab: Lab, target: str) -> None:
    held = plain(lab, "claude-code")
    take_in(lab)
    lab.model.play([ask(target)], [Say("I remember.")])
    done = wrapped(lab, target, "Do you remember?", "--from", held.session)
    assert (done.code, done.out) == (0, "I remember.\n"), done.err
    sent = heard(lab, target)
    known = [item for item in held.knew if target == "claude-code" or item.kind != "thinking"]
    assert sent[: len(known) + 1] == [*known, Item("user", "Do you remember?")]
    found = re.search(r"ctx-[0-9a-f]{8,}", sent[-1].text)
    assert found is not None
    told = [event.content for event in conversation(lab, found[0]) if isinstance(event, Prompt)]
    assert told[-2:] == ["Thank you — très bien ☕!", "Do you remember?"]


def test_sub_agents_of_a_wrapped_run_have_chains_of_their_own(lab: Lab) -> None:
    ask_for = {"description": "look", "subagent_type": "general-purpose", "run_in_background": False}
    lab.model.play([ask("claude-code")], [Say("The report of SUB-ONE.")], to="SUB-ONE")
    lab.model.play([Call("Agent", ask_for | {"prompt": "SUB-ONE: look"})], [Say("Done.")])
    assert wrapped(lab, "claude-code", "Delegate.").code == 0
    with api.open(lab.folder / "store.db") as repo:
        names = sorted(name.name for name in repo.store.names() if name.name.startswith("live/"))
    assert len(names) == 2
    main, sub = names
    assert [e.content for e in conversation(lab, main) if isinstance(e, (Prompt, Response))] == ["Delegate.", "Done."]
    told = [e.content for e in conversation(lab, sub) if isinstance(e, (Prompt, Response))]
    assert told == ["SUB-ONE: look", "The report of SUB-ONE."], "#29"
    [answer] = [item for item in anthropic_items(lab.model.asked("SUB-ONE")[-1]) if item.kind == "result"]
    told = conversation(lab, answer.text)
    assert [type(event) for event in told] == [Prompt, ToolCall], "the tool asked for the sub-agent that called it"


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_a_running_session_has_the_figures_of_its_file(lab: Lab, runtime: str) -> None:
    """#29: after a run, after a second one that goes on with it, and with a sub-agent."""
    ask_for = {"description": "look", "subagent_type": "general-purpose", "run_in_background": False}
    lab.model.play([Say("One.")], [Say("Two.")])
    assert wrapped(lab, runtime, "First.").code == 0
    [session] = lab.run("harken", "sessions", "--json").lines
    again = ("--resume", session["session"]) if runtime == "claude-code" else ("resume", session["session"])
    assert wrapped(lab, runtime, "Second.", resume=again).code == 0
    if runtime == "claude-code":
        lab.model.play([Say("Looking."), ask("claude-code")], [Say("The report of SUB-ONE.")], to="SUB-ONE")
        lab.model.play([Call("Agent", ask_for | {"prompt": "SUB-ONE: look"})], [Say("Done.")])
    else:
        lab.model.play([Say("Three.")])
    assert wrapped(lab, runtime, "Third.", resume=again).code == 0

    live = figures(lab, session["session"])
    take_in(lab)

    assert live == figures(lab, session["session"])


def figures(lab: Lab, session: str) -> tuple[Any, ...]:
    """What a session used and cost, alone and with its agents."""
    [found] = lab.run("harken", "stats", "--json", session).lines
    both = (found, found["with_agents"] or {})
    return tuple((one.get("usage"), one.get("cost_usd_micros"), one.get("responses")) for one in both)


def test_parallel_sub_agents_of_claude_code_are_each_answered_for_themselves(lab: Lab) -> None:
    """#28: each runs a command of its own, which is how they are told apart."""
    ask_for = {"description": "look", "subagent_type": "general-purpose", "run_in_background": False}
    for name in ("SUB-ONE", "SUB-TWO"):
        call = Call("Bash", {"command": f"{ASK}; sleep 2; echo 'it is \"{name}\"'", "description": "ask"})
        lab.model.play([call], [Say(f"The report of {name}.")], to=name)
    both = [Call("Agent", ask_for | {"prompt": f"{name}: look"}) for name in ("SUB-ONE", "SUB-TWO")]
    lab.model.play(both, [Say("Done.")])
    assert wrapped(lab, "claude-code", "Delegate.").code == 0
    for name in ("SUB-ONE", "SUB-TWO"):
        [answer] = [item for item in anthropic_items(lab.model.asked(name)[-1]) if item.kind == "result"]
        found = re.search(r"ctx-[0-9a-f]{8,}", answer.text)
        assert found is not None, answer.text
        prompt, call = conversation(lab, found[0])
        assert isinstance(prompt, Prompt)
        assert (prompt.content, type(call)) == (f"{name}: look", ToolCall)


def test_a_sub_agent_of_codex_is_answered_for_itself(lab: Lab) -> None:
    """#28: the stream tells nothing of it; its own file does."""
    lab.model.play([Say("Looking."), ask("codex")], [Say("The report of SUB-ONE.")], to="SUB-ONE")
    lab.model.play([Call("spawn_agent", {"message": "SUB-ONE: look"}, namespace="multi_agent_v1")], *[waiting] * 2)
    assert wrapped(lab, "codex", "Delegate.").code == 0
    [answer] = [item["output"] for item in lab.model.asked("SUB-ONE")[-1]["input"] if "output" in item]
    found = re.search(r"ctx-[0-9a-f]{8,}", answer)
    assert found is not None, answer
    told = conversation(lab, found[0])
    assert [e.content for e in told if isinstance(e, Prompt)][-1] == "SUB-ONE: look"
    assert [type(event) for event in told][-2:] == [Response, ToolCall]


def test_the_program_dies_and_what_it_knew_stays(lab: Lab) -> None:
    kill = Call("Bash", {"command": "kill -9 $PPID", "description": "end"})
    lab.model.play([Say("I will end it."), kill])
    done = wrapped(lab, "claude-code", "End it.")
    assert done.code == 128 + 9
    with api.open(lab.folder / "store.db") as repo:
        [session] = [row.session for row in repo.sessions()]
    known = conversation(lab, f"live/{session}")
    assert [type(event) for event in known] == [Prompt, Response, ToolCall]
