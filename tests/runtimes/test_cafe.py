"""Native agents whose model is the real program: Jill is Claude Code, Jack is Codex."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Session, SessionViewer
from support import cafe_worker
from support.lab import Lab
from support.scripted_model import Call, Hold, Say
from support.wire import anthropic_items, responses_items

pytestmark = pytest.mark.runtimes

SAID = [("Jill", "I am Jill."), ("Jack", "I am Jack."), ("Jill", "Tea, please."), ("Jack", "Coffee.")]


def command(lab: Lab) -> list[str]:
    return [sys.executable, cafe_worker.__file__, str(lab.folder / "store.db"), str(log(lab)), str(lab.work)]


def log(lab: Lab) -> Path:
    return lab.folder / "café.jsonl"


def speak(lab: Lab, *lines: tuple[str, str]) -> None:
    """What the models behind the two programs say, in the order in which they are asked."""
    lab.model.play(*([Say(words)] for _, words in lines))


def turns(lab: Lab) -> list[dict[str, Any]]:
    with Session.load(log(lab), readonly=True) as session:
        return [data["metadata"] for data in session.records() if data.get("subtype") == "runtime_turn"]


def spoken(lab: Lab) -> list[tuple[str, str]]:
    viewer = SessionViewer(log(lab))
    names = viewer.list_agents()
    with Session.load(log(lab), readonly=True) as session:
        entries = [data for data in session.records() if data.get("role") == "assistant" and data.get("content")]
    return [(names[one["agent_id"]], one["content"]) for one in entries if names[one["agent_id"]] in ("Jack", "Jill")]


def still_there(lab: Lab) -> list[int]:
    """The processes that the laboratory's programs have left behind."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            environ = (folder / "environ").read_bytes() if folder.name.isdigit() else b""
        except OSError:
            continue
        if str(lab.home).encode() in environ:
            found.append(int(folder.name))
    return found


def wait_until_gone(lab: Lab) -> list[int]:
    latest = time.monotonic() + 15
    while (left := still_there(lab)) and time.monotonic() < latest:
        time.sleep(0.2)
    return left


def check_views(lab: Lab) -> None:
    """Everything answers as for native agents."""
    viewer = SessionViewer(log(lab))
    names = {name: agent for agent, name in viewer.list_agents().items()}
    assert SAID == spoken(lab)
    with Session.load(log(lab), readonly=True) as session:
        (tea,) = [data for data in session.records() if data.get("content") == "Tea, please."]
    assert {"Jack"} == {viewer.name(line["agent_id"]) for line in viewer.who_heard(tea["message_id"])} - {"root"}
    assert viewer.knows(names["Jack"], "Tea, please.")["knows"]
    assert not viewer.knows(names["Jill"], "You are Jack.")["knows"]
    perspective = [line["content"] for line in viewer.perspective([names["Jill"]]) if line.get("content")]
    assert perspective.index("[Jack]: I am Jack.") < perspective.index("Tea, please.")
    assert "[Jack]: Coffee." in perspective


def test_jill_is_claude_code_and_jack_is_codex(lab: Lab) -> None:
    speak(lab, *SAID)
    done = lab.run(*command(lab))
    assert (0, "They have met.\n") == (done.code, done.out), done.err

    check_views(lab)
    assert 8 == len(turns(lab))
    over = [turn for turn in turns(lab) if turn.get("session")]
    jill, jack = (sorted({turn["session"] for turn in over[place::2]}) for place in (0, 1))
    assert [[path.stem for path in lab.claude_sessions()]] == [jill]
    assert 1 == len(jack) == len(lab.codex_sessions())
    # Each program knows the conversation as its agent does.
    asked = {"claude": [], "codex": []}
    for request in lab.model.requests:
        if request.kind == "main":
            asked["codex" if "input" in request.body else "claude"].append(request.body)
    heard = [(item.kind, item.text) for item in anthropic_items(asked["claude"][-1])]
    assert [
        ("user", "You meet in a café."),
        ("assistant", "I am Jill."),
        ("user", "[Jack]: I am Jack."),
    ] == heard
    heard = [(item.kind, item.text) for item in responses_items(asked["codex"][-1])]
    assert [
        ("user", "You meet in a café.\n\n[Jill]: I am Jill."),
        ("assistant", "I am Jack."),
        ("user", "[Jill]: Tea, please."),
    ] == heard
    assert "You are Jill." in str(asked["claude"][-1]["system"])
    assert "You are Jack." in str(asked["codex"][-1])
    # Their own chains are in the store, and say for whom they spoke.
    with harken.open(lab.folder / "store.db") as repo:
        rows = {row.session: row for row in repo.sessions()}
        (café,) = [row.session for row in rows.values() if row.runtime == "harken" and not row.agent]
        for session, agent, runtime in ((jill[0], "agent_002", "claude-code"), (jack[0], "agent_003", "codex")):
            assert runtime == rows[session].runtime
            assert f"{café}/{agent}" == repo.commit(f"live/{session}").thread_id
        assert repo.commit(over[-1]["commit"])
        *_, total = repo.stats()
    # What each turn used is known where limits are kept, and counts once, in the programs' own sessions.
    assert total.figures.usage.prompt + total.figures.usage.output == sum(turn["tokens"] for turn in over)
    assert [] == wait_until_gone(lab)


