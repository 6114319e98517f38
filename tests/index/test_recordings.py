"""What a run said on its stream and its file says too is in the index once; what only the stream said stays there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.context import Tracker, TrackerSettings
from harken.events import Error, Event, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.formats.codex_stream import CodexStreamReader
from harken.index import StoreIndex
from harken.repo import Repo
from harken.store.base import SessionRow
from support.indexes import digest
from support.rollouts import THREAD, Rollout
from support.sessions import ClaudeSession

SECOND = 10**6
RECORDED = Path(__file__).parents[1] / "recorded"


class Desk:
    """A store whose index follows at every step, and the file of the session `aaa` beside it."""

    def __init__(self, repo: Repo, folder: Path) -> None:
        self.repo = repo
        self._path = folder / "aaa.jsonl"

    def tracker(self, session: str = "aaa", runtime: str = "claude-code") -> Tracker:
        parent, _, agent = session.partition("/")
        row = SessionRow(session=session, runtime=runtime, parent=parent if agent else "", agent=agent)
        return Tracker(self.repo, TrackerSettings(session_id=session, branch=f"live/{session}", row=row))

    def record(self, *events: Event, session: str = "aaa", runtime: str = "claude-code") -> None:
        tracker = self.tracker(session, runtime)
        tracker.feed(list(events))
        tracker.close()
        self.repo.index.catch_up()

    def take_in(self, data: bytes) -> None:
        self._path.write_bytes(data)
        list(self.repo.import_sessions([self._path]))
        self.repo.index.catch_up()

    def told(self, *roles: str) -> list[tuple[str, str]]:
        """What the index has, which a new one has too: roles, and texts as far as they are shown."""
        with StoreIndex(self.repo.store, None) as fresh:
            fresh.catch_up()
            assert digest(fresh) == digest(self.repo.index)
        wanted = roles or ("human", "assistant", "thinking", "call", "result")
        hits = self.repo.search(" OR ".join(WORDS), limit=100).hits
        return sorted((hit.role, hit.snippet.text) for hit in hits if hit.role in wanted)


WORDS = ("walrus", "otter", "heron", "newt")


def turn(word: str, second: int) -> list[Event]:
    """As a stream tells it: the prompt has no name, and the answer one that the file does not have."""
    answer = Response(content=f"The {word} answers.", time=(second + 1) * SECOND, message_id=f"line_{second}")
    return [Prompt(content=f"Ask the {word}.", time=second * SECOND), answer]


def both(word: str) -> list[tuple[str, str]]:
    return [("assistant", f"The {word} answers."), ("human", f"Ask the {word}.")]


def write(session: ClaudeSession, *words: str) -> bytes:
    for word in words:
        session.prompt(f"Ask the {word}.")
        session.answer(f"The {word} answers.")
    return session.data


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with harken.open(tmp_path / "store.db") as repo:
        yield Desk(repo, tmp_path)


@pytest.fixture
def session() -> ClaudeSession:
    return ClaudeSession("aaa")


def test_what_a_run_said_is_found_once_when_its_file_is_imported(desk: Desk, session: ClaudeSession) -> None:
    desk.record(*turn("walrus", 1), *turn("otter", 3))
    assert sorted([*both("walrus"), *both("otter")]) == desk.told()

    desk.take_in(write(session, "walrus", "otter"))

    assert sorted([*both("walrus"), *both("otter")]) == desk.told()
    (records,) = zip(*desk.repo.index.query("SELECT record FROM messages WHERE role = 'human'"), strict=True)
    assert not [record for record in records if record.startswith("@")], "the file's records stand"


def test_the_same_where_the_file_comes_first(desk: Desk, session: ClaudeSession) -> None:
    """A watch may be faster than the recording of the run that it watches."""
    tracker = desk.tracker()
    desk.take_in(write(session, "walrus"))
    tracker.feed(turn("walrus", 1))
    desk.take_in(write(session, "otter"))
    tracker.feed(turn("otter", 3))
    tracker.close()
    desk.repo.index.catch_up()

    assert sorted([*both("walrus"), *both("otter")]) == desk.told()


class TestAFileThatLacksTheEnd:
    def test_what_only_the_recording_has_is_found_once(self, desk: Desk, session: ClaudeSession) -> None:
        desk.record(*turn("walrus", 1), *turn("otter", 3))
        desk.take_in(write(session, "walrus"))

        assert sorted([*both("walrus"), *both("otter")]) == desk.told()

    @pytest.mark.parametrize("later", [("otter",), ("heron",), ("heron", "otter")])
    def test_however_the_file_goes_on(self, desk: Desk, session: ClaudeSession, later: tuple[str, ...]) -> None:
        desk.record(*turn("walrus", 1), *turn("otter", 3))
        desk.take_in(write(session, "walrus"))
        desk.take_in(write(session, *later))

        said = {"walrus", "otter", *later}
        assert sorted(line for word in said for line in both(word)) == desk.told()

    def test_one_that_never_comes_takes_nothing_away(self, desk: Desk) -> None:
        desk.record(*turn("walrus", 1))
        desk.record(*turn("otter", 3))

        assert sorted([*both("walrus"), *both("otter")]) == desk.told()


class TestTheSameWordsAgain:
    def test_said_in_a_later_run_they_are_there_twice_before_and_after_the_file_has_them(
        self, desk: Desk, session: ClaudeSession
    ) -> None:
        desk.take_in(write(session, "walrus"))
        desk.record(*turn("walrus", 30))
        assert sorted(both("walrus") * 2) == desk.told()

        desk.take_in(write(session, "walrus"))

        assert sorted(both("walrus") * 2) == desk.told()

    def test_said_twice_in_a_run_whose_file_has_one_they_are_there_twice(
        self, desk: Desk, session: ClaudeSession
    ) -> None:
        desk.record(*turn("walrus", 1), *turn("walrus", 3))
        desk.take_in(write(session, "walrus"))
        assert sorted(both("walrus") * 2) == desk.told()

        desk.take_in(write(session, "walrus"))

        assert sorted(both("walrus") * 2) == desk.told()


def test_what_only_a_stream_tells_stays(desk: Desk, session: ClaudeSession) -> None:
    desk.record(Error(message="The newt is missing."), *turn("walrus", 1), Thinking(content="A heron?", time=3))
    desk.take_in(write(session, "walrus"))

    expected = [*both("walrus"), ("system", "The newt is missing."), ("thinking", "A heron?")]
    assert sorted(expected) == desk.told("human", "assistant", "thinking", "system")


def test_a_sub_agent_of_a_run_says_what_it_said_once(desk: Desk, tmp_path: Path, session: ClaudeSession) -> None:
    desk.record(*turn("walrus", 1))
    desk.record(*turn("otter", 2), session="aaa/b1")
    agent = ClaudeSession("aaa", agent="b1", salt="b")
    folder = tmp_path / "aaa" / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-b1.jsonl").write_bytes(write(agent, "otter"))
    desk.take_in(write(session, "walrus"))
    list(desk.repo.import_sessions([folder]))
    desk.repo.index.catch_up()

    expected = [*both("walrus"), ("assistant", "The otter answers."), ("injected", "Ask the otter.")]
    assert sorted(expected) == desk.told("human", "assistant", "injected")


class TestCalls:
    """Codex' stream has no ids of calls, tells the shell that ran a command, and has only what that printed."""

    def record(self, desk: Desk, *printed: str) -> None:
        events: list[Event] = [Prompt(content="Ask the walrus.", time=SECOND)]
        for number, text in enumerate(printed):
            call_id, name = f"{THREAD}:1:item_{number}", f"{THREAD}:1:line_{number}"
            asked = b'{"command": "/bin/bash -lc \'cat heron\'"}'
            events.append(
                ToolCall(id=call_id, name="exec_command", input=asked, message_id=f"{THREAD}:1:line_{number}")
            )
            events.append(ToolResult(id=call_id, output=text, message_id=f"{name}b"))
        desk.record(*events, session=THREAD, runtime="codex")

    def take_in(self, desk: Desk, *reports: str) -> None:
        file = Rollout()
        file.user("Ask the walrus.")
        for number, text in enumerate(reports):
            file.call(f"call_{number}", "exec_command", '{"cmd": "cat heron"}').output(f"call_{number}", text)
        desk.take_in(file.data)

    def test_and_results_are_there_once(self, desk: Desk) -> None:
        self.record(desk, "an otter\n", "a newt\n")
        self.take_in(desk, "Exit code: 0\nOutput:\nan otter\n", "Exit code: 0\nOutput:\na newt\n")

        assert 2 == len(desk.told("call"))
        assert 2 == len(desk.told("result"))
        assert [("call_0",), ("call_1",)] == desk.repo.index.query("SELECT call_id FROM calls ORDER BY call_id")

    def test_a_result_that_the_file_cuts_short_stays(self, desk: Desk) -> None:
        self.record(desk, "an otter and a newt\n")
        self.take_in(desk, "Exit code: 0\nOutput:\nan otter … 2 words truncated\n")

        assert 1 == len(desk.told("call"))
        assert 2 == len(desk.told("result"))
        assert ["result"] == [hit.role for hit in desk.repo.search("newt").hits]

    def test_a_call_that_the_file_lacks_stays(self, desk: Desk) -> None:
        self.record(desk, "an otter\n", "a newt\n")
        self.take_in(desk, "Exit code: 0\nOutput:\nan otter\n")

        assert 2 == len(desk.told("call"))
        assert 2 == len(desk.told("result"))


