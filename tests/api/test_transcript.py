"""A session's transcript in ranges: the same rows however they are asked for, wherever the session came from."""

from __future__ import annotations

import base64
import itertools
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harken
from harken.analytics.calls import RetoldCalls
from harken.analytics.transcript_rows import DeltaRows, RowEvents
from harken.api.session_page import SessionPageRequest, session_page
from harken.api.transcript import (
    TranscriptAnswer,
    TranscriptFindRequest,
    TranscriptOutlineRequest,
    TranscriptPlaceRequest,
    TranscriptRequest,
    TranscriptRow,
    TranscriptRowRequest,
    transcript,
    transcript_find,
    transcript_outline,
    transcript_place,
    transcript_row,
)
from harken.context.session_events import session_events
from harken.errors import BadRequest, NotFound
from harken.events import Event, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.base import Image
from harken.repo import Repo
from harken.repo.transcripts import OpenTranscript, Transcripts
from support.events import events as any_event
from support.recordings import session_folders
from support.sessions import ClaudeSession, conversation, rollout
from support.viewed import cafe, write_log

LONG = "0198a5b2-7c00-7000-8000-0000000000aa"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db") as opened:
        yield opened


def keep(repo: Repo, path: Path, data: bytes) -> None:
    """Import a file as it is now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    assert "failed" not in {one.status for one in repo.import_sessions([path])}


def checkpoint(repo: Repo, deltas: Sequence[Sequence[Event]], session: str = "s") -> None:
    """A chain of checkpoints, one for each delta."""
    for delta in deltas:
        row = next((row for row in repo.sessions(session) if row.session == session), None)
        parent = row.tip if row is not None and row.tip else None
        repo.checkpoint(list(delta), format="events-v1", parent=parent and f"ctx-{parent}", session_id=session)


def checkpoint_all(repo: Repo, deltas: Sequence[Sequence[Event]]) -> None:
    """A long chain of checkpoints."""
    parent = None
    for delta in deltas:
        parent = repo.checkpoint(list(delta), format="events-v1", parent=parent, session_id="s")
    repo.index.catch_up()


def ask(repo: Repo, session: str, start: int = 0, count: int = 500, **more: Any) -> TranscriptAnswer:
    return transcript(repo, TranscriptRequest(session=session, start=start, count=count, **more))


def all_rows(repo: Repo, session: str, step: int = 500) -> list[TranscriptRow]:
    total = ask(repo, session, count=0).total
    return [row for start in range(0, total, step) for row in ask(repo, session, start, step).rows]


def read_all(repo: Repo, session: str) -> tuple[OpenTranscript, list[RowEvents]]:
    opened = repo.transcripts.open(session)
    rows = repo.transcripts.rows(opened, 0, len(opened.layout))
    return opened, [read.row for read in rows if read.row is not None]


def kinds(repo: Repo, session: str) -> list[str]:
    return [row.kind for row in all_rows(repo, session)]


class TestRanges:
    def test_rows_are_the_same_whatever_range_they_were_asked_with(self, repo: Repo, tmp_path: Path) -> None:
        keep(repo, tmp_path / "one.jsonl", conversation("one", turns=12).data)
        whole = ask(repo, "one").rows

        assert 36 == len(whole)
        assert list(range(36)) == [row.n for row in whole]
        for start, count in itertools.product(range(0, 38, 5), (1, 2, 7, 40)):
            assert whole[start : start + count] == ask(repo, "one", start, count).rows

    @pytest.mark.parametrize("runtime", ["claude-code", "codex"])
    def test_the_first_rows_of_a_long_session_are_told_before_all_are_counted(
        self, runtime: str, repo: Repo, tmp_path: Path
    ) -> None:
        if runtime == "codex":
            keep(repo, tmp_path / f"rollout-2026-01-01T00-00-00-{LONG}.jsonl", rollout(LONG, turns=700))
        else:
            keep(repo, tmp_path / f"{LONG}.jsonl", conversation(LONG, turns=700).data)
        repo.index.catch_up()
        session = repo.sessions()[0].session
        soon = ask(repo, session, count=40, soon=True)
        head = session_page(repo, SessionPageRequest(session=session, soon=True))
        whole = ask(repo, session, count=40)

        assert (True, True, False) == (soon.partial, head.partial, whole.partial)
        assert whole.rows == soon.rows
        assert 40 <= soon.total < whole.total
        again = ask(repo, session, count=40, soon=True)
        assert whole == again
        whole_head = session_page(repo, SessionPageRequest(session=session))
        assert whole.total == whole_head.rows
        assert whole_head == session_page(repo, SessionPageRequest(session=session, soon=True))
        assert whole_head == msgspec.structs.replace(head, rows=whole.total, partial=False)

    def test_a_session_that_is_not_long_is_counted_at_once(self, repo: Repo, tmp_path: Path) -> None:
        keep(repo, tmp_path / "one.jsonl", conversation("one", turns=12).data)

        assert ask(repo, "one", count=5) == ask(repo, "one", count=5, soon=True)

    def test_rows_that_may_turn_out_to_be_repetitions_are_not_told_before_that_is_known(self, repo: Repo) -> None:
        screen = [[Prompt(content=f"{n}", message_id=f"{n}", api_id=f"event_msg@{n}")] for n in range(600)]
        checkpoint_all(repo, [*screen, [Prompt(content="0", message_id="said")]])
        soon = ask(repo, "s", count=5, soon=True)

        assert (1, False) == (soon.total, soon.partial)
        assert ["said"] == [row.id for row in soon.rows]

    def test_a_negative_start_counts_from_the_end(self, repo: Repo, tmp_path: Path) -> None:
        keep(repo, tmp_path / "one.jsonl", conversation("one").data)

        assert all_rows(repo, "one")[-4:] == ask(repo, "one", -4).rows

    def test_a_range_is_bounded(self, repo: Repo, tmp_path: Path) -> None:
        keep(repo, tmp_path / "one.jsonl", conversation("one").data)

        with pytest.raises(BadRequest, match="at most 500"):
            ask(repo, "one", 0, 501)

    def test_a_call_stands_with_its_result(self, repo: Repo, tmp_path: Path) -> None:
        keep(repo, tmp_path / "one.jsonl", conversation("one", turns=1).data)
        prompt, call, answer = all_rows(repo, "one")

        assert ["prompt", "call", "answer"] == [prompt.kind, call.kind, answer.kind]
        assert call.call is not None
        assert ("Read", "read", True, False) == (
            call.call.tool, call.call.category, call.call.answered, call.call.failed,
        )  # fmt: skip
        assert "file number 0" == call.call.result
        assert 1000 == call.call.took_ms
        assert ("User", "Assistant") == (prompt.who, answer.who)

    def test_every_row_is_found_by_its_record_and_so_is_a_result(self, repo: Repo, tmp_path: Path) -> None:
        session = conversation("one", turns=5)
        keep(repo, tmp_path / "one.jsonl", session.data)

        for row in all_rows(repo, "one"):
            place = transcript_place(repo, TranscriptPlaceRequest(session="one", id=row.id, index=row.index))
            assert row.n == place.n
        result = json.loads(session.lines[2])["uuid"]
        assert 1 == transcript_place(repo, TranscriptPlaceRequest(session="one", id=result)).n

    def test_a_record_that_is_not_there_is_said(self, repo: Repo, tmp_path: Path) -> None:
        keep(repo, tmp_path / "one.jsonl", conversation("one").data)

        with pytest.raises(NotFound, match="no record 'nobody'"):
            transcript_place(repo, TranscriptPlaceRequest(session="one", id="nobody"))

    def test_a_session_without_rows_has_none(self, repo: Repo) -> None:
        checkpoint(repo, [[Thinking(signature="sealed")]])

        assert (0, []) == (ask(repo, "s").total, ask(repo, "s").rows)


class TestGrowing:
    def test_a_session_that_grew_line_by_line_is_as_one_that_came_whole(self, repo: Repo, tmp_path: Path) -> None:
        session = conversation("one", turns=4)
        session.compact("all of it")
        session.prompt("go on")
        session.call("Bash", "done")
        for count in range(1, len(session.lines) + 1):
            keep(repo, tmp_path / "one.jsonl", b"".join(session.lines[:count]))
            grown = all_rows(repo, "one")
            with harken.open(tmp_path / "fresh.db") as other:
                keep(other, tmp_path / "one.jsonl", b"".join(session.lines[:count]))
                assert all_rows(other, "one") == grown
            for file in tmp_path.glob("fresh.db*"):
                file.unlink()

    def test_what_an_index_knows_is_what_is_read_without_one(self, repo: Repo, tmp_path: Path) -> None:
        keep(repo, tmp_path / "one.jsonl", conversation("one", turns=6).data)
        keep(repo, tmp_path / "rollout-2026-02-22T10-30-00-0199aaaa-0000-7000-8000-000000000001.jsonl",
             rollout("0199aaaa-0000-7000-8000-000000000001"))  # fmt: skip

        def broken() -> Any:
            raise sqlite3.OperationalError("no index")

        bare = Transcripts(repo.store, broken)
        for row in repo.sessions():
            known, read = repo.transcripts.open(row.session), bare.open(row.session)
            assert known.layout.letters == read.layout.letters
            assert known.layout.starts == read.layout.starts
            assert known.layout.names == read.layout.names
            assert list(known.layout.marks()) == list(read.layout.marks())
            assert repo.transcripts.rows(known, 0, 999) == bare.rows(read, 0, 999)


class TestCompaction:
    def test_what_only_clears_old_results_is_a_notice_and_no_compaction(self, repo: Repo, tmp_path: Path) -> None:
        session = ClaudeSession("s")
        session.prompt("one")
        session.add("system", subtype="microcompact_boundary", content="Context microcompacted")
        session.answer("two")
        session.compact("what was said")
        keep(repo, tmp_path / "s.jsonl", session.data)

        outline = transcript_outline(repo, TranscriptOutlineRequest(session="s"))
        counted = session_page(repo, SessionPageRequest(session="s")).figures.compactions
        assert ["prompt", "notice", "answer", "compaction"] == [row.kind for row in all_rows(repo, "s")]
        assert (1, 1, "p|") == (counted, outline.counts["compactions"], outline.strip)

    def test_a_compaction_is_one_row_and_nothing_is_told_twice(self, repo: Repo, tmp_path: Path) -> None:
        session = conversation("one", turns=2)
        session.compact("what was said")
        session.prompt("go on")
        keep(repo, tmp_path / "one.jsonl", session.data)
        rows = all_rows(repo, "one")

        turn = ["prompt", "call", "answer"]
        assert [*turn, *turn, "compaction", "prompt"] == [row.kind for row in rows]
        assert "This session is being continued: what was said" == rows[6].text

    def test_one_of_our_own_is_its_summary(self, repo: Repo) -> None:
        checkpoint(repo, [[Prompt(content="one", message_id="a")], [Response(content="two", message_id="b")]])
        repo.compact("s", "in short")
        compacted = repo.compact("s", "in short")

        rows = all_rows(repo, compacted.short)

        assert [("prompt", "one"), ("answer", "two"), ("compaction", "in short")] == [(r.kind, r.text) for r in rows]

    def test_a_snapshot_repeats_and_is_not_told(self, repo: Repo) -> None:
        checkpoint(repo, [[Prompt(content="one", message_id="a")], [Response(content="two", message_id="b")]])
        stored = repo.snapshot("s")

        assert ["prompt", "answer"] == kinds(repo, stored.short)


class TestUnread:
    def test_bytes_that_are_gone_are_a_row_that_says_so(self, repo: Repo) -> None:
        checkpoint(repo, [[Prompt(content="one", message_id="a")], [Response(content="two", message_id="b")]])
        with repo.store.write() as writer:
            writer.evict(repo.history("s")[-1].artifact)

        rows = all_rows(repo, "s")

        assert ["unread", "answer"] == [row.kind for row in rows]
        assert "evicted" in rows[0].text

    def test_a_format_that_nobody_reads_is_one_row(self, repo: Repo) -> None:
        repo.checkpoint(b"dots and dashes", format="morse-v1", session_id="s")

        assert ["unread"] == kinds(repo, "s")

    def test_a_record_that_cannot_be_read_is_a_row(self, repo: Repo, tmp_path: Path) -> None:
        session = conversation("one", turns=1)
        session.lines.insert(1, b"{torn\n")
        keep(repo, tmp_path / "one.jsonl", session.data)

        assert ["prompt", "unread", "call", "answer"] == kinds(repo, "one")


class TestAgents:
    def test_a_call_that_made_a_sub_agent_names_its_session(self, repo: Repo, tmp_path: Path) -> None:
        main = ClaudeSession("one")
        main.prompt("ask somebody")
        main.call("Task", "the answer", agent="a1", prompt="look into it")
        agent = ClaudeSession("one", agent="a1", salt="agent")
        agent.prompt("look into it")
        agent.answer("the answer")
        folder = tmp_path / "projects" / "p"
        keep(repo, folder / "one" / "subagents" / "agent-a1.jsonl", agent.data)
        keep(repo, folder / "one.jsonl", main.data)
        list(repo.import_sessions([folder]))
        _, call = all_rows(repo, "one")

        assert call.call is not None
        assert ("agent", "one/a1") == (call.call.category, call.call.session)
        assert ["a1"] == list({row.agent for row in all_rows(repo, "one/a1")})

    def test_an_agent_inside_the_file_is_told_in_its_own_session(self, repo: Repo, tmp_path: Path) -> None:
        main, inside = ClaudeSession("one"), ClaudeSession("one", agent="a1", salt="agent", start=1)
        main.prompt("ask somebody")
        inside.prompt("look into it")
        inside.answer("found it")
        main.call("Task", "found it", agent="a1", prompt="look into it")
        lines = [main.lines[0], main.lines[1], *inside.lines, *main.lines[2:]]
        keep(repo, tmp_path / "one.jsonl", b"".join(lines))

        assert ["prompt", "call"] == kinds(repo, "one")
        assert {"one", "one/a1"} == {row.session for row in repo.sessions()}
        assert 2 == len(all_rows(repo, "one/a1"))


class TestHandedDown:
    def test_what_a_session_goes_on_from_comes_first(self, repo: Repo) -> None:
        checkpoint(
            repo, [[Prompt(content="one"), Response(content="two")], [Prompt(content="not handed down")]], "above"
        )
        given_at = repo.history("above")[-1]
        origin = {"session": "above", "commit": given_at.id, "inherits": True}
        repo.checkpoint([Prompt(content="three")], format="events-v1", session_id="below", spawned_from=origin)
        rows = all_rows(repo, "below")

        assert ["one", "two", "three"] == [row.text for row in rows]
        assert ["above@0", "above@1", "@0"] == [row.id for row in rows]
        for row in rows:
            asked = TranscriptPlaceRequest(session="below", id=row.id, index=row.index)
            assert row.n == transcript_place(repo, asked).n


class TestOnScreen:
    def test_what_a_program_writes_for_its_screen_is_told_where_nothing_else_says_it(
        self, repo: Repo, tmp_path: Path
    ) -> None:
        thread = "0199aaaa-0000-7000-8000-000000000002"
        lines = rollout(thread).splitlines(keepends=True)
        shown = {"type": "agent_message", "message": "said aloud"}
        screen = json.dumps({"timestamp": "2026-02-22T10:30:01.000Z", "type": "event_msg", "payload": shown}).encode()
        path = tmp_path / f"rollout-2026-02-22T10-30-00-{thread}.jsonl"
        keep(repo, path, lines[0] + screen + b"\n")
        assert "said aloud" in [row.text for row in all_rows(repo, thread)]

        keep(repo, path, lines[0] + screen + b"\n" + b"".join(lines[1:]))
        grown = all_rows(repo, thread)
        assert "said aloud" not in [row.text for row in grown]
        with harken.open(tmp_path / "fresh.db") as other:
            keep(other, path, path.read_bytes())
            assert all_rows(other, thread) == grown


class TestFinding:
    @pytest.mark.parametrize(("words", "rows"), [("password", [14, 15, 16]), ("smiles", [10, 23, 24, 25])])
    def test_what_other_agents_of_a_log_said_and_heard_is_found(
        self, repo: Repo, tmp_path: Path, words: str, rows: list[int]
    ) -> None:
        """The index knows it from the chains of those agents, whose commits are none of the whole session's."""
        (kept,) = repo.import_sessions([write_log(tmp_path / "cafe.jsonl", cafe())])

        assert rows == transcript_find(repo, TranscriptFindRequest(session=kept.session, words=words)).rows

    @pytest.fixture
    def found(self, repo: Repo, tmp_path: Path) -> Any:
        session = ClaudeSession("one")
        session.prompt("Where does the connection pool live?")
        session.call("Grep", "src/pool.py: class ConnectionPool\nerrno 111: connection refused")
        session.answer("In the pool; it retries `::` twice.")
        keep(repo, tmp_path / "one.jsonl", session.data)
        return lambda words: transcript_find(repo, TranscriptFindRequest(session="one", words=words)).rows

    @pytest.mark.parametrize(
        ("words", "rows"),
        [
            ("pool", [0, 1, 2]),
            ("connection", [0, 1]),
            ('"connection refused"', [1]),
            ("connection retries", []),
            ("CONNECT", [0, 1]),
            ("nnectio", [0, 1]),
            ("::", [2]),
            ("errno 111", [1]),
            ("nothing like it", []),
        ],
    )
    def test_finds_what_a_reader_would(self, found: Any, words: str, rows: list[int]) -> None:
        assert rows == found(words)

    def test_a_record_that_could_not_be_read_is_found_among_those_that_could(self, repo: Repo, tmp_path: Path) -> None:
        session = ClaudeSession("one")
        session.prompt("Where is the harbour?")
        keep(repo, tmp_path / "one.jsonl", session.data + b'{"type":"user", a harbour, torn\n')

        found = transcript_find(repo, TranscriptFindRequest(session="one", words="harbour")).rows
        shown = [row.n for row in all_rows(repo, "one") if "harbour" in row.text]

        assert [0, 1] == shown
        assert shown == found

    @pytest.mark.parametrize("words", ["cafe", "café", "afe", "CAFÉ", "cafe\u0301"])
    @pytest.mark.parametrize("written", ["café", "cafe", "cafe\u0301"])
    def test_accents_make_no_difference(self, repo: Repo, tmp_path: Path, words: str, written: str) -> None:
        session = ClaudeSession("one")
        session.prompt(f"Is the {written} open?")
        session.prompt("Is the harbour?")
        keep(repo, tmp_path / "one.jsonl", session.data)

        assert [0] == transcript_find(repo, TranscriptFindRequest(session="one", words=words)).rows

    def test_words_of_a_call_and_its_result_are_of_one_row(self, found: Any) -> None:
        assert [1] == found("Grep refused")

    def test_nothing_is_no_question(self, found: Any) -> None:
        with pytest.raises(BadRequest):
            found('  "" ')


