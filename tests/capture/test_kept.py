"""What is captured is a session like any other: kept while it grows, resumed, searched, shown and counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Repo, Session
from harken.api.search import SearchHit, SearchRequest, search
from harken.capture import TranscriptEntry
from harken.capture.exchange import Capture, CapturedRequest
from harken.events import Event, Metric, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.formats import anthropic_messages
from harken.formats.kit.chat import message_events
from harken.index.file import StoreIndex
from support.indexes import digest
from support.small_api import Message, assistant, read, user


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store") as opened:
        yield opened


def converse(capture: Capture) -> None:
    """Two requests of a loop, with a tool and usage."""
    system = {"role": "system", "content": "You keep a garden."}
    first = capture.request(CapturedRequest(messages=[system, user("What grows there?")], read=read, model="m-1"))
    assert first is not None
    call = ToolCall(id="c1", name="look", input=b'{"at": 1}', api_id="r1")
    usage = Metric(input_tokens=30, output_tokens=4, model="m-1", api_id="r1", request_id="q1")
    first.reply([Thinking(content="I cannot know."), Response(content="I look.", api_id="r1"), call], usage=usage)
    history = [system, user("What grows there?"), assistant("I look.", "c1")]
    result = {"role": "tool", "id": "c1", "content": "nettles and marjoram"}
    second = capture.request(CapturedRequest(messages=[*history, result], read=read, model="m-1"))
    assert second is not None
    usage = Metric(input_tokens=50, output_tokens=6, model="m-1", api_id="r2", request_id="q2")
    second.reply([Response(content="Nettles.", api_id="r2")], usage=usage)


def test_each_turn_is_kept_while_the_program_runs(repo: Repo, tmp_path: Path) -> None:
    with repo.session(tmp_path / "garden.jsonl") as session:
        converse(Capture(session, "test"))
        name = session.session_id
        assert b"marjoram" in repo.materialize(name).bytes
        assert 7 == len(session[TranscriptEntry].all())


def test_it_goes_on_in_any_format_with_its_calls_answered(repo: Repo, tmp_path: Path) -> None:
    with repo.session(tmp_path / "garden.jsonl") as session:
        converse(Capture(session, "test"))
        name = session.session_id
    for format in ("anthropic-messages-v1", "openai-responses-v1", "openai-chat-v1", "claude-code-v1", "codex-v1"):
        written = repo.materialize(name, format=format).bytes
        assert 1 == written.count(b"marjoram"), format
        assert written.index(b"I look.") < written.index(b"marjoram") < written.index(b"Nettles."), format


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_it_is_resumed_in_a_runtime(repo: Repo, tmp_path: Path, runtime: str) -> None:
    with repo.session(tmp_path / "garden.jsonl") as session:
        converse(Capture(session, "test"))
        name = session.session_id
    (tmp_path / "home").mkdir()
    ready = repo.resume(name, runtime, cwd=tmp_path, home=tmp_path / "home")
    assert b"marjoram" in Path(ready.path).read_bytes()


def test_numbers_count_each_request_once(repo: Repo, tmp_path: Path) -> None:
    log = tmp_path / "garden.jsonl"
    with repo.session(log) as session:
        converse(Capture(session, "test"))
    list(repo.import_sessions([log]))  # the same log, seen again
    (spent,) = repo.session_costs().values()
    assert (80, 10) == (spent.tokens.input, spent.tokens.output)


def test_replies_to_which_a_server_gives_one_id_stay_several(repo: Repo, tmp_path: Path) -> None:
    """Ollama draws the number of a reply from a thousand."""
    result = {"role": "tool", "id": "c1", "content": "nettles and marjoram"}
    asked = [user("What grows there?"), assistant("", "c1"), result, assistant("Nettles."), user("Only they?")]
    log = tmp_path / "garden.jsonl"
    for end, answer in (1, asked[1]), (3, asked[3]), (5, assistant("Marjoram, too.")):
        with repo.session(log) as session:
            exchange = Capture(session, "test").request(CapturedRequest(messages=asked[:end], read=read, model="m-1"))
            assert exchange is not None
            events = [event.replace(api_id="chatcmpl-7") for event in read(answer)]
            exchange.reply(events, usage=Metric(output_tokens=5, model="m-1", api_id="chatcmpl-7"))

    written = json.loads(repo.materialize(session.session_id, format="openai-chat-v1").bytes)["messages"]

    assert ["user", "assistant", "tool", "assistant", "user", "assistant"] == [one["role"] for one in written]
    assert [None, "Nettles.", "Marjoram, too."] == [one["content"] for one in written if one["role"] == "assistant"]
    (spent,) = repo.session_costs().values()
    assert 15 == spent.tokens.output


def test_what_a_chat_message_says_beside_its_words_is_written_again(repo: Repo, tmp_path: Path) -> None:
    kept, other = ({"type": "file", "file": {"file_id": name}} for name in ("file-1", "gs-2"))
    asked = [
        {"role": "system", "content": "Be brief.", "name": "house"},
        {"role": "user", "content": "What grows there?", "name": "Jill"},
        {"role": "user", "content": [{"type": "text", "text": "Look"}, kept]},
        {"role": "user", "content": [{"type": "text", "text": "And"}, other]},
    ]
    with repo.session(tmp_path / "garden.jsonl") as session:
        exchange = Capture(session, "test").request(CapturedRequest(messages=asked, read=message_events))
        assert exchange is not None
        exchange.reply([Response(content="Grass.")])

    made = repo.materialize(session.session_id, format="openai-chat-v1")

    assert [*asked, {"role": "assistant", "content": "Grass."}] == json.loads(made.bytes)["messages"]
    assert () == made.losses


def test_the_summary_of_a_compaction_is_found(repo: Repo, tmp_path: Path) -> None:
    with repo.session(tmp_path / "garden.jsonl") as session:
        session.log_agent_created("a")
        session.log_transcript_entry("a", {"role": "user", "content": "Tell me."})
        session.log_transcript_entry("a", {"role": "assistant", "content": "Well."})
        session.log_transcript_edit("a", "compact", 2, content="They spoke of a badger.")

    (hit,) = repo.search("badger").hits
    assert ("injected", "They spoke of a badger.") == (hit.role, hit.snippet.text)
    assert_grown_is_fresh(repo)


class TestAMessageOfAnotherConversation:
    """A session has one log, in which several conversations stand; each is an agent's."""

    @pytest.fixture
    def name(self, repo: Repo, tmp_path: Path) -> str:
        with repo.session(tmp_path / "garden.jsonl") as session:
            capture = Capture(session, "test")
            say(capture, [user("What grows there?")], "Grass.")
            say(capture, [user("Who digs?")], "The badger.")
            say(capture, [user("What grows there?"), assistant("Grass."), user("And trees?")], "Oaks.")
            return session.session_id

    def test_names_the_context_of_that_conversation(self, repo: Repo, name: str) -> None:
        (hit,) = (one for one in search(repo, SearchRequest(query="badger")) if isinstance(one, SearchHit))
        (other,) = (row.session for row in repo.sessions() if row.parent)

        for ref in (hit.ref, f"{name}@{hit.message_id}", f"{other}@{hit.message_id}"):
            assert ["Who digs?", "The badger."] == words(repo, ref)

    def test_names_the_context_of_the_main_conversation_where_it_is_of_that(self, repo: Repo, name: str) -> None:
        (hit,) = (one for one in search(repo, SearchRequest(query="grass")) if isinstance(one, SearchHit))

        assert ["What grows there?", "Grass."] == words(repo, hit.ref)

    def test_is_looked_at_in_the_session_as_it_stood(self, repo: Repo, name: str) -> None:
        (hit,) = (one for one in search(repo, SearchRequest(query="badger")) if isinstance(one, SearchHit))

        seen = {event.content for event in repo.events(hit.ref) if isinstance(event, Response)}
        assert {"Grass.", "The badger."} == seen


