"""Documents of a session: what they tell, and that nothing in a session is more than text in them."""

from __future__ import annotations

import re

import pytest

from harken.events import (
    AgentCreated,
    Event,
    Image,
    Prompt,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    TranscriptEdit,
)
from harken.text import CONTROL, width_of
from harken.views import markdown, plain
from harken.views.documents import DocumentFoot, DocumentHead, DocumentWriter, PictureFile
from harken.views.story import SessionStory
from support.hostile import EVIL, PIXEL, evil_events
from support.markdown import HtmlTokens

HEAD = DocumentHead(title="t", facts=(("Session", "s"),))
NOTHING = DocumentFoot(masked={}, left_out={}, losses=())


def written(writer: DocumentWriter, events: list[Event], first: str | None = "", head: DocumentHead = HEAD) -> str:
    pieces = writer.pieces(head, SessionStory(events).passages(first), lambda: NOTHING)
    return "".join(piece for piece in pieces if isinstance(piece, str))


EVIL_HEAD = DocumentHead(title=EVIL, facts=(("Session", EVIL),))


@pytest.mark.parametrize("first", [EVIL, None], ids=["nested", "flat"])
class TestHostile:
    def test_only_our_markup_is_in_markdown(self, first: str | None) -> None:
        text = written(markdown.MarkdownWriter("pictures"), evil_events(), first, EVIL_HEAD)

        found = HtmlTokens(text)

        assert {"details", "summary", "b", "code", "sub"} >= found.tags
        assert {"pictures/1.png"} == found.pictures
        assert [] == found.links
        assert all(EVIL.split("\n")[2][2:] != title for title in found.headings)
        assert found.tags_open == 0
        assert not CONTROL.search(text)

    def test_plain_text_has_eighty_columns_and_no_control_characters(self, first: str | None) -> None:
        text = written(plain.PlainWriter(), evil_events(), first, EVIL_HEAD)

        assert not CONTROL.search(text)
        assert [] == [line for line in text.split("\n") if sum(map(width_of, line)) > plain.COLUMNS]
        assert ">>> sub-agent x" not in text.split("\n")


def test_a_call_and_its_result_stand_together_and_folded() -> None:
    events: list[Event] = [
        ToolCall(message_id="1", id="c", name="Bash", input=b'{"command": "pytest -q"}'),
        Response(message_id="2", content="meanwhile"),
        ToolResult(message_id="3", id="c", output="2 passed"),
    ]

    text = written(markdown.MarkdownWriter(), events)

    call = "<details><summary><b>Bash</b> <code>pytest -q</code></summary>\n\n```\ncommand: pytest -q\n```\n\n"
    assert f"{call}Result:\n\n```\n2 passed\n```\n\n</details>\n\nmeanwhile" in text
    assert 1 == text.count("2 passed")


def test_a_failed_call_and_one_without_a_result_say_so() -> None:
    events: list[Event] = [
        ToolCall(message_id="1", id="a", name="Bash", input=b"{}"),
        ToolResult(message_id="2", id="a", output="no", is_error=True),
        ToolCall(message_id="3", id="b", name="Read", input=b"{"),
    ]

    for writer in (markdown.MarkdownWriter(), plain.PlainWriter()):
        text = written(writer, events)
        assert ["failed", "no result"] == re.findall(r"(?<![a-z])(failed|no result)(?=\)|<)(?!</p)", text)


