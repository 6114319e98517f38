"""However a call of Google's SDK ends, and whatever becomes of the program: what went over the wire, once."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harken import Session, capture
from harken.capture import TranscriptEntry
from harken.capture.exchange import Capture
from harken.events import Metric
from support.anthropic_loop import scripted
from support.google_loop import MODEL, QUESTION, TURNS, captured, client_for, config, metadata, on_the_wire, size
from support.scripted_model import Block, Break, Hold, Say, Think

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
TALK = "one two three four five six"
HALF = TALK[: len(TALK) // 2]
HALFWAY = 1
"""After so many chunks of a stream the first half of the words is there."""


class Boom(Exception):
    """The host's own failure."""


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        yield session


def stream_of(client: Any, words: str = "hi") -> Any:
    return client.models.generate_content_stream(model=MODEL, contents=words)


def said(session: Session) -> list[str]:
    return [content for _, content, _ in captured(session)]


def is_partial(session: Session) -> list[bool]:
    return [bool(about.get("partial")) for about in metadata(session)]


# -- streams -----------------------------------------------------------------------------------------------------------


def closed(stream: Any) -> None:
    next(stream)
    stream.close()


def dropped(stream: Any) -> None:
    next(stream)


def raised(stream: Any) -> None:
    with pytest.raises(Boom):
        for _ in stream:
            raise Boom


@pytest.mark.parametrize("leave", [closed, dropped, raised])
def test_a_stream_that_the_host_leaves_is_one_entry_with_what_came(
    session: Session, leave: Callable[[Any], None]
) -> None:
    with scripted([Say(TALK)], [Say("on")]) as (_, url), client_for(url) as client:
        wrapped = capture.google(client, session)
        leave(stream_of(wrapped))
        gc.collect()
        assert ["hi", HALF] == said(session)
        assert [False, True] == is_partial(session)
        talk = [("user", "hi"), ("model", HALF), ("user", "go")]
        contents = [{"role": role, "parts": [{"text": text}]} for role, text in talk]
        wrapped.models.generate_content(model=MODEL, contents=contents)
    assert ["hi", HALF, "go", "on"] == said(session)


def test_a_stream_that_the_host_leaves_behind_its_end_is_whole(session: Session) -> None:
    with scripted([Say(TALK)]) as (_, url), client_for(url) as client:
        stream = stream_of(capture.google(client, session))
        assert [None, None, "STOP"] == [next(stream).candidates[0].finish_reason for _ in range(3)]
        stream.close()
    assert (["hi", TALK], [False, False]) == (said(session), is_partial(session))


def test_a_stream_that_is_still_open_is_told_when_the_session_is_closed() -> None:
    with scripted([Say(TALK)]) as (_, url), client_for(url) as client:
        with Session() as session:
            stream = stream_of(capture.google(client, session))
            next(stream)
            assert ["hi"] == said(session)
        assert ["hi", HALF] == said(session)
        stream.close()


def test_a_stream_that_breaks_is_one_entry_and_the_host_gets_its_error(session: Session) -> None:
    with scripted([Say(TALK), Break(after=HALFWAY)]) as (_, url), client_for(url) as client:
        stream = stream_of(capture.google(client, session))
        with pytest.raises(Exception, match=r"incomplete|closed"):
            list(stream)
    assert (["hi", HALF], [False, True]) == (said(session), is_partial(session))
    assert "RemoteProtocolError" in metadata(session)[1]["error"]


def test_an_error_in_the_middle_of_a_stream_is_an_entry_behind_what_came(session: Session) -> None:
    with scripted([Say(TALK)]) as (model, url), client_for(url) as client:
        model.said_of_message = {"error": {"code": 503, "message": "overloaded"}}
        with pytest.raises(Exception, match="overloaded"):
            list(stream_of(capture.google(client, session)))
    assert (["hi", TALK, "overloaded"], [False, True, False]) == (said(session), is_partial(session))


