"""What is written for pi: events of others, and its own entries under another name."""

from __future__ import annotations

import json
from typing import Any

from harken.events import Event, Image, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.formats import get, pi
from harken.testing.formats import said
from support import pi_lines
from support.pi_lines import DOT, PiSession

FORMAT = get("pi-v1")
NOON = 1_794_744_000_000_000
EVENTS: list[Event] = [
    Prompt(content="Look.", images=(Image(media_type="image/png", data=DOT, at=0),), time=NOON),
    Thinking(content="hm", signature="s"),
    Response(content="I look.", model="gpt-9"),
    ToolCall(id="c1", name="Read", input=b'{"path":"x"}'),
    ToolCall(id="c2", name="Bash", input=b"not json"),
    ToolResult(id="c1", output="nothing", is_error=True, images=(Image(media_type="image/png", data=DOT),)),
    Prompt(content="It was compacted.", source="injected", origin="compact_summary"),
    Response(content="Done."),
]


def records(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(each) for each in data.splitlines()]


def test_a_conversation_of_others_is_a_session_as_pi_has_them() -> None:
    written = pi.write_session(EVENTS, session_id="s", cwd="/x", time=NOON, model=("loop", "m"))
    header, *entries = records(written.data)

    told = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-11-15T12:00:00.000Z", "cwd": "/x"}
    assert told == header
    assert [None, *(entry["id"] for entry in entries[:-1])] == [entry["parentId"] for entry in entries]
    assert len(entries) == len({entry["id"] for entry in entries})
    roles = [entry.get("message", {}).get("role", entry["type"]) for entry in entries]
    assert ["user", "assistant", "toolResult", "toolResult", "custom_message", "assistant", "model_change"] == roles
    assert all(
        "total" in e["message"]["usage"]["cost"] for e in entries if e.get("message", {}).get("role") == "assistant"
    )
    assert {"thinking": 1, "calls without a result": 1} == {loss.what: loss.count for loss in written.losses}


def test_what_was_written_reads_back() -> None:
    again = FORMAT.read(FORMAT.write(EVENTS).data)

    kept = [event for event in EVENTS if not isinstance(event, Thinking)]
    assert said(kept) == [each for each in said(again) if "No result" not in each[1]]
    [prompt, summary] = [event for event in again if isinstance(event, Prompt)]
    assert EVENTS[0].images == prompt.images  # type: ignore[attr-defined]
    assert ("injected", "compact_summary") == (summary.source, summary.origin)


def test_pis_own_entries_stay_as_they_are_under_another_name() -> None:
    data = pi_lines.conversation().data

    written = pi.rewrite(data, session_id="other", cwd="/y", time=NOON)

    assert data.splitlines()[1:] == written.splitlines()[1:]
    assert ("other", "/y") == (records(written)[0]["id"], records(written)[0]["cwd"])


def test_what_is_left_of_a_compacted_session_hangs_together() -> None:
    context = pi.context(pi_lines.compacted().data)

    _, *entries = records(pi.rewrite(context, session_id="other", cwd="/y"))

    assert [None, *(entry["id"] for entry in entries[:-1])] == [entry["parentId"] for entry in entries]
    assert ["model_change", "thinking_level_change", "session_info", "message"] == [e["type"] for e in entries[:4]]
    # All that was changed is where the first of them hang.
    assert context.splitlines()[5:] == pi.rewrite(context, session_id="other", cwd="/y").splitlines()[5:]


def test_the_first_version_is_written_as_the_third() -> None:
    data = pi_lines.legacy().data

    written = pi.rewrite(data, session_id="other", cwd="/y")

    header, *entries = records(written)
    assert 3 == header["version"]
    [compaction] = [entry for entry in entries if entry["type"] == "compaction"]
    assert entries[0]["id"] == compaction["firstKeptEntryId"]
    assert "firstKeptEntryIndex" not in compaction
    assert said(FORMAT.read_conversation(data)) == said(FORMAT.read_conversation(written))


def test_what_the_program_would_stumble_over_is_mended() -> None:
    made = PiSession().message("user", content="Hi.").message("assistant", content="Hello.")
    made.message("toolResult", toolCallId="c", toolName="x", content="text", isError=False)
    made.message("hookMessage", customType="x", content="y", display=True)

    _, _, answer, result, hook = records(pi.rewrite(made.data, session_id="other", cwd="/y"))

    assert [{"type": "text", "text": "Hello."}] == answer["message"]["content"]
    assert 0 == answer["message"]["usage"]["cost"]["total"]
    assert [{"type": "text", "text": "text"}] == result["message"]["content"]
    assert "custom" == hook["message"]["role"]


def test_a_name_hangs_from_the_last_entry() -> None:
    """From the last entry on the program goes back to the root: with a name that hangs from nowhere it would know
    nothing of the conversation."""
    data = FORMAT.write(EVENTS).data

    named = pi.hang_name(data + pi.name_line("A name", NOON))

    assert said(FORMAT.read_conversation(data)) == said(FORMAT.read_conversation(named))
    *_, last, name = records(named)
    assert (last["id"], "A name") == (name["parentId"], name["name"])
    assert "A name" == pi.scan(named).title
    assert data == pi.hang_name(data)
