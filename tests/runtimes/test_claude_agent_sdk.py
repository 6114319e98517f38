"""The real Claude Agent SDK and its bundled program, captured: entries are what went over the wire, in order, once."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harken import Session
from harken.capture import TranscriptEntry
from harken.events.tally import Tally
from harken.formats.claude_code.read import read
from support.lab import ROOT, Lab
from support.scenarios import leaves
from support.scripted_model import Call, Say, Think
from support.wire import CLAUDE_ADDS, FOLDED, Item, anthropic_items

pytestmark = pytest.mark.runtimes
LOOKER = {"description": "Looks around", "prompt": "Look around.", "tools": ["Read", "Agent"]}
OPTIONS = {"system_prompt": "Be brief.", "permission_mode": "bypassPermissions", "agents": {"looker": LOOKER}}
SESSION_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Entry = dict[str, Any]


def command(lab: Lab, *prompts: str, **order: Any) -> list[str]:
    """The command that runs the host program."""
    given = {"prompts": prompts, "options": OPTIONS, **order}
    return [sys.executable, "-m", "support.claude_host", str(lab.folder / "log.jsonl"), json.dumps(given)]


def host(lab: Lab, *prompts: str, **order: Any) -> dict[str, Any]:
    """Run the host program to its end: what it captured, and what it was told."""
    done = lab.run(*command(lab, *prompts, **order), env={"PYTHONPATH": str(ROOT / "tests")})
    assert (0, "") == (done.code, done.err)
    found: dict[str, Any] = done.lines[-1]
    assert [] == found["threads"]
    return found


def agent(prompt: str, *, background: bool = False) -> Call:
    given = {"description": "look", "subagent_type": "looker", "prompt": prompt, "run_in_background": background}
    return Call("Agent", given)


def look(lab: Lab, number: int = 1) -> Call:
    note = lab.work / "note.txt"
    note.write_text("what the note says\n")
    return Call("Read", {"file_path": str(note)}, id=f"toolu_look_{number}")


def items(entries: list[Entry], source: str) -> list[Item]:
    """The entries of a source as the wire has them, without the notices that Claude Code puts between them."""
    found = []
    for entry in entries:
        words, about = entry["content"], entry["metadata"] or {}
        if entry["source"] != source or entry["role"] == "system":
            continue
        if entry["role"] == "tool":
            found.append(Item("result", FOLDED.sub("", words).strip("\n"), entry["tool_call_id"]))
        elif entry["tool_name"]:
            given = json.dumps(entry["tool_input"], sort_keys=True)
            found.append(Item("call", entry["tool_name"], entry["tool_call_id"], given))
        elif about.get("kind") == "thinking":
            found.append(Item("thinking", words, about["signature"]))
        elif entry["role"] == "assistant" or not words.strip("\n").startswith(CLAUDE_ADDS):
            found.append(Item(entry["role"], words.strip("\n")))
    return found


def on_the_wire(lab: Lab, kind: str, *answer: Item) -> list[Item]:
    """What the model was sent last, and what it answered."""
    sent = anthropic_items(lab.model.asked(kind)[-1])
    results = [item.kind == "result" for item in sent]
    clean = [FOLDED.sub("", item.text).strip("\n") for item in sent]
    return [
        Item(item.kind, words, item.id, item.input) if result else item
        for item, result, words in zip(sent, results, clean, strict=True)
    ] + list(answer)


def source_of(entries: list[Entry], marker: str) -> str:
    [found] = {one["source"] for one in entries if one["content"].startswith(marker) and one["role"] == "user"}
    return str(found)


def in_order(entries: list[Entry]) -> bool:
    """Whether every source is numbered from 0 without a gap."""
    sources = {entry["source"] for entry in entries}
    numbers = {name: [one["sequence"] for one in entries if one["source"] == name] for name in sources}
    return all(own == list(range(len(own))) for own in numbers.values())


def check_told(lab: Lab, entries: list[Entry], kind: str, source: str) -> None:
    """Every notice among the entries was given to the model, and the instructions stand first."""
    body = lab.model.asked(kind)[-1]
    sent = "\n".join(leaves(body["messages"]))
    own = [one for one in entries if one["source"] == source]
    notices = [one["content"] for one in own if one["content"].startswith(CLAUDE_ADDS)]
    bare = [words.removeprefix("<system-reminder>").removesuffix("</system-reminder>").strip() for words in notices]
    assert bare
    assert [] == [words for words in bare if words not in sent]
    [instructions] = [one["content"] for one in own if one["role"] == "system"]
    assert instructions in "\n\n".join(leaves(body["system"]))
    assert "system" == own[0]["role"]


@pytest.mark.parametrize("how", ["query", "client"])
def test_a_run_with_sub_agents_of_sub_agents_is_captured_as_it_went_over_the_wire(lab: Lab, how: str) -> None:
    lab.model.play([Say("Deep."), look(lab)], [Say("The report of SUB-TWO.")], to="SUB-TWO")
    lab.model.play(
        [Say("Looking."), look(lab)], [agent("SUB-TWO: deeper")], [Say("The report of SUB-ONE.")], to="SUB-ONE"
    )
    lab.model.play([Think("hm"), Say("I delegate."), agent("SUB-ONE: look around")], [Say("All are back.")])
    found = host(lab, "Delegate it.", how=how)
    entries = found["entries"]
    assert in_order(entries)
    answers = {"main": "All are back.", "SUB-ONE": "The report of SUB-ONE.", "SUB-TWO": "The report of SUB-TWO."}
    for kind, answer in answers.items():
        source = "primary" if kind == "main" else source_of(entries, kind)
        assert on_the_wire(lab, kind, Item("assistant", answer)) == items(entries, source)
        check_told(lab, entries, kind, source)
    assert ["PreToolUse"] * 4 == found["own"]
    assert "ResultMessage" == found["heard"][-1]


def test_the_captured_session_has_the_numbers_of_the_files_and_the_tree_of_the_agents(lab: Lab) -> None:
    lab.model.play([Say("Deep.")], to="SUB-TWO")
    lab.model.play([agent("SUB-TWO: deeper")], [Say("The report of SUB-ONE.")], to="SUB-ONE")
    lab.model.play([Say("I delegate."), agent("SUB-ONE: look around")], [Say("All are back.")])
    entries = host(lab, "Delegate it.")["entries"]
    one, two = (source_of(entries, name).removeprefix("subagent:") for name in ("SUB-ONE", "SUB-TWO"))
    files = sorted(lab.home.glob(".claude/projects/**/*.jsonl"))
    assert 3 == len(files)
    with Session(lab.folder / "log.jsonl", readonly=True) as session:
        assert (session.root, one) == (session.agents[one].parent, session.agents[two].parent)
        captured = Tally.of(session.events())
    imported = Tally.merge([Tally.of(read(path.read_bytes())) for path in files])
    assert (imported.tokens, imported.responses, imported.tools) == (
        captured.tokens, captured.responses, captured.tools,
    )  # fmt: skip


@pytest.mark.parametrize(("capture", "sources"), [({"subagents": False}, 1), ({"depth": 1}, 2), ({}, 3)], ids=str)
def test_sub_agents_are_captured_as_far_down_as_was_asked_for(lab: Lab, capture: Any, sources: int) -> None:
    lab.model.play([Say("Deep.")], to="SUB-TWO")
    lab.model.play([agent("SUB-TWO: deeper")], [Say("The report of SUB-ONE.")], to="SUB-ONE")
    lab.model.play([agent("SUB-ONE: look around")], [Say("All are back.")])
    entries = host(lab, "Delegate it.", capture=capture)["entries"]
    assert sources == len({entry["source"] for entry in entries})
    assert on_the_wire(lab, "main", Item("assistant", "All are back.")) == items(entries, "primary")


def test_several_prompts_of_a_client_are_one_conversation_and_those_of_queries_several(lab: Lab) -> None:
    for answer in ("One.", "Two.", "Three."):
        lab.model.play([Say(answer)])
    host(lab, "First.", "Second.", how="client")
    entries = host(lab, "Third.")["entries"]
    said = [("First.", "One.", "Second.", "Two."), ("Third.", "Three.")]
    sources = list(dict.fromkeys(entry["source"] for entry in entries))
    assert said == [tuple(item.text for item in items(entries, source)) for source in sources]
    assert ("primary", 2) == (sources[0], len(sources))


def test_the_model_is_sent_what_it_is_sent_without_a_capture(lab: Lab) -> None:
    for capture in (None, {}):
        lab.model.play([Say("I look."), look(lab)], [Say("Seen.")], [Say("Go on, then.")])
        host(lab, "Look.", "/compact", "Where were we?", how="client", capture=capture)
    sent = [[SESSION_ID.sub("", item.text) for item in anthropic_items(body)] for body in lab.model.asked()]
    assert 6 == len(sent)
    assert sent[:3] == sent[3:]


def test_a_run_that_only_compacts_is_captured(lab: Lab) -> None:
    lab.model.play([Say("One.")])
    before = host(lab, "First.")["entries"]
    earlier = before[-1]["metadata"]["claude_session_id"]
    entries = host(lab, "/compact", options={**OPTIONS, "resume": earlier})["entries"]
    kinds = [(entry["metadata"] or {}).get("kind") for entry in entries[len(before) :]]
    assert (before, 1) == (entries[: len(before)], kinds.count("compaction"))


def test_a_run_that_goes_back_in_its_file_takes_back_what_was_said_since(lab: Lab) -> None:
    for answer in ("One.", "Two.", "Three."):
        lab.model.play([Say(answer)])
    before = host(lab, "First.", "Second.", how="client")["entries"]
    earlier = before[-1]["metadata"]["claude_session_id"]
    with Session(lab.folder / "log.jsonl", readonly=True) as session:
        [there] = [line["message_id"] for line in session.entries(session.root) if line["content"] == "One."]
    back = {**OPTIONS, "resume": earlier, "extra_args": {"resume-session-at": there}}
    entries = host(lab, "Third.", options=back)["entries"]
    assert ["First.", "One.", "Second.", "Two.", "Third.", "Three."] == [
        item.text for item in items(entries, "primary")
    ]
    with Session(lab.folder / "log.jsonl", readonly=True) as session:
        kept = {line["message_id"] for line in session.entries(session.root)}
        said = [
            line["content"] for line in session.entries(session.root) if not line["content"].startswith(CLAUDE_ADDS)
        ]
    assert there in kept
    assert [*(item.text for item in anthropic_items(lab.model.asked()[-1])), "Three."] == said[1:]


def test_a_sub_agent_in_the_background_that_outlives_its_turn_is_captured_to_its_end(lab: Lab) -> None:
    lab.model.play([Say("Looking."), look(lab)], [Say("The report of SUB-ONE.")], to="SUB-ONE")
    lab.model.play([agent("SUB-ONE: look around", background=True)], [Say("It runs.")], [Say("It is back.")])
    entries = host(lab, "Delegate it.")["entries"]
    source = source_of(entries, "SUB-ONE")
    assert on_the_wire(lab, "SUB-ONE", Item("assistant", "The report of SUB-ONE.")) == items(entries, source)
    assert Item("assistant", "It runs.") in items(entries, "primary")


@pytest.mark.parametrize("how", ["cancel", "raise"])
def test_a_run_that_the_host_gives_up_is_captured_as_far_as_it_went(lab: Lab, how: str) -> None:
    lab.model.play([Say("I look."), look(lab)], [Say("Seen.")])
    found = host(lab, "Look.", how=how)
    assert [how] == found["heard"]
    entries = host(lab)["entries"]  # and what was written after the host had gone
    check_broken_off(lab, entries)


def test_a_run_whose_loop_is_left_at_the_result_is_in_the_session_when_that_is_closed(lab: Lab) -> None:
    lab.model.play([Say("I look."), look(lab)], [Say("Seen.")])
    done = lab.run(*command(lab, "Look.", how="break"), env={"PYTHONPATH": str(ROOT / "tests")})
    assert 0 == done.code  # the SDK complains of its generator
    with Session(lab.folder / "log.jsonl", readonly=True) as session:
        said = [entry.content for entry in session[TranscriptEntry].all() if entry.role == "assistant"]
    assert ["I look.", "Seen."] == [words for words in said if not words.startswith("{")]


def check_broken_off(lab: Lab, entries: list[Entry]) -> None:
    """Whether the entries are what went over the wire, and behind it nothing but what Claude Code would have sent."""
    given = json.dumps(look(lab).input, sort_keys=True)
    answers = [[Item("assistant", "I look."), Item("call", "Read", look(lab).id, given)], [Item("assistant", "Seen.")]]
    sent = on_the_wire(lab, "main", *answers[len(lab.model.asked()) - 1])
    captured = items(entries, "primary")
    assert sent == captured[: len(sent)]
    assert {item.kind for item in captured[len(sent) :]} <= {"result", "user"}
    assert in_order(entries)


def test_what_a_killed_host_had_captured_is_there_and_the_rest_is_read_next_time(lab: Lab) -> None:
    lab.model.play([Say("I look."), look(lab)], [Say("Seen.")])
    argv = lab.namespace.command(command(lab, "Look.", how="hang"))
    env = lab.environment | {"PYTHONPATH": str(ROOT / "tests")}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=lab.work, env=env) as process:
        assert process.stdout is not None
        assert b"HANGING\n" == process.stdout.readline()
        below = [os.pidfd_open(pid) for pid in children(process.pid)]
        assert below
        process.kill()
        process.stdout.read()
    for child in below:
        ready = select.poll()
        ready.register(child, select.POLLIN)
        assert ready.poll(60_000)
        os.close(child)
    with Session(lab.folder / "log.jsonl", readonly=True) as session:
        before = [entry.content for entry in session[TranscriptEntry].all()]
    entries = host(lab)["entries"]
    assert before == [entry["content"] for entry in entries][: len(before)]
    check_broken_off(lab, entries)
    assert entries == host(lab)["entries"]


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(name) for name in (task / "children").read_text().split()]
    return found