def test_a_sub_agent_is_told_where_it_was_asked_for() -> None:
    created = AgentCreated(message_id="s/a#created", agent_id="a", name="a", cause="2", time=5)
    events: list[Event] = [
        AgentCreated(message_id="s#created", agent_id="main", name="main", time=1),
        Prompt(message_id="1", agent_id="main", content="go"),
        ToolCall(message_id="2", agent_id="main", id="c", name="Task", input=b'{"prompt": "look"}'),
        created,
        Response(message_id="3", agent_id="main", content="it looks", time=6),
        Prompt(message_id="4", agent_id="a", content="look", source="injected", origin="agent", time=6),
        Response(message_id="5", agent_id="a", content="I looked", time=7),
        ToolResult(message_id="6", agent_id="main", id="c", output="I looked", time=8),
        Response(message_id="7", agent_id="main", content="done", time=9),
    ]

    text = written(plain.PlainWriter(), events, "main")

    order = ["go", "[Task]", ">>> sub-agent a", "Task for a", "I looked", "<<< sub-agent a", "it looks", "done"]
    places = [text.index(word) if word != "I looked" else text.index(word, text.index("Task for a")) for word in order]
    assert sorted(places) == places


def test_every_agent_is_told_of_once_though_they_ask_for_each_other() -> None:
    events: list[Event] = [
        AgentCreated(message_id="s#created", agent_id="main"),
        AgentCreated(message_id="a#created", agent_id="a", cause="b1"),
        AgentCreated(message_id="b#created", agent_id="b", cause="a1"),
        Response(message_id="a1", agent_id="a", content="from a"),
        ToolCall(message_id="a1", agent_id="a", index=1, name="Task"),
        Response(message_id="b1", agent_id="b", content="from b"),
        ToolCall(message_id="b1", agent_id="b", index=1, name="Task"),
    ]

    text = written(plain.PlainWriter(), events, "main")

    assert [1, 1] == [text.count("from a"), text.count("from b")]


def test_a_compaction_is_marked_and_its_summary_folded() -> None:
    events: list[Event] = [
        System(message_id="1", subtype="compact_boundary"),
        Prompt(message_id="2", content="so far", source="injected", origin="compact_summary"),
        TranscriptEdit(message_id="3", action="compact", n=2, content="later"),
    ]

    text = written(markdown.MarkdownWriter(), events)

    assert 3 == text.count("*Compaction: from here on")
    assert "<details><summary>The summary</summary>\n\n```\nso far\n```" in text


def test_what_is_no_conversation_is_counted() -> None:
    story = SessionStory([Thinking(message_id="1", signature="x"), System(message_id="2", subtype="init")])

    assert [] == list(story.passages(""))
    assert {"sealed reasoning": 1, "notices of the runtime": 1} == story.left_out


def test_words_that_were_told_already_are_not_told_again_to_each_hearer() -> None:
    events: list[Event] = [
        AgentCreated(message_id="0", agent_id="x", name="Jack"),
        Response(message_id="1", agent_id="x", content="Hello"),
        Prompt(message_id="2", agent_id="y", content="[Jack]: Hello", substance="1"),
        Prompt(message_id="3", agent_id="z", content="[Jack]: Hell", substance="1", hook="guard"),
    ]

    text = written(plain.PlainWriter(), events, None)

    assert "y heard it" in text
    assert "guard to z" in text
    assert "[Jack]: Hell\n" in text


def test_pictures_are_files_with_names_of_ours_each_once() -> None:
    image = Image(media_type="../../x.png", data=PIXEL)
    said = Prompt(message_id="1", content="look", images=(image, image, Image(media_type="image/png", data="PHN2Zz4=")))
    writer = markdown.MarkdownWriter("my pictures")

    pieces = list(writer.pieces(HEAD, SessionStory([said]).passages(""), lambda: NOTHING))

    assert ["1.png"] == [piece.name for piece in pieces if isinstance(piece, PictureFile)]
    assert 2 == "".join(p for p in pieces if isinstance(p, str)).count("![picture 1.png](my%20pictures/1.png)")
    assert 1 == writer.absent


@pytest.mark.parametrize("line", ["x" * 1000, "word " * 300, "日本語" * 100, "a\tb" * 90, "", "e\u0301" * 200])
def test_wrapped_lines_fit_and_lose_nothing(line: str) -> None:
    pieces = list(plain.wrapped(line, 40))

    assert all(sum(map(width_of, piece)) <= 40 for piece in pieces)
    assert line.expandtabs(4).replace(" ", "") == "".join(pieces).replace(" ", "")