class TestOutline:
    def test_names_prompts_failures_files_and_compactions_by_their_rows(self, repo: Repo) -> None:
        checkpoint(
            repo,
            [
                [
                    Prompt(content="fix it", message_id="1"),
                    ToolCall(name="Read", id="a", input=b'{"file_path":"/w/a.py"}', message_id="2"),
                    ToolResult(id="a", output="code", message_id="3"),
                ],
                [
                    ToolCall(name="Bash", id="b", input=b'{"command":"pytest -q"}', message_id="4"),
                    ToolResult(id="b", output="1 failed", is_error=True, message_id="5"),
                    ToolCall(name="Edit", id="c", input=b'{"file_path":"/w/a.py"}', message_id="6"),
                ],
            ],
        )
        outline = transcript_outline(repo, TranscriptOutlineRequest(session="s"))

        assert [(0, "fix it")] == [(mark.n, mark.text) for mark in outline.prompts]
        assert [(2, "Bash: pytest -q")] == [(mark.n, mark.text) for mark in outline.failures]
        assert [("/w/a.py", {"read": 1, "edit": 1}, [1, 3])] == [(f.path, f.ops, f.rows) for f in outline.files]
        assert "prCe" == outline.strip
        assert {"prompts": 1, "compactions": 0, "failures": 1, "files": 1} == outline.counts


