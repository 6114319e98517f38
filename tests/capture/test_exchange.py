"""Requests and replies as a session: what is new is logged once, before it is sent, whoever sends it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harken import Session
from harken.capture import EventBus, PromptExecuted, PromptRendered, ToolInvoked, TranscriptEntry
from harken.capture.exchange import Capture, CapturedRequest, Exchange
from harken.events import Event, Metric, Response, Thinking, TranscriptEdit
from support.small_api import Message, assistant, read, user

SYSTEM = {"role": "system", "content": "Be brief."}


def send(capture: Capture, *messages: Message, **more: Any) -> Exchange:
    exchange = capture.request(CapturedRequest(messages=messages, read=read, model="m", **more))
    assert exchange is not None
    return exchange


def ask(capture: Capture, *messages: Message, reply: str, calls: tuple[str, ...] = (), **more: Any) -> None:
    send(capture, *messages, **more).reply(list(read(assistant(reply, *calls))))


def said(session: Session, source: str = "primary") -> list[str]:
    return [one.content for one in session[TranscriptEntry].all() if one.source == source]


def kinds(session: Session) -> list[str]:
    return [event.kind for event in session.events()]


def test_a_loop_that_sends_its_whole_history_is_captured_once() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        ask(capture, SYSTEM, user("hi"), reply="", calls=("c1", "c2"))
        history = [SYSTEM, user("hi"), assistant("", "c1", "c2")]
        results = [{"role": "tool", "id": "c1", "content": "one"}, {"role": "tool", "id": "c2", "content": "two"}]
        ask(capture, *history, *results, reply="done")
        ask(capture, *history, *results, assistant("done"), user("thanks"), reply="bye")
        call = '{\n  "at": 1\n}'
        assert ["Be brief.", "hi", call, call, "one", "two", "done", "thanks", "bye"] == said(session)
        assert "transcript_edit" not in kinds(session)
        assert 8 == len(session.transcript(session.root or ""))


def test_the_request_is_logged_before_the_reply(tmp_path: Path) -> None:
    with Session(tmp_path / "a.jsonl") as session:
        exchange = send(Capture(session, "test"), SYSTEM, user("hi"), settings={"temperature": 0})
        lines = (tmp_path / "a.jsonl").read_text().splitlines()
        assert ["agent_created", "transcript_entry", "transcript_entry", "system"] == [
            line.split('"event_type":"')[1].split('"')[0] for line in lines
        ]
        assert '"temperature":0' in lines[-1]
        exchange.reply([Response(content="hello")])


def test_an_altered_history_is_an_edit() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        ask(capture, SYSTEM, user("one"), reply="1")
        ask(capture, SYSTEM, user("one"), assistant("1"), user("two"), reply="2")
        ask(capture, SYSTEM, user("one"), assistant("1"), user("TWO"), reply="II")
        edits = [event for event in session.events() if isinstance(event, TranscriptEdit)]
        assert [3] == [edit.n for edit in edits]
        standing = [message["content"] for message in session.transcript(session.root or "")]
        assert ["Be brief.", "one", "1", "TWO", "II"] == standing
        assert ["Be brief.", "one", "1", "two", "2", "TWO", "II"] == said(session)


def test_a_reply_that_the_host_asks_for_again_stands_in_place_of_the_first() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        ask(capture, user("roll"), reply="1")
        ask(capture, user("roll"), reply="6")
        assert ["roll", "6"] == [message["content"] for message in session.transcript(session.root or "")]


def test_no_shared_beginning_is_another_conversation() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        ask(capture, SYSTEM, user("one"), reply="1")
        ask(capture, SYSTEM, user("another"), reply="a")
        ask(capture, SYSTEM, user("one"), assistant("1"), user("more"), reply="1+")
        ask(capture, SYSTEM, user("another"), assistant("a"), user("on"), reply="b")
        assert ["Be brief.", "one", "1", "more", "1+"] == said(session)
        assert ["Be brief.", "another", "a", "on", "b"] == said(session, "conversation:2")
        assert "transcript_edit" not in kinds(session)


def test_instructions_that_change_are_said_again_and_nothing_else() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        ask(capture, user("one"), reply="1", instructions=["It is nine."])
        ask(capture, user("one"), assistant("1"), user("two"), reply="2", instructions=["It is ten."])
        assert ["It is nine.", "one", "1", "It is ten.", "two", "2"] == said(session)


def test_instructions_among_the_words_stand_where_the_request_has_them() -> None:
    """Many programs put a reminder behind the user's words, and leave it out of the history."""
    late, reminder = {"role": "system", "content": "Now in French."}, {"role": "system", "content": "Be kind."}
    with Session() as session:
        capture = Capture(session, "test")
        ask(capture, SYSTEM, user("one"), assistant("1"), late, user("two"), reminder, reply="2")
        ask(
            capture,
            SYSTEM,
            user("one"),
            assistant("1"),
            late,
            user("two"),
            assistant("2"),
            user("3"),
            reminder,
            reply="3",
        )
        assert ["Be brief.", "one", "1", "Now in French.", "two", "Be kind.", "2", "3", "3"] == said(session)
        ask(capture, SYSTEM, user("one"), assistant("1"), late, user("TWO"), reminder, reply="II")
        standing = [message["content"] for message in session.transcript(session.root or "")]
        assert ["Be brief.", "one", "1", "Now in French.", "TWO", "Be kind.", "II"] == standing


