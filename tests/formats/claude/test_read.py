"""Records as events: who says what, under which names, and nothing lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.clock import parse_instant
from harken.events import Error, Event, Image, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats import get
from harken.formats.claude_code import scan
from support.claude_lines import (
    MODEL,
    assistant,
    attachment,
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

FORMAT = get("claude-code-v1")
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def read(*records: dict[str, Any] | bytes) -> list[Event]:
    return FORMAT.read(dump(*records))


def bare(*records: dict[str, Any] | bytes) -> list[Event]:
    """The events without envelope and figures."""
    plain = {"message_id": "", "agent_id": "", "time": None, "index": 0, "api_id": "", "cause": None}
    return [event.replace(**plain) for event in read(*records) if not isinstance(event, Metric)]


def test_a_conversation() -> None:
    events = bare(
        user("u1", None, "q"),
        assistant("a1", "u1", [thinking("t"), text("x"), call("c1")], "m1"),
        result("r1", "a1", "c1"),
        assistant("a2", "r1", "done", "m2"),
    )

    assert [
        Prompt(content="q", source="user"),
        Thinking(content="t", signature="sig-t"),
        Response(content="x", model=MODEL),
        ToolCall(id="c1", name="Bash", input=b'{"command":"ls"}'),
        ToolResult(id="c1", output="out c1"),
        Response(content="done", model=MODEL),
    ] == events


def test_the_envelope() -> None:
    events = read(
        user("u1", None, "q", 5),
        assistant("a1", "u1", [text("x"), text("y")], "m1", 6),
        result("r1", "a1", "c1", sourceToolAssistantUUID="a1"),
        {"type": "mode", "mode": "plan"},
    )

    assert [("u1", 0, ""), ("a1", 0, "m1"), ("a1", 1, "m1"), ("a1", 2, "m1"), ("r1", 0, "")] == [
        (event.message_id, event.index, event.api_id) for event in events[:-1]
    ]
    assert parse_instant("2026-01-01T00:00:05Z") == events[0].time
    assert "a1" == events[-2].cause
    offset = len(dump(user("u1", None, "q", 5), assistant("a1", "u1", [text("x"), text("y")], "m1", 6)))
    offset += len(dump(result("r1", "a1", "c1", sourceToolAssistantUUID="a1")))
    assert f"@{offset}" == events[-1].message_id


def test_usage_becomes_a_metric_under_the_names_it_is_counted_by() -> None:
    record = assistant("a1", None, "x", "m1")
    record["message"]["usage"] = {
        "input_tokens": 3,
        "output_tokens": 5,
        "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 11,
    }

    metric = read(record)[-1]

    assert (
        Metric(
            input_tokens=3,
            output_tokens=5,
            cache_read_tokens=7,
            cache_write_tokens=11,
            model=MODEL,
            api_id="m1",
            request_id="req_m1",
            message_id="a1",
            index=1,
            time=metric.time,
        )
        == metric
    )


def test_figures_that_stand_beside_the_message_are_read() -> None:
    record = assistant("a1", None, "x", "m1") | {"costUSD": 0.5, "inputTokens": 2, "outputTokens": 3}
    del record["message"]["usage"]

    metric = read(record)[-1]

    assert isinstance(metric, Metric)
    assert (2, 3, 0.5) == (metric.input_tokens, metric.output_tokens, metric.cost_usd)


def test_figures_of_a_record_that_is_not_metered_count_where_there_are_some() -> None:
    record = assistant("a1", None, "x", "m1", isUnmetered=True)
    record["message"]["usage"] = {"input_tokens": 0, "output_tokens": 5}

    (metric,) = (event for event in read(record) if isinstance(event, Metric))

    assert (0, 5) == (metric.input_tokens, metric.output_tokens)
    record["message"]["usage"]["output_tokens"] = 0
    assert not [event for event in read(record) if isinstance(event, Metric)]


def test_what_the_harness_made_up_costs_nothing_and_an_error_is_an_error() -> None:
    made_up = assistant("a1", None, "API Error", "m1", model="<synthetic>", isApiErrorMessage=True)

    assert [Error(message="API Error")] == bare(made_up)
    assert not [event for event in read(made_up) if isinstance(event, Metric)]


def test_a_result_line_is_read_where_it_occurs() -> None:
    line = {"type": "result", "subtype": "success", "total_cost_usd": 0.25, "num_turns": 3, "duration_ms": 1500}

    metric = read(line | {"usage": {"input_tokens": 1, "output_tokens": 2}})[0]

    assert isinstance(metric, Metric)
    assert ("success", 0.25, 3, 1.5) == (metric.status, metric.cost_usd, metric.turn_count, metric.duration_seconds)
    assert (1, 2) == (metric.input_tokens, metric.output_tokens)


def test_pictures_are_kept() -> None:
    picture = Image(media_type="image/png", data="AAAA")
    shown = {"type": "tool_result", "tool_use_id": "c", "content": [text("see"), PICTURE], "is_error": True}

    assert [
        Prompt(content="what is it?", images=(Image(media_type="image/png", data="AAAA", at=0),)),
        ToolResult(id="c", output="see", images=(picture,), is_error=True),
    ] == bare(user("u1", None, [PICTURE, text("what is it?")]), user("u2", None, [shown]))


def test_texts_of_different_kinds_in_one_record_are_told_apart() -> None:
    shown = "<ide_opened_file>x</ide_opened_file>"

    assert [
        Prompt(content=shown, source="injected", origin="ide"),
        Prompt(content="look\nhere"),
    ] == bare(user("u1", None, [text(shown), text("look"), text("here")]))


def test_words_beside_a_result_are_the_harnesss() -> None:
    block = {"type": "tool_result", "tool_use_id": "c", "content": "out"}

    assert [
        ToolResult(id="c", output="out"),
        Prompt(content="note", source="injected", origin="beside_result"),
    ] == bare(user("u1", None, [block, text("note")]))


def test_a_prompt_typed_while_the_agent_was_busy_is_a_persons() -> None:
    queued = {"type": "queued_command", "prompt": "and this", "commandMode": "prompt"}
    told = {"type": "queued_command", "prompt": "<task-notification>x", "commandMode": "task-notification"}

    assert [
        Prompt(content="and this"),
        Prompt(content="<task-notification>x", source="injected", origin="task_notification"),
    ] == bare(attachment("t1", None, queued), attachment("t2", None, told))


def test_other_attachments_are_injected_if_they_speak_and_kept_if_they_do_not() -> None:
    spoken, kept = bare(
        attachment("t1", None, {"type": "total_tokens_reminder", "text": "R"}),
        attachment("t2", None, {"type": "command_permissions"}),
    )

    assert isinstance(spoken, Prompt)
    assert isinstance(kept, Output)
    assert ("injected", "attachment:total_tokens_reminder", True) == (
        spoken.source,
        spoken.origin,
        "R" in spoken.content,
    )
    assert "" == kept.why


def test_a_compaction() -> None:
    marker, told = bare(boundary("b1"), summary("s1", "b1"))

    assert isinstance(marker, System)
    assert "compact_boundary" == marker.subtype
    assert "auto" == json.loads(marker.metadata)["compactMetadata"]["trigger"]
    assert Prompt(content="SUMMARY", source="injected", origin="compact_summary") == told


TITLE = {"type": "summary", "summary": "words", "leafUuid": "x"}


@pytest.mark.parametrize(
    ("records", "is_summary"),
    [
        ([boundary("b1"), TITLE], True),
        ([TITLE], False),
        ([boundary("b1"), user("u1", "b1", "q"), TITLE], False),
        ([boundary("b1"), TITLE, summary("s1", "b1")], False),
    ],
    ids=["directly behind a boundary", "alone", "later", "behind one that has a summary"],
)
def test_a_summary_record_is_a_title_except(records: list[Any], is_summary: bool) -> None:
    told = [event for event in read(*records) if isinstance(event, Prompt) and event.content == "words"]

    assert is_summary == bool(told)


def test_a_side_chains_records_name_their_agent() -> None:
    side = {"isSidechain": True}
    events = read(
        user("u1", None, "q"),
        user("s1", None, "task", **side),
        assistant("s2", "s1", "x", "m1", **side),
        user("s3", None, "other task", **side),
        assistant("s4", "s3", "y", "m2", agentId="named", **side),
    )

    assert ["", "s1", "s1", "s3", "named"] == [e.agent_id for e in events if not isinstance(e, Metric)]


def test_a_progress_record_is_kept_and_its_embedded_usage_is_marked() -> None:
    body = {"id": "m9", "model": MODEL, "usage": {"input_tokens": 2, "output_tokens": 4}}
    inner = {"type": "assistant", "requestId": "req9", "message": body}

    kept, metric = read(progress("p1", None, type="agent_progress", agentId="abc", message=inner))

    assert isinstance(kept, Output)
    assert isinstance(metric, Metric)
    assert ("embedded", "m9", "req9", "abc", 4) == (
        metric.scope,
        metric.api_id,
        metric.request_id,
        metric.agent_id,
        metric.output_tokens,
    )


UNREADABLE: dict[str, tuple[dict[str, Any] | bytes, str]] = {
    "an unknown type": ({"type": "never-seen", "x": 1}, "unknown record type 'never-seen'"),
    "no type": ({"x": 1}, "unknown record type None"),
    "not JSON": (b"// remark\n", "the line is not a JSON object"),
    "JSON but no object": (b"[1]\n", "the line is not a JSON object"),
    "a user record without content": ({"type": "user", "message": {}}, "a user record without content"),
    "an assistant record without message": ({"type": "assistant"}, "an assistant record without content"),
    "an unknown block": (assistant("a1", None, [{"type": "hologram"}], "m1"), "unknown content block 'hologram'"),
    "a torn line": (b'{"type":"user","mess', "the line is not a JSON object"),
}


@pytest.mark.parametrize(("record", "why"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_kept_with_the_reason_and_counted(record: dict[str, Any] | bytes, why: str) -> None:
    data = dump(record)

    kept = [event for event in FORMAT.read(data) if isinstance(event, Output)]

    assert [why] == [event.why for event in kept]
    assert kept[0].raw.replace(b" ", b"").strip() in data.replace(b" ", b"")
    assert 1 == scan(data).opaque


def test_two_records_on_one_line_are_both_read() -> None:
    first, second = dump(user("u1", None, "a"))[:-1], dump(user("u2", "u1", "b"))

    events = FORMAT.read(first + second)

    assert [("u1", "a"), ("u2", "b")] == [(e.message_id, e.content) for e in events if isinstance(e, Prompt)]
    assert (2, 0) == ((facts := scan(first + second)).records, facts.opaque)


def test_what_follows_a_record_on_its_line_is_kept() -> None:
    line = dump(user("u1", None, "a"))[:-1] + b'{"half":\n'

    events = FORMAT.read(line)

    assert ["prompt", "output"] == [event.kind for event in events]
    assert [b'{"half":'] == [event.raw for event in events if isinstance(event, Output)]


def test_lone_surrogates_are_made_visible() -> None:
    line = dump(user("u1", None, "a")).replace(b'"a"', b'"\\ud83d!"')

    assert [Prompt(content="\ufffd!")] == bare(line)


def test_depth_within_the_limit_is_read() -> None:
    deep = b"[" * 900 + b"]" * 900
    line = dump(assistant("a1", None, [call("c1")], "m1")).replace(b'{"command": "ls"}', b'{"x":' + deep + b"}")

    calls = [event for event in FORMAT.read(line) if isinstance(event, ToolCall)]

    assert [b'{"x":' + deep + b"}"] == [event.input for event in calls]


def test_an_api_error_is_a_notice_and_an_error() -> None:
    events = read(notice("n1", None, "api_error", error={"status": 529}))

    assert ["system", "error"] == [event.kind for event in events]


def test_the_conversation_as_it_stands_is_told_in_the_order_the_model_reads_it() -> None:
    late = [user("u2", "a1", "kept", 10), assistant("a2", "u2", "too", "m2", 11)]
    preserved = {"anchorUuid": "s1", "uuids": ["u2", "a2"]}
    data = dump(
        user("u1", None, "q"),
        assistant("a1", "u1", "x", "m1"),
        *late,
        boundary("b1", preservedMessages=preserved),
        summary("s1", "b1"),
        user("u3", "s1", "on"),
    )

    told = [
        event.message_id
        for event in FORMAT.read_conversation(FORMAT.context(data))
        if isinstance(event, Prompt | Response)
    ]

    assert ["s1", "u2", "a2", "u3"] == told