@pytest.mark.parametrize("turn", range(4))
def test_killed_while_a_program_speaks_it_resumes_to_the_same_end(lab: Lab, turn: int) -> None:
    hold = Hold(threading.Event(), after=0)
    speak(lab, *SAID[:turn])
    lab.model.play([Say("What nobody hears."), hold])
    worker = subprocess.Popen(
        lab.namespace.command(command(lab)), env=lab.environment, cwd=lab.work, start_new_session=True
    )
    try:
        assert hold.reached.wait(60)
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(10)
    assert SAID[:turn] == spoken(lab)
    assert [] == wait_until_gone(lab)  # though the model has not said a word yet
    hold.gate.set()

    speak(lab, *SAID[turn:])
    done = lab.run(*command(lab))
    assert (0, "They have met.\n") == (done.code, done.out), done.err
    check_views(lab)
    bodies = [request.body for request in lab.model.requests if request.kind == "main"]
    assert "What nobody hears." not in str(bodies[-1])
    assert [] == wait_until_gone(lab)


def test_a_program_may_use_its_own_tools_before_it_answers(lab: Lab) -> None:
    shell = Call("Bash", {"command": "echo tea", "description": "look"})
    lab.model.play([Say("Let me look."), shell], [Say("I am Jill.")])
    speak(lab, *SAID[1:])
    done = lab.run(*command(lab))
    assert (0, "They have met.\n") == (done.code, done.out), done.err
    check_views(lab)


MIXED = """
import asyncio, os, sys
from pathlib import Path
import harken
from harken.agents import ScriptedModel
from harken.repo.voices import RuntimeUse
sys.path.insert(0, sys.argv[4])
from support.cafe_worker import FREE

use = RuntimeUse(environ=dict(os.environ), cwd=Path(sys.argv[3]), arguments=FREE)
with harken.open(sys.argv[1]) as repo, repo.session(sys.argv[2], runtimes=use) as session:
    root, _ = harken.load_session(session, name="root")
    root.language_model = ScriptedModel({"agents": {"root": ["A scripted word."]}})
    for text, model in [("One?", ""), ("Two?", "claude-code"), ("Three?", "codex"), ("Four?", "claude-code")]:
        if model:
            root.language_model = f"runtime:{model}"
        root.harken(text)
        print(asyncio.run(root.response()))
    (row,) = [row for row in repo.sessions() if row.runtime == "codex"]
    heir = repo.agent(row.session, session=session, name="Heir", language_model="runtime:claude-code")
    heir.harken("Five?")
    print(asyncio.run(heir.response()))
"""


def test_an_agent_may_change_its_model_and_each_program_knows_what_was_said_before(lab: Lab) -> None:
    lab.model.play([Say("Claude, two.")], [Say("Codex, three.")], [Say("Claude, four.")], [Say("Heir, five.")])
    tests = str(Path(cafe_worker.__file__).parents[1])
    words = [str(lab.folder / "store.db"), str(log(lab)), str(lab.work), tests]
    done = lab.run(sys.executable, "-c", MIXED, *words)
    said = ["A scripted word.", "Claude, two.", "Codex, three.", "Claude, four.", "Heir, five."]
    assert (0, said) == (done.code, done.out.splitlines()), done.err

    two, three, four, five = (request.body for request in lab.model.requests if request.kind == "main")
    before = [("user", "One?"), ("assistant", "A scripted word."), ("user", "Two?"), ("assistant", "Claude, two.")]
    before += [("user", "Three?"), ("assistant", "Codex, three."), ("user", "Four?")]
    assert before[:3] == _words(anthropic_items(two))
    assert before[:5] == _words(responses_items(three))
    assert before == _words(anthropic_items(four))
    assert [*before[:6], ("user", "Five?")] == _words(anthropic_items(five))
    assert [] == wait_until_gone(lab)


def _words(items: Any) -> list[tuple[str, str]]:
    """What was said; not what Codex tells its model of the place it works in."""
    return [(item.kind, item.text) for item in items if not item.text.startswith("<environment_context>")]
