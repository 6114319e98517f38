"""Where pictures stand among the words of a prompt or a result."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.events import Event, Image, Prompt, Response, ToolCall, ToolResult
from harken.events.base import join_parts, split_parts
from harken.formats import get

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="  # one pixel
PICTURE = Image(media_type="image/png", data=DOT)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def _merged(parts: list[str | Image]) -> list[str | Image]:
    """Neighbouring texts on lines of one."""
    merged: list[str | Image] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(before := merged[-1], str):
            merged[-1] = f"{before}\n{part}"
        else:
            merged.append(part)
    return merged


@given(st.lists(_TEXTS | st.just(PICTURE)))
def test_texts_and_pictures_come_back_in_their_order(parts: list[str | Image]) -> None:
    back = split_parts(*join_parts(parts))
    assert _merged(parts) == [part if isinstance(part, str) else PICTURE for part in back]


@given(st.text(), st.lists(st.none() | st.integers()))
def test_any_place_gives_every_picture_and_every_word_once(text: str, places: list[int | None]) -> None:
    images = [Image(url=str(number), at=at) for number, at in enumerate(places)]
    parts = split_parts(text, images)
    assert images == [part for part in parts if isinstance(part, Image)]
    assert text.replace("\n", "") == "".join(part for part in parts if isinstance(part, str)).replace("\n", "")


def test_a_picture_behind_the_text_needs_no_place() -> None:
    assert join_parts(["a", "b", PICTURE]) == ("a\nb", (PICTURE,))


SAID: tuple[str, ...] = ("a", "", "b", "")
"""A prompt; the empty ones are pictures."""


def _conversation() -> list[Event]:
    text, images = join_parts(part or PICTURE for part in SAID)
    return [
        Prompt(content=text, images=images),
        ToolCall(id="c1", name="look", input=b"{}"),
        ToolResult(id="c1", output=text, images=images),
        Response(content="Seen."),
    ]


@pytest.mark.parametrize(
    "name",
    ["claude-code-v1", "codex-v1", "anthropic-messages-v1", "openai-responses-v1", "session-log-v2", "events-v1"],
)
def test_a_format_keeps_the_order_of_text_and_pictures(name: str) -> None:
    known = get(name)
    back = known.read(known.write(_conversation()).data)
    text, images = join_parts(part or PICTURE for part in SAID)
    assert (text, images) == next((e.content, e.images) for e in back if isinstance(e, Prompt))
    assert (text, images) == next((e.output, e.images) for e in back if isinstance(e, ToolResult))