class TestOneRow:
    def test_a_long_text_is_cut_in_a_range_and_whole_by_itself(self, repo: Repo) -> None:
        checkpoint(repo, [[Prompt(content="x" * 9000, message_id="1")]])
        (row,) = all_rows(repo, "s")

        assert (8000, 1000) == (len(row.text), row.cut)
        whole = transcript_row(repo, TranscriptRowRequest(session="s", id="1"))
        assert (9000, 0) == (len(whole.text), whole.cut)
        assert whole == transcript_row(repo, TranscriptRowRequest(session="s", n=0))

    def test_arguments_are_cut_and_stay_what_they_are(self, repo: Repo) -> None:
        given_input = json.dumps({"file_path": "/a", "content": "y" * 9000, "more": 1}).encode()
        checkpoint(repo, [[ToolCall(name="Write", id="a", input=given_input, message_id="1")]])
        (row,) = all_rows(repo, "s")

        assert row.call is not None
        assert "/a" == row.call.input["file_path"]
        assert len(row.call.input["content"]) + row.call.input_cut >= 9000
        whole = transcript_row(repo, TranscriptRowRequest(session="s", n=0)).call
        assert whole is not None
        assert (json.loads(given_input), 0) == (whole.input, whole.input_cut)

    def test_a_secret_is_shown_to_its_owner_and_masked_for_others(self, repo: Repo) -> None:
        key = "sk-ant-api03-" + "Ab1" * 31 + "AA"
        checkpoint(repo, [[Prompt(content=f"my key is {key}", message_id="1")]])

        assert key in ask(repo, "s").rows[0].text
        assert key not in ask(repo, "s", mask=True).rows[0].text

    def test_a_picture_has_an_address(self, repo: Repo) -> None:
        images = (Image(media_type="image/png", data=PNG), Image(url="https://example.com/a.png"))
        checkpoint(repo, [[Prompt(content="look", images=images, message_id="a/b")]])
        (row,) = all_rows(repo, "s")

        assert [("image/png", 48, "/api/v1/pictures/s/a%2Fb/0/0"), ("", 0, None)] == [
            (one.media_type, one.bytes, one.url) for one in row.pictures
        ]
        opened = repo.transcripts.open("s")
        assert PNG == repo.transcripts.picture(opened, "a/b", 0, 0).data
        with pytest.raises(NotFound):
            repo.transcripts.picture(opened, "a/b", 0, 7)

    def test_exactly_one_way_to_name_it(self, repo: Repo) -> None:
        checkpoint(repo, [[Prompt(content="x", message_id="1")]])

        for wrong in (TranscriptRowRequest(session="s"), TranscriptRowRequest(session="s", id="1", n=0)):
            with pytest.raises(BadRequest):
                transcript_row(repo, wrong)
        with pytest.raises(NotFound):
            transcript_row(repo, TranscriptRowRequest(session="s", n=7))


