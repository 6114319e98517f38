"""What is written for Claude Code: a session it resumes, and one that says the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import Error, Event, Image, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats import get
from harken.formats.claude_code import context, messages, rewrite
from support.claude_lines import assistant, call, dump, line_of, result, thinking, user

FORMAT = get("claude-code-v1")
REQUEST = get("anthropic-messages-v1")


def records(events: list[Event]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in FORMAT.write(events).data.splitlines()]


def sent(events: list[Event]) -> list[str]:
    return [line_of(message) for message in messages(FORMAT.write(events).data)]


def losses(events: list[Event]) -> dict[str, int]:
    return {loss.what: loss.count for loss in FORMAT.write(events).losses}


TALK: list[Event] = [
    Prompt(content="q", time=1_767_225_600_000_000),
    Response(content="let me look", api_id="m1", model="gpt"),
    ToolCall(id="c1", name="shell", input=b'{"command":["ls"]}', api_id="m1"),
    ToolCall(id="c2", name="shell", input=b'{"command":["pwd"]}', api_id="m1"),
    ToolResult(id="c2", output="/x"),
    ToolResult(id="c1", output="a b", is_error=True),
    Response(content="done", time=1_767_225_660_000_000),
]


def test_every_record_has_what_the_program_asks_for_and_hangs_from_the_one_before() -> None:
    lines = records(TALK)

    required = {"type", "uuid", "parentUuid", "timestamp", "message", "sessionId", "cwd", "version"}
    assert all(required <= line.keys() for line in lines)
    assert [None, *(line["uuid"] for line in lines[:-1])] == [line["parentUuid"] for line in lines]
    assert len(lines) == len({line["uuid"] for line in lines})
    assert {(False, "external")} == {(line["isSidechain"], line["userType"]) for line in lines}
    assert ["2026-01-01T00:00:00.000Z", "2026-01-01T00:01:00.000Z"] == [lines[0]["timestamp"], lines[-1]["timestamp"]]


def test_what_nobody_counted_is_written_as_the_program_wants_it_and_read_as_unknown() -> None:
    """The program fails without figures, so zeros are written, with its own mark that they are none."""
    answers = [line for line in records(TALK) if line["type"] == "assistant"]
    again = FORMAT.read(FORMAT.write(TALK).data)

    assert {0} == {figure for line in answers for figure in line["message"]["usage"].values()}
    assert {True} == {line["isUnmetered"] for line in answers}
    assert not [event for event in again if isinstance(event, Metric)]
    assert ["gpt", ""] == [event.model for event in again if isinstance(event, Response)]


def test_parallel_calls_are_one_message_with_their_results_behind_it() -> None:
    lines = records(TALK)

    assert ["U q", "A let me look | +c1 | +c2", "U =c2 | !c1", "A done"] == sent(TALK)
    names = [line["message"]["id"] for line in lines if line["type"] == "assistant"]
    assert names[0] == names[1] == names[2] != names[3]
    assert [lines[3]["uuid"], lines[2]["uuid"]] == [line["sourceToolAssistantUUID"] for line in lines[4:6]]


def test_calls_told_one_by_one_with_their_results_between_are_still_one_message() -> None:
    told: list[Event] = [TALK[0], TALK[2], TALK[5], TALK[3], TALK[4]]

    assert ["U q", "A +c1 | +c2", "U !c1 | =c2"] == sent(told)[:3]


def test_a_result_is_put_behind_its_call() -> None:
    told: list[Event] = [TALK[0], TALK[2], Prompt(content="hurry"), TALK[5]]

    assert ["U q", "A +c1", "U !c1 | hurry"] == sent(told)[:3]


def test_the_same_events_give_the_same_file_and_others_another() -> None:
    assert FORMAT.write(TALK).data == FORMAT.write(list(TALK)).data
    assert records(TALK)[0]["uuid"] != records([Prompt(content="other")])[0]["uuid"]


def test_what_cannot_be_said_is_listed() -> None:
    told: list[Event] = [
        System(subtype="instructions", message="be brief"),
        System(subtype="init"),
        Prompt(content="q"),
        Prompt(content="  "),
        Thinking(content="hm"),
        ToolCall(id="c1", name="a.b", input=b"{}"),
        ToolResult(id="c9", output="whose?"),
        Prompt(content="see", images=(Image(media_type="image/png"),)),
        Response(content="from another", agent_id="sub"),
        Metric(input_tokens=1),
        Output(raw=b"{}"),
    ]

    assert {
        "system instructions": 1,
        "notices": 1,
        "blank texts": 1,
        "thinking": 1,
        "names of tools": 1,
        "results without a call": 1,
        "pictures without content": 1,
        "records of other agents": 1,
        "usage figures": 1,
        "records that are no conversation": 1,
        "calls without a result": 1,
    } == losses(told)
    assert all(loss.why for loss in FORMAT.write(told).losses)


def test_a_call_without_a_result_gets_a_stand_in() -> None:
    assert ["U q", "A +c1", "U !c1", "A done"] == sent([TALK[0], TALK[2], TALK[6]])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"{}", {}),
        (b"", {}),
        (b'"patch"', {"input": "patch"}),
        (b"*** Begin", {"input": "*** Begin"}),
        (b"[1]", {"input": [1]}),
    ],
)
def test_arguments_are_an_object(text: bytes, expected: dict[str, Any]) -> None:
    (line,) = [
        line for line in records([TALK[0], ToolCall(id="c", name="t", input=text)]) if line["type"] == "assistant"
    ]

    assert expected == line["message"]["content"][0]["input"]


def test_ids_the_api_would_refuse_or_that_come_twice_are_changed_together_with_their_results() -> None:
    told: list[Event] = [
        TALK[0],
        ToolCall(id="a/b", name="t"),
        ToolResult(id="a/b", output="1"),
        Response(content="again"),
        ToolCall(id="a/b", name="t"),
        ToolResult(id="a/b", output="2"),
    ]

    assert ["U q", "A +a_b", "U =a_b", "A again | +a_b-2", "U =a_b-2"] == sent(told)[:5]


def test_a_copy_of_a_call_is_not_a_second_call() -> None:
    told: list[Event] = [TALK[0], TALK[2], TALK[2], TALK[5], TALK[5]]

    assert ["U q", "A +c1", "U !c1"] == sent(told)[:3]
    assert {"repeated calls": 1, "results without a call": 1} == losses(told)


def test_pictures_are_kept() -> None:
    picture = Image(media_type="image/png", data="AAAA")
    told: list[Event] = [
        Prompt(content="see", images=(picture,)),
        TALK[2],
        ToolResult(id="c1", output="x", images=(picture,)),
    ]

    again = FORMAT.read(FORMAT.write(told).data)

    assert [(picture,), (picture,)] == [e.images for e in again if isinstance(e, Prompt | ToolResult)]


def test_injected_text_stays_injected() -> None:
    told: list[Event] = [
        Prompt(content="rules", source="injected", origin="agents_md"),
        Prompt(content="what was", source="injected", origin="compact_summary"),
        Prompt(content="q"),
    ]

    assert [("injected", "meta"), ("injected", "compact_summary"), ("user", "")] == [
        (e.source, e.origin) for e in FORMAT.read(FORMAT.write(told).data) if isinstance(e, Prompt)
    ]


def test_text_that_is_not_unicode_does_not_stop_a_write() -> None:
    written = FORMAT.write([Prompt(content="a\ud800b"), Error(message="x")])

    assert ["a\ufffdb"] == [e.content for e in FORMAT.read(written.data) if isinstance(e, Prompt)]


LINES = dump(
    user("u1", None, "sessionId S in words"),
    assistant("a1", "u1", [thinking("t"), call("c1")], "m1"),
    result("r1", "a1", "c1"),
)


def test_a_session_moves_under_another_id_and_into_another_folder_and_changes_in_nothing_else() -> None:
    moved = rewrite(LINES, session_id="NEW", cwd="/y")

    before, after = ([json.loads(line) for line in data.splitlines()] for data in (LINES, moved))
    assert [record | {"sessionId": "NEW", "cwd": "/y"} for record in before] == after
    assert messages(LINES) == messages(moved)


def test_a_sub_agents_session_becomes_one_of_its_own() -> None:
    side = {"isSidechain": True, "agentId": "abc"}
    data = dump(user("u1", None, "task", **side), assistant("a1", "u1", "done", "m1", **side))

    moved = rewrite(context(data), session_id="NEW", cwd="/y")

    assert messages(data) == messages(moved)
    assert [(False, None)] * 2 == [(r["isSidechain"], r.get("agentId")) for r in map(json.loads, moved.splitlines())]


def test_lines_that_are_no_records_and_a_missing_newline_do_not_hurt_a_move() -> None:
    moved = rewrite(b"// remark\n\n" + LINES[:-1], session_id="NEW", cwd="/y")

    assert moved.startswith(b"// remark\n")
    assert moved.endswith(b"}\n")
    assert messages(LINES) == messages(moved)


def test_a_request_holds_instructions_reasoning_and_alternating_roles() -> None:
    told: list[Event] = [
        System(subtype="instructions", message="be brief"),
        Prompt(content="q"),
        Prompt(content="r"),
        Thinking(content="t", signature="s"),
        *TALK[1:],
    ]

    body = json.loads(REQUEST.write(told).data)

    assert [{"type": "text", "text": "be brief"}] == body["system"]
    assert ["U q | r", "A ~t | let me look | +c1 | +c2", "U =c2 | !c1", "A done"] == [
        line_of(m) for m in body["messages"]
    ]
    assert ["system", "prompt", "thinking", "response"] == [e.kind for e in REQUEST.read(REQUEST.write(told).data)][:4]


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        (b'[{"role":"user","content":"q"}]', ["prompt"]),
        (b'{"role":"assistant","id":"m1","content":[{"type":"text","text":"x"}]}', ["response"]),
        (b'{"messages":[{"role":"robot","content":"q"},7]}', ["output", "output"]),
        (b'{"system":"s","messages":[]}', ["system"]),
        (b"no json", ["output"]),
        (b"{}", ["output"]),
    ],
)
def test_requests_of_all_shapes_are_read(data: bytes, kinds: list[str]) -> None:
    assert kinds == [event.kind for event in REQUEST.read(data)]
