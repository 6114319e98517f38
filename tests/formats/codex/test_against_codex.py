"""The real Codex resumes rollouts in which everything happened in every order, and sends what we say it will.

Run with the other tests of the laboratory (`make test-runtimes`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import runtimes
from harken.events import Event, Image, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats import codex
from harken.formats.codex.truncate import FALLBACK_BUDGET
from harken.runtimes.files import walk
from harken.runtimes.importer import Importer
from support.lab import Lab, installed
from support.recordings import named, session_files
from support.rollouts import PICTURE, THREAD, Rollout, message
from support.scripted_model import Say

pytestmark = pytest.mark.runtimes
PROBE = "and now?"
ALONE = [path for path in session_files("codex") if b'"history_base"' not in path.read_bytes().split(b"\n", 1)[0]]
"""Those that are whole in their own file."""
HAPPENINGS = ("turn", "turn", "turn", "steer", "old", "item", "context", "settings", "compact", "inside", "legacy")
HAPPENINGS += ("back", "back", "mark")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    if not installed():
        pytest.fail("Codex is not installed; run scripts/runtimes")
    laboratory = Lab(tmp_path / "lab")
    try:
        yield laboratory
    finally:
        laboratory.close()


def resumed(lab: Lab, data: bytes, thread: str = THREAD) -> list[dict[str, Any]]:
    """The conversation in the request Codex makes after resuming the file: without what it adds around it."""
    folder = lab.codex_home / "sessions" / "2026" / "01" / "02"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"rollout-2026-01-02T00-00-00-{thread}.jsonl").write_bytes(data)
    lab.model.play([Say("ok")])
    done = lab.codex("resume", thread, PROBE)
    assert 0 == done.code, done.err
    sent: list[dict[str, Any]] = lab.model.asked()[-1]["input"]
    assert PROBE == sent[-1]["content"][0]["text"]
    # Codex makes up an id for the answer it makes up.
    return [{k: v for k, v in item.items() if k != "id" or item.get("output") != "aborted"} for item in sent[1:]]


def random_rollout(seed: int) -> Rollout:
    """Turns, steering, compactions old and new, rollbacks, marks in odd places."""
    draw = random.Random(seed)
    rollout = Rollout()
    for number in range(draw.randint(8, 20)):
        text = f"{number}"
        replacement = {"message": "", "replacement_history": [message("user", f"R{text}"), message("assistant", "RA")]}
        steer = [
            ("response_item", message("user", f"S{text}")),
            ("event_msg", {"type": "user_message", "message": "S"}),
        ]
        match draw.choice(HAPPENINGS):
            case "turn":
                rollout.turn(f"T{text}")
            case "steer":
                rollout.turn(f"T{text}", ("response_item", message("assistant", "mid")), *steer)
            case "old":
                rollout.exchange(f"O{text}")
            case "item":
                rollout.call(f"c{text}")
            case "context":
                rollout.user(f"<environment_context>{text}</environment_context>")
            case "settings":
                rollout.developer(draw.choice(["<permissions instructions>", "plain"]))
            case "compact":
                rollout.add("compacted", **replacement)
            case "inside":
                rollout.turn(f"C{text}", ("compacted", replacement))
            case "legacy":
                rollout.add("compacted", message=f"SUM{text}")
            case "back":
                rollout.event("thread_rolled_back", num_turns=draw.choice([1, 1, 2, 3]))
            case "mark":
                rollout.event("task_started", turn_id=f"odd-{text}")
    return rollout


@pytest.mark.parametrize("seed", range(10))
def test_whatever_happened_the_request_is_the_one_codex_makes(lab: Lab, seed: int) -> None:
    data = random_rollout(seed).data

    expected = codex.request_items(data, output_budget=FALLBACK_BUDGET)

    assert expected == resumed(lab, data)[: len(expected)]


def test_a_context_moved_to_another_thread_is_resumed(lab: Lab) -> None:
    data = Rollout(model_provider="elsewhere", source={"subagent": "review"}).turn("a").compacted(message("user", "R"))
    data.turn("b").meta(model_provider="elsewhere", history_mode="novel").call("open")
    thread = "01a1dec9-55eb-7972-87c7-b70fb9cc6700"

    moved = codex.rewrite(codex.context(data.data), session_id=thread, cwd=str(lab.work), time=0)
    expected = codex.request_items(data.data)

    assert expected == resumed(lab, moved, thread)[: len(expected)]


def test_bare_lines_that_were_wrapped_are_resumed_and_what_nobody_knows_beside_them(lab: Lab) -> None:
    thread = "01a1dec9-55eb-7972-87c7-b70fb9cc6703"
    old = (
        b'{"id":"t1","timestamp":"2025-07-01T00:00:00Z","instructions":null}\n{"role":"user","content":"hello"}\n'
        b'{"type":"compacted","message":"SUMMED UP"}\n{"type":"function_result","call_id":"c1","output":"a"}\n'
        b'{"role":"assistant","content":"hi"}\n'
    )

    expected = codex.request_items(old)

    assert 3 == len(expected)
    assert expected == resumed(lab, codex.rewrite(old, session_id=thread, cwd=str(lab.work), time=0), thread)[:3]


@pytest.mark.parametrize("path", ALONE, ids=named)
def test_a_real_session_is_resumed_even_where_codex_refused_the_file_itself(lab: Lab, path: Path) -> None:
    data = codex.context(path.read_bytes())
    thread = "01a1dec9-55eb-7972-87c7-b70fb9cc6702"

    expected = codex.request_items(data, output_budget=FALLBACK_BUDGET)
    sent = resumed(lab, codex.rewrite(data, session_id=thread, cwd=str(lab.work), time=0), thread)

    assert expected == sent[: len(expected)]


def test_a_conversation_from_elsewhere_is_resumed(lab: Lab) -> None:
    thread = "01a1dec9-55eb-7972-87c7-b70fb9cc6701"
    picture = Image(media_type="image/png", data=PICTURE.partition(",")[2])
    events: list[Event] = [
        System(subtype="instructions", message="be nice"),
        Prompt(content="look", images=(picture,)),
        Thinking(content="hm", signature="foreign"),
        ToolCall(id="toolu_1", name="Bash", input=b'{"command":"ls"}'),
        ToolCall(id="toolu_2", name="Read", input=b'{"file":"a"}'),
        ToolResult(id="toolu_1", output="a.txt"),
        ToolResult(id="toolu_2", output="hello", images=(picture,)),
        ToolCall(id="toolu_3", name="Edit", input=b"{}"),
        Response(content="done"),
    ]

    written = codex.write_session(events, session_id=thread, cwd=str(lab.work), time=0)
    expected = codex.request_items(written.data)

    assert {"thinking": 1, "result of a tool call": 1} == {loss.what: loss.count for loss in written.losses}
    assert expected == resumed(lab, written.data, thread)[: len(expected)]


def test_a_fork_that_codex_made_knows_what_it_goes_on_from(lab: Lab) -> None:
    lab.model.play([Say("first answer")], [Say("forked answer")])
    lab.codex("first prompt")
    (original,) = lab.codex_sessions()
    thread = codex.scan(original.read_bytes()).session
    done = lab.codex("fork", thread, "forked prompt")
    assert 0 == done.code, done.err
    sent = lab.model.asked()[-1]["input"][1:]
    fork = next(path for path in lab.codex_sessions() if path != original)

    whole = codex.with_base(fork.read_bytes(), original.read_bytes())

    assert thread == codex.scan(fork.read_bytes()).forked_from
    assert sent == codex.request_items(whole)[: len(sent)]
    with harken.open(lab.folder / "imported.db") as repo:
        for _ in Importer(repo.store, [runtimes.get("codex")]).run(walk(lab.codex_home / "sessions")):
            pass
        told = repo.materialize(codex.scan(fork.read_bytes()).session).bytes
    assert codex.request_items(whole) == codex.request_items(told)
