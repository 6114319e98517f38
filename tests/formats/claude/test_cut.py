"""Cut rule `cut-2`: where a file falls into commits, frozen by vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.clock import format_seconds, parse_instant
from harken.formats.base import Delta
from harken.formats.claude_code import scan, split
from harken.formats.claude_code.cut import HARD, REFUSALS, SOFT
from harken.formats.claude_code.scan import SURE, claim
from harken.ids import artifact_id, artifact_ref, commit_id, commit_ref
from support.claude_lines import (
    assistant,
    boundary,
    call,
    dump,
    notice,
    progress,
    result,
    summary,
    text,
    thinking,
    user,
)

FEW = settings(max_examples=60, deadline=None)
SIDE = {"isSidechain": True}


def pieces(data: bytes) -> list[list[str]]:
    """The deltas, as the names of the records in them."""
    return [_names(data, delta) for delta in split(data) if delta.commit_type == "delta"]


def _names(data: bytes, delta: Delta) -> list[str]:
    found = []
    for line in data[delta.start : delta.end].splitlines():
        try:
            found.append(json.loads(line)["uuid"])
        except (ValueError, KeyError, TypeError):
            found.append("?")
    return found


def test_a_prompt_and_another_message_of_the_assistant_begin_a_delta() -> None:
    data = dump(
        user("u1", None, "q"),
        assistant("a1", "u1", [thinking("t")], "m1"),
        assistant("a2", "a1", [call("c1")], "m1"),
        result("r1", "a2", "c1"),
        assistant("a3", "r1", "done", "m2"),
        user("u2", "a3", "q2"),
    )

    assert [["u1"], ["a1", "a2", "r1"], ["a3"], ["u2"]] == pieces(data)


@pytest.mark.parametrize(
    "quiet",
    [
        user("x", "a1", "meta", isMeta=True),
        notice("x", "a1", "turn_duration"),
        progress("x", "a1"),
        {"type": "file-history-snapshot", "uuid": "x"},
        {"type": "never-seen", "uuid": "x"},
        user("x", "a1", "to a sub-agent", **SIDE),
        assistant("x", "a1", "from a sub-agent", "m9", **SIDE),
    ],
    ids=["meta", "system", "progress", "side record", "unknown", "side prompt", "side answer"],
)
def test_what_opens_no_turn_stays_with_what_came_before(quiet: dict[str, Any]) -> None:
    data = dump(user("u1", None, "q"), assistant("a1", "u1", "x", "m1"), quiet, user("u2", "a1", "q2"))

    assert [["u1"], ["a1", "x"], ["u2"]] == pieces(data)


def test_in_a_sub_agents_own_file_the_side_chain_is_the_main_line() -> None:
    data = dump(
        user("u1", None, "task", **SIDE),
        assistant("a1", "u1", "x", "m1", **SIDE),
        assistant("a2", "a1", "y", "m2", **SIDE),
    )

    assert [["u1"], ["a1"], ["a2"]] == pieces(data)


@pytest.mark.parametrize("line", [b"{broken\n", b"\n", b"42\n", b'{"type":"user"}{"type":"user"}\n', b"\xff\xfe\n"])
def test_a_line_that_is_not_one_object_never_cuts(line: bytes) -> None:
    data = dump(user("u1", None, "q"), line, line, assistant("a1", "u1", "x", "m1"))

    assert [["u1", "?", "?"], ["a1"]] == pieces(data)


def test_a_line_without_its_newline_never_cuts() -> None:
    """More may be written behind it, and then it is not one object."""
    data = dump(user("u1", None, "q"), assistant("a1", "u1", "x", "m1"), user("u2", "a1", "q2"))

    assert [["u1"], ["a1", "u2"]] == pieces(data[:-1])


def test_a_long_delta_is_cut_at_the_next_line() -> None:
    big = "x" * (SOFT // 2)
    data = dump(user("u1", None, "q"), *[progress(f"p{n}", "u1", note=big) for n in range(5)])

    assert [["u1", "p0", "p1"], ["p2", "p3"], ["p4"]] == pieces(data)


def test_no_cut_falls_between_a_call_and_its_result_however_long_it_takes() -> None:
    big = "x" * (SOFT // 2)
    noise = [progress(f"p{n}", "a1", note=big) for n in range(9)]
    data = dump(user("u1", None, "q"), assistant("a1", "u1", [call("c1")], "m1"), *noise, result("r1", "a1", "c1"))

    assert [["u1"], ["a1", *(f"p{n}" for n in range(9)), "r1"]] == pieces(data)


def test_a_prompt_that_comes_before_the_result_does_not_cut() -> None:
    data = dump(
        user("u1", None, "q"),
        assistant("a1", "u1", [call("c1")], "m1"),
        user("u2", "a1", "hurry"),
        result("r1", "a1", "c1"),
        user("u3", "r1", "thanks"),
    )

    assert [["u1"], ["a1", "u2", "r1"], ["u3"]] == pieces(data)


def test_a_call_that_is_never_answered_is_given_up() -> None:
    prompts = [user(f"u{n}", "a1", "q") for n in range(2, REFUSALS + 4)]
    data = dump(user("u1", None, "q"), assistant("a1", "u1", [call("c1")], "m1"), *prompts)

    names = [record["uuid"] for record in prompts]
    assert [["u1"], ["a1", *names[:REFUSALS]], [names[REFUSALS]], [names[REFUSALS + 1]]] == pieces(data)


def test_a_call_is_not_waited_for_without_end() -> None:
    big = "x" * (HARD // 4)
    noise = [progress(f"p{n}", "a1", note=big) for n in range(6)]
    data = dump(user("u1", None, "q"), assistant("a1", "u1", [call("c1")], "m1"), *noise)

    assert [["u1"], ["a1", "p0", "p1", "p2", "p3"], ["p4"], ["p5"]] == pieces(data)


def test_boundary_and_summary_are_a_delta_and_the_compaction_repeats_exactly_that() -> None:
    """The turn before it is a commit of its own (#31)."""
    data = dump(
        user("u1", None, "q"),
        assistant("a1", "u1", "x", "m1"),
        boundary("b1"),
        summary("s1", "b1"),
        user("u2", "s1", "on"),
    )

    deltas = split(data)

    assert ["delta", "delta", "delta", "compaction", "delta"] == [delta.commit_type for delta in deltas]
    assert [["u1"], ["a1"], ["b1", "s1"], ["b1", "s1"], ["u2"]] == [_names(data, delta) for delta in deltas]
    kinds = ["turn_boundary", "turn_boundary", "compaction", "compaction", "turn_boundary"]
    assert kinds == [delta.checkpoint for delta in deltas]
    assert [2, 2] == [delta.records for delta in deltas[2:4]]


def test_a_call_that_waits_at_a_boundary_is_given_up() -> None:
    """Claude Code compacts instead of running it; in real files no result ever follows (#31)."""
    data = dump(
        user("u1", None, "q"),
        assistant("a1", "u1", [call("c1")], "m1"),
        boundary("b1"),
        summary("s1", "b1"),
        assistant("a2", "s1", "x", "m2"),
        user("u2", "a2", "on"),
    )

    assert [["u1"], ["a1"], ["b1", "s1"], ["a2"], ["u2"]] == pieces(data)


def test_what_stands_between_boundary_and_summary_stays_with_them() -> None:
    big = "x" * SOFT
    data = dump(user("u1", None, "q"), boundary("b1"), *[progress(f"p{n}", "b1", note=big) for n in range(3)])
    data += dump(summary("s1", "b1"), user("u2", "s1", "on"))

    deltas = split(data)

    names = ["b1", "p0", "p1", "p2", "s1"]
    assert [["u1"], names, names, ["u2"]] == [_names(data, delta) for delta in deltas]
    assert [1, 5, 5, 1] == [delta.records for delta in deltas]


def test_a_boundary_without_a_summary_ends_with_the_next_turn_or_at_16_mib() -> None:
    big = "x" * (HARD // 4)
    noise = [progress(f"p{n}", "b1", note=big) for n in range(5)]
    data = dump(user("u1", None, "q"), boundary("b1"), user("u2", "b1", "on"), boundary("b2"), *noise)

    assert [["u1"], ["b1"], ["u2"], ["b2", "p0", "p1", "p2", "p3"], ["p4"]] == pieces(data)


def test_a_compaction_of_a_side_chain_is_none_of_the_file() -> None:
    """Else the file's own conversation would begin anew with another agent's summary."""
    side = {"isSidechain": True}
    data = dump(
        user("u1", None, "q"),
        assistant("a1", "u1", "x", "m1"),
        boundary("b1") | side,
        summary("s1", "b1") | side,
        user("u2", "a1", "on"),
    )

    assert [["u1"], ["a1", "b1", "s1"], ["u2"]] == pieces(data)
    assert {"delta"} == {delta.commit_type for delta in split(data)}


def test_a_summary_record_compacts_only_directly_behind_a_boundary() -> None:
    """Elsewhere it is the title of the session, or of another one."""
    title = {"type": "summary", "summary": "words", "leafUuid": "a1"}
    data = dump(title, user("u1", None, "q"), title, boundary("b1"), title, user("u2", "b1", "on"))

    deltas = split(data)

    assert [["?"], ["u1", "?"], ["b1", "?"], ["b1", "?"], ["u2"]] == [_names(data, delta) for delta in deltas]
    assert ["delta", "delta", "delta", "compaction", "delta"] == [delta.commit_type for delta in deltas]


def test_a_delta_says_how_much_is_in_it_and_when_it_ended() -> None:
    data = dump(
        user("u1", None, "q", 5),
        assistant("a1", "u1", [text("x")], "m1", 9),
        assistant("a2", "a1", [call("c")], "m1", 8),
        result("r1", "a2", "c") | {"timestamp": "no time"},
        b"broken\n",
    )

    first, tail = split(data)

    assert (1, 1, parse_instant("2026-01-01T00:00:05Z"), True) == (
        first.records,
        first.messages,
        first.time,
        first.closed,
    )
    assert (4, 1, parse_instant("2026-01-01T00:00:08Z"), False) == (tail.records, tail.messages, tail.time, tail.closed)


_steps = st.lists(
    st.sampled_from(["prompt", "say", "call", "result", "late", "side", "meta", "compact", "noise", "broken", "blank"]),
    max_size=24,
)


def _session(steps: Sequence[str]) -> bytes:
    records: list[dict[str, Any] | bytes] = []
    calls: list[str] = []
    for number, step in enumerate(steps):
        name = f"r{number}"
        match step:
            case "prompt":
                records.append(user(name, None, "q", number))
            case "say":
                records.append(assistant(name, None, "x", f"m{number}", number))
            case "call":
                calls.append(f"c{number}")
                records.append(assistant(name, None, [call(calls[-1])], f"m{number}", number))
            case "result" | "late" if calls:
                records.append(result(name, None, calls.pop(0 if step == "late" else -1), number))
            case "side":
                records.append(assistant(name, None, "s", f"m{number}", number, isSidechain=True))
            case "meta":
                records.append(user(name, None, "m", number, isMeta=True))
            case "compact":
                records += [boundary(f"b{number}"), summary(name, f"b{number}")]
            case "noise":
                records.append(progress(name, None, number))
            case "broken":
                records.append(b'{"type":"user"}{"half\n')
            case _:
                records.append(b"\n")
    return dump(*records)


@FEW
@given(_steps, st.data())
def test_a_file_that_grows_keeps_its_cuts_and_needs_only_its_new_bytes(steps: list[str], data: st.DataObject) -> None:
    """Scanned in two parts at any byte, it gives the deltas and the counts of one scan."""
    whole = _session(steps)
    part = whole[: data.draw(st.integers(0, len(whole)))]

    before = scan(part)
    after = scan(whole[before.offset :], before.state)
    fresh = scan(whole)

    closed = tuple(delta for delta in before.deltas if delta.closed)
    assert fresh.deltas == closed + after.deltas
    counts = (
        "records",
        "opaque",
        "messages",
        "title",
        "started",
        "ended",
        "session",
    )
    assert [getattr(fresh, name) for name in counts] == [getattr(after, name) for name in counts]
    assert fresh.tally.without_requests() == after.tally.without_requests()
    assert (fresh.fingerprint, fresh.offset, fresh.state) == (after.fingerprint, after.offset, after.state)


@FEW
@given(_steps)
def test_every_byte_is_in_exactly_one_delta(steps: list[str]) -> None:
    data = _session(steps)

    deltas = [delta for delta in split(data) if delta.commit_type == "delta"]

    assert data == b"".join(data[delta.start : delta.end] for delta in deltas)
    assert all(delta.closed for delta in deltas[:-1])
    assert sum(delta.records for delta in deltas) == sum(1 + (b"}{" in line) for line in data.splitlines() if line)


def test_the_state_is_small_and_json() -> None:
    facts = scan(dump(*[user(f"u{n}", None, "q", n) for n in range(500)]))

    assert len(facts.state) < 4096
    assert isinstance(msgspec.json.decode(facts.state), dict)


VECTOR = (
    b'{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-01-01T00:00:00.250Z","message":{"role":"user","content":"hi"}}\n'
    b'{"type":"assistant","uuid":"a1","parentUuid":"u1","timestamp":"2026-01-01T00:00:01.000Z","message":{"id":"m1","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{}}]}}\n'
    b'{"type":"user","uuid":"r1","parentUuid":"a1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"ok"}]}}\n'
    b'{"type":"system","subtype":"compact_boundary","uuid":"b1","parentUuid":null,"timestamp":"2026-01-01T00:00:03.000Z"}\n'
    b'{"type":"user","uuid":"s1","parentUuid":"b1","isCompactSummary":true,"timestamp":"2026-01-01T00:00:03.500Z","message":{"role":"user","content":"SUMMARY"}}\n'
    b'{"type":"assistant","uuid":"a2","parentUuid":"s1","timestamp":"2026-01-01T00:00:03.100Z","message":{"id":"m2","content":[{"type":"text","text":"done"}]}}\n'
)
CHAIN = [
    ("delta", 0, 126, "ctx-9f73bbc0"),
    ("delta", 126, 485, "ctx-adddedf1"),
    ("delta", 485, 756, "ctx-df315a62"),
    ("compaction", 485, 756, "ctx-cfc5a8a3"),
    ("delta", 756, 910, "ctx-8776a81b"),
]


def _chain(data: bytes) -> list[tuple[str, int, int, str]]:
    """The commits of an import, by DESIGN's recipe: what the rule is frozen by."""
    parent, latest, found = "", 0, []
    for delta in split(data):
        latest = max(latest, delta.time or 0)
        artifact = artifact_ref(artifact_id(data[delta.start : delta.end]))
        name = commit_ref(commit_id(parent, artifact, format_seconds(latest), "claude-code"))
        found.append((delta.commit_type, delta.start, delta.end, name))
        parent = name
    return found


def test_the_vector_of_cut_2_never_changes() -> None:
    assert CHAIN == _chain(VECTOR)


@pytest.mark.parametrize(
    ("records", "title"),
    [
        ([user("u1", None, "<system-reminder>x</system-reminder>"), user("u2", "u1", "Fix\n it")], "Fix it"),
        ([user("u1", None, [text("<system-reminder>x</system-reminder>"), text("Why?")])], "Why?"),
        ([user("u1", None, "Look around.", isSidechain=True, agentId="a1")], "Look around."),
        ([user("u1", None, "Fix it"), {"type": "ai-title", "aiTitle": "A repair", "sessionId": "s"}], "A repair"),
        ([user("u1", None, [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}])], ""),
    ],
)
def test_a_session_without_a_title_is_called_after_its_first_request(records: list[Any], title: str) -> None:
    assert title == scan(dump(*records)).title


@pytest.mark.parametrize("kind", [["user"], {"user": 1}, 7, None])
def test_a_record_whose_type_is_no_text_hides_no_session(kind: Any) -> None:
    odd = user("u0", None, "x") | {"type": kind}

    assert SURE == claim(dump(odd, user("u1", None, "q"))).score
