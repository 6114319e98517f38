"""Events as the turns of a conversation with Anthropic's models."""

from __future__ import annotations

import pytest

from harken.events import Event, Image, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.formats.kit.anthropic_writing import Arranger, Turns, arrange


class CountedSet(set[str]):
    looks = 0

    def __contains__(self, item: object) -> bool:
        self.looks += 1
        return super().__contains__(item)


def test_calls_of_one_id_are_told_apart_by_a_number_that_no_other_has() -> None:
    given = ["", "call_2", "", "a", "a", "", "a"]

    turns = arrange([ToolCall(id=id, name="f", api_id=f"m{n}") for n, id in enumerate(given)])

    ids = [block["id"] for said in turns.messages for block in said.blocks if block["type"] == "tool_use"]
    assert ["call", "call_2-2", "call-2", "a", "a-2", "call-3", "a-3"] == ids


def test_a_pdf_is_a_document_and_what_the_api_would_refuse_is_left_out_and_told() -> None:
    pdf = Image(media_type="application/pdf", data="JVBERi0=")
    given = (
        pdf,
        Image(media_type="application/pdf", url="https://example.com/a.pdf"),
        Image(url="https://example.com/a.png"),
        Image(media_type="audio/wav", data="UklGRg=="),
        Image(url="file-1"),
    )

    turns = arrange([Prompt(content="Look", images=given)])

    inside = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    assert [
        {"type": "text", "text": "Look"},
        {"type": "document", "source": inside},
        {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
    ] == turns.messages[0].blocks
    assert {"files": 1, "pictures without content": 1} == {loss.what: loss.count for loss in turns.losses}


def test_a_call_without_an_id_costs_the_same_however_many_there_are() -> None:
    arranger = Arranger(False)
    used = arranger._used = CountedSet()

    arranger.run([ToolCall(name="f", input=str(n)) for n in range(300)])

    assert 300 == len(used)
    assert used.looks <= 2 * 300


def test_thinking_that_nobody_signed_is_left_out_of_a_request_and_told() -> None:
    unsigned, signed = Thinking(content="hm"), Thinking(content="so", signature="c2ln")

    turns = arrange([Prompt(content="go"), unsigned, signed, Response(content="ok")], thinking=True)

    written = [block["thinking"] for said in turns.messages for block in said.blocks if block["type"] == "thinking"]
    assert ["so"] == written
    assert [("unsigned thinking", 1)] == [(loss.what, loss.count) for loss in turns.losses]


@pytest.mark.parametrize(
    "sealed",
    [
        Thinking(content="hm", signature="gAAAAABk"),
        Thinking(content="hm", signature="c2ln", api_id="rs_1"),
        Thinking(content="hm", signature='{"type":"reasoning","id":"rs_1"}'),
        Thinking(content="hm", signature="reasoning_content"),
    ],
)
def test_thinking_that_another_provider_sealed_is_left_out_of_a_request_and_told(sealed: Thinking) -> None:
    turns = arrange([Prompt(content="go"), sealed, Response(content="ok")], thinking=True)

    assert ["text"] == [block["type"] for block in turns.messages[-1].blocks]
    assert [("foreign thinking", 1)] == [(loss.what, loss.count) for loss in turns.losses]


def results_by_call(turns: Turns) -> dict[str, object]:
    blocks = [block for said in turns.messages for block in said.blocks]
    names = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    return {names[call]: block["content"] for said in turns.messages for call, block, _ in said.results}


def asked(id: str, name: str, record: str = "", *, message: str = "", index: int = 0) -> ToolCall:
    return ToolCall(id=id, name=name, message_id=record, api_id=message, index=index)


@pytest.mark.parametrize(
    "calls",
    [
        [asked("c", "look", "r1", message="chat_1"), asked("c", "dig", "r1", message="chat_1", index=1)],
        [asked("c", "look", "r1", message="item_1"), asked("c", "dig", "r1", message="item_2", index=1)],
        [asked("c", "look", "r1", message="item_1"), asked("c", "dig", "r2", message="item_2")],
        [asked("c", "look"), asked("c", "dig")],
    ],
    ids=["one message", "items of a record", "items", "no names"],
)
def test_of_two_calls_with_one_id_in_one_reply_each_has_its_own_result(calls: list[Event]) -> None:
    heard = [ToolResult(id="c", output="grass"), ToolResult(id="c", output="a hole")]

    turns = arrange([Prompt(content="Go"), *calls, *heard])

    assert {"look": "grass", "dig": "a hole"} == results_by_call(turns)
    assert () == turns.losses


def test_a_result_is_that_of_the_call_in_the_last_reply_where_an_earlier_one_of_its_id_has_none() -> None:
    first, second = asked("c", "look", "r1", message="m1"), asked("c", "dig", "r2", message="m2")

    turns = arrange([Prompt(content="Go"), first, Prompt(content="Stop"), second, ToolResult(id="c", output="a hole")])

    assert "a hole" == results_by_call(turns)["dig"]
    assert [("calls without a result", 1)] == [(loss.what, loss.count) for loss in turns.losses]


def test_a_call_that_another_record_tells_again_is_one() -> None:
    first, again = asked("c", "look", "r1", message="m1"), asked("c", "look", "r2", message="m1")

    turns = arrange([Prompt(content="Go"), first, again, ToolResult(id="c", output="grass")])

    assert [("repeated calls", 1)] == [(loss.what, loss.count) for loss in turns.losses]