def say(capture: Capture, messages: list[dict[str, Any]], words: str) -> None:
    exchange = capture.request(CapturedRequest(messages=messages, read=read, model="m-1"))
    assert exchange is not None
    exchange.reply([Response(content=words)])


def words(repo: Repo, ref: str) -> list[str]:
    """What is said in the context that a REF names."""
    told = json.loads(repo.materialize(ref, format="openai-chat-v1").bytes)
    return [message["content"] for message in told["messages"]]


class TestCallsWithOneId:
    """Gemini gives calls no ids, so that each conversation has a first one; some servers number anew in each reply."""

    def test_of_two_conversations_are_two_each_with_its_own_result(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "garden.jsonl") as session:
            capture = Capture(session, "test")
            ask(capture, [user("What grows there?")], "look")
            repo.index.catch_up()
            ask(capture, [user("Make a hole.")], "dig")
            answer = {"role": "tool", "id": "c1", "content": "done"}
            ask(capture, [user("Make a hole."), assistant("I try.", "dig"), answer], "rest")
            repo.index.catch_up()

        outcomes = repo.sql("SELECT tool, failed FROM calls ORDER BY tool").rows
        assert [("dig", 0), ("look", None), ("rest", None)] == outcomes
        assert [("dig",)] == repo.sql("SELECT tool FROM messages WHERE role = 'result'").rows
        assert {"dig": 1, "look": 1, "rest": 1} == calls_by_tool(repo)
        assert_grown_is_fresh(repo)

    def test_in_two_replies_are_two(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "garden.jsonl") as session:
            capture = Capture(session, "test")
            ask(capture, [user("Make a hole.")], "dig")
            answer = {"role": "tool", "id": "c1", "content": "done"}
            ask(capture, [user("Make a hole."), assistant("I try.", "dig"), answer], "dig")
            name = session.session_id

        assert {"dig": 2} == calls_by_tool(repo) == next(iter(repo.stats([name]))).figures.tools
        assert 2 == repo.report(name).tools["dig"].calls
        assert 1 == repo.report(name).tools["dig"].unanswered

    def test_in_one_reply_are_two_each_with_its_own_result(self, repo: Repo, tmp_path: Path) -> None:
        calls = [ToolCall(id="c1", name="dig", input=b"{}"), ToolCall(id="c1", name="look", input=b"{}")]
        with repo.session(tmp_path / "garden.jsonl") as session:
            exchange = Capture(session, "test").request(CapturedRequest(messages=[user("Go.")], read=read))
            assert exchange is not None
            exchange.reply(calls)
            (agent,) = session.agents
            session.append([ToolResult(agent_id=agent, id="c1", output="stone", is_error=True)])
            session.checkpoint()
            repo.index.catch_up()
            session.append([ToolResult(agent_id=agent, id="c1", output="grass")])
            session.append([Response(agent_id=agent, content="Seen.")])
        repo.index.catch_up()

        outcomes = repo.sql("SELECT tool, failed FROM calls ORDER BY tool").rows
        assert [("dig", 1), ("look", 0)] == outcomes
        named = repo.sql("SELECT tool FROM messages WHERE role = 'result' ORDER BY time").rows
        assert [("dig",), ("look",)] == named
        assert_grown_is_fresh(repo)

    def test_in_one_reply_whose_results_are_one_message_have_each_its_own(self, repo: Repo, tmp_path: Path) -> None:
        calls = [ToolCall(id="c1", name="dig", input=b"{}"), ToolCall(id="c1", name="look", input=b"{}")]
        with repo.session(tmp_path / "garden.jsonl") as session:
            exchange = Capture(session, "test").request(CapturedRequest(messages=[user("Go.")], read=read))
            assert exchange is not None
            exchange.reply(calls)
            (agent,) = session.agents
            repo.index.catch_up()
            results = [ToolResult(agent_id=agent, id="c1", output="stone", is_error=True)]
            results += [ToolResult(agent_id=agent, id="c1", output="grass", index=1)]
            session.append(results)
            session.checkpoint()
            repo.index.catch_up()
            session.append([Response(agent_id=agent, content="Seen.")])
            name = session.session_id
        repo.index.catch_up()

        assert [("dig", 1), ("look", 0)] == repo.sql("SELECT tool, failed FROM calls ORDER BY tool").rows
        assert_grown_is_fresh(repo)
        details = repo.report(name).tools
        assert {"dig": (1, 1, 0), "look": (1, 0, 0)} == {
            tool: (use.calls, use.failed, use.unanswered) for tool, use in details.items()
        }

    def test_of_which_the_first_was_left_alone_end_with_the_last(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "garden.jsonl") as session:
            capture = Capture(session, "test")
            ask(capture, [user("Make a hole.")], "dig")
            said = [user("Make a hole."), assistant("I try.", "dig"), user("Rather look.")]
            ask(capture, said, "look")
            answer = {"role": "tool", "id": "c1", "content": "grass"}
            ask(capture, [*said, assistant("I try.", "look"), answer], "rest")

        outcomes = repo.sql("SELECT tool, failed FROM calls ORDER BY tool").rows
        assert [("dig", None), ("look", 0), ("rest", None)] == outcomes
        assert_grown_is_fresh(repo)

    def test_count_once_where_the_log_is_imported_beside_the_session(self, repo: Repo, tmp_path: Path) -> None:
        with repo.session(tmp_path / "garden.jsonl") as session:
            converse(Capture(session, "test"))
        list(repo.import_sessions([tmp_path / "garden.jsonl"]))

        assert {"look": 1} == calls_by_tool(repo)
        assert_grown_is_fresh(repo)


