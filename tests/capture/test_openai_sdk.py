"""A loop over OpenAI's SDK becomes a session: what went over the wire, in order, once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncAzureOpenAI, AsyncOpenAI, AzureOpenAI, OpenAI

from harken import Session, capture
from harken.errors import BadRequest
from harken.events import Metric
from support.openai_loop import (
    QUESTION,
    RESULTS,
    SYSTEM,
    TURNS,
    async_client_of,
    captured,
    chat_tools,
    client_of,
    metadata,
    on_the_wire,
    response_tools,
    scripted,
)
from support.scripted_model import Call, Refuse, Say, ScriptedModel, Think

Ask = tuple[ScriptedModel, str]
MODEL = "gpt-4o"


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        yield session


# -- loops -------------------------------------------------------------------------------------------------------------


def chat_loop(client: OpenAI, *, stream: bool = False, extra: str = "") -> str:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION + extra}]
    while True:
        if stream:
            with client.chat.completions.stream(model=MODEL, messages=messages, tools=chat_tools()) as events:
                for _ in events:
                    pass
                message: Any = events.get_final_completion().choices[0].message
        else:
            message = (
                client.chat.completions.create(model=MODEL, messages=messages, tools=chat_tools()).choices[0].message
            )
        messages.append(message)
        if not message.tool_calls:
            return str(message.content)
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": RESULTS[call.id]})


def responses_loop(client: OpenAI, *, stream: bool = False) -> str:
    items: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        options: Any = {"model": MODEL, "instructions": SYSTEM, "input": items, "tools": response_tools()}
        if stream:
            with client.responses.stream(**options) as events:
                for _ in events:
                    pass
                response: Any = events.get_final_response()
        else:
            response = client.responses.create(**options)
        items += response.output
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return str(response.output_text)
        items += [
            {"type": "function_call_output", "call_id": one.call_id, "output": RESULTS[one.call_id]} for one in calls
        ]


async def async_chat_loop(client: AsyncOpenAI, *, stream: bool) -> None:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    while True:
        if stream:
            async with client.chat.completions.stream(model=MODEL, messages=messages, tools=chat_tools()) as events:
                message: Any = (await events.get_final_completion()).choices[0].message
        else:
            reply = await client.chat.completions.create(model=MODEL, messages=messages, tools=chat_tools())
            message = reply.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": RESULTS[call.id]})


async def async_responses_loop(client: AsyncOpenAI, *, stream: bool) -> None:
    items: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        options: Any = {"model": MODEL, "instructions": SYSTEM, "input": items, "tools": response_tools()}
        if stream:
            async with client.responses.stream(**options) as events:
                response: Any = await events.get_final_response()
        else:
            response = await client.responses.create(**options)
        items += response.output
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return
        items += [
            {"type": "function_call_output", "call_id": one.call_id, "output": RESULTS[one.call_id]} for one in calls
        ]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("loop", [chat_loop, responses_loop])
class TestALoopWithTwoTools:
    def test_is_what_went_over_the_wire_in_order_and_once(self, session: Session, loop: Any, stream: bool) -> None:
        with scripted(*TURNS) as (model, url), client_of(url) as client:
            answer = loop(capture.openai(client, session), stream=stream)

            assert "It says hello, in 5 bytes." == answer
            assert on_the_wire(model) == captured(session)
            assert 7 == len(captured(session))

    def test_sends_what_the_bare_client_sends(self, session: Session, loop: Any, stream: bool) -> None:
        bodies = []
        for wrap in (False, True):
            with scripted(*TURNS) as (model, url), client_of(url) as client:
                loop(capture.openai(client, session) if wrap else client, stream=stream)
                bodies.append([request.body for request in model.requests])

        assert without_ids(bodies[0]) == without_ids(bodies[1])

    def test_counts_its_usage_once(self, session: Session, loop: Any, stream: bool) -> None:
        with scripted(*TURNS) as (_, url), client_of(url) as client:
            loop(capture.openai(client, session), stream=stream)

        figures = [event for event in session.events() if isinstance(event, Metric)]
        # A stream of chat completions has usage only where the host asks for it.
        assert (0 if loop is chat_loop and stream else 2) == len(figures)
        for one in figures:
            assert (100, MODEL) == ((one.input_tokens or 0) + (one.cache_read_tokens or 0), one.model)
            assert one.request_id.startswith("req_")
            assert one.api_id


def without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_ids(inner) for key, inner in value.items() if key != "id"}
    return [without_ids(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("loop", [async_chat_loop, async_responses_loop])
def test_an_asynchronous_loop_is_what_went_over_the_wire(session: Session, loop: Any, stream: bool) -> None:
    async def run(url: str) -> None:
        async with async_client_of(url) as client:
            await loop(capture.openai(client, session), stream=stream)

    with scripted(*TURNS) as (model, url):
        asyncio.run(run(url))

        assert on_the_wire(model) == captured(session)
        assert 7 == len(captured(session))


# -- the client --------------------------------------------------------------------------------------------------------


def ask(client: Any, words: str = "hi", **more: Any) -> Any:
    return client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": words}], **more)


class TestTheWrappedClient:
    def test_is_of_the_clients_own_class_and_leaves_the_client_alone(self, session: Session) -> None:
        with scripted([Say("1")], [Say("2")]) as (_, url), client_of(url) as client:
            client.chat.completions  # noqa: B018  resources that are made already belong to the bare client
            before = dict(vars(client))
            wrapped = capture.openai(client, session)

            assert type(client) is type(wrapped)
            assert before == vars(client)
            ask(client, "unheard")
            ask(wrapped)
            assert [("user", "hi"), ("assistant", "2")] == [line[:2] for line in captured(session)]

    def test_may_be_asynchronous_or_of_azure(self, session: Session) -> None:
        for cls, more in (
            (AsyncOpenAI, {}),
            (AzureOpenAI, {"azure_endpoint": "http://127.0.0.1:1", "api_version": "1"}),
            (AsyncAzureOpenAI, {"azure_endpoint": "http://127.0.0.1:1", "api_version": "1"}),
        ):
            client = cls(api_key="k", **more)  # type: ignore[operator]
            assert type(client) is type(capture.openai(client, session))

    def test_of_azure_is_captured(self, session: Session) -> None:
        with (
            scripted([Say("from Azure")]) as (model, url),
            AzureOpenAI(api_key="k", azure_endpoint=url.removesuffix("/v1"), api_version="1") as client,
        ):
            ask(capture.openai(client, session))

            assert on_the_wire(model) == captured(session)

    @pytest.mark.parametrize("name", ["with_options", "copy"])
    def test_stays_captured_through_its_copies(self, session: Session, name: str) -> None:
        with scripted([Say("1")]) as (model, url), client_of(url) as client:
            copied = getattr(capture.openai(client, session), name)(timeout=5, max_retries=0)
            ask(copied.with_options(timeout=6))

            assert on_the_wire(model) == captured(session)
            assert 0 == copied.max_retries

    def test_is_wrapped_once_for_a_session_and_once_more_for_another(self, session: Session) -> None:
        with scripted([Say("1")]) as (_, url), client_of(url) as client, Session() as other:
            twice = capture.openai(capture.openai(client, session), session)
            ask(capture.openai(twice, other))

            assert 2 == len(captured(session))
            assert captured(session) == captured(other)

    def test_must_be_one_of_the_sdk(self, session: Session) -> None:
        with pytest.raises(BadRequest, match="no client of the OpenAI SDK"):
            capture.openai(object(), session)


class TestOtherWaysToAsk:
    def test_a_raw_response(self, session: Session) -> None:
        with scripted([Say("raw")]) as (model, url), client_of(url) as client:
            raw = ask(capture.openai(client, session).with_raw_response)

            assert "raw" == raw.parse().choices[0].message.content
            assert on_the_wire(model) == captured(session)

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_response_whose_body_the_host_reads(self, session: Session, stream: bool) -> None:
        with scripted([Say("in pieces")]) as (model, url), client_of(url) as client:
            with ask(capture.openai(client, session).with_streaming_response, stream=stream) as response:
                assert 1 == len(captured(session))
                assert b"".join(response.iter_bytes())

            assert on_the_wire(model) == captured(session)

    def test_parsed_output(self, session: Session) -> None:
        class Size(openai.BaseModel):
            size: int

        with scripted([Say('{"size": 5}')], [Say('{"size": 6}')]) as (model, url), client_of(url) as client:
            wrapped = capture.openai(client, session)
            messages: Any = [{"role": "user", "content": "how large?"}]
            parsed = wrapped.chat.completions.parse(model=MODEL, messages=messages, response_format=Size)
            assert 5 == parsed.choices[0].message.parsed.size  # type: ignore[union-attr]
            assert on_the_wire(model) == captured(session)

            answer = wrapped.responses.parse(model=MODEL, input="how large is it now?", text_format=Size)
            assert 6 == answer.output_parsed.size  # type: ignore[union-attr]
            assert on_the_wire(model) == captured(session, "conversation:2")

    def test_an_iterator_of_chunks(self, session: Session) -> None:
        turn = [Think("Which file?"), Say("Let me look."), Call("read", {"path": "a.txt"}, id="c1")]
        with scripted(turn) as (model, url), client_of(url) as client:
            for _ in ask(capture.openai(client, session), stream=True, stream_options={"include_usage": True}):
                pass

            assert on_the_wire(model) == captured(session)
            assert ["thinking"] == [one["kind"] for one in metadata(session) if "kind" in one]
            assert 1 == sum(isinstance(event, Metric) for event in session.events())


# -- replies -----------------------------------------------------------------------------------------------------------


def test_what_the_provider_says_of_a_reply_is_in_the_metadata(session: Session) -> None:
    with scripted([Say("1")], [Say("2")]) as (_, url), client_of(url) as client:
        wrapped = capture.openai(client, session)
        ask(wrapped, temperature=0)
        wrapped.responses.create(model=MODEL, input="and now?")

    chat, response = metadata(session)[1], metadata(session)[3]
    assert {"model": MODEL, "finish_reason": "stop"}.items() <= chat.items()
    assert chat["response_id"].startswith("chatcmpl-")
    assert 111 == chat["usage"]["total_tokens"]
    assert {"model": MODEL, "status": "completed", "service_tier": "default"}.items() <= response.items()
    assert response["response_id"].startswith("resp_")
    assert all(one["request_id"].startswith("req_") for one in (chat, response))


def test_a_retry_is_a_number_and_no_second_entry(session: Session) -> None:
    again = Refuse(500, headers={"retry-after-ms": "1"})
    with scripted([again], [again], [Say("at last")]) as (model, url), client_of(url) as client:
        ask(capture.openai(client, session))

        assert 3 == len(model.requests)
        assert on_the_wire(model) == captured(session)
        assert 3 == metadata(session)[1]["attempts"]


def test_an_error_reaches_the_host_and_is_an_entry(session: Session) -> None:
    with (
        scripted([Refuse(400, "too many words")]) as (_, url),
        client_of(url) as client,
        pytest.raises(openai.BadRequestError, match="too many words"),
    ):
        ask(capture.openai(client, session))

    assert ["user", "assistant"] == [line[0] for line in captured(session)]
    assert "too many words" in captured(session)[1][1]
    about = metadata(session)[1]
    assert ("error", "BadRequestError", 400) == (about["kind"], about["type"], about["status"])
    assert about["request_id"].startswith("req_")


def test_no_connection_is_an_error_with_its_attempts(session: Session) -> None:
    client = OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", max_retries=1)
    with client, pytest.raises(openai.APIConnectionError):
        ask(capture.openai(client, session))

    assert ("error", 2) == (metadata(session)[1]["kind"], metadata(session)[1]["attempts"])


def test_calls_that_are_no_conversation_are_none(session: Session) -> None:
    with scripted() as (_, url), client_of(url) as client:
        capture.openai(client, session).models.list()

    assert [] == captured(session)
