"""The conversation as it stands: branches, compactions, resets, edits, and files that are not whole."""

from __future__ import annotations

from typing import Any

import pytest

from harken.events import Event, Output, Prompt, Response, System, ToolCall, ToolResult
from harken.formats import get, pi
from support import pi_lines
from support.pi_lines import PiSession, call, line

FORMAT = get("pi-v1")
SUMMARY = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n{}\n</summary>"
)


def words(data: bytes) -> list[str]:
    """What the model hears and says."""
    return [said for event in FORMAT.read_conversation(pi.context(data)) if (said := word(event))]


def word(event: Event) -> str:
    match event:
        case Prompt() | Response():
            return event.content
        case ToolCall():
            return f"call {event.id}"
        case ToolResult():
            return f"result {event.id}"
    return ""


def test_the_way_from_the_root_to_the_last_entry_is_the_conversation() -> None:
    data = pi_lines.branched().data
    left = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"

    assert ["Root.", "Two.", left + "They tried that.</summary>", "Now this.", "This."] == words(data)


def test_a_compaction_hides_what_came_before_and_its_summary_comes_first() -> None:
    data = pi_lines.compacted().data

    assert [SUMMARY.format("SUMMARY: the fruit."), "Keep this.", "It is kept.", "Go on.", "Gladly."] == words(data)
    assert b"PAPAYA" not in pi.context(data)


def test_what_the_program_is_set_to_outlives_a_compaction() -> None:
    kept = pi.context(pi_lines.compacted().data)

    assert [b"model_change", b"thinking_level_change", b"session_info"] == [
        kind for kind in (b"model_change", b"thinking_level_change", b"session_info", b"label") if kind in kept
    ]


def test_a_compaction_that_keeps_nothing_names_itself_or_nobody() -> None:
    for kept in ("self0001", "nobody", ""):
        made = PiSession().user("Gone.").answer("Gone too.").compaction("All.", kept, "self0001").user("On.")

        assert [SUMMARY.format("All."), "On."] == words(made.data)


def test_an_older_compaction_among_what_was_kept_says_nothing() -> None:
    made = PiSession().user("One.", "one00001").answer("1").compaction("First.", "one00001").user("Two.").answer("2")
    made.compaction("Second.", "one00001").user("Three.")

    assert [SUMMARY.format("Second."), "One.", "1", "Two.", "2", "Three."] == words(made.data)


def test_the_first_version_is_a_line_and_its_compaction_counts_records() -> None:
    data = pi_lines.legacy().data

    assert data == pi.context(data), "nothing may be left out of what is counted"
    assert [SUMMARY.format("SUMMARY: first."), "Second.", "Two.", "Third.", "Three."] == words(data)


def test_an_answer_that_broke_off_was_not_heard_again() -> None:
    made = PiSession().user("Go.").answer("Half of", stop="aborted").answer(stop="error", errorMessage="overloaded")
    made.user("Again.").answer("Whole.")

    assert ["Go.", "Again.", "Whole."] == words(made.data)
    assert b"Half of" in pi.context(made.data)


def test_a_command_that_was_kept_from_the_model_is_no_prompt() -> None:
    made = PiSession().shell("ls", "a\n").shell("secret", "x", excludeFromContext=True).shell("false", "", 1)

    assert ["Ran `ls`\n```\na\n\n```", "Ran `false`\n(no output)\n\nCommand exited with code 1"] == words(made.data)


def test_an_entry_can_be_edited_and_edited_away() -> None:
    made = PiSession().user("Long.", "long0001").answer("Answer.", id="gone0001").user("More.")
    made.entry("context_edit", targetId="gone0001", replacement=None)
    made.entry("context_edit", targetId="long0001", replacement={"content": "Longer."})
    made.entry("context_edit", targetId="long0001", replacement={"content": [{"type": "text", "text": "Short."}]})

    assert ["Short.", "More."] == words(made.data)


def test_instructions_are_those_of_the_newest_compaction() -> None:
    def system(text: str) -> dict[str, Any]:
        return {"role": "system", "content": "", "sections": {"preamble": text, "gone": None}}

    made = PiSession().entry("message", message=system("old")).user("One.", "one00001")
    made.entry("message", message=system("kept")).answer("1")
    made.compaction("All.", "one00001", systemMessage=system("checkpoint")).entry("message", message=system("new"))

    events = FORMAT.read_conversation(pi.context(made.data))

    told = [event.message for event in events if isinstance(event, System) and event.subtype == "instructions"]
    assert ["checkpoint", "new"] == told


def test_a_reset_begins_anew_and_what_openclaw_says_itself_is_no_answer() -> None:
    assert ["Hello again.", "Hello."] == words(pi_lines.openclaw().data)
    before = pi_lines.openclaw().data.partition(b'{"type":"reset"')[0]
    assert ["Delegate it.", "You are in a chat.", "I delegate.", "call t1", "result t1", "It is under way."] == words(
        before
    )[:-2]


