"""Requests that are sent at the same time, replies that come late, and others who write the same session."""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harken import Session
from harken.capture import EventBus, JsonlSliceFactory, SliceFactoryConfig, ToolInvoked, TranscriptEntry
from harken.capture.exchange import Capture, CapturedRequest, Exchange
from harken.events import Image, Metric, Prompt, Response, Thinking, ToolCall
from harken.events.edits import transcript
from support.small_api import Message, assistant, read, user

NOON = datetime(2026, 2, 3, 12, tzinfo=UTC)


def send(capture: Capture, *messages: Message, **more: Any) -> Exchange:
    exchange = capture.request(CapturedRequest(messages=messages, read=read, model="m", **more))
    assert exchange is not None
    return exchange


def ask(capture: Capture, *messages: Message, reply: str, **more: Any) -> None:
    send(capture, *messages, **more).reply([Response(content=reply)])


def standing(session: Session) -> list[list[str]]:
    """The transcripts that are not empty."""
    told = ([message["content"] for message in session.transcript(agent_id)] for agent_id in session.agents)
    return [words for words in told if words]


def words(session: Session) -> list[str]:
    return [one.content for one in session[TranscriptEntry].all()]


def test_of_replies_asked_for_at_the_same_time_the_last_stands_and_all_are_entries() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        exchanges = [send(capture, user("roll")) for _ in range(3)]
        for number, exchange in enumerate(exchanges):
            exchange.reply([Response(content=str(number // 2))])
        assert [["roll", "1"]] == standing(session)
        assert ["roll", "0", "0", "1"] == words(session)


def test_of_replies_at_the_same_time_thinking_alone_gives_way_to_the_next() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        exchanges = [send(capture, user("roll")) for _ in range(3)]
        exchanges[0].reply([Thinking(content="first")])
        exchanges[1].reply([Thinking(content="second"), Response(content="2")])
        assert ["roll", "second", "2"] == [
            event.content
            for entry in transcript(session.events())
            for event in entry
            if isinstance(event, Prompt | Thinking | Response)
        ]
        exchanges[2].reply([Response(content="3")])
        assert [["roll", "3"]] == standing(session)


def test_two_ways_on_at_the_same_time_are_two_conversations() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        ask(capture, user("begin"), reply="yes")
        left = send(capture, user("begin"), assistant("yes"), user("left"))
        right = send(capture, user("begin"), assistant("yes"), user("right"))
        left.reply([Response(content="went left")])
        right.reply([Response(content="went right")])
        ask(capture, user("begin"), assistant("yes"), user("left"), assistant("went left"), user("on"), reply="end")
        expected = [["begin", "yes", "left", "went left", "on", "end"], ["begin", "yes", "right", "went right"]]
        assert expected == standing(session)


def test_two_requests_that_follow_one_reply_at_the_same_time_are_two_conversations(tmp_path: Path) -> None:
    with Session(tmp_path / "a.jsonl") as session:
        capture = Capture(session, "test")
        begun = send(capture, {"role": "system", "content": "be short"}, user("begin"))
        begun.reply([Thinking(content="hm"), Response(content="yes", api_id="r1")])
        left = send(capture, user("left"), follows="r1")
        right = send(capture, user("right"), follows="r1")
        right.reply([Response(content="went right", api_id="r3")], usage=Metric(input_tokens=7))
        left.reply([Response(content="went left", api_id="r2")])
        ask(capture, user("on"), reply="left end", follows="r2")
        ask(capture, user("on"), reply="right end", follows="r3")
        expected = [
            ["be short", "begin", "yes", "left", "went left", "on", "left end"],
            ["be short", "begin", "yes", "right", "went right", "on", "right end"],
        ]
        assert expected == standing(session)
        assert [] == [one for one in session[TranscriptEntry].all() if (one.metadata or {}).get("kind") == "late"]
        assert [7] == [event.input_tokens for event in session.events() if isinstance(event, Metric)]
    with Session(tmp_path / "a.jsonl") as session:
        ask(Capture(session, "test"), user("more"), reply="the end", follows="r2")
        assert ["be short", "begin", "yes", "left", "went left", "more", "the end"] in standing(session)


def test_a_reply_that_was_cut_off_is_followed_apart_while_another_is_awaited() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        send(capture, user("one")).reply([Response(content="1", api_id="r1")])
        send(capture, user("two"), follows="r1").reply([Response(content="2", api_id="r2")])
        other = send(capture, user("TWO"), follows="r1")
        send(capture, user("three"), follows="r2").reply([Response(content="3", api_id="r3")])
        other.reply([Response(content="II", api_id="r4")])
        assert [["one", "1", "TWO", "II"], ["one", "1", "two", "2", "three", "3"]] == standing(session)


@pytest.mark.parametrize("reloaded", [False, True])
def test_a_late_reply_is_followed_by_name_with_what_was_said_before_it(tmp_path: Path, reloaded: bool) -> None:
    with Session(tmp_path / "a.jsonl") as session:
        capture = Capture(session, "test")
        first, second = send(capture, user("roll")), send(capture, user("roll"))
        first.reply([Response(content="1", api_id="r1")])
        ask(capture, user("on"), reply="yes", follows="r1")
        call = ToolCall(id="c1", name="look", input=b'{"at": 1}', api_id="r2")
        usage = Metric(input_tokens=7, api_id="r2")
        second.reply([Thinking(content="hm"), Response(content="2", api_id="r2"), call], usage=usage)
        if not reloaded:
            ask(capture, {"role": "tool", "id": "c1", "content": "grass"}, reply="seen", follows="r2")
    with Session(tmp_path / "a.jsonl") as session:
        if reloaded:
            capture = Capture(session, "test")
            ask(capture, {"role": "tool", "id": "c1", "content": "grass"}, reply="seen", follows="r2")
        assert [["roll", "1", "on", "yes"], ["roll", "2", "grass", "seen"]] == standing(session)


class RandomHost:
    """A program that asks in many ways at once: it goes on behind any reply, by its name or with the whole history."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.states: list[tuple[list[Message], str]] = [([], "")]
        """What was said until a reply, and the name of that."""
        self.waiting: list[tuple[Exchange, list[Message]]] = []

    def ask(self, capture: Capture, words: str, state: tuple[list[Message], str]) -> None:
        said, name = state
        by_name = bool(name) and self.random.random() < 0.6
        asked = [user(words)] if by_name else [*said, user(words)]
        self.waiting.append((send(capture, *asked, follows=name if by_name else ""), [*said, user(words)]))

    def hear(self, number: int) -> tuple[Exchange, list[str]]:
        """A reply comes; gives its exchange and everything that the model knows with it."""
        exchange, said = self.waiting.pop(self.random.randrange(len(self.waiting)))
        name = f"r{number}"
        exchange.reply([Response(content=name, api_id=name)], usage=Metric(input_tokens=1, api_id=name))
        self.states.append(([*said, assistant(name)], name))
        return exchange, [message["content"] for message in self.states[-1][0]]


def assert_known(session: Session, exchange: Exchange, known: list[str]) -> None:
    """A conversation stands as the model knows it, unless the reply came too late."""
    last = session[TranscriptEntry].latest()
    if last is None or (last.metadata or {}).get("kind") != "late":
        assert known == [message["content"] for message in session.transcript(exchange.conversation.agent_id)]


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_asked_at_once_each_reply_stands_behind_what_it_answers(tmp_path: Path, seed: int) -> None:
    host, number = RandomHost(seed), 0
    with Session(tmp_path / "a.jsonl", ack="os") as session:
        capture = Capture(session, "test")
        for _ in range(14):
            if host.waiting and host.random.random() < 0.45:
                number += 1
                assert_known(session, *host.hear(number))
            else:
                host.ask(capture, f"u{host.random.randrange(3)}", host.random.choice(host.states[-4:]))
        while host.waiting:
            number += 1
            assert_known(session, *host.hear(number))
        assert number == sum(isinstance(event, Metric) for event in session.events())
    with Session(tmp_path / "a.jsonl", ack="os") as session:
        capture = Capture(session, "test")
        for state in host.states[1:]:
            number += 1
            host.ask(capture, "more", state)
            assert_known(session, *host.hear(number))


def test_a_reply_that_the_host_sent_on_before_it_was_captured_is_there_once() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        first = send(capture, user("one"))
        second = send(capture, user("one"), assistant("1"), user("two"))
        usage = Metric(input_tokens=7, output_tokens=2)
        first.reply([Thinking(content="hm"), Response(content="1")], usage=usage, metadata={"response_id": "r"})
        second.reply([Response(content="2")])
        assert [["one", "1", "two", "2"]] == standing(session)
        assert ["one", "1", "two", "hm", "2"] == words(session)
        assert [7] == [event.input_tokens for event in session.events() if isinstance(event, Metric)]


def test_a_reply_whose_conversation_went_on_without_it_is_an_entry_and_no_part_of_it(tmp_path: Path) -> None:
    with Session(tmp_path / "a.jsonl") as session:
        capture = Capture(session, "test")
        first = send(capture, user("one"))
        ask(capture, user("one"), assistant("of my own"), user("two"), reply="2")
        first.reply([Response(content="late")], metadata={"model": "m"})
        assert [["one", "of my own", "two", "2"]] == standing(session)
        late = session[TranscriptEntry].latest()
    assert late is not None
    assert ("assistant", "late", {"kind": "late", "model": "m"}) == (late.role, late.content, late.metadata)
    with Session(tmp_path / "a.jsonl") as session:
        Capture(session, "test")
        assert late == session[TranscriptEntry].latest()  # and its request is not marked as one without a reply


def test_threads_that_speak_at_once_have_conversations_of_their_own(tmp_path: Path) -> None:
    def speak(number: int) -> None:
        history = [user(f"hello {number}")]
        for turn in range(4):
            ask(capture, *history, reply=f"{number}.{turn}")
            session.dispatch(TranscriptEntry("user", "x", NOON, source=f"subagent:{number}"))
            history += [assistant(f"{number}.{turn}"), user(f"more {turn}")]

    with Session(tmp_path / "a.jsonl", ack="os") as session:
        capture = Capture(session, "test")
        ask(capture, user("first"), reply="yes")
        threads = [threading.Thread(target=speak, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        live = session[TranscriptEntry].all()
    spoken = [one for one in live if one.source.startswith("conversation:")]
    assert (2 + 6 * 8 + 6 * 4, 6 * 8) == (len(live), len(spoken))
    with Session(tmp_path / "a.jsonl") as session:
        assert live == session[TranscriptEntry].all()


def test_what_others_log_of_a_conversation_is_counted_where_it_is_altered() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        session.log_agent_created("agent_001")
        session.append([Prompt(content="seed", agent_id="agent_001")])
        ask(capture, user("seed"), reply="1")
        ask(capture, user("seed"), assistant("1"), user("two"), reply="2")
        session.log_transcript_edit("agent_001", "truncate", 2)
        session.append([Prompt(content="other", agent_id="agent_001")])
        ask(capture, user("seed"), assistant("1"), user("other"), reply="3")
        ask(capture, user("seed"), assistant("1"), user("OTHER"), reply="4")
        assert [["seed", "1", "OTHER", "4"]] == standing(session)


def test_a_conversation_chosen_by_hand_goes_on_where_a_reply_is_followed() -> None:
    with Session() as session:
        capture = Capture(session, "test")
        with session.conversation("critic"):
            send(capture, user("hi")).reply([Response(content="1", api_id="r1")])
            send(capture, user("more"), follows="r1").reply([Response(content="2", api_id="r2")])
            ask(capture, user("of another"), follows="unknown", reply="3")
        assert [["hi", "1", "more", "2", "of another", "3"]] == standing(session)


@pytest.mark.parametrize("name", ["agent_007", "helper"])
def test_a_conversation_may_be_called_like_an_agent(tmp_path: Path, name: str) -> None:
    for turn in range(2):
        with Session(tmp_path / "a.jsonl") as session:
            session.dispatch(TranscriptEntry("user", "x", NOON, source="subagent:helper"))
            capture = Capture(session, "test")
            with session.conversation(name):
                ask(capture, user("hi"), *([assistant("0"), user("again")] if turn else []), reply=str(turn))
            said = session[TranscriptEntry].where(lambda one: one.source == f"conversation:{name}")
    assert ["hi", "0", "again", "1"] == [one.content for one in said]


def test_a_conversation_that_is_left_in_another_thread_does_no_harm() -> None:
    with Session() as session:
        problems: list[BaseException] = []
        block = session.conversation("critic")

        def leave() -> None:
            try:
                block.__exit__(None, None, None)
            except BaseException as problem:
                problems.append(problem)

        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        assert [] == problems


def test_a_slice_that_cannot_be_made_costs_no_reply(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no folder")
    config = SliceFactoryConfig(log_factory=JsonlSliceFactory(tmp_path / "file"))
    with Session(tmp_path / "a.jsonl", slice_config=config) as session:
        ask(Capture(session, "test"), user("hi"), reply="hello")
        assert [["hi", "hello"]] == standing(session)


def test_the_bus_hears_of_a_tool_when_its_result_is_in_the_log() -> None:
    bus = EventBus()
    told: list[list[str]] = []
    with Session(bus=bus) as session:
        bus.subscribe(ToolInvoked, lambda _: told.append(words(session)))
        capture = Capture(session, "test")
        send(capture, user("hi")).reply(list(read(assistant("", "c"))))
        ask(capture, user("hi"), assistant("", "c"), {"role": "tool", "id": "c", "content": "r"}, reply="done")
    assert ["r"] == [one[-1] for one in told]


def test_addresses_of_pictures_and_names_of_settings_are_masked() -> None:
    key = "sk-ant-api03-" + "Zx9" * 31 + "AA"

    def with_picture(message: Message) -> Any:
        yield Prompt(content="see", images=(Image(url=f"https://x/?key={key}"),))

    with Session() as session:
        capture = Capture(session, "test", mask=True)
        request = CapturedRequest(messages=[user("x")], read=with_picture, settings={"tools": {key: 1}})
        assert capture.request(request) is not None
        assert not any(key.encode() in line for line in session.appended(0))