def ask(capture: Capture, messages: list[dict[str, Any]], tool: str) -> None:
    """A request whose reply calls a tool by the id that every reply has."""
    exchange = capture.request(CapturedRequest(messages=messages, read=read_tools, model="m-1"))
    assert exchange is not None
    exchange.reply([Response(content="I try."), ToolCall(id="c1", name=tool, input=b"{}")])


def read_tools(message: dict[str, Any]) -> Iterator[Event]:
    """A message that names tools where others have the ids of calls."""
    for event in read(message):
        yield event.replace(id="c1", name=event.id, input=b"{}") if isinstance(event, ToolCall) else event


def calls_by_tool(repo: Repo) -> dict[str, int]:
    (spent, _) = repo.usage()
    return {group.key: group.spending.calls for group in spent.groups("tool")}


def assert_grown_is_fresh(repo: Repo) -> None:
    repo.index.catch_up()
    with StoreIndex(repo.store, None) as fresh:
        fresh.catch_up()
        assert digest(fresh) == digest(repo.index)


def test_who_wrote_a_reply_is_known_wherever_its_log_ended_when_it_was_indexed_first(tmp_path: Path) -> None:
    """The model of thoughts and calls stands on the line behind the reply, with its figures."""
    log = tmp_path / "garden.jsonl"
    with Session(log) as session:
        converse(Capture(session, "test"))
    lines = log.read_bytes().splitlines(keepends=True)

    told = {cut: models_where_indexed_at(cut, lines, log) for cut in range(1, len(lines) + 1)}

    assert {("assistant", "m-1"), ("call", "m-1")} < set(told[len(lines)])
    assert dict.fromkeys(told, told[len(lines)]) == told