def test_an_interaction_that_is_left_or_breaks_is_one_entry_with_what_came(session: Session) -> None:
    def events(stream: Any) -> None:
        with stream:
            for event in stream:
                if event.event_type == "step.delta":
                    return

    turns = [[Say(TALK)], [Say(TALK), Break(after=3)]]
    with scripted(*turns) as (_, url), client_for(url) as client:
        wrapped = capture.google(client, session)
        events(wrapped.interactions.create(model=MODEL, input="hi", stream=True))
        with pytest.raises(Exception, match=r"incomplete|closed|[Cc]onnection"):
            list(wrapped.interactions.create(model=MODEL, input="again", stream=True))
    assert ["hi", HALF] == said(session)
    assert ["again", HALF] == [content for _, content, _ in captured(session, "conversation:2")]
    assert [False, True, False, True] == is_partial(session)


# -- without waiting ---------------------------------------------------------------------------------------------------


def test_a_call_that_is_cancelled_is_an_entry_and_a_stream_keeps_what_came(session: Session) -> None:
    gate, heard = threading.Event(), threading.Event()
    whole, stream = Hold(gate, after=0), Hold(gate, after=HALFWAY)

    async def ask(client: Any) -> None:
        await client.models.generate_content(model=MODEL, contents="one")

    async def listen(client: Any) -> None:
        async for _ in await client.models.generate_content_stream(model=MODEL, contents="two"):
            heard.set()

    async def run(url: str) -> None:
        client = client_for(url)
        async with capture.google(client, session).aio as wrapped:
            for reached, work in ((whole.reached, ask), (heard, listen)):
                task = asyncio.create_task(work(wrapped))
                await asyncio.to_thread(reached.wait, 20)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
        client.close()

    with scripted([Say("never"), whole], [Say(TALK), stream]) as (_, url):
        asyncio.run(run(url))
        gate.set()
    assert ["one", "CancelledError"] == said(session)
    assert ["two", HALF] == [content for _, content, _ in captured(session, "conversation:2")]
    assert "CancelledError" in metadata(session)[3]["error"]


def test_a_stream_that_is_left_without_waiting_is_one_entry(session: Session) -> None:
    async def run(url: str) -> None:
        client = client_for(url)
        async with capture.google(client, session).aio as wrapped:
            async for _ in await wrapped.models.generate_content_stream(model=MODEL, contents="hi"):
                break
        client.close()

    with scripted([Say(TALK)]) as (_, url):
        asyncio.run(run(url))
        gc.collect()
    assert (["hi", HALF], True) == (said(session), is_partial(session)[1])


def test_calls_at_the_same_time_are_told_apart(session: Session) -> None:
    async def run(url: str) -> None:
        client = client_for(url)
        async with capture.google(client, session).aio as wrapped:
            asked = [wrapped.models.generate_content(model=MODEL, contents=f"I am {name}") for name in "abc"]
            await asyncio.gather(*asked)
        client.close()

    def greet(body: dict[str, Any]) -> list[Say]:
        return [Say("hello " + body["contents"][0]["parts"][0]["text"])]

    with scripted(greet, greet, greet) as (_, url):
        asyncio.run(run(url))
    talks = {source: [content for _, content, _ in captured(session, source)] for source in _sources(session)}
    assert sorted([f"I am {name}", f"hello I am {name}"] for name in "abc") == sorted(talks.values())


def _sources(session: Session) -> set[str]:
    return {entry.source for entry in session[TranscriptEntry].all()}


# -- in the background, and in several requests ------------------------------------------------------------------------


def test_an_interaction_in_the_background_is_captured_when_it_is_asked_for(session: Session) -> None:
    with scripted([Say("Hello.")]) as (model, url), client_for(url) as client:
        model.said_of_message = {"status": "in_progress", "steps": []}
        wrapped = capture.google(client, session)
        begun = wrapped.interactions.create(model=MODEL, input="hi", background=True)
        assert ["hi"] == said(session)
        assert "in_progress" == wrapped.interactions.get(begun.id).status
        model.kept["/interactions/" + begun.id] |= {
            "status": "completed",
            "steps": [{"type": "model_output", "content": [{"type": "text", "text": "Hello."}]}],
        }
        for _ in range(2):
            assert "completed" == wrapped.interactions.get(begun.id).status
    assert ["hi", "Hello."] == said(session)
    assert ["completed"] == [one.stop_reason for one in session.events() if isinstance(one, Metric)]