class TestCallsAcrossDeltas:
    def test_a_result_in_another_delta_is_a_row_and_the_call_is_answered(self, repo: Repo) -> None:
        call = ToolCall(name="Bash", id="a", message_id="1", time=1_000_000)
        checkpoint(repo, [[call], [ToolResult(id="a", output="out", is_error=True, message_id="2", time=3_000_000)]])
        asked, answer = all_rows(repo, "s")

        assert asked.call is not None
        assert (True, True, "", 2000) == (
            asked.call.answered, asked.call.failed, asked.call.result, asked.call.took_ms,
        )  # fmt: skip
        assert ("result", "out") == (answer.kind, answer.text)


@st.composite
def sessions(draw: st.DrawFn) -> list[list[Event]]:
    """Deltas of any events, of a few agents, whose records have names of their own."""
    deltas = draw(st.lists(st.lists(any_event(), max_size=6), min_size=1, max_size=6))
    number = itertools.count()
    ids = st.sampled_from(["", "c1", "c2", "c3"])
    return [
        [
            event.replace(
                message_id=f"m{next(number)}",
                agent_id="",
                **({"id": draw(ids)} if isinstance(event, ToolCall | ToolResult) else {}),
            )
            for event in delta
        ]
        for delta in deltas
    ]


@given(deltas=sessions(), data=st.data())
def test_any_session_is_told_row_by_row(deltas: list[list[Event]], data: st.DataObject) -> None:
    with harken.open("memory:") as repo:
        checkpoint(repo, deltas)
        rows = all_rows(repo, "s")
        told = [DeltaRows(delta) for delta in deltas]

        assert list(range(len(rows))) == [row.n for row in rows]
        assert sum(len(one.rows) for one in told) == len(rows)
        start = data.draw(st.integers(0, len(rows)))
        count = data.draw(st.integers(0, 20))
        assert rows[start : start + count] == ask(repo, "s", start, count).rows
        for row in rows:
            assert row.n == transcript_place(repo, TranscriptPlaceRequest(session="s", id=row.id, index=row.index)).n
        strip = transcript_outline(repo, TranscriptOutlineRequest(session="s", strip=5)).strip
        assert len(strip) <= 5