def models_where_indexed_at(cut: int, lines: list[bytes], log: Path) -> list[tuple[Any, ...]]:
    """Who wrote what, where the first lines of a log were indexed before the others were there."""
    with harken.open(log.with_suffix(f".{cut}")) as repo:
        for some in (lines[:cut], lines):
            log.write_bytes(b"".join(some))
            list(repo.import_sessions([log]))
            repo.index.catch_up()
        assert_grown_is_fresh(repo)
        return repo.sql("SELECT role, model FROM messages WHERE role != 'title' ORDER BY time, role").rows


@pytest.mark.parametrize("format", ["openai-responses-v1", "codex-v1", "openai-chat-v1", "anthropic-messages-v1"])
def test_of_several_conversations_one_is_written_and_the_others_are_told(
    repo: Repo, tmp_path: Path, format: str
) -> None:
    with repo.session(tmp_path / "garden.jsonl") as session:
        capture = Capture(session, "test")
        say(capture, [{"role": "system", "content": "Be a gardener."}, user("What grows there?")], "nettles")
        say(capture, [{"role": "system", "content": "Be a cook."}, user("What is for supper?")], "soup")
        name = session.session_id

    made = repo.materialize(name, format=format, stop="root")

    assert (True, False) == (b"What grows there?" in made.bytes, b"What is for supper?" in made.bytes)
    assert b"Be a cook." not in made.bytes
    assert {"records of other agents": 3} == {
        loss.what: loss.count for loss in made.losses if loss.what == "records of other agents"
    }


