"""Events as the turns of a conversation with Anthropic's models."""

from __future__ import annotations

from harken.events import Image, Prompt, ToolCall
from harken.formats.kit.anthropic_writing import Arranger, arrange


class CountedSet(set[str]):
    looks = 0

    def __contains__(self, item: object) -> bool:
        self.looks += 1
        return super().__contains__(item)


def test_calls_of_one_id_are_told_apart_by_a_number_that_no_other_has() -> None:
    given = ["", "call_2", "", "a", "a", "", "a"]

    turns = arrange([ToolCall(id=id, name="f", api_id=f"m{n}") for n, id in enumerate(given)])

    ids = [block["id"] for said in turns.messages for block in said.blocks if block["type"] == "tool_use"]
    assert ["call", "call_2", "call_3", "a", "a_2", "call_4", "a_3"] == ids


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
