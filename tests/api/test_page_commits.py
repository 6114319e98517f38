"""Commits as rows, and compactions: the columns are those of `log --graph`, the numbers those of the chain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Repo
from harken.api import operation, reference
from harken.errors import BadRequest, NotFound
from harken.events import Prompt, Response, ToolCall, ToolResult
from harken.views.graph import draw, place
from support.contexts import chain, keep, memory_repo, turn
from support.page_sessions import SUMMARY, working_day, write_session
from support.recordings import CORPUS, FOLDER

COMPACTED = [FOLDER / "claude-code-2.1.325" / "compacted", FOLDER / "codex-0.166.0" / "compacted"]
COMPACTED += [CORPUS / "claude_code", CORPUS / "codex_rollout"] if CORPUS is not None else []
SESSION = "11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa"


def ask(repo: Repo, name: str, **fields: Any) -> Any:
    described = next(one for one in reference.operations() if one.name == name)
    return operation(name)(repo, described.request(**fields))


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([write_session(tmp_path, working_day(), SESSION)]))
        yield repo


class TestColumns:
    """One rule gives integers to the terminal and to the page."""

    def test_a_line_goes_from_each_column_to_where_it_is_next(self) -> None:
        repo = memory_repo()
        root = chain(repo, [0])
        commits = [root, chain(repo, [1], root), chain(repo, [2], root)]

        placed = list(place(commits))

        assert [0, 1, 0] == [one.column for one in placed]
        assert [(), ((0, 0),), ((0, 0), (1, 0))] == [one.above for one in placed]

    def test_a_line_that_ends_leaves_its_column_to_the_next(self) -> None:
        repo = memory_repo()
        first, second = chain(repo, range(2)), chain(repo, range(5, 7))
        lines = [row.above for row in place([*repo.history(first), *repo.history(second)])]

        assert all(to <= source for above in lines for source, to in above)

    @pytest.mark.parametrize("folder", ["claude-code-2.1.325/parallel-agents", "codex-0.166.0/forked"])
    def test_the_page_has_the_columns_of_the_terminal(self, folder: str) -> None:
        with harken.open("memory:") as repo:
            list(repo.import_sessions([FOLDER / folder]))
            family = repo.family()

            drawn = [row for row in draw(family.commits, family.spawned) if row.commit is not None]
            rows = ask(repo, "commit_rows", folded=False, limit=500).rows

            assert [row.commit.short for row in drawn if row.commit] == [row.short for row in rows]
            marks = [next(n for n, sign in enumerate(row.lines[::2]) if sign in "●◆■") for row in drawn]
            assert marks == [row.column for row in rows]


class TestRows:
    def test_a_row_says_what_happened(self, repo: Repo) -> None:
        rows = ask(repo, "commit_rows", session=SESSION).rows

        first = rows[-1]
        assert ("please mend the parser in parse.py today", "prompt") == (first.text, first.said_by)
        folded = next(row for row in rows if row.kind == "folded")
        assert [("Bash", 3), ("Edit", 1)] == folded.tools
        assert 3 == folded.failed

    def test_every_commit_stands_in_one_row(self, repo: Repo) -> None:
        found = ask(repo, "commit_rows", session=SESSION)
        apart = ask(repo, "commit_rows", session=SESSION, folded=False)

        named = [id for row in found.rows for id in row.ids]
        assert sorted(named) == sorted(row.ids[0] for row in apart.rows)
        assert len(named) == found.commits == apart.commits
        assert len(found.rows) == found.total < apart.total

    def test_a_fold_has_no_prompt_and_lines_go_through_it(self, repo: Repo) -> None:
        rows = ask(repo, "commit_rows", session=SESSION).rows

        assert {0} == {row.prompts for row in rows if row.kind == "folded"}
        assert [row.ids[0] for row in rows[1:]] == [row.parent for row in rows[:-1]]

    def test_a_compaction_tells_tokens_and_messages(self, repo: Repo) -> None:
        (row,) = (row for row in ask(repo, "commit_rows", session=SESSION).rows if row.kind == "compaction")

        assert (120_000, 1, "k1") == (row.before, row.after, row.record)
        assert row.folded_messages is not None
        assert 0 < row.folded_messages

    def test_ranges_are_parts_of_the_whole(self, repo: Repo) -> None:
        whole = ask(repo, "commit_rows", session=SESSION).rows

        parts = [ask(repo, "commit_rows", session=SESSION, start=at, limit=2).rows for at in range(0, len(whole), 2)]

        assert whole == [row for part in parts for row in part]

    def test_a_named_commit_is_never_folded(self, repo: Repo) -> None:
        folded = next(row for row in ask(repo, "commit_rows", session=SESSION).rows if row.kind == "folded")
        repo.tag(folded.ids[1], "here")

        rows = ask(repo, "commit_rows", session=SESSION).rows

        assert [["here"]] == [row.names for row in rows if folded.ids[1] == row.ids[0]]

    def test_a_straight_list_has_one_column(self) -> None:
        repo = memory_repo()
        root = chain(repo, [0])
        tip = chain(repo, [1, 2], root)
        chain(repo, [3], root)

        rows = ask(repo, "commit_rows", ref=tip.id, straight=True, folded=False).rows

        assert [tip.id, tip.parent, root.id] == [row.ids[0] for row in rows]
        assert {0} == {row.column for row in rows}

    def test_branches_and_what_they_hold(self) -> None:
        repo = memory_repo()
        root = keep(repo, turn(0))
        quiet = [ToolCall(id="q", name="Read", input=b"{}"), ToolResult(id="q", output="x")]
        line = root
        for _ in range(3):
            line = keep(repo, quiet, line)
        other = keep(repo, [Prompt(content="elsewhere"), Response(content="yes")], root)

        rows = ask(repo, "commit_rows").rows

        assert {(other.id, 1), (line.id, 1), (root.id, 1)} >= {(row.ids[0], row.commits) for row in rows[:1]}
        assert 5 == sum(row.commits for row in rows)
        assert 2 == max(row.width for row in rows)

    def test_a_commit_that_cannot_be_read_says_so(self) -> None:
        repo = memory_repo()
        repo.checkpoint(b"\x00", format="opaque-v9")

        (row,) = ask(repo, "commit_rows").rows

        assert row.unread
        assert row.text

    def test_what_makes_no_sense_is_refused(self, repo: Repo) -> None:
        for wrong in ({"ref": "x", "session": "y"}, {"straight": True}, {"limit": 501}, {"start": -1}):
            with pytest.raises(BadRequest):
                ask(repo, "commit_rows", **wrong)

    def test_an_empty_store_has_no_rows(self) -> None:
        found = ask(memory_repo(), "commit_rows")

        assert ([], False, 0) == (found.rows, found.more, found.total)


class TestACompaction:
    def test_what_it_dropped_by_kind(self, repo: Repo) -> None:
        found = ask(repo, "compaction", session=SESSION, record="k1")

        before = {one.kind: one.before for one in found.kinds}
        assert {"prompt": 2, "answer": 1, "thinking": 1, "call": 4, "result": 4, "file": 1, "injected": 0} == before
        assert SUMMARY == found.summary
        assert (120_000, "auto") == (found.before, found.trigger)

    def test_a_prompt_that_the_summary_quotes_is_not_missed(self, repo: Repo) -> None:
        found = ask(repo, "compaction", session=SESSION, record="k1")

        assert ["forget the colour of the old button"] == [one.text for one in found.missed]
        assert {"file": 1, "prompt": 1} == {one.kind: one.named for one in found.kinds if one.named}

    def test_the_commit_before_it_still_holds_everything(self, repo: Repo) -> None:
        found = ask(repo, "compaction", session=SESSION, record="k1", which="all", count=200)

        records = {event.message_id for event in repo.conversation(found.before_commit)}
        assert {one.record for one in found.things} <= records

    def test_the_same_by_its_commit(self, repo: Repo) -> None:
        by_record = ask(repo, "compaction", session=SESSION, record="k1")

        assert by_record == ask(repo, "compaction", commit=by_record.commit)

    def test_its_numbers_are_those_of_its_row(self, repo: Repo) -> None:
        (row,) = (row for row in ask(repo, "commit_rows", session=SESSION).rows if row.kind == "compaction")

        found = ask(repo, "compaction", session=SESSION, record=row.record)

        assert (row.before, row.after, row.folded_messages) == (found.before, found.after, found.messages)

    def test_in_ranges_and_by_kind(self, repo: Repo) -> None:
        calls = ask(repo, "compaction", session=SESSION, record="k1", kinds=("call",))

        assert 4 == calls.total
        second = ask(repo, "compaction", session=SESSION, record="k1", kinds=("call",), start=1, count=1)
        assert calls.things[1:2] == second.things

    def test_one_that_harken_made(self) -> None:
        repo = memory_repo()
        tip = chain(repo, range(3))
        made = repo.compact(tip, "question 0 and answer 0 were about one thing")

        found = ask(repo, "compaction", commit=made.id)

        assert (tip.short, "question 0 and answer 0 were about one thing") == (found.before_commit, found.summary)
        assert 3 == next(one.before for one in found.kinds if one.kind == "prompt")

    def test_what_is_no_compaction_is_not_found(self, repo: Repo) -> None:
        with pytest.raises(NotFound):
            ask(repo, "compaction", session=SESSION, record="p1")
        with pytest.raises(BadRequest):
            ask(repo, "compaction", session=SESSION)

    @pytest.mark.parametrize("folder", COMPACTED, ids=lambda folder: folder.name)
    def test_each_can_be_looked_at_and_counts_as_its_row_does(self, folder: Path) -> None:
        with harken.open("memory:") as repo:
            list(repo.import_sessions([folder]))
            rows = [row for row in ask(repo, "commit_rows", limit=500).rows if row.kind == "compaction"]

            found = [ask(repo, "compaction", session=row.session, record=row.record) for row in rows]

        assert rows
        for row, one in zip(rows, found, strict=True):
            assert (row.short, row.folded_messages) == (one.commit, one.messages)
            assert one.total or any(kind.kept for kind in one.kinds)
