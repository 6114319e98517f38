"""The small folds: counts and summaries."""

from __future__ import annotations

import pytest

from harken.context import summary
from harken.events import (
    Error,
    Event,
    Metric,
    Output,
    Prompt,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
)
from harken.events.tally import Tally
from harken.formats.base import Counts, count
from support.contexts import flat, memory_repo, turn


class TestCounts:
    def test_messages_are_the_prompt_and_the_answer_of_a_turn(self) -> None:
        assert 2 == count(turn(1)).messages

    def test_every_text_of_the_models_is_one_whoever_sent_them_together(self) -> None:
        said = [Response(content="a", message_id=f"m{n}", api_id="msg_1") for n in range(3)]

        assert 3 == count(said).messages == Tally.of(said).responses

    def test_without_ids_the_index_tells(self) -> None:
        assert 2 == count([Thinking(content="a"), Response(content="b", index=1), Prompt(content="c")]).messages

    def test_tokens_are_a_quarter_of_the_characters(self) -> None:
        counts = count([Prompt(content="x" * 400)])

        assert (100, True) == (counts.tokens, counts.approximate)

    def test_usage_is_counted_once_per_message_and_stands_for_what_was_said(self) -> None:
        said = [
            Response(content="y" * 4000, api_id="msg_1"),
            Metric(output_tokens=3, api_id="msg_1", request_id="r"),
            Metric(output_tokens=70, api_id="msg_1", request_id="r"),
        ]

        assert (70, False) == (count(said).tokens, count(said).approximate)

    def test_usage_without_a_key_counts_each_time(self) -> None:
        assert 8 == count([Metric(output_tokens=4), Metric(output_tokens=4)]).tokens


class TestALine:
    @pytest.mark.parametrize(
        ("events", "expected"),
        [
            (turn(1), "question 1 → Read: x → answer 1"),
            ([Prompt(content="<env>", source="injected"), Prompt(content="fix it")], "fix it"),
            ([ToolCall(name="Bash"), ToolCall(name="Bash"), ToolCall(name="Read")], "Bash ×2, Read"),
            ([ToolResult(output="42\nlines")], "result: 42 lines"),
            ([System(subtype="compact_boundary")], "compact_boundary"),
            ([Error(message="boom")], "error: boom"),
            ([Output(raw=b"?", why="torn")], "unread: torn"),
            ([], "0 events"),
        ],
    )
    def test_says_what_happened(self, events: list[Event], expected: str) -> None:
        assert expected == summary.line(events)

    def test_is_short_whatever_is_said(self) -> None:
        assert 110 > len(summary.line([Prompt(content="x " * 10_000), Response(content="y" * 10_000)]))


class TestAnExtract:
    def test_holds_what_was_asked_done_and_said_last(self) -> None:
        text = summary.extract(flat(range(3)))

        for words in ("6 messages", "question 0", "- question 2", "Read ×3", "Last answer: answer 2"):
            assert words in text
        assert "answer 0" not in text

    def test_is_bounded(self) -> None:
        asked = [Prompt(content=f"please {n} " * 500) for n in range(500)]

        assert 12_000 > len(summary.extract(asked))

    def test_a_model_is_shown_the_beginning_and_the_end_of_a_long_conversation(self) -> None:
        text = summary.request([Prompt(content="first"), *[Response(content="x" * 1000)] * 500, Prompt(content="last")])

        assert "User: first" in text
        assert text.endswith("User: last")
        assert 202_000 > len(text)


class TestUnknownCounts:
    def test_what_one_part_does_not_know_the_whole_does_not_know_either(self) -> None:
        known, unknown = Counts(messages=2, tokens=5), Counts(tokens=3, approximate=True)

        assert Counts(messages=4, tokens=10) == Counts.total([known, known])
        assert Counts(messages=None, tokens=8, approximate=True) == Counts.total([known, unknown])
        assert Counts(messages=None, tokens=5, approximate=True) == Counts.total([known, Counts()])
        assert Counts(messages=0, tokens=0) == Counts.total([])

    def test_bytes_that_nobody_can_read_hold_an_unknown_number_of_messages(self) -> None:
        repo = memory_repo()
        commit = repo.checkpoint(b"?" * 40, format="morse-v1")

        assert (None, 10, True) == (commit.message_count, commit.token_count, commit.approximate)
        assert repo.materialize(commit).message_count is None