def test_a_conversation_is_chosen_by_hand() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        ask(capture, user("hi"), reply="1")
        with session.conversation("critic"):
            ask(capture, user("hi"), reply="2")
            ask(capture, user("compacted"), reply="3")
        ask(capture, user("hi"), assistant("1"), user("on"), reply="4")
        assert ["hi", "1", "on", "4"] == said(session)
        assert ["hi", "2", "compacted", "3"] == said(session, "conversation:critic")


def test_a_request_that_names_the_reply_it_follows_has_only_what_is_new() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        send(capture, user("hi")).reply([Response(content="1", api_id="resp_1")])
        ask(capture, user("and now"), reply="2", follows="resp_1")
        assert ["hi", "1", "and now", "2"] == said(session)


def test_a_request_may_follow_a_reply_that_the_conversation_went_back_behind(tmp_path: Path) -> None:
    with Session(tmp_path / "a.jsonl") as session:
        capture = Capture(session, "test")
        answer(capture, user("one"), reply="1", name="r1")
        answer(capture, user("two"), reply="2", name="r2", follows="r1")
        answer(capture, user("three"), reply="3", name="r3", follows="r2")
        answer(capture, user("TWO"), reply="II", name="r4", follows="r1")
        answer(capture, user("THREE"), reply="III", name="r5", follows="r2")
        assert ["one", "1", "two", "2", "THREE", "III"] == standing(session)
    with Session(tmp_path / "a.jsonl") as session:
        assert ["one", "1", "two", "2", "THREE", "III"] == standing(session)
        answer(Capture(session, "test"), user("4"), reply="IV", name="r6", follows="r4")

        assert ["one", "1", "TWO", "II", "4", "IV"] == standing(session)
        assert ["one", "1", "two", "2", "three", "3", "TWO", "II", "THREE", "III", "4", "IV"] == said(session)


def test_a_request_behind_a_reply_that_is_sent_once_more_is_said_once() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        answer(capture, user("one"), reply="1", name="r1")
        send(capture, user("two"), follows="r1").failed(TimeoutError())
        answer(capture, user("two"), reply="2", name="r2", follows="r1")

        assert ["one", "1", "two", "TimeoutError", "2"] == said(session)
        assert ["one", "1", "two", "2"] == standing(session)


def answer(capture: Capture, *messages: Message, reply: str, name: str, **more: Any) -> None:
    """A request, and a reply that the provider gave a name."""
    send(capture, *messages, **more).reply([Response(content=reply)], metadata={"response_id": name})


def standing(session: Session) -> list[str]:
    """What a model is given now."""
    return [one["content"] for one in session.transcript(session.root or "")]


def test_a_session_that_was_closed_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with Session(path) as session:
        ask(Capture(session, "test"), SYSTEM, user("one"), reply="1", calls=("c",))
    with Session(path) as session:
        result = {"role": "tool", "id": "c", "content": "r"}
        ask(Capture(session, "test"), SYSTEM, user("one"), assistant("1", "c"), result, reply="2")
        assert ["Be brief.", "one", "1", '{\n  "at": 1\n}', "r", "2"] == said(session)
        assert ["look"] == [one.tool_name for one in session[TranscriptEntry].where(lambda e: e.role == "tool")]


def test_a_reply_that_never_came_is_marked_missing_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with Session(path) as session:
        send(Capture(session, "test"), user("are you there"))
    for _ in range(2):
        with Session(path) as session:
            Capture(session, "test")
            Capture(session, "test")
            entries = session[TranscriptEntry].all()
        assert [None, "missing"] == [(one.metadata or {}).get("kind") for one in entries]


