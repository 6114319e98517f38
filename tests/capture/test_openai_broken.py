"""Whatever becomes of a call or of the program that makes it, what went over the wire is in the session, once."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from harken import Session, capture
from support.openai_loop import (
    QUESTION,
    SYSTEM,
    TURNS,
    async_client_of,
    captured,
    chat_tools,
    client_of,
    metadata,
    on_the_wire,
    scripted,
)
from support.scripted_model import Break, Call, Hold, Say

MODEL = "gpt-4o"
TALK = "one two three four five six"


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        yield session


def messages(*words: str) -> Any:
    return [{"role": "user", "content": one} for one in words]


def said(session: Session) -> list[tuple[str, str]]:
    return [(role, content) for role, content, *_ in captured(session)]


def stream_of(client: Any, api: str, words: str = "hi") -> Any:
    if api == "chat":
        return client.chat.completions.create(model=MODEL, messages=messages(words), stream=True)
    return client.responses.create(model=MODEL, input=words, stream=True)


HALF = {"chat": 2, "responses": 5}
"""After how many events of a stream the first half of the words is there."""
APIS = pytest.mark.parametrize("api", ["chat", "responses"])


class Boom(Exception):
    """The host's own failure."""


@APIS
class TestAStream:
    def test_that_the_connection_breaks_is_one_entry_with_what_came(self, session: Session, api: str) -> None:
        turn = [Say(TALK), Break(after=HALF[api])]
        with scripted(turn) as (_, url), client_of(url) as client:
            with pytest.raises(Exception, match=r"incomplete|closed"):
                list(stream_of(capture.openai(client, session), api))

            assert [("user", "hi"), ("assistant", TALK[: len(TALK) // 2])] == said(session)
            assert metadata(session)[1]["partial"] is True
            assert "RemoteProtocolError" in metadata(session)[1]["error"]

    def test_that_the_host_closes_early_is_one_entry_with_what_came(self, session: Session, api: str) -> None:
        hold = Hold(threading.Event(), after=HALF[api])
        with scripted([Say(TALK), hold]) as (_, url), client_of(url) as client:
            with stream_of(capture.openai(client, session), api) as stream:
                for _ in range(HALF[api]):
                    next(stream)
            hold.gate.set()

            assert [("user", "hi"), ("assistant", TALK[: len(TALK) // 2])] == said(session)
            assert metadata(session)[1]["partial"] is True

    def test_in_whose_middle_the_host_raises_is_one_entry_with_what_came(self, session: Session, api: str) -> None:
        with scripted([Say(TALK)]) as (_, url), client_of(url) as client:
            with pytest.raises(Boom), stream_of(capture.openai(client, session), api) as stream:
                next(stream)
                raise Boom

            assert 2 == len(said(session))

    def test_that_is_thrown_away_is_one_entry_when_its_memory_is_taken_back(self, session: Session, api: str) -> None:
        hold = Hold(threading.Event(), after=HALF[api])
        with scripted([Say(TALK), hold]) as (_, url), client_of(url) as client:
            stream = stream_of(capture.openai(client, session), api)
            for _ in range(HALF[api]):
                next(stream)
            del stream
            gc.collect()
            hold.gate.set()

            assert [("user", "hi"), ("assistant", TALK[: len(TALK) // 2])] == said(session)

    @pytest.mark.parametrize("is_async", [False, True])
    def test_that_is_thrown_away_unread_is_one_entry_at_once(self, session: Session, api: str, is_async: bool) -> None:
        async def ask(url: str) -> None:
            async with async_client_of(url) as client:
                await stream_of(capture.openai(client, session), api)
                gc.collect()
                entries.extend(metadata(session))

        entries: list[dict[str, Any]] = []
        with scripted([Say(TALK)]) as (_, url):
            if is_async:
                asyncio.run(ask(url))
            else:
                with client_of(url) as client:
                    stream_of(capture.openai(client, session), api)
                    gc.collect()
                    entries.extend(metadata(session))

        assert 2 == len(entries)
        assert True is entries[1]["partial"]

    def test_that_is_still_open_when_the_session_is_closed_is_one_entry(self, api: str, tmp_path: Path) -> None:
        hold = Hold(threading.Event(), after=HALF[api])
        with scripted([Say(TALK), hold]) as (_, url), client_of(url) as client:
            with Session(tmp_path / "a.jsonl") as session:
                stream = stream_of(capture.openai(client, session), api)
                for _ in range(HALF[api]):
                    next(stream)
            hold.gate.set()
            stream.close()
        with Session(tmp_path / "a.jsonl", readonly=True) as session:
            assert [("user", "hi"), ("assistant", TALK[: len(TALK) // 2])] == said(session)

    def test_that_a_task_is_cancelled_in_is_one_entry_with_what_came(self, session: Session, api: str) -> None:
        hold = Hold(threading.Event(), after=HALF[api])

        async def read(url: str, halfway: asyncio.Event) -> None:
            async with async_client_of(url) as client:
                stream = await stream_of(capture.openai(client, session), api)
                for number in range(1000):
                    if number == HALF[api]:
                        halfway.set()
                    await anext(stream)

        async def run(url: str) -> None:
            halfway = asyncio.Event()
            task = asyncio.create_task(read(url, halfway))
            await halfway.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        with scripted([Say(TALK), hold]) as (_, url):
            asyncio.run(run(url))
            hold.gate.set()

        assert [("user", "hi"), ("assistant", TALK[: len(TALK) // 2])] == said(session)
        assert metadata(session)[1]["partial"] is True

    def test_that_a_loop_leaves_open_is_one_entry(self, session: Session, api: str) -> None:
        async def run(url: str) -> None:
            async with async_client_of(url) as client:
                stream = await stream_of(capture.openai(client, session), api)
                await anext(stream)

        with scripted([Say(TALK)]) as (_, url):
            asyncio.run(run(url))
            gc.collect()

        assert 2 == len(said(session))


def test_a_reply_that_the_host_stops_reading_is_told_before_it_goes_on(session: Session) -> None:
    hold = Hold(threading.Event(), after=2)
    with scripted([Say(TALK), hold], [Say("fine")]) as (model, url), client_of(url) as client:
        wrapped = capture.openai(client, session)
        stream = stream_of(wrapped, "chat")
        heard = next(stream).choices[0].delta.content + next(stream).choices[0].delta.content
        history = [*messages("hi"), {"role": "assistant", "content": heard}, *messages("stop")]
        wrapped.chat.completions.create(model=MODEL, messages=history)

        assert on_the_wire(model) == captured(session)
        hold.gate.set()
        stream.close()
        assert 4 == len(said(session))


class TestACall:
    def test_that_is_cancelled_is_an_error_in_the_session(self, session: Session) -> None:
        hold = Hold(threading.Event())

        async def run(url: str) -> None:
            async with async_client_of(url) as client:
                wrapped = capture.openai(client, session)
                call = asyncio.create_task(wrapped.chat.completions.create(model=MODEL, messages=messages("hi")))
                await asyncio.to_thread(hold.reached.wait, 20)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call

        with scripted([Say("never heard"), hold]) as (_, url):
            asyncio.run(run(url))
            hold.gate.set()

        assert [("user", "hi"), ("assistant", "CancelledError")] == said(session)
        assert "error" == metadata(session)[1]["kind"]

    def test_that_the_user_interrupts_is_an_error_in_the_session(self, session: Session) -> None:
        def interrupt(body: dict[str, Any]) -> Any:
            os.kill(os.getpid(), signal.SIGINT)
            return [Say("never heard"), hold]

        hold = Hold(threading.Event())
        with scripted(interrupt) as (_, url), client_of(url) as client:
            with pytest.raises(KeyboardInterrupt):
                capture.openai(client, session).chat.completions.create(model=MODEL, messages=messages("hi"))
            hold.gate.set()

        assert [("user", "hi"), ("assistant", "KeyboardInterrupt")] == said(session)

    def test_that_takes_too_long_is_an_error_in_the_session(self, session: Session) -> None:
        hold = Hold(threading.Event())
        with (
            scripted([Say("late"), hold]) as (_, url),
            client_of(url, timeout=0.2, max_retries=0) as client,
        ):
            with pytest.raises(openai.APITimeoutError):
                capture.openai(client, session).chat.completions.create(model=MODEL, messages=messages("hi"))
            hold.gate.set()

        assert "APITimeoutError" == metadata(session)[1]["type"]


def test_a_host_that_raises_between_its_turns_leaves_what_went_over_the_wire(session: Session) -> None:
    with scripted(*TURNS) as (model, url), client_of(url) as client:
        wrapped = capture.openai(client, session)
        history: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
        with pytest.raises(Boom):
            wrapped.chat.completions.create(model=MODEL, messages=history, tools=chat_tools())
            raise Boom

        assert on_the_wire(model) == captured(session)


def test_threads_have_conversations_of_their_own(session: Session) -> None:
    names = [f"person {number}" for number in range(6)]
    with scripted() as (model, url), client_of(url) as client:
        for name in names:
            model.play([Say(f"hello {name}")], [Say(f"bye {name}")], to=f"{name}.")
        wrapped = capture.openai(client, session)

        def talk(name: str) -> None:
            first = messages(f"I am {name}.")
            reply: Any = wrapped.chat.completions.create(model=MODEL, messages=first).choices[0].message
            wrapped.chat.completions.create(model=MODEL, messages=[*first, reply, *messages("bye")])

        threads = [threading.Thread(target=talk, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    talks = {}
    for source in {entry.source for entry in session[capture.TranscriptEntry].all()}:
        lines = [content for _, content, *_ in captured(session, source)]
        talks[lines[0]] = lines[1:]
    assert {f"I am {name}.": [f"hello {name}", "bye", f"bye {name}"] for name in names} == talks


PROGRAM = """
import sys
from openai import OpenAI
from harken import Session, capture

session = Session(sys.argv[1], ack="os")
client = capture.openai(OpenAI(api_key="k", base_url=sys.argv[2], max_retries=0), session)
messages = [{"role": "user", "content": "look"}]
message = client.chat.completions.create(model="gpt-4o", messages=messages).choices[0].message
messages += [message, {"role": "tool", "tool_call_id": "call_a", "content": "hello"}]
for chunk in client.chat.completions.create(model="gpt-4o", messages=messages, stream=True):
    pass
"""


def test_after_sigkill_the_request_is_there_the_reply_is_marked_missing_and_the_loop_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "killed.jsonl"
    hold = Hold(threading.Event(), after=2)
    with scripted([Call("read", {"path": "a"}, id="call_a")], [Say(TALK), hold], [Say("done")]) as (model, url):
        program = subprocess.Popen([sys.executable, "-c", PROGRAM, path, url])
        assert hold.reached.wait(60)
        program.send_signal(signal.SIGKILL)
        program.wait()
        hold.gate.set()
        model.played[-1] = []  # none of it was heard to its end

        for _ in range(2):
            with Session(path) as session, client_of(url) as client:
                capture.openai(client, session)
                *heard, missing = captured(session)
                assert on_the_wire(model) == heard
                assert "missing" == metadata(session)[-1]["kind"]
                assert ("assistant", "the reply is missing: the program ended before it came") == missing[:2]

        history = model.requests[-1].body["messages"]
        with Session(path) as session, client_of(url) as client:
            capture.openai(client, session).chat.completions.create(model=MODEL, messages=history)
            assert on_the_wire(model) == [line for line in captured(session) if "missing" not in line[1]]
            assert "transcript_edit" not in [event.kind for event in session.events()]


ENDING = """
import sys
from openai import OpenAI
from harken import Session, capture

session = Session(sys.argv[1], ack="os")
client = capture.openai(OpenAI(api_key="k", base_url=sys.argv[2], max_retries=0), session)
stream = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hi"}], stream=True)
while not next(stream).choices[0].delta.content:
    pass
"""


def test_a_program_that_ends_without_closing_anything_leaves_what_came_of_its_stream(tmp_path: Path) -> None:
    path = tmp_path / "ended.jsonl"
    with scripted([Say(TALK)]) as (_, url):
        done = subprocess.run([sys.executable, "-c", ENDING, path, url], capture_output=True, text=True, timeout=60)
    with Session(path) as session:
        assert 2 == len(said(session))
        assert TALK.startswith(said(session)[1][1])
        assert metadata(session)[1]["partial"] is True
    assert "" == done.stderr


def test_a_body_that_ends_in_the_middle_of_a_write_waits_until_it_is_done(session: Session) -> None:
    with scripted([Say(TALK)], [Say("more")]) as (_, url), client_of(url) as client:
        wrapped = capture.openai(client, session)
        stream = stream_of(wrapped, "chat")
        with session.lock:  # as it is while a line is written
            stream.close()
            assert 1 == len(said(session))
        wrapped.chat.completions.create(model=MODEL, messages=messages("another"))

    assert 2 == len(said(session))