@given(st.lists(any_event(), max_size=30))
def test_every_event_is_in_one_row_or_counted(events: list[Event]) -> None:
    rows = DeltaRows(events)
    joined = sum(row.joined is not None for row in rows.rows)

    assert len(events) == len(rows.rows) + joined + sum(rows.left_out.values())


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    with harken.open(tmp_path_factory.mktemp("real") / "store.db") as repo:
        for runtime in ("claude-code", "codex"):
            for folder in session_folders(runtime):
                list(repo.import_sessions([folder]))
        repo.keep_index(numbers=False)
        yield repo


ODD = {"ses_stage0_small", "019fc8be-3658-7ca3-9e29-000000000000"}
"""Sessions of the corpus whose records were cut short, so that they name others by one and the same name."""


def test_real_sessions_have_everything_once(real: Repo) -> None:
    for session in real.sessions():
        if not session.stand or session.session in ODD:
            continue
        opened, rows = read_all(real, session.session)
        assert len(opened.layout) == len(rows)
        have = Counter(name for row in rows for name in names_of(row))
        seen = RetoldCalls()
        whole = [
            event
            for event in session_events(real.store, session, agents=False)
            if "#created" not in event.message_id
            and not (isinstance(event, ToolCall | ToolResult) and seen.is_told_again(event))
        ]
        want = Counter(name for row in DeltaRows(whole).rows for name in names_of(row))
        assert want == have, session.session