def test_a_request_in_flight_is_not_missing() -> None:
    with Session() as session:
        exchange = send(Capture(session, "one"), user("hi"))
        Capture(session, "two")
        exchange.reply([Response(content="here")])
        assert ["hi", "here"] == said(session)


def test_what_the_provider_says_of_a_reply_stands_with_its_first_entry_and_counts_once() -> None:
    with Session() as session:
        usage = Metric(input_tokens=7, output_tokens=2, model="m", api_id="r1")
        events = [Thinking(content="hm"), Response(content="yes", api_id="r1", model="m")]
        send(Capture(session, "test"), user("?")).reply(events, usage=usage, metadata={"usage": {"total": 9}})
        _, thought, answer = session[TranscriptEntry].all()
        assert {"kind": "thinking", "usage": {"total": 9}} == thought.metadata
        assert {"model": "m"} == answer.metadata
        assert [(7, 2)] == [(e.input_tokens, e.output_tokens) for e in session.events() if isinstance(e, Metric)]


def test_a_failure_is_an_entry_and_no_part_of_the_conversation() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        send(capture, user("hi")).failed(TimeoutError("too slow"), {"status": 504})
        ask(capture, user("hi"), reply="hello")
        _, failure, _ = session[TranscriptEntry].all()
        assert "TimeoutError: too slow" == failure.content
        assert {"kind": "error", "type": "TimeoutError", "status": 504} == failure.metadata
        assert ["hi", "hello"] == [message["content"] for message in session.transcript(session.root or "")]


def test_the_bus_hears_of_prompts_tools_and_answers() -> None:
    bus = EventBus()
    heard: list[object] = []
    for kind in (PromptRendered, ToolInvoked, PromptExecuted):
        bus.subscribe(kind, heard.append)
    with Session(bus=bus) as session:
        capture = Capture(session, "test")
        ask(capture, user("hi"), reply="", calls=("c",))
        ask(capture, user("hi"), assistant("", "c"), {"role": "tool", "id": "c", "content": "r"}, reply="done")
    assert ["PromptRendered", "ToolInvoked", "PromptRendered", "PromptExecuted"] == [
        type(one).__name__ for one in heard
    ]
    invoked = next(one for one in heard if isinstance(one, ToolInvoked))
    assert ("look", "c", {"at": 1}, "r") == (invoked.name, invoked.call_id, invoked.params, invoked.result)
    assert "done" == next(one for one in heard if isinstance(one, PromptExecuted)).result


def test_the_bus_hears_of_a_tool_once_also_where_the_history_before_it_is_altered() -> None:
    bus = EventBus()
    heard: list[ToolInvoked] = []
    bus.subscribe(ToolInvoked, heard.append)
    with Session(bus=bus) as session:
        capture = Capture(session, "test")
        history: list[Message] = [user("hi")]
        for call in ("a", "b", "c"):
            ask(capture, *history, reply="", calls=(call,))
            history += [assistant("", call), {"role": "tool", "id": call, "content": f"long {call}"}]
        history[2] = {"role": "tool", "id": "a", "content": "(cut)"}
        ask(capture, *history, reply="done")
        assert ["truncate", "restore"] == [
            event.action for event in session.events() if isinstance(event, TranscriptEdit)
        ]
    assert [("a", "long a"), ("b", "long b"), ("c", "long c")] == [(one.call_id, one.result) for one in heard]


def test_secrets_are_masked_where_the_caller_asks_and_the_loop_is_still_recognised() -> None:
    key = "sk-ant-api03-" + "Zx9" * 31 + "AA"
    with Session() as session:
        capture = Capture(session, "test", mask=True)
        ask(capture, user(f"my key is {key}"), reply=f"so it is {key}")
        ask(capture, user(f"my key is {key}"), assistant(f"so it is {key}"), user("forget it"), reply="what?")
        assert 4 == len(said(session))
        assert not any(key in line for line in said(session))


def test_a_failure_of_capture_is_told_once_and_never_raised(caplog: pytest.LogCaptureFixture) -> None:
    def broken(message: Message) -> Iterator[Event]:
        raise ZeroDivisionError(message)

    with Session() as session, caplog.at_level(logging.WARNING):
        capture = Capture(session, "test")
        assert capture.request(CapturedRequest(messages=[user("a")], read=broken)) is None
        assert capture.request(CapturedRequest(messages=[user("b")], read=broken)) is None
    assert 1 == caplog.text.count("capture failed")