def test_an_interaction_that_nobody_asks_for_is_told_when_the_session_is_closed() -> None:
    with scripted([]) as (model, url), client_for(url) as client, Session() as session:
        model.said_of_message = {"status": "in_progress", "steps": []}
        capture.google(client, session).interactions.create(model=MODEL, input="hi", background=True)
        session.close()
        assert [False, True] == is_partial(session)
        assert "in_progress" == metadata(session)[1]["status"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_reply_that_comes_in_several_requests_is_one(session: Session, stream: bool) -> None:
    def hop(words: str, reason: str, token: str = "") -> Any:
        def play(body: dict[str, Any]) -> list[Block]:
            content = {"role": "model", "parts": [{"text": words}]}
            ended = {"finishReason": reason, **({"continuationToken": token} if token else {})}
            model.said_of_message = {"candidates": [{"content": content, "index": 0, **ended}]}
            return []

        return play

    turns = [hop("one ", "CONTINUATION", "dG9r"), hop("two", "STOP"), hop("three", "STOP")]
    with scripted(*turns) as (model, url), client_for(url) as client:
        chat = capture.google(client, session).chats.create(model=MODEL)
        for words in ("count", "on"):
            assert list(chat.send_message_stream(words)) if stream else chat.send_message(words)
        assert ["dG9r"] == [one.body["continuationToken"] for one in model.requests if "continuationToken" in one.body]
        assert on_the_wire(model) == captured(session)[:-1]
    assert ["count", "one two", "on", "three"] == said(session)
    assert [120, 60] == [one.input_tokens for one in session.events() if isinstance(one, Metric)]


# -- the program and capture fail --------------------------------------------------------------------------------------


def test_a_failure_of_capture_is_told_once_and_never_raised(
    session: Session, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise ZeroDivisionError

    with scripted(*([Say("yes")] for _ in range(3))) as (_, url), client_for(url) as client:
        wrapped = capture.google(client, session)
        monkeypatch.setattr(Capture, "request", broken)
        with caplog.at_level(logging.WARNING):
            assert "yes" == wrapped.models.generate_content(model=MODEL, contents="hi").text
            assert "yes" == "".join(chunk.text or "" for chunk in stream_of(wrapped))
            assert "completed" == wrapped.interactions.create(model=MODEL, input="hi").status
    assert 1 == caplog.text.count("capture failed")


def test_a_host_whose_function_raises_is_answered_as_the_sdk_does(session: Session) -> None:
    def read(path: str) -> str:
        raise Boom("no such file")

    with scripted(*TURNS) as (model, url), client_for(url) as client:
        wrapped = capture.google(client, session)
        wrapped.models.generate_content(model=MODEL, contents=QUESTION, config=config(read, size))
        assert on_the_wire(model) == captured(session)
    failed = session[TranscriptEntry].where(lambda one: one.role == "tool")[0]
    assert {"is_error": True} == failed.metadata


PROGRAM = """
import sys
from harken import Session, capture
from support.google_loop import MODEL, QUESTION, client_for, config, read, size

url, path = sys.argv[1:]
client = capture.google(client_for(url), Session(path))
for _ in client.models.generate_content_stream(model=MODEL, contents=QUESTION, config=config(read, size)):
    pass
"""


def test_after_sigkill_the_request_is_there_and_the_reply_is_marked_missing(tmp_path: Path) -> None:
    hold = Hold(threading.Event(), after=HALFWAY)
    path = tmp_path / "a.jsonl"
    with scripted(TURNS[0], [Think("Hm."), Say("never heard"), hold], [Say("once more")]) as (model, url):
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        program = subprocess.Popen([sys.executable, "-c", PROGRAM, url, str(path)], env=environment)
        assert hold.reached.wait(60)
        program.kill()
        program.wait()
        hold.gate.set()
        with Session(path) as session, client_for(url) as client:
            wrapped = capture.google(client, session)
            kinds = [about.get("kind") for about in metadata(session)]
            assert [None, None, "thinking", None, None, None, None, None, "missing"] == kinds
            sent = model.requests[-1].body["contents"]
            wrapped.models.generate_content(model=MODEL, contents=sent, config=config())
            assert on_the_wire(model) == [line for line in captured(session) if "is missing" not in line[1]]
            assert "transcript_edit" not in [event.kind for event in session.events()]
