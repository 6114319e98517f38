"""Who stands in the user's place: the table row by row, and the fields that go before it."""

from __future__ import annotations

from typing import Any

import pytest

from harken.formats.claude_code.records import (
    HUMAN,
    ORIGINS,
    PATTERNS,
    SOURCES,
    PromptPattern,
    by_text,
    classify,
)
from support.claude_lines import call, text, user

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "out"}


@pytest.mark.parametrize("row", PATTERNS, ids=lambda row: row.start[:40])
def test_a_row_knows_its_text(row: PromptPattern) -> None:
    closing = f"</{row.start[1:-1]}>" if row.wraps else ""

    assert row.kind == by_text(f"{row.start} something{closing}")
    assert row.kind == by_text(f"\n  {row.start}")
    assert row.kind == classify(user("u", None, f"{row.start} something{closing}"))
    assert row.kind == classify(user("u", None, [text(f"{row.start} something{closing}")], isMeta=True))


@pytest.mark.parametrize("row", [row for row in PATTERNS if row.wraps], ids=lambda row: row.start)
def test_what_a_person_wrote_behind_an_element_is_a_persons(row: PromptPattern) -> None:
    element = f"{row.start}something</{row.start[1:-1]}>"

    assert HUMAN == by_text(f"{element}\n{element}\nand what about this?")
    assert "command" == by_text(f"{element}<command-name>/x</command-name>")


@pytest.mark.parametrize("row", [row for row in PATTERNS if not row.wraps], ids=lambda row: row.start[:40])
def test_a_text_that_only_mentions_it_is_a_persons(row: PromptPattern) -> None:
    assert HUMAN == by_text(f"what does {row.start} mean?")


@pytest.mark.parametrize(("kind", "expected"), ORIGINS.items())
def test_the_origin_goes_before_the_text(kind: str, expected: str) -> None:
    words = "plain words" if expected else "<task-notification>"

    assert expected == classify(user("u", None, words, origin={"kind": kind}))


@pytest.mark.parametrize(("source", "expected"), SOURCES.items())
def test_the_prompts_source_goes_before_the_text(source: str, expected: str) -> None:
    assert expected == classify(user("u", None, "words", promptSource=source))


FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "a summary": ({"isCompactSummary": True, "origin": {"kind": "human"}}, "compact_summary"),
    "meta": ({"isMeta": True}, "meta"),
    "a skill": ({"isMeta": True, "sourceToolUseID": "c"}, "skill"),
    "a plan": ({"planContent": "first this"}, "plan"),
    "for the screen": ({"isVisibleInTranscriptOnly": True}, "transcript_only"),
    "a sub-agent's prompt": ({"isSidechain": True}, "agent"),
    "an origin nobody knows": ({"origin": {"kind": "never-seen"}}, HUMAN),
    "nothing": ({}, HUMAN),
}


@pytest.mark.parametrize(("fields", "expected"), FIELDS.values(), ids=FIELDS)
def test_structured_fields(fields: dict[str, Any], expected: str) -> None:
    assert expected == classify(user("u", None, "words", **fields))


CONTENTS: dict[str, tuple[Any, str]] = {
    "a result": ([RESULT], "tool_result"),
    "a result with words beside it": ([RESULT, text("and")], "tool_result"),
    "a picture": ([IMAGE], HUMAN),
    "what the editor shows, then words": ([text("<ide_opened_file>x</ide_opened_file>"), text("look")], HUMAN),
    "what the editor shows alone": ([text("<ide_opened_file>x</ide_opened_file>")], "ide"),
    "strings for blocks": (["hello"], HUMAN),
    "nothing": ([], HUMAN),
    "other blocks": ([call("c")], None),
    "no content": (None, None),
}


@pytest.mark.parametrize(("content", "expected"), CONTENTS.values(), ids=CONTENTS)
def test_content(content: Any, expected: str | None) -> None:
    """None for a record that says nothing: the reader makes no prompt of it, so nobody prompted."""
    assert expected == classify(user("u", None, content))


def test_the_list_of_the_specification_is_in_the_table() -> None:
    listed = [
        "This session is being continued from a previous conversation that ran out of context",
        "<task-notification>",
        "Base directory for this skill:",
        "<teammate-message",
        "<local-command-caveat>",
        "<local-command-stdout>",
        "<local-command-stderr>",
        "<command-name>",
        "<command-message>",
        "<bash-input>",
        "<bash-stdout>",
        "Continue from where you left off.",
    ]

    assert not [start for start in listed if by_text(start) == HUMAN]