class TestAgentsOfCodex:
    """Its stream tells in other words than its file which agents were made, who was waited for, and what came of it."""

    STREAM = RECORDED / "streams" / "codex-0.166.0-parallel-agents.jsonl"
    FOLDER = RECORDED / "codex-0.166.0" / "parallel-agents" / "sessions"

    @pytest.mark.parametrize("first", ["stream", "file"])
    def test_calls_and_what_they_gave_back_are_there_once(self, desk: Desk, first: str) -> None:
        reader = CodexStreamReader(run="1")
        events = [event for line in self.STREAM.read_bytes().splitlines() for event in reader.feed(line)]
        tracker = desk.tracker(reader.thread, "codex")
        if first == "stream":
            tracker.feed(events)
            desk.repo.index.catch_up()
        list(desk.repo.import_sessions([self.FOLDER]))
        desk.repo.index.catch_up()
        if first == "file":
            tracker.feed(events)
        tracker.close()
        desk.repo.index.catch_up()

        query = "SELECT role, count(*) FROM messages JOIN sessions USING (session) WHERE session = '{}' GROUP BY role"
        counted = dict(tuple(row) for row in desk.repo.sql(query.format(reader.thread)).rows)
        assert (4, 4, 2) == (counted["call"], counted["result"], counted["assistant"])
        desk.told()


def test_a_session_that_goes_on_elsewhere_keeps_what_it_has_of_the_run(
    desk: Desk, session: ClaudeSession, tmp_path: Path
) -> None:
    desk.record(*turn("walrus", 1))
    desk.repo.resume("aaa", runtime="codex", home=tmp_path / "codex", cwd=tmp_path)
    list(desk.repo.import_sessions([tmp_path / "codex"]))
    desk.repo.index.catch_up()
    desk.take_in(write(session, "walrus"))

    assert both("walrus") == desk.told()
    assert 2 == desk.repo.index.query("SELECT count(*) FROM copies")[0][0]
