"""A host that alters its history: what it sends again stands again, and is neither logged nor counted twice."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from harken import Session
from harken.capture import TranscriptEntry
from harken.capture.exchange import Capture, CapturedRequest
from harken.events import Event, Prompt, Response, System, Thinking, TranscriptEdit
from harken.events.edits import transcript
from harken.events.tally import Tally
from support.small_api import Message, assistant, read, user


def ask(capture: Capture, *messages: Message, reply: str) -> None:
    exchange = capture.request(CapturedRequest(messages=messages, read=read, model="m"))
    assert exchange is not None
    exchange.reply(list(read(assistant(reply))))


def answer(call: str, content: str) -> Message:
    return {"role": "tool", "id": call, "content": content}


def said(session: Session) -> list[str]:
    return [one.content for one in session[TranscriptEntry].all()]


def standing(session: Session) -> list[str]:
    return [message["content"] for message in session.transcript(session.root or "")]


def edits(session: Session) -> list[tuple[str, int, int | None]]:
    found = (event for event in session.events() if isinstance(event, TranscriptEdit))
    return [(edit.action, edit.start, edit.n) for edit in found]


LONG = [user("a"), assistant("A"), user("b"), assistant("B"), user("c"), assistant("C")]


@pytest.fixture
def long(tmp_path: Path) -> Session:
    session = Session(tmp_path / "long.jsonl")
    capture = Capture(session, "test")
    for turn in range(3):
        ask(capture, *LONG[: 2 * turn + 1], reply="ABC"[turn])
    assert list("aAbBcC") == standing(session) == said(session)
    return session


def test_behind_a_message_that_was_altered_the_rest_stands_again(long: Session) -> None:
    with long as session:
        ask(Capture(session, "test"), LONG[0], assistant("(cut)"), *LONG[2:], user("d"), reply="D")

        assert ["a", "(cut)", "b", "B", "c", "C", "d", "D"] == standing(session)
        assert [*"aAbBcC", "(cut)", "d", "D"] == said(session)
        assert [("truncate", 0, 1), ("restore", 2, 6)] == edits(session)


def test_a_window_over_the_history_says_nothing_again(long: Session) -> None:
    with long as session:
        ask(Capture(session, "test"), LONG[0], *LONG[4:], user("d"), reply="D")

        assert list("acCdD") == standing(session)
        assert list("aAbBcCdD") == said(session)


def test_a_host_that_goes_back_to_the_whole_history_says_nothing_again(long: Session) -> None:
    with long as session:
        capture = Capture(session, "test")
        ask(capture, LONG[0], *LONG[4:], user("d"), reply="D")
        ask(capture, *LONG, user("d"), assistant("D"), user("e"), reply="E")

        assert list("aAbBcCdDeE") == standing(session) == said(session)


def test_a_host_that_goes_to_and_fro_between_two_branches_says_each_once(long: Session) -> None:
    with long as session:
        capture = Capture(session, "test")
        ask(capture, *LONG[:2], user("x"), reply="X")
        ask(capture, *LONG, user("d"), reply="D")
        ask(capture, *LONG[:2], user("x"), assistant("X"), user("y"), reply="Y")

        assert list("aAxXyY") == standing(session)
        assert list("aAbBcCxXdDyY") == said(session)


def test_words_that_are_said_elsewhere_are_new(long: Session) -> None:
    with long as session:
        capture = Capture(session, "test")
        ask(capture, *LONG[:2], user("x"), reply="X")
        ask(capture, *LONG[:2], user("x"), assistant("X"), user("b"), reply="B")

        assert list("aAxXbB") == standing(session)
        assert list("aAbBcCxXbB") == said(session)


def test_a_session_that_is_opened_again_knows_what_was_cut(long: Session) -> None:
    with long as session:
        ask(Capture(session, "test"), *LONG[:2], user("x"), reply="X")
    with Session(long.path) as session:
        ask(Capture(session, "test"), LONG[0], *LONG[4:], user("d"), reply="D")
    with Session(long.path) as session:
        ask(Capture(session, "test"), *LONG[:2], user("x"), assistant("X"), user("y"), reply="Y")

        assert list("aAxXyY") == standing(session)
        assert ["a", "A", "b", "B", "c", "C", "x", "X", "c", "C", "d", "D", "y", "Y"] == said(session)


THOUGHT: Message = {"role": "assistant", "content": ""}
"""What a host sends in the place of a reply of thinking alone."""


class TestAReplyOfThinkingAlone:
    """Nothing in it is compared; where it is asked for again it is taken back all the same."""

    @staticmethod
    def ask(capture: Capture, *messages: Message, reply: Event, name: str = "", follows: str = "") -> None:
        exchange = capture.request(CapturedRequest(messages=messages, read=read, model="m", follows=follows))
        assert exchange is not None
        exchange.reply([reply], metadata={"response_id": name} if name else None)

    @staticmethod
    def stands(session: Session) -> list[str]:
        told = transcript(session.events())
        found = [event for entry in told for event in entry if isinstance(event, Prompt | Response | Thinking | System)]
        return [
            e.message if isinstance(e, System) else e.content for e in found if getattr(e, "subtype", "") != "request"
        ]

    @pytest.mark.parametrize("instructions", [(), ("be short",)])
    def test_asked_again_the_next_reply_takes_its_place(self, tmp_path: Path, instructions: tuple[str, ...]) -> None:
        log = tmp_path / "thought.jsonl"
        with Session(log) as session:
            self.ask(Capture(session, "test"), user("a"), reply=Thinking(content="first", signature="c2ln"))
        with Session(log) as session:
            capture = Capture(session, "test")
            exchange = capture.request(
                CapturedRequest(messages=[user("a")], read=read, model="m", instructions=instructions)
            )
            assert exchange is not None
            exchange.reply([Thinking(content="second", signature="c2ln"), Response(content="A")])
            assert ["a", *instructions, "second", "A"] == self.stands(session)
            assert ["first", "second"] == [e.content for e in session.events() if isinstance(e, Thinking)]

        with harken.open(tmp_path / "store") as repo:
            (seen,) = repo.import_sessions([log])
            for format in ("openai-chat-v1", "anthropic-messages-v1"):
                written = repo.materialize(seen.session, format=format).bytes
                assert b"second" in written
                assert b"first" not in written

    def test_asked_again_once_more_behind_what_was_answered(self) -> None:
        with Session() as session:
            capture = Capture(session, "test")
            self.ask(capture, user("a"), reply=Thinking(content="hm"))
            self.ask(capture, user("a"), THOUGHT, reply=Response(content="A"))
            self.ask(capture, user("a"), reply=Response(content="B"))
            assert ["a", "B"] == self.stands(session)
            self.ask(capture, user("a"), assistant("A"), user("b"), reply=Response(content="C"))
            assert ["a", "A", "b", "C"] == self.stands(session)

    def test_sent_back_or_followed_by_a_users_words_it_stays(self) -> None:
        for messages in ([THOUGHT], [THOUGHT, user("b")], [user("b")]):
            with Session() as session:
                capture = Capture(session, "test")
                self.ask(capture, user("a"), reply=Thinking(content="hm"))
                self.ask(capture, user("a"), *messages, reply=Response(content="A"))
                assert ["a", "hm", *(one["content"] for one in messages if one["content"]), "A"] == self.stands(session)

    def test_where_something_else_was_answered_it_is_taken_back(self) -> None:
        with Session() as session:
            capture = Capture(session, "test")
            self.ask(capture, user("a"), reply=Thinking(content="hm"))
            self.ask(capture, user("a"), assistant("A"), user("b"), reply=Response(content="B"))
            assert ["a", "A", "b", "B"] == self.stands(session)

    def test_a_request_that_names_it_has_it_again(self) -> None:
        with Session() as session:
            capture = Capture(session, "test")
            self.ask(capture, user("a"), reply=Thinking(content="hm"), name="r1")
            self.ask(capture, user("a"), reply=Response(content="A"), name="r2")
            assert ["a", "A"] == self.stands(session)
            self.ask(capture, user("b"), reply=Response(content="B"), follows="r1")
            assert ["a", "hm", "b", "B"] == self.stands(session)

    def test_words_before_it_stand_again_and_are_not_said_twice(self) -> None:
        with Session() as session:
            capture = Capture(session, "test")
            self.ask(capture, user("a"), reply=Response(content="A"))
            self.ask(capture, user("a"), assistant("A"), user("b"), reply=Thinking(content="hm"))
            self.ask(capture, user("a"), assistant("A"), user("x"), reply=Response(content="X"))
            self.ask(capture, user("a"), assistant("A"), user("c"), reply=Response(content="C"))
            self.ask(capture, user("a"), assistant("A"), user("b"), reply=Response(content="B"))
            assert ["a", "A", "b", "B"] == self.stands(session)
            assert 1 == said(session).count("b")


def test_numbers_count_what_was_said_once(long: Session) -> None:
    with long as session:
        ask(Capture(session, "test"), LONG[0], assistant("(cut)"), *LONG[2:], user("d"), reply="D")
        tally = Tally.of(session.events())

    assert 4 == tally.prompts.human
    assert 5 == tally.responses  # four that came, and the words that the host put in place of one


def test_the_store_and_the_file_have_what_the_host_sent_last(tmp_path: Path) -> None:
    log = tmp_path / "kept.jsonl"
    with harken.open(tmp_path / "store") as repo:
        with repo.session(log) as session:
            capture = Capture(session, "test")
            for turn in range(3):
                ask(capture, *LONG[: 2 * turn + 1], reply="ABC"[turn])
            ask(capture, LONG[0], assistant("(cut)"), *LONG[2:], user("d"), reply="D")
            live = repo.materialize(session.session_id, format="openai-chat-v1").bytes
        (seen,) = repo.import_sessions([log])
        fresh = repo.materialize(seen.session, format="openai-chat-v1").bytes

    expected = ["a", "(cut)", "b", "B", "c", "C", "d", "D"]
    for written in (live, fresh):
        assert expected == [message["content"] for message in orjson.loads(written)["messages"]]


def test_a_point_before_an_altered_history_is_what_the_model_knew_there(tmp_path: Path) -> None:
    log = tmp_path / "kept.jsonl"
    with harken.open(tmp_path / "live") as repo, repo.session(log) as session:
        capture = Capture(session, "test")
        for turn in range(3):
            ask(capture, *LONG[: 2 * turn + 1], reply="ABC"[turn])
        ask(capture, *LONG[:3], reply="B2")
        ask(capture, LONG[0], assistant("(cut)"), LONG[2], assistant("B2"), user("d"), reply="D")
        ask(capture, LONG[0], reply="A")
        ask(capture, *LONG[:3], reply="B3")
        session.checkpoint()
        name = session.session_id
        replies = [event.message_id for event in session.events() if event.kind == "response"]
        live = [_known_at(repo, f"{name}@{reply}") for reply in replies]
    with harken.open(tmp_path / "fresh") as repo:
        list(repo.import_sessions([log]))
        fresh = [_known_at(repo, f"{name}@{reply}") for reply in replies]

    expected = ["aA", "aAbB", "aAbBcC", "aAbB2", "a(cut)", "a(cut)bB2dD", "aA", "aAbB3"]
    assert expected == live == fresh


def test_a_reply_that_is_asked_for_again_is_kept_whatever_was_called_before(tmp_path: Path) -> None:
    with harken.open(tmp_path / "store") as repo, repo.session(tmp_path / "kept.jsonl") as session:
        capture = Capture(session, "test")
        exchange = capture.request(CapturedRequest(messages=[LONG[0]], read=read, model="m"))
        assert exchange is not None
        exchange.reply(list(read(assistant("I look.", "never-answered"))))
        ask(capture, LONG[0], reply="A")
        ask(capture, *LONG[:3], reply="B")

        replies = [event.message_id for event in session.events() if event.kind == "response"]
        assert "aAbB" == _known_at(repo, session.session_id)
        assert ["aA", "aAbB"] == [_known_at(repo, f"{session.session_id}@{reply}") for reply in replies[1:]]


def _known_at(repo: harken.Repo, point: str) -> str:
    written = repo.materialize(point, format="openai-chat-v1").bytes
    return "".join(message["content"] for message in orjson.loads(written)["messages"])


histories = st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=7), min_size=1, max_size=8)


@settings(deadline=None)
@given(histories, st.booleans())
def test_whatever_a_host_sends_is_what_stands(sent: list[list[str]], named: bool) -> None:
    """Also where a session is read anew before each request."""
    with Session() as session:
        capture = Capture(session, "test")
        for number, history in enumerate(sent):
            if named:
                session.extensions.pop("conversations", None)
                session.line_observers.clear()
            messages = [(user if at % 2 == 0 else assistant)(word) for at, word in enumerate(history)]
            with session.conversation("one"):
                ask(capture, *messages, reply=f"reply {number}")
            (agent,) = {one.agent_id for one in session.events() if one.kind == "prompt"}
            assert [*history, f"reply {number}"] == [one["content"] for one in session.transcript(agent)]
