"""However a call of Anthropic's SDK ends, and whatever becomes of the program: what went over the wire, once."""

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

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic, DefaultHttpxClient

from harken import Session, capture
from harken.capture import TranscriptEntry
from support.anthropic_loop import ASKED, TURNS, captured, metadata, on_the_wire, question, scripted
from support.scripted_model import Break, Call, Cue, Hold, Say, Think

TALK = "one two three four five six"
HALF = TALK[: len(TALK) // 2]
HALFWAY = 3
"""After so many events of a stream the first half of the words is there."""


class Boom(Exception):
    """The host's own failure."""


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        yield session


@pytest.fixture(scope="module")
def http_client() -> Iterator[Any]:
    """One for all: making one takes longer than any test."""
    with DefaultHttpxClient() as made:
        yield made


@pytest.fixture
def bare(http_client: Any) -> Anthropic:
    return Anthropic(api_key="k", base_url="http://127.0.0.1:9", http_client=http_client, max_retries=0)


def stream_of(client: Any, words: str = "hi") -> Any:
    return client.messages.create(messages=question(words), stream=True, **ASKED)


def said(session: Session) -> list[str]:
    return [content for role, content, *_ in captured(session) if role != "system"]


def read_half(stream: Any) -> None:
    for _ in range(HALFWAY):
        next(stream)


class TestAStream:
    def test_that_breaks_is_one_entry_with_what_came(self, session: Session, bare: Anthropic) -> None:
        turn: Cue = [Say(TALK), Break(after=HALFWAY)]
        with scripted(turn) as (_, url), pytest.raises(Exception, match=r"incomplete|closed"):
            list(stream_of(capture.anthropic(bare.copy(base_url=url), session)))

        assert ["hi", HALF] == said(session)
        assert metadata(session)[2]["partial"] is True
        assert "RemoteProtocolError" in metadata(session)[2]["error"]

    def test_that_the_host_closes_early_is_one_entry_with_what_it_was_given(
        self, session: Session, bare: Anthropic
    ) -> None:
        with scripted([Say(TALK)]) as (_, url):
            stream = stream_of(capture.anthropic(bare.copy(base_url=url), session))
            read_half(stream)
            stream.close()

        assert ["hi", HALF] == said(session)
        assert metadata(session)[2]["partial"] is True

    def test_that_the_host_leaves_after_the_last_event_is_whole(self, session: Session, bare: Anthropic) -> None:
        with scripted([Say(TALK)]) as (_, url):
            for event in stream_of(capture.anthropic(bare.copy(base_url=url), session)):
                if event.type == "message_stop":
                    break

        assert ["hi", TALK] == said(session)
        assert "partial" not in metadata(session)[2]

    def test_in_whose_middle_the_host_raises_is_one_entry_with_what_it_was_given(
        self, session: Session, bare: Anthropic
    ) -> None:
        with scripted([Say(TALK)]) as (_, url):
            client = capture.anthropic(bare.copy(base_url=url), session)
            with pytest.raises(Boom), client.messages.stream(messages=question("hi"), **ASKED) as stream:
                for _ in stream.text_stream:
                    raise Boom

        assert ["hi", HALF] == said(session)
        assert metadata(session)[2]["partial"] is True

    def test_that_is_thrown_away_is_one_entry_when_its_memory_is_taken_back(
        self, session: Session, bare: Anthropic
    ) -> None:
        with scripted([Say(TALK)]) as (_, url):
            stream = stream_of(capture.anthropic(bare.copy(base_url=url), session))
            read_half(stream)
            del stream

            assert ["hi", HALF] == said(session)

    def test_of_which_nothing_was_read_is_one_entry(self, session: Session, bare: Anthropic) -> None:
        with scripted([Say(TALK)]) as (_, url):
            stream_of(capture.anthropic(bare.copy(base_url=url), session)).close()

        assert ["error"] == [about["kind"] for about in metadata(session)[2:]]
        assert metadata(session)[2]["partial"] is True

    def test_that_is_still_open_when_the_session_is_closed_is_one_entry(self, tmp_path: Path, bare: Anthropic) -> None:
        with scripted([Say(TALK)]) as (_, url):
            with Session(tmp_path / "a.jsonl") as session:
                stream = stream_of(capture.anthropic(bare.copy(base_url=url), session))
                read_half(stream)
            stream.close()
        with Session(tmp_path / "a.jsonl", readonly=True) as session:
            assert ["hi", HALF] == said(session)

    def test_that_the_host_goes_on_behind_is_told_before(self, session: Session, bare: Anthropic) -> None:
        with scripted([Say(TALK)], [Say("fine")]) as (model, url):
            client = capture.anthropic(bare.copy(base_url=url), session)
            stream = stream_of(client)
            read_half(stream)
            history = [*question("hi"), {"role": "assistant", "content": HALF}, *question("stop")]
            client.messages.create(messages=history, **ASKED)
            stream.close()

            assert on_the_wire(model) == captured(session)

    def test_cut_in_the_middle_of_a_call_has_the_beginning_of_its_arguments(
        self, session: Session, bare: Anthropic
    ) -> None:
        turn: Cue = [Think("hm"), Call("read", {"path": "a.txt"}, id="toolu_a"), Break(after=8)]
        with scripted(turn) as (_, url), pytest.raises(Exception, match=r"incomplete|closed"):
            list(stream_of(capture.anthropic(bare.copy(base_url=url), session)))

        assert ["hi", "hm", '{"path":'] == said(session)
        call = session[TranscriptEntry].all()[-1]
        assert ("read", "toolu_a", None) == (call.tool_name, call.tool_call_id, call.tool_input)

    def test_in_which_the_provider_reports_an_error_is_one_entry_and_the_error(
        self, session: Session, bare: Anthropic
    ) -> None:
        overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        turn: Cue = [Say(TALK), Break(after=HALFWAY, saying=[overloaded])]
        with scripted(turn) as (_, url), pytest.raises(anthropic.APIStatusError):
            list(stream_of(capture.anthropic(bare.copy(base_url=url), session)))

        assert ["hi", HALF, "Overloaded"] == said(session)
        assert ("overloaded_error", True) == (metadata(session)[2]["error"]["type"], metadata(session)[2]["partial"])

    def test_that_a_task_is_cancelled_in_is_one_entry_with_what_came(self, session: Session) -> None:
        hold = Hold(threading.Event(), after=HALFWAY)

        async def read(url: str, halfway: asyncio.Event) -> None:
            async with AsyncAnthropic(api_key="k", base_url=url) as client:
                stream = await stream_of(capture.anthropic(client, session))
                for _ in range(HALFWAY):
                    await anext(stream)
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
        assert ["hi", HALF] == said(session)
        assert metadata(session)[2]["partial"] is True

    def test_that_a_task_leaves_open_is_one_entry(self, session: Session) -> None:
        async def run(url: str) -> None:
            async with AsyncAnthropic(api_key="k", base_url=url) as client:
                stream = await stream_of(capture.anthropic(client, session))
                await anext(stream)

        with scripted([Say(TALK)]) as (_, url):
            asyncio.run(run(url))
            gc.collect()
        assert 3 == len(captured(session))
        assert metadata(session)[2]["partial"] is True


class TestACall:
    def test_that_is_cancelled_is_an_error_in_the_session(self, session: Session) -> None:
        hold = Hold(threading.Event())

        async def run(url: str) -> None:
            async with AsyncAnthropic(api_key="k", base_url=url) as client:
                wrapped = capture.anthropic(client, session)
                call = asyncio.create_task(wrapped.messages.create(messages=question("hi"), **ASKED))
                await asyncio.to_thread(hold.reached.wait, 20)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call

        with scripted([Say("never heard"), hold]) as (_, url):
            asyncio.run(run(url))
            hold.gate.set()
        assert ["hi", "CancelledError"] == said(session)
        assert "error" == metadata(session)[2]["kind"]

    def test_that_the_user_interrupts_is_an_error_in_the_session(self, session: Session, bare: Anthropic) -> None:
        hold = Hold(threading.Event())

        def interrupt(body: dict[str, Any]) -> Any:
            os.kill(os.getpid(), signal.SIGINT)
            return [Say("never heard"), hold]

        with scripted(interrupt) as (_, url):
            with pytest.raises(KeyboardInterrupt):
                capture.anthropic(bare.copy(base_url=url), session).messages.create(messages=question("hi"), **ASKED)
            hold.gate.set()
        assert ["hi", "KeyboardInterrupt"] == said(session)

    def test_that_takes_too_long_is_an_error_in_the_session(self, session: Session, bare: Anthropic) -> None:
        hold = Hold(threading.Event())
        with scripted([Say("late"), hold]) as (_, url):
            client = capture.anthropic(bare.copy(base_url=url, timeout=0.2), session)
            with pytest.raises(anthropic.APITimeoutError):
                client.messages.create(messages=question("hi"), **ASKED)
            hold.gate.set()
        assert "APITimeoutError" == metadata(session)[2]["type"]


def test_a_host_that_raises_between_its_turns_leaves_what_went_over_the_wire(session: Session, bare: Anthropic) -> None:
    with scripted(*TURNS) as (model, url):
        client = capture.anthropic(bare.copy(base_url=url), session)
        with pytest.raises(Boom):
            client.messages.create(messages=question(), **ASKED)
            raise Boom

        assert on_the_wire(model) == captured(session)


def test_threads_have_conversations_of_their_own(session: Session, bare: Anthropic) -> None:
    names = [f"person {number}" for number in range(6)]
    with scripted() as (model, url):
        for name in names:
            model.play([Say(f"hello {name}")], [Say(f"bye {name}")], to=f"{name}.")
        client = capture.anthropic(bare.copy(base_url=url), session)

        def talk(name: str) -> None:
            first = question(f"I am {name}.")
            reply = client.messages.create(messages=first, **ASKED)
            history = [*first, {"role": "assistant", "content": reply.content}, *question("bye")]
            client.messages.create(messages=history, **ASKED)

        threads = [threading.Thread(target=talk, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    talks = {}
    for source in {entry.source for entry in session[TranscriptEntry].all()}:
        _, first, *rest = [content for _, content, *_ in captured(session, source)]
        talks[first] = rest
    assert {f"I am {name}.": [f"hello {name}", "bye", f"bye {name}"] for name in names} == talks


# -- the program is killed ---------------------------------------------------------------------------------------------

PROGRAM = """
import sys
from anthropic import Anthropic
from harken import Session, capture
from support.anthropic_loop import ASKED, question, results

url, path = sys.argv[1:]
session = Session(path)
client = capture.anthropic(Anthropic(api_key="k", base_url=url), session)
first = client.messages.create(messages=question(), **ASKED)
history = [*question(), *results(first)]
for _ in client.messages.create(messages=history, stream=True, **ASKED):
    pass
"""


def test_after_sigkill_the_request_is_there_and_the_reply_is_marked_missing(tmp_path: Path) -> None:
    hold = Hold(threading.Event(), after=HALFWAY)
    path = tmp_path / "a.jsonl"
    with scripted(TURNS[0], [Say("never heard"), hold], [Say("once more")]) as (model, url):
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        program = subprocess.Popen([sys.executable, "-c", PROGRAM, url, str(path)], env=environment)
        assert hold.reached.wait(60)
        program.kill()
        program.wait()
        hold.gate.set()
        with Session(path) as session:
            client = capture.anthropic(Anthropic(api_key="k", base_url=url), session)
            kinds = [about.get("kind") for about in metadata(session)]
            assert [None, None, "thinking", None, None, None, None, None, "missing"] == kinds
            sent = model.requests[-1].body["messages"]
            client.messages.create(messages=sent, **ASKED)
            client.close()

            assert on_the_wire(model) == [line for line in captured(session) if "is missing" not in line[1]]
            assert "transcript_edit" not in [event.kind for event in session.events()]
