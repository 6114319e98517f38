"""The active branch: each case was given to the real program (2.1.325), and this is what it sent.

The notation is that of `test_request.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from support.claude_lines import (
    assistant,
    attachment,
    boundary,
    call,
    dump,
    last_prompt,
    notice,
    progress,
    result,
    sent,
    summary,
    thinking,
    user,
)

UNANSWERED = "A No response requested."
Q = user("u1", None, "q", 1)
A = assistant("a1", "u1", "x", "m1", 5)
CALL = assistant("a1", "u1", [call("c1")], "m1", 5)
END = (user("u8", "a1", "p", 50), assistant("a8", "u8", "y", "m8", 51))


def after(parent: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A last turn that hangs from the record."""
    return (END[0] | {"parentUuid": parent}, END[1])


LAST = ["U p", "A y"]

BRANCHES = {
    "the last leaf of the file": (
        [
            Q,
            A,
            user("u2", "a1", "left"),
            assistant("a2", "u2", "l", "m2"),
            user("u3", "a1", "right"),
            assistant("a3", "u3", "r", "m3"),
        ],
        ["U q", "A x", "U right", "A r"],
    ),
    "the branch a last-prompt names": (
        [
            Q,
            A,
            user("u2", "a1", "left"),
            assistant("a2", "u2", "l", "m2"),
            user("u3", "a1", "right"),
            assistant("a3", "u3", "r", "m3"),
            last_prompt("a2"),
        ],
        ["U q", "A x", "U left", "A l"],
    ),
    "no further than the record it names": (
        [
            Q,
            A,
            user("u2", "a1", "left"),
            assistant("a2", "u2", "l", "m2"),
            user("u3", "a1", "right"),
            assistant("a3", "u3", "r", "m3"),
            last_prompt("u2"),
        ],
        ["U q", "A x", "U left", UNANSWERED],
    ),
    "unless the last leaf descends from it": (
        [
            Q,
            A,
            user("u2", "a1", "left"),
            last_prompt("a1"),
            user("u3", "a1", "right"),
            assistant("a3", "u3", "r", "m3"),
        ],
        ["U q", "A x", "U right", "A r"],
    ),
    "unless it names a parallel result beside the path": (
        [
            Q,
            CALL,
            assistant("a2", "a1", [call("c2")], "m1"),
            result("r1", "a1", "c1"),
            result("r2", "a2", "c2"),
            last_prompt("r1"),
            *after("r2"),
        ],
        ["U q", "A +c1 | +c2", "U =c1 | =c2 | p", "A y"],
    ),
    "a compaction ends its word": (
        [Q, A, last_prompt("a1"), boundary("b1"), summary("s1", "b1"), *after("s1")],
        ["U SUMMARY\n | p", "A y"],
    ),
    "a progress record late under an early one": (
        [Q, A, *after("a1"), progress("p1", "a1", 70)],
        ["U q", "A x", *LAST],
    ),
    "a notice late under an early record": (
        [Q, A, *after("a1"), notice("n1", "a1", "turn_duration", 70)],
        ["U q", "A x"],
    ),
    "through progress records": (
        [Q, A, progress("p1", "a1"), progress("p2", "p1"), *after("p2")],
        ["U q", "A x", *LAST],
    ),
    "of two records with one uuid the later": ([Q, A, user("u8", "a1", "old"), *after("a1")], ["U q", "A x", *LAST]),
    "not across a compaction": ([Q, A, boundary("b1"), summary("s1", "b1"), *after("s1")], ["U SUMMARY\n | p", "A y"]),
    "a boundary without a summary hides nothing": ([Q, A, boundary("b1")], ["U q", "A x"]),
    "an old branch gone on with after a compaction": (
        [Q, A, boundary("b1"), summary("s1", "b1"), *after("a1")],
        ["U q", "A x", *LAST],
    ),
    "without side chains": (
        [
            Q,
            CALL,
            user("s1", None, "task", isSidechain=True),
            assistant("s2", "s1", "side", "m9", isSidechain=True),
            result("r1", "a1", "c1"),
            *after("r1"),
        ],
        ["U q", "A +c1", "U =c1 | p", "A y"],
    ),
}

