"""Drawings: commits as a graph, an event on a line."""

from __future__ import annotations

import pytest

from harken.events import Event, Metric, Prompt, Thinking, ToolCall, ToolResult
from harken.store import Commit
from harken.views.event_lines import line
from harken.views.graph import draw
from support.contexts import chain, keep, memory_repo, turn


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