def test_a_commit_is_described_by_its_own_conversation_alone(repo: Repo, tmp_path: Path) -> None:
    with harken.Session(tmp_path / "garden.jsonl") as session:
        capture = Capture(session, "test")
        for asked, answered in (("What grows there?", "Nettles."), ("How tall are trees?", "Very tall.")):
            exchange = capture.request(CapturedRequest(messages=[user(asked)], read=read, model="m-1"))
            assert exchange is not None
            exchange.reply([Response(content=answered)])
    [brought] = repo.import_sessions([tmp_path / "garden.jsonl"])
    assert ["What grows there? → Nettles."] == [entry.summary for entry in repo.log(brought.session)]


def test_words_that_a_person_sent_along_with_results_are_their_prompt_everywhere(tmp_path: Path) -> None:
    def read_both(message: Message) -> Iterator[Event]:
        yield from read(message)
        if "also" in message:
            yield Prompt(content=message["also"])

    asked, result = user("Look."), {"role": "tool", "id": "c1", "content": "nettles", "also": "And the shed?"}
    log = tmp_path / "garden.jsonl"
    with Session(log) as session:
        capture = Capture(session, "test")
        for messages, reply in (
            ([asked], ToolCall(id="c1", name="look")),
            ([asked, assistant("", "c1"), result], None),
        ):
            exchange = capture.request(CapturedRequest(messages=messages, read=read_both, model="m-1"))
            assert exchange is not None
            exchange.reply([reply or Response(content="A rake.")])
    with harken.open(tmp_path / "store") as repo:
        (seen,) = repo.import_sessions([log])
        assert 2 == next(iter(repo.stats([seen.session]))).figures.prompts.human
        assert [(2,)] == repo.sql("SELECT count(*) FROM messages WHERE role = 'human'").rows
        assert [(2,)] == repo.sql("SELECT human FROM sessions").rows


def test_a_session_is_called_after_what_a_person_asked_and_not_after_a_reminder_before_it(
    repo: Repo, tmp_path: Path
) -> None:
    parts = ["<system-reminder>\nBe kind.\n</system-reminder>", "Look at it."]
    message = {"role": "user", "content": [{"type": "text", "text": part} for part in parts]}
    with repo.session(tmp_path / "s.jsonl") as session:
        asked = CapturedRequest(messages=[message], read=anthropic_messages.message_events)
        exchange = Capture(session, "test").request(asked)
        assert exchange is not None
        exchange.reply([Response(content="Fine.")])

    assert ["Look at it."] == [row.title for row in repo.sessions()]