PRE = (
    Q,
    A,
    user("u2", "a1", "kept", 10),
    assistant("a2", "u2", [call("c1")], "m2", 11),
    result("r1", "a2", "c1", 12),
    assistant("a3", "r1", "too", "m3", 13),
)
KEPT = ["U SUMMARY\n | kept", "A +c1", "U =c1", "A too", *LAST]
PRESERVED = {
    "by their names": ({"preservedMessages": {"anchorUuid": "s1", "uuids": ["u2", "a2", "r1", "a3"]}}, KEPT),
    "by their ends": ({"preservedSegment": {"headUuid": "u2", "anchorUuid": "s1", "tailUuid": "a3"}}, KEPT),
    "none where one is missing": (
        {"preservedMessages": {"anchorUuid": "s1", "uuids": ["u2", "zz", "r1", "a3"]}},
        ["U SUMMARY\n | p", "A y"],
    ),
    "nothing beside them": (
        {"preservedMessages": {"anchorUuid": "s1", "uuids": ["a3"]}},
        ["U SUMMARY", "A too", *LAST],
    ),
}

LOST = {
    "five seconds older": (5.0, ["U q", "A x", *LAST]),
    "a bit more": (5.001, LAST),
    "younger": (-0.5, LAST),
}


@pytest.mark.parametrize(("records", "expected"), BRANCHES.values(), ids=BRANCHES)
def test_the_conversation_is(records: list[Any], expected: list[str]) -> None:
    assert expected == sent(*records)


@pytest.mark.parametrize(("metadata", "expected"), PRESERVED.values(), ids=PRESERVED)
def test_a_compaction_preserves(metadata: dict[str, Any], expected: list[str]) -> None:
    assert expected == sent(*PRE, boundary("b1", **metadata), summary("s1", "b1"), *after("s1"))


@pytest.mark.parametrize(("gap", "expected"), LOST.values(), ids=LOST)
def test_a_lost_parent_is_stood_in_for_by_the_nearest_record_if_it_is(gap: float, expected: list[str]) -> None:
    prompt = user("u8", "lost", "p", 20)

    assert expected == sent(Q, assistant("a1", "u1", "x", "m1", 20 - gap), prompt, END[1])


def test_what_was_attached_to_a_preserved_message_stays_behind() -> None:
    kept = {"preservedMessages": {"anchorUuid": "s1", "uuids": ["u1"]}}
    attached = attachment("t1", "u1", {"type": "silent_turn_reminder", "text": "R"})

    assert ["U SUMMARY\n | q", UNANSWERED] == sent(Q, attached, boundary("b1", **kept), summary("s1", "b1"))


def test_parallel_results_that_are_not_on_the_path_are_in_the_order_of_the_file() -> None:
    records = [
        Q,
        assistant("a1", "u1", [call("c1")], "m1"),
        assistant("a2", "a1", [call("c2")], "m1"),
        assistant("a3", "a2", [call("c3")], "m1"),
        result("r2", "a2", "c2"),
        result("r1", "a1", "c1"),
        result("r3", "a3", "c3"),
        *after("r3"),
    ]

    assert ["U q", "A +c1 | +c2 | +c3", "U =c2 | =c1 | =c3 | p", "A y"] == sent(*records)


def test_copies_of_a_message_stand_inside_it() -> None:
    """Sessions that were copied into the same file have every message twice; the program sends both texts."""
    copies = [
        Q,
        assistant("a1", "u1", [thinking("A")], "m1"),
        assistant("a2", "a1", "old", "m1"),
        user("u2", None, "q2"),
        assistant("a3", "u2", [thinking("B")], "m1"),
        assistant("a4", "a3", "new", "m1"),
        *after("a4"),
    ]

    assert ["U q2", "A ~B | ~A | old | new", *LAST] == sent(*copies)


def test_of_two_objects_on_a_line_the_program_sees_the_first() -> None:
    both = dump(user("u2", "a1", "p2", 6))[:-1] + dump(assistant("a2", "u2", "a2", "m2", 7))

    assert ["U q", "A x", "U p2\n | p", "A y"] == sent(Q, A, both, *after("a2"))


def test_a_sub_agents_own_file_is_its_conversation() -> None:
    side = {"isSidechain": True, "agentId": "abc"}

    assert ["U task", "A done"] == sent(user("u1", None, "task", **side), assistant("a1", "u1", "done", "m1", **side))


def test_a_ring_of_parents_ends() -> None:
    assert ["U b\n | a", UNANSWERED] == sent(user("u1", "u2", "b", 1), user("u2", "u1", "a", 99))
