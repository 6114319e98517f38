"""The small folds: counts, summaries, drawings."""

from __future__ import annotations

import pytest

from harken.context import summary
from harken.context.lines import line
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
from harken.formats.base import count
from harken.store import Commit
from harken.views.graph import draw
from support.contexts import chain, flat, keep, memory_repo, turn


class TestCounts:
    def test_a_message_is_a_record(self) -> None:
        assert 4 == count(turn(1)).messages

    def test_records_that_share_the_providers_id_are_one_message(self) -> None:
        said = [Response(content="a", message_id=f"m{n}", api_id="msg_1") for n in range(3)]

        assert 1 == count(said).messages

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
            (turn(1), "question 1 → Read → answer 1"),
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

        for words in ("12 messages", "question 0", "- question 2", "Read ×3", "Last answer: answer 2"):
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


class TestADrawing:
    def drawn(self, commits: list[Commit], **links: str) -> list[str]:
        return [row.lines for row in draw(commits, links)]

    def test_a_chain_is_one_column(self) -> None:
        repo = memory_repo()
        tip = repo.compact(chain(repo, range(2)), "short")

        assert ["◆", "●", "●"] == self.drawn(repo.history(tip))

    def test_branches_join_where_they_began(self) -> None:
        repo = memory_repo()
        root = chain(repo, [0])
        first, second = chain(repo, [1], root), chain(repo, [2], root)

        assert ["●", "│ ●", "├─╯", "●"] == self.drawn([root, first, second])

    def test_three_branches_join_in_one_row(self) -> None:
        repo = memory_repo()
        root = chain(repo, [0])
        commits = [root, *(chain(repo, [n], root) for n in (1, 2, 3))]

        assert "├─┴─╯" in self.drawn(commits)

    def test_a_sub_agent_is_a_branch_of_the_commit_that_spawned_it(self) -> None:
        repo = memory_repo()
        root = chain(repo, [0])
        child = keep(repo, turn(5))
        above = chain(repo, [1], root)

        rows = self.drawn([above, child, root], **{child.id: root.id})

        assert ["●", "│ ●", "├─╯", "●"] == rows

    def test_every_commit_has_a_row_however_many_branches_there_are(self) -> None:
        repo = memory_repo()
        root = chain(repo, [0])
        commits = [root, *(chain(repo, [n], root) for n in range(60))]

        rows = draw(commits)

        assert len(commits) == sum(row.commit is not None for row in rows)
        assert 80 > max(len(row.lines) for row in rows)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (Prompt(content="a\nb"), "     user  a b"),
        (ToolCall(name="Read", input=b'{"x":1}'), '     call  Read {"x":1}'),
        (ToolResult(output="no", is_error=True), "   failed  no"),
        (Thinking(signature="s"), " thinking  (sealed)"),
        (Metric(input_tokens=3, output_tokens=4), "    usage  3 tokens in, 4 out"),
    ],
)
def test_an_event_has_a_line(event: Event, expected: str) -> None:
    assert expected == line(event)
