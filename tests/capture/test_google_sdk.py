"""A loop over Google's GenAI SDK becomes a session: what went over the wire, in order, once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import types
from google.genai._api_client import HttpRequest, HttpResponse

from harken import Session, capture
from harken.capture import TranscriptEntry
from harken.capture.exchange import Capture
from harken.capture.google_sdk.calls import GoogleCalls
from harken.capture.google_sdk.wrapping import _heard_api
from harken.errors import BadRequest
from harken.events import Metric, TranscriptEdit
from support.anthropic_loop import scripted
from support.google_loop import (
    ANSWER,
    MODEL,
    QUESTION,
    TURNS,
    captured,
    client_for,
    config,
    interactions_on_the_wire,
    metadata,
    on_the_wire,
    read,
    size,
)
from support.scripted_model import Block, Call, Refuse, Say, Think

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        yield session


def edits(session: Session) -> list[TranscriptEdit]:
    return [event for event in session.events() if isinstance(event, TranscriptEdit)]


# -- contents ----------------------------------------------------------------------------------------------------------


def test_a_call_is_what_went_over_the_wire(session: Session) -> None:
    with scripted([Think("Hm."), Say("Hello.")]) as (model, url), client_for(url) as client:
        wrapped = capture.google(client, session)
        reply = wrapped.models.generate_content(model=MODEL, contents="Hi", config=config(temperature=0.5))
        assert "Hello." == reply.text
        assert on_the_wire(model) == captured(session)
        assert 4 == len(captured(session))


def test_automatic_calls_of_two_functions_are_captured_once(session: Session) -> None:
    with scripted(*TURNS) as (model, url), client_for(url) as client:
        wrapped = capture.google(client, session)
        reply = wrapped.models.generate_content(model=MODEL, contents=QUESTION, config=config(read, size))
        assert ANSWER == reply.text
        assert on_the_wire(model) == captured(session)
        assert 9 == len(captured(session))
    calls = session[TranscriptEntry].where(lambda one: one.tool_name is not None)
    assert ["call_1", "call_2", "call_1", "call_2"] == [one.tool_call_id for one in calls]
    assert not edits(session)


def test_a_stream_with_automatic_calls_is_captured_once(session: Session) -> None:
    with scripted(*TURNS) as (model, url), client_for(url) as client:
        wrapped = capture.google(client, session)
        chunks = wrapped.models.generate_content_stream(model=MODEL, contents=QUESTION, config=config(read, size))
        assert ANSWER in "".join(chunk.text or "" for chunk in chunks if chunk.candidates)
        assert on_the_wire(model) == captured(session)
    assert not edits(session)
    assert not any(one.get("partial") for one in metadata(session))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_chat_goes_on_without_saying_anything_twice(session: Session, stream: bool) -> None:
    turns = [[Think("Hm."), Say("Hello there.")], [Say("Fine, thanks.")], *TURNS]
    with scripted(*turns) as (model, url), client_for(url) as client:
        chat = capture.google(client, session).chats.create(model=MODEL, config=config(read, size))
        for words in ("Hi", "How are you?", QUESTION):
            if stream:
                assert list(chat.send_message_stream(words))
            else:
                chat.send_message(words)
        assert on_the_wire(model) == captured(session)
    assert not edits(session)


def test_without_waiting_it_is_the_same(session: Session) -> None:
    async def run(url: str) -> None:
        client = client_for(url)
        async with client.aio:
            wrapped = capture.google(client, session).aio
            await wrapped.models.generate_content(model=MODEL, contents=QUESTION, config=config(read, size))
            chat = wrapped.chats.create(model=MODEL, config=config())
            await chat.send_message("Hi")
            async for _ in await chat.send_message_stream("And?"):
                pass
        client.close()

    with scripted(*TURNS, [Say("Hello.")], [Think("Hm."), Say("Nothing.")]) as (model, url):
        asyncio.run(run(url))
        assert on_the_wire(model) == captured(session, "conversation:2")
        assert 9 == len(captured(session))


def test_every_http_library_of_the_sdk_is_heard(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(url: str, backend: str) -> str:
        monkeypatch.setenv("GOOGLE_GENAI_HTTP_CLIENT", backend)
        http = __import__(backend)
        with client_for(url, async_client_args={"transport": http.AsyncHTTPTransport()}) as client:
            wrapped = capture.google(client, session)
            wrapped.models.generate_content(model=MODEL, contents=f"{backend}?")
            async with wrapped.aio as later:
                chunks = await later.models.generate_content_stream(model=MODEL, contents=f"{backend} later?")
                return "".join([chunk.text or "" async for chunk in chunks])

    with scripted(*([Say("yes")] for _ in range(4))) as (_, url):
        for backend in ("httpx", "httpx2"):
            assert "yes" == asyncio.run(run(url, backend))
    said = [one.content for one in session[TranscriptEntry].all()]
    assert ["httpx?", "yes", "httpx later?", "yes", "httpx2?", "yes", "httpx2 later?", "yes"] == said


# -- interactions ------------------------------------------------------------------------------------------------------

ASKED: dict[str, Any] = {"model": MODEL, "system_instruction": "Be brief."}
STEPS = [[Think("One tool knows."), Say("I look."), Call("read", {"path": "a.txt"}, id="fc_a")], [Say("Hello.")]]


def results(interaction: Any) -> list[Any]:
    return [
        {"type": "function_result", "call_id": step.id, "name": step.name, "result": "hello"}
        for step in interaction.steps
        if step.type == "function_call"
    ]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_interaction_goes_on_with_the_one_it_names(session: Session, stream: bool) -> None:
    with scripted(*STEPS) as (model, url), client_for(url) as client:
        wrapped = capture.google(client, session)
        first = "int_000001"
        for given, before in ((QUESTION, None), (None, first)):
            asked = {**ASKED, **({"previous_interaction_id": before} if before else {})}
            sent = given or [{"type": "function_result", "call_id": "fc_a", "name": "read", "result": "hello"}]
            reply = wrapped.interactions.create(input=sent, stream=stream, **asked)
            if stream:
                assert list(reply)
            elif before is None:
                assert sent != results(reply)
        assert [first] == [one["previous_interaction_id"] for one in (r.body for r in model.requests[1:])]
        assert interactions_on_the_wire(model) == captured(session)
    assert [(60, 20, 40, 7), (60, 18, 40, 7)] == [
        (one.input_tokens, one.output_tokens, one.cache_read_tokens, one.reasoning_tokens)
        for one in session.events()
        if isinstance(one, Metric)
    ]


def test_interactions_without_waiting_and_as_raw_responses(session: Session) -> None:
    async def run(url: str) -> None:
        client = client_for(url)
        async with capture.google(client, session).aio as wrapped:
            first = await wrapped.interactions.create(input="Hi", **ASKED)
            stream = await wrapped.interactions.create(
                input="And?", stream=True, previous_interaction_id=first.id, **ASKED
            )
            assert [event async for event in stream]
        raw = capture.google(client, session).interactions.with_raw_response.create(input="Raw", **ASKED)
        raw.parse()
        client.close()

    with scripted([Say("Hello.")], [Say("Nothing.")], [Say("raw")]) as (_, url):
        asyncio.run(run(url))
    assert ["Be brief.", "Hi", "Hello.", "And?", "Nothing."] == [words for _, words, _ in captured(session)]
    assert ["Be brief.", "Raw", "raw"] == [words for _, words, _ in captured(session, "conversation:2")]


# -- what is known of a reply ------------------------------------------------------------------------------------------


def test_usage_counts_once_and_the_reply_says_why_it_ended(session: Session) -> None:
    with scripted([Say("Hello.")]) as (_, url), client_for(url) as client:
        capture.google(client, session).models.generate_content(model=MODEL, contents="Hi")
    (metric,) = (one for one in session.events() if isinstance(one, Metric))
    assert (60, 18, 40, 7) == (
        metric.input_tokens,
        metric.output_tokens,
        metric.cache_read_tokens,
        metric.reasoning_tokens,
    )
    about = metadata(session)[-1]
    assert ("STOP", "gemini-scripted-001") == (about["finish_reason"], about["model"])
    assert about["response_id"].startswith("resp_")
    assert 118 == about["usage"]["totalTokenCount"]


def test_a_prompt_that_is_blocked_is_a_refusal(session: Session) -> None:
    with scripted([], [Say("Fine.")]) as (model, url), client_for(url) as client:
        model.said_of_message = {"candidates": [], "promptFeedback": {"blockReason": "SAFETY"}}
        wrapped = capture.google(client, session)
        wrapped.models.generate_content(model=MODEL, contents="Hi")
        model.said_of_message = {}
        wrapped.models.generate_content(model=MODEL, contents="Hi")
    refusal = session[TranscriptEntry].all()[1]
    assert ("the prompt was blocked: SAFETY", "refusal") == (refusal.content, (refusal.metadata or {})["kind"])
    assert {"blockReason": "SAFETY"} == (refusal.metadata or {})["prompt_feedback"]
    assert ["Hi", "Fine."] == [line["content"] for line in session.transcript(session.root or "")]


def test_media_that_the_model_makes_are_an_entry_and_other_candidates_are_too(session: Session) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    other = {"content": {"role": "model", "parts": [{"text": "B"}]}, "index": 1, "finishReason": "STOP"}
    with scripted([]) as (model, url), client_for(url) as client:
        first = {"content": {"role": "model", "parts": [{"text": "A"}, picture]}, "index": 0, "finishReason": "STOP"}
        model.said_of_message = {"candidates": [first, other]}
        capture.google(client, session).models.generate_content(model=MODEL, contents="Draw")
    assert ["Draw", "A", "[image/png, 3 bytes]", "B"] == [words for _, words, _ in captured(session)]
    assert [None, None, "media", "choice"] == [one.get("kind") for one in metadata(session)]


def test_media_that_the_host_sends_are_a_placeholder(session: Session) -> None:
    sound = types.Part.from_bytes(data=b"\xff\xfe\xfd", mime_type="audio/wav")
    with scripted([Say("A beep.")]) as (_, url), client_for(url) as client:
        capture.google(client, session).models.generate_content(model=MODEL, contents=["Listen:", sound])
    assert ["Listen:\n[audio/wav, 3 bytes]", "A beep."] == [words for _, words, _ in captured(session)]


def test_secrets_are_masked(session: Session) -> None:
    with scripted([Say("the word is xyzzy")]) as (_, url), client_for(url) as client:
        wrapped = capture.google(client, session, mask=lambda text: text.replace("xyzzy", "***"))
        wrapped.models.generate_content(model=MODEL, contents="say xyzzy")
    assert ["say ***", "the word is ***"] == [words for _, words, _ in captured(session)]


# -- clients -----------------------------------------------------------------------------------------------------------


def test_the_client_keeps_its_class_and_the_first_one_is_left_as_it_is(session: Session) -> None:
    with scripted([Say("1")], [Say("2")], [Say("3")]) as (model, url), client_for(url) as client:
        before = dict(vars(client))
        wrapped = capture.google(client, session)
        assert isinstance(wrapped, genai.Client)
        assert wrapped is capture.google(wrapped, session)
        assert isinstance(wrapped.interactions, type(client.interactions))
        wrapped.models.generate_content(model=MODEL, contents="same", config=config(read, temperature=0))
        del wrapped
        client.models.generate_content(model=MODEL, contents="same", config=config(read, temperature=0))
        client.interactions.create(model=MODEL, input="nor this")
        assert before.keys() == vars(client).keys()
        assert [before["_models"], before["_api_client"]] == [client._models, client._api_client]
        bodies = [request.body for request in model.requests]
    assert ["Be brief.", "same", "1"] == [words for _, words, _ in captured(session)]
    assert bodies[0] == bodies[1]


def test_a_client_that_only_the_wrapped_one_knows_lives_as_long(session: Session) -> None:
    with scripted([Say("1")]) as (_, url):
        wrapped = capture.google(client_for(url), session)
        wrapped.models.generate_content(model=MODEL, contents="Hi")
        wrapped.close()
        with pytest.raises(RuntimeError, match="closed"):
            wrapped.models.generate_content(model=MODEL, contents="Hi")


def test_two_sessions_hear_the_same_client(session: Session) -> None:
    with Session() as other, scripted([Say("1")]) as (_, url), client_for(url) as client:
        both = capture.google(capture.google(client, session), other)
        both.models.generate_content(model=MODEL, contents="Hi")
        assert captured(session) == captured(other)
        assert 2 == len(captured(session))


def test_what_is_no_client_is_refused(session: Session) -> None:
    with pytest.raises(BadRequest, match="no client of Google's GenAI SDK"):
        capture.google(object(), session)


def test_a_retry_is_told_and_not_captured_twice(session: Session) -> None:
    retry = types.HttpRetryOptions(attempts=3, initial_delay=0.001, max_delay=0.001, jitter=0.0)
    refusals = [[Refuse(503)], [Refuse(503)], [Say("Hello.")]]
    with scripted(*refusals, *refusals) as (model, url), client_for(url, retry_options=retry) as client:
        wrapped = capture.google(client, session)
        wrapped.models.generate_content(model=MODEL, contents="Hi")
        wrapped.interactions.create(model=MODEL, input="Ho")
        assert 6 == len(model.requests)
    assert ["Hi", "Hello."] == [words for _, words, _ in captured(session)]
    assert ["Ho", "Hello."] == [words for _, words, _ in captured(session, "conversation:2")]
    assert [None, 3, None, 3] == [one.get("attempts") for one in metadata(session)]


def test_a_refusal_is_an_entry_and_the_host_gets_its_error(session: Session) -> None:
    with (
        scripted([Refuse(400, "no such model")], [Refuse(404, "nothing there")]) as (_, url),
        client_for(url) as client,
    ):
        wrapped = capture.google(client, session)
        with pytest.raises(genai.errors.ClientError, match="no such model"):
            wrapped.models.generate_content(model=MODEL, contents="Hi")
        with pytest.raises(Exception, match="nothing there"):
            wrapped.interactions.create(model=MODEL, input="Ho")
    failures = [one for one in session[TranscriptEntry].all() if (one.metadata or {}).get("kind") == "error"]
    assert [400, 404] == [(one.metadata or {})["status"] for one in failures]
    assert ["no such model" in failures[0].content, "nothing there" in failures[1].content] == [True, True]


def test_a_signature_on_a_call_goes_along_in_the_log(session: Session) -> None:
    signed = Block({"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "c2lnbmVk"})
    with scripted([signed], [Say("ok")]) as (model, url), client_for(url) as client:
        wrapped = capture.google(client, session)
        wrapped.models.generate_content(model=MODEL, contents="go", config=config(read))
        assert on_the_wire(model) == captured(session)
    assert any("c2lnbmVk" in str(event) for event in session.events())


# -- kinds of clients and ways to ask ----------------------------------------------------------------------------------


def test_a_client_of_vertex_ai_is_heard(session: Session) -> None:
    with scripted([Say("Hello.")]) as (model, url), client_for(url, vertexai=True) as client:
        wrapped = capture.google(client, session)
        assert wrapped.vertexai
        wrapped.models.generate_content(model=MODEL, contents="Hi", config=config())
        assert on_the_wire(model) == captured(session)


def test_the_part_of_a_client_that_does_not_wait_may_be_given_alone(session: Session) -> None:
    async def run(url: str) -> None:
        client = client_for(url)
        async with capture.google(client.aio, session) as wrapped:
            assert isinstance(wrapped, type(client.aio))
            await wrapped.models.generate_content(model=MODEL, contents="Hi")
        client.close()

    with scripted([Say("Hello.")]) as (_, url):
        asyncio.run(run(url))
    assert ["Hi", "Hello."] == [words for _, words, _ in captured(session)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_interactions_as_streaming_responses_are_heard(session: Session, stream: bool) -> None:
    with scripted([Say("Hello.")]) as (_, url), client_for(url) as client:
        ask = capture.google(client, session).interactions.with_streaming_response.create
        with ask(input="Hi", stream=stream, **ASKED) as response:
            assert list(response.parse())
    assert ["Be brief.", "Hi", "Hello."] == [words for _, words, _ in captured(session)]


@pytest.mark.parametrize("store", [False, True], ids=["sent again", "stored"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_interaction_that_takes_several_requests_goes_on(session: Session, stream: bool, store: bool) -> None:
    def hop(words: str, status: str, **more: str) -> Any:
        def play(body: dict[str, Any]) -> list[Say]:
            model.said_of_message = {"status": status, **more}
            return [Say(words)]

        return play

    hops = [hop("one ", "requires_continuation", continuation_token="t"), hop("two", "completed")]
    with scripted(*hops) as (model, url), client_for(url) as client:
        reply = capture.google(client, session).interactions.create(input="Count", stream=stream, store=store, **ASKED)
        assert list(reply) if stream else "one two" == reply.output_text
        assert [None, "t"] == [request.body.get("continuation_token") for request in model.requests]
    assert ["Be brief.", "Count", "one ", "two"] == [words for _, words, _ in captured(session)]
    assert not edits(session)


class OlderApiClient:
    """What the API client was before it tried again."""

    def _request(self, http_request: Any, stream: bool = False) -> Any:
        said = {"candidates": [{"content": {"parts": [{"text": "Hello."}]}, "finishReason": "STOP"}]}
        return HttpResponse({}, [json.dumps(said)])


def test_an_api_client_that_does_not_try_again_is_heard(session: Session) -> None:
    twin = _heard_api(OlderApiClient(), (GoogleCalls(Capture(session, "google")),))
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    twin._request(HttpRequest(headers={}, url="http://x/models/m:generateContent", method="post", data=body))
    assert ["Hi", "Hello."] == [words for _, words, _ in captured(session)]


def test_an_sdk_that_is_built_otherwise_is_not_heard_and_works(
    session: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any) -> None:
        raise AttributeError("sdk_configuration")

    monkeypatch.setattr("harken.capture.google_sdk.wrapping._hear_attempts", broken)
    monkeypatch.setattr("harken.capture.google_sdk.wrapping._response_class", broken)
    with scripted([Say("one")], [Say("two")]) as (_, url), client_for(url) as client:
        wrapped = capture.google(client, session)
        assert "completed" == wrapped.interactions.create(input="Hi", **ASKED).status
        assert list(wrapped.models.generate_content_stream(model=MODEL, contents="Ho"))
    assert 1 == caplog.text.count("capture failed")
