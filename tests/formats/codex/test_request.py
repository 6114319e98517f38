"""What goes to the model: the repairs that Codex 0.166.0 was seen to make."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from harken.formats.codex import request_items
from harken.formats.codex.request import base_instructions
from harken.formats.codex.truncate import FALLBACK_BUDGET
from harken.formats.kit.openai_writing import why_not_sent
from support.rollouts import PICTURE, Rollout, said, texts_of

JPEG = base64.b64encode(
    b"\xff\xd8"
    + b"\xff\xc0\x00\x0b\x08\x00\x01\x00\x01\x01\x01\x11\x00"
    + b"\xff\xc4\x00\x05abc"
    + b"\xff\xda\x00\x04ab"
    + b"picture\xff\x00more"
    + b"\xff\xd9"
).decode()
"""The segments of a JPEG, if not a picture."""


def items(rollout: Rollout, **options: Any) -> list[dict[str, Any]]:
    return request_items(rollout.data, **options)


def test_a_call_without_an_output_is_answered_right_behind_it() -> None:
    rollout = Rollout().call("a").item("custom_tool_call", name="patch", input="***", call_id="b").call("c").output("c")

    assert [
        "function_call a",
        "function_call_output a aborted",
        "custom_tool_call b",
        "custom_tool_call_output b aborted",
        "function_call c",
        "function_call_output c done",
    ] == texts_of(items(rollout))


def test_a_shell_call_and_a_tool_search_are_answered_in_their_own_way() -> None:
    rollout = Rollout().item("local_shell_call", call_id="s", status="completed", action={"type": "exec"})
    rollout.item("tool_search_call", call_id="t", execution="client", arguments={"query": "x"})

    answers = [item for item in items(rollout) if item["type"].endswith("output")]

    assert answers == [
        {"type": "function_call_output", "call_id": "s", "output": "aborted"},
        {"type": "tool_search_output", "call_id": "t", "status": "completed", "execution": "client", "tools": []},
    ]


def test_an_output_without_its_call_is_left_out() -> None:
    rollout = Rollout().output("nobody").item("custom_tool_call_output", call_id="c", output="x").call("c").output("c")

    assert ["function_call c", "function_call_output c done"] == texts_of(items(rollout))


def test_an_answer_of_the_provider_needs_no_call() -> None:
    rollout = Rollout().item("tool_search_output", call_id=None, execution="server", tools=[])

    assert 1 == len(items(rollout))


def test_what_is_not_for_the_model_is_left_out() -> None:
    rollout = Rollout().item("message", **said("system", "x")).item("ghost_snapshot", ghost_commit={})
    rollout.item("telepathy", text="x").item("function_call", name="f", arguments={}, call_id="c").user("hello")
    rollout.item("web_search_call", status="completed")

    assert ["message", "web_search_call"] == [item["type"] for item in items(rollout)]


def test_an_item_keeps_its_id_when_the_provider_gave_it() -> None:
    rollout = Rollout().item("function_call", id="fc_1", name="f", arguments="{}", call_id="c", metadata={"x": 1})
    rollout.item("function_call", id="mine", name="f", arguments="{}", call_id="d")

    calls = [item for item in items(rollout) if item["type"] == "function_call"]

    assert ["fc_1", None] == [call.get("id") for call in calls]
    assert all("metadata" not in call for call in calls)


def test_a_long_output_loses_its_middle_when_the_model_has_a_limit() -> None:
    rollout = Rollout().call("a").output("a", "é" * 7000).call("b").output("b", "x" * 12_000)

    (_, cut, _, whole) = items(rollout, output_budget=FALLBACK_BUDGET)

    assert "é" * 3000 + "…1000 chars truncated…" + "é" * 3000 == cut["output"]
    assert "x" * 12_000 == whole["output"]
    assert "é" * 7000 == items(rollout)[1]["output"]


def test_parts_of_an_output_share_the_limit_in_order() -> None:
    parts = [{"type": "input_text", "text": text} for text in ("a" * 7000, "b" * 7000, "c", "")]
    rollout = Rollout().call("a").output("a", parts)

    shortened = items(rollout, output_budget=FALLBACK_BUDGET)[1]["output"]

    assert ["a" * 7000, "b" * 2500 + "…2000 chars truncated…" + "b" * 2500, "[omitted 1 text items ...]"] == [
        part["text"] for part in shortened
    ]


def test_what_a_replacement_holds_is_not_cut_again() -> None:
    call = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "z"}
    output = {"type": "function_call_output", "call_id": "z", "output": "w" * 20_000}

    sent = items(Rollout().compacted(call, output), output_budget=FALLBACK_BUDGET)

    assert 20_000 == len(sent[1]["output"])


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (PICTURE, ""),
        ("data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", ""),
        ("data:image/webp;base64,UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA", ""),
        (f"data:image/jpeg;base64,{JPEG}", ""),
        ("file:///x.png", ""),
        ("", "it could not be processed"),
        ("file-abc123", "it could not be processed"),
        (f"data:image/jpeg;base64,{JPEG[:-4]}", "it could not be processed"),
        ("data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIB", "it could not be processed"),
        ("data:image/webp;base64,UklGRiIAAABXRUJQVlA4IBYAAAAwAQCd", "it could not be processed"),
        (PICTURE[:-12], "it could not be processed"),
        (PICTURE.replace("DUlEQVR42", "DUlEQVR43"), "it could not be processed"),
        ("data:image/png;base64,!!!", "it could not be processed"),
        ("data:text/plain;base64,QUJD", "it could not be processed"),
        ("https://example.com/a.png", "remote image URLs are not supported"),
    ],
)
def test_a_picture_is_sent_or_the_reason_is(url: str, why: str) -> None:
    assert why == why_not_sent(url)


def test_the_reason_stands_where_the_picture_stood() -> None:
    parts = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]

    (sent,) = items(Rollout().item("message", role="user", content=parts))

    assert ["see|image content omitted because it could not be processed"] == texts_of([sent])


def test_the_instructions_are_those_the_file_names() -> None:
    assert "be brief" == base_instructions(Rollout(base_instructions={"text": "be brief"}).data)
    assert "" == base_instructions(Rollout().data)