def test_openclaw_goes_to_another_entry_by_a_line_of_its_own() -> None:
    made = PiSession().user("One.", "one00001").answer("Left.").entry("leaf", "leaf0001", targetId="one00001")

    assert ["One."] == words(made.data)
    assert ["One.", "Gone on."] == words(made.answer("Gone on.").data)
    made.entry("custom", "side0001", appendMode="side", customType="x")
    assert ["One.", "Gone on."] == words(made.data)


def test_a_missing_entry_ends_the_way_as_it_does_in_the_program() -> None:
    made = PiSession().began().user("One.").answer("1").user("Two.").answer("2")
    damaged = [*made.lines[:4], b'{"torn\n', *made.lines[5:]]

    assert ["Two.", "2"] == words(b"".join(damaged))
    assert b"thinking_level_change" in pi.context(b"".join(damaged))


def test_an_entry_that_names_no_parent_follows_the_one_before() -> None:
    """A newer version that forks a file of the first one writes its own header and copies entries that have no ids."""
    old = PiSession(version=None).user("One.").answer("1")
    header = line({"type": "session", "version": 3, "id": "s", "timestamp": "2026-11-15T13:34:45.377Z", "cwd": "/x"})

    assert ["One.", "1"] == words(header + b"".join(old.lines[1:]))


def test_a_result_that_hangs_from_its_call_follows_the_answer() -> None:
    made = PiSession().user("Go.").answer(call("t1")).back_to("t1").result("t1", "1").answer("Done.")

    assert ["Go.", "call t1", "result t1", "Done."] == words(made.data)
    assert ["Go.", "call t1", "result t1", "Done."] == words(pi.rewrite(made.data, session_id="s", cwd="/x"))


@pytest.mark.parametrize(
    "entries",
    [
        [{"id": "a", "parentId": "a"}],
        [{"id": "a", "parentId": "b"}, {"id": "b", "parentId": "a"}],
        [{"id": "a", "parentId": None}, {"id": "a", "parentId": "a"}],
        [{"id": 5, "parentId": 7}, {"parentId": []}, {}],
        [{"id": "a", "parentId": None, "type": "compaction", "firstKeptEntryId": {}, "summary": 3}],
        [{"type": "leaf", "id": "a", "parentId": None, "targetId": "a"}, {"id": "b", "parentId": "a"}],
        [{"id": "a", "message": {"role": "assistant", "content": [None, 3, {"type": []}], "usage": {"input": "x"}}}],
        [
            {"id": "a", "message": {"role": {"a": 1}, "content": "x"}},
            {"id": "b", "message": {"role": [], "content": []}},
        ],
        [{"id": "a", "type": {}}, {"id": "b", "type": ["message"]}],
        [{"message": {"role": {}, "content": []}}, {"type": {}}, {"type": "message", "message": {"role": []}}],
        [{"id": "a", "message": {"role": "assistant", "stopReason": {}, "provider": "openclaw", "model": {}}}],
    ],
)
def test_what_no_program_writes_is_survived(entries: list[dict[str, Any]]) -> None:
    records = [
        {"type": "message", "timestamp": 5, "message": {"role": "user", "content": 7}, **each} for each in entries
    ]
    data = b"".join(map(line, records))

    assert pi.context(data) == pi.context(pi.context(data))
    assert len(FORMAT.read(data)) >= len(entries)
    FORMAT.read_conversation(data)
    pi.rewrite(data, session_id="s", cwd="/x")
    assert len(list(pi.record_names(data))) <= len(entries)
    pi.shared_names(data)("a"), pi.unnamed_names(data)("a")
    assert 0 <= pi.claim(PiSession().data + data, "x.jsonl").score


@pytest.mark.parametrize(
    ("role", "content"),
    [
        ("user", {"text": "Hello?"}),
        ("user", [{"type": "text", "text": "Look:"}, {"type": "hologram"}]),
        ("user", [{"type": "text", "text": ["Hello?"]}]),
        ("custom", ["bare"]),
        ("toolResult", [{"type": "resource", "uri": "x"}]),
        ("assistant", {"text": "Hello."}),
        ("assistant", [{"type": "text", "text": {"a": 1}}]),
        ("assistant", [{"type": "thinking", "thinking": ["Well."]}]),
    ],
)
def test_what_is_neither_words_nor_a_picture_is_kept_with_the_reason(role: str, content: Any) -> None:
    data = PiSession().message(role, content=content).data
    opaque = [event for event in FORMAT.read(data) if isinstance(event, Output) and event.why]

    assert 1 == len(opaque) == pi.scan(data).opaque
    assert opaque[0].why.startswith("unknown block")


@pytest.mark.parametrize("role", [["user"], {"user": 1}, 7, None])
def test_a_role_that_is_no_text_is_unknown(role: Any) -> None:
    data = PiSession().message(role, content="Hello?").data

    assert ["unknown role ''"] == [event.why for event in FORMAT.read(data) if isinstance(event, Output)]
    assert 1 == pi.scan(data).opaque


def test_calls_and_results_stay_in_order() -> None:
    made = PiSession().user("Go.").answer(call("t1"), call("t2")).result("t1", "1").result("t2", "2")

    assert ["Go.", "call t1", "call t2", "result t1", "result t2"] == words(made.data)
