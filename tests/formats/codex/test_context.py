"""The conversation as it stands: what Codex 0.166.0 was seen to send after resuming files like these."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.formats.codex import context, request_items
from support.rollouts import Rollout, message, texts_of

COMPACTED = (
    "compacted",
    {
        "message": "",
        "replacement_history": [message("user", "R1"), message("user", "R2"), message("assistant", "RA")],
    },
)


def rolled_back(turns: int) -> tuple[str, dict[str, Any]]:
    return "event_msg", {"type": "thread_rolled_back", "num_turns": turns}


def turns(count: int) -> Rollout:
    rollout = Rollout()
    for number in range(1, count + 1):
        rollout.turn(f"T{number}")
    return rollout


def add(rollout: Rollout, line: tuple[str, dict[str, Any]]) -> Rollout:
    return rollout.add(line[0], **line[1])


STEER = (
    ("response_item", message("assistant", "mid")),
    ("response_item", message("user", "steer")),
    ("event_msg", {"type": "user_message", "message": "steer"}),
)
A = "answer to "

SEEN = {
    "nothing happened": (turns(2), ["T1", A + "T1", "T2", A + "T2"]),
    "the last turn was taken back": (
        add(turns(3), rolled_back(1)),
        ["T1", A + "T1", "T2", A + "T2"],
    ),
    "without marks a prompt begins a turn": (
        add(Rollout().exchange("T1").exchange("T2"), rolled_back(1)),
        ["T1", A + "T1"],
    ),
    "more turns than there are": (
        add(turns(2), rolled_back(9)).turn("T3"),
        ["T3", A + "T3"],
    ),
    "only the last of two prompts in one turn": (
        add(turns(1).turn("T2", *STEER), rolled_back(1)),
        ["T1", A + "T1", "T2", "mid"],
    ),
    "the context written for a turn goes with it": (
        turns(1)
        .developer("<permissions instructions>")
        .user("<environment_context></environment_context>")
        .turn("T2")
        .event("thread_rolled_back", num_turns=1),
        ["T1", A + "T1"],
    ),
    "a compaction replaces": (
        add(turns(2), COMPACTED).turn("T3"),
        ["R1", "R2", "RA", "T3", A + "T3"],
    ),
    "a compaction in a turn that was taken back never was": (
        add(turns(1).turn("T2", COMPACTED), rolled_back(1)).turn("T3"),
        ["T1", A + "T1", "T3", A + "T3"],
    ),
    "nor one between turns that were": (add(add(turns(1), COMPACTED).turn("T2"), rolled_back(2)), []),
    "a turn after a compaction is taken back": (
        add(turns(1).event("task_started", turn_id="c"), COMPACTED)
        .event("task_complete", turn_id="c")
        .turn("T2")
        .event("thread_rolled_back", num_turns=1),
        ["R1", "R2", "RA"],
    ),
    "an old compaction keeps the user's words and the summary": (
        turns(2).add("compacted", message="SUM").turn("T3"),
        ["T1", "T2", "SUM", "T3", A + "T3"],
    ),
    "an old compaction without a summary says so": (
        turns(1).add("compacted", message=""),
        ["T1", "(no summary available)"],
    ),
    "old compactions quote each other": (
        Rollout().exchange("A").add("compacted", message="ONE").exchange("B").add("compacted", message="TWO"),
        ["A", "ONE", "B", "TWO"],
    ),
    "an old compaction quotes a replacement": (
        add(turns(1), COMPACTED).exchange("B").add("compacted", message="TWO"),
        ["R1", "R2", "B", "TWO"],
    ),
    "part of a summary is taken back": (
        turns(2).add("compacted", message="TWO").turn("T3").event("thread_rolled_back", num_turns=2),
        ["T1", "T2"],
    ),
    "messages between agents are heard": (
        Rollout().add("inter_agent_communication", author="/root", recipient="/root/a", content="go"),
        ["agent_message"],
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_what_is_sent(name: str) -> None:
    rollout, expected = SEEN[name]

    assert expected == texts_of(request_items(rollout.data))


@pytest.mark.parametrize("name", SEEN)
def test_the_context_says_the_same_and_is_its_own_context(name: str) -> None:
    rollout, expected = SEEN[name]

    once = context(rollout.data)

    assert expected == texts_of(request_items(once))
    assert once == context(once)


@pytest.mark.parametrize("name", SEEN)
def test_the_context_is_made_of_the_files_own_lines_in_their_order(name: str) -> None:
    lines = SEEN[name][0].data.splitlines(keepends=True)

    kept = context(b"".join(lines)).splitlines(keepends=True)

    rest = iter(lines)
    assert all(line in rest for line in kept)
    assert kept[0] == lines[0], "the line that makes it a rollout"


def test_a_file_without_such_lines_is_its_own_context() -> None:
    data = turns(2).raw(b"{broken").raw(b"").data + b'{"torn'

    assert data == context(data)


def test_what_a_compaction_and_a_rollback_hide_is_not_in_the_context() -> None:
    data = add(turns(2), COMPACTED).turn("T3").turn("T4").event("thread_rolled_back", num_turns=1).data

    kept = context(data)

    assert [b"T1" in kept, b"T2" in kept, b"R1" in kept, b"T3" in kept, b"T4" in kept] == [
        False,
        False,
        True,
        True,
        False,
    ]


def test_long_messages_share_the_budget_of_an_old_summary_from_the_newest_back() -> None:
    data = Rollout().user("A" * 50_000).user("é" * 20_000).user("C" * 10_000).add("compacted", message="S").data

    first, *rest = request_items(data)

    assert ["A" * 15_000, "…5000 tokens truncated…", "A" * 15_000] == [part["text"] for part in first["content"]]
    assert ["é" * 20_000, "C" * 10_000, "S"] == texts_of(rest)


LINES = st.sampled_from(
    [
        ("response_item", message("user", "u")),
        ("response_item", message("user", "<environment_context></environment_context>")),
        ("response_item", message("developer", "<model_switch>")),
        ("response_item", message("assistant", "a")),
        ("event_msg", {"type": "user_message", "message": "u"}),
        ("event_msg", {"type": "task_started", "turn_id": "1"}),
        ("event_msg", {"type": "task_started", "turn_id": "2"}),
        ("event_msg", {"type": "task_complete", "turn_id": "1"}),
        ("event_msg", {"type": "turn_aborted", "turn_id": "2"}),
        ("turn_context", {"turn_id": "1", "model": "m"}),
        ("compacted", {"message": "s"}),
        COMPACTED,
        rolled_back(1),
        rolled_back(2),
    ]
)


@settings(max_examples=300, deadline=None)
@given(lines=st.lists(LINES, max_size=14))
def test_a_context_is_stable_whatever_happened(lines: list[tuple[str, dict[str, Any]]]) -> None:
    rollout = Rollout()
    for number, (kind, payload) in enumerate(lines):
        unique = json.loads(json.dumps(payload).replace('"u"', f'"u{number}"').replace('"a"', f'"a{number}"'))
        rollout.add(kind, **unique)

    once = context(rollout.data)

    assert once == context(once)
    assert request_items(rollout.data) == request_items(once)


def test_a_file_of_nothing_but_rollbacks_and_compactions_is_read_in_time() -> None:
    """Hostile, and a quadratic reader would take minutes."""
    rollout = Rollout()
    for _ in range(1500):
        rollout.user("").add("compacted", message="s").event("thread_rolled_back", num_turns=1).user("x")
        rollout.event("thread_rolled_back", num_turns=1)

    started = time.process_time()
    context(rollout.data)

    assert time.process_time() - started < 10