def names_of(row: RowEvents) -> list[tuple[str, int, str]]:
    return [(event.message_id, event.index, event.kind) for event in (row.event, row.joined) if event is not None]


def test_places_of_real_sessions_agree_with_their_rows(real: Repo) -> None:
    for session in real.sessions():
        opened, rows = read_all(real, session.session) if session.stand else (None, [])
        if opened is None:
            continue
        often = Counter(name[:2] for row in rows for name in names_of(row))
        for number in range(0, len(rows), 1 + len(rows) // 15):
            for name, index, _ in names_of(rows[number]):
                if often[name, index] == 1:
                    assert number == real.transcripts.place(opened, name, index)


class TestACallThatAnotherRecordTellsAgain:
    """Claude Code has copied records inside a file, under new names and with their times."""

    @staticmethod
    def told_twice(session: ClaudeSession, *, results: bool) -> bytes:
        session.prompt("look")
        begin = len(session.lines)
        session.call("Bash", "pool.py")
        again = session.lines[begin : len(session.lines) if results else begin + 1]
        session.answer("It is there.")
        session.lines += [line.replace(b'"uuid": "', b'"uuid": "again-') for line in again]
        session.prompt("and now?")
        session.answer("Still.")
        return b"".join(session.lines)

    @pytest.mark.parametrize("results", [True, False])
    def test_is_one_row_and_one_call(self, repo: Repo, tmp_path: Path, results: bool) -> None:
        session = ClaudeSession(LONG)
        keep(repo, tmp_path / f"{session.session}.jsonl", self.told_twice(session, results=results))

        kinds = Counter(row.kind for row in ask(repo, session.session, count=40).rows)

        assert (1, 0, 2) == (kinds["call"], kinds["result"], kinds["prompt"])
        assert 1 == repo.usage()[0].total().calls

    def test_is_one_row_in_a_session_that_grew(self, repo: Repo, tmp_path: Path) -> None:
        session = ClaudeSession(LONG)
        lines = self.told_twice(session, results=True).splitlines(keepends=True)
        for upto in range(1, len(lines) + 1):
            keep(repo, tmp_path / f"{session.session}.jsonl", b"".join(lines[:upto]))
            grown = ask(repo, session.session, count=40)
        with harken.open(tmp_path / "other.db") as fresh:
            keep(fresh, tmp_path / f"{session.session}.jsonl", b"".join(lines))

            kinds = [row.kind for row in ask(fresh, session.session, count=40).rows]
            assert (1, kinds) == (kinds.count("call"), [row.kind for row in grown.rows])

    def test_leaves_every_row_where_its_number_says(self, repo: Repo, tmp_path: Path) -> None:
        session = ClaudeSession(LONG)
        keep(repo, tmp_path / f"{session.session}.jsonl", self.told_twice(session, results=True))
        rows = ask(repo, session.session, count=40).rows

        outline = transcript_outline(repo, TranscriptOutlineRequest(session=session.session))

        prompts = [row.n for row in rows if row.kind == "prompt"]
        assert (["look", "and now?"], prompts) == (
            [one.text for one in outline.prompts],
            [one.n for one in outline.prompts],
        )
        assert [1] == [row.n for row in rows if row.kind == "call"]
