"""A loop over Anthropic's SDK becomes a session: what went over the wire, in order, once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import pytest
from anthropic import (
    Anthropic,
    AnthropicBedrock,
    AnthropicVertex,
    AsyncAnthropic,
    DefaultHttpxClient,
    beta_async_tool,
    beta_tool,
)
from pydantic import BaseModel

from harken import Session, capture
from harken.capture import TranscriptEntry
from harken.errors import BadRequest
from harken.events import Image, Metric, Prompt
from support.anthropic_loop import (
    ASKED,
    MODEL,
    QUESTION,
    RESULTS,
    SYSTEM,
    TURNS,
    captured,
    metadata,
    on_the_wire,
    question,
    results,
    scripted,
)
from support.scripted_model import Block, Call, Refuse, Say

ANSWER = "It says hello, in 5 bytes."


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        yield session


@pytest.fixture(scope="module", autouse=True)
def http_client() -> Iterator[Any]:
    """One for all: making one takes longer than any test."""
    with DefaultHttpxClient() as made:
        SHARED.append(made)
        yield
        SHARED.clear()


SHARED: list[Any] = []


@contextmanager
def sync_client(url: str, make: type[Anthropic] = Anthropic, **options: Any) -> Iterator[Any]:
    yield make(api_key="k", base_url=url, http_client=SHARED[0], **options)


def ask(client: Any, words: str = QUESTION, **options: Any) -> Any:
    return client.messages.create(messages=question(words), **{**ASKED, **options})


# -- loops -------------------------------------------------------------------------------------------------------------


def loop(client: Any, *, stream: bool, beta: bool = False) -> str:
    resource = client.beta.messages if beta else client.messages
    messages = question()
    while True:
        if stream:
            with resource.stream(messages=messages, **ASKED) as events:
                message = events.get_final_message()
        else:
            message = resource.create(messages=messages, **ASKED)
        if message.stop_reason != "tool_use":
            return str(message.content[0].text)
        messages += results(message)


async def async_loop(client: Any, *, stream: bool, beta: bool = False) -> str:
    resource = client.beta.messages if beta else client.messages
    messages = question()
    while True:
        if stream:
            async with resource.stream(messages=messages, **ASKED) as events:
                message = await events.get_final_message()
        else:
            message = await resource.create(messages=messages, **ASKED)
        if message.stop_reason != "tool_use":
            return str(message.content[0].text)
        messages += results(message)


@pytest.mark.parametrize("beta", [False, True], ids=["messages", "beta"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
class TestALoopWithTwoToolsAndThinking:
    def test_is_what_went_over_the_wire_in_order_and_once(self, session: Session, stream: bool, beta: bool) -> None:
        with scripted(*TURNS) as (model, url), sync_client(url) as client:
            answer = loop(capture.anthropic(client, session), stream=stream, beta=beta)

            assert ANSWER == answer
            assert on_the_wire(model) == captured(session)
            assert 9 == len(captured(session))

    def test_is_the_same_without_waiting(self, session: Session, stream: bool, beta: bool) -> None:
        async def run(url: str) -> str:
            async with AsyncAnthropic(api_key="k", base_url=url) as client:
                return await async_loop(capture.anthropic(client, session), stream=stream, beta=beta)

        with scripted(*TURNS) as (model, url):
            assert ANSWER == asyncio.run(run(url))
            assert on_the_wire(model) == captured(session)

    def test_sends_what_the_bare_client_sends(self, session: Session, stream: bool, beta: bool) -> None:
        heads, bodies = [], []
        for wrap in (False, True):
            with scripted(*TURNS) as (model, url), sync_client(url) as client:
                loop(capture.anthropic(client, session) if wrap else client, stream=stream, beta=beta)
                bodies.append([request.body for request in model.requests])
                heads.append([request.headers for request in model.requests])

        assert bodies[0] == bodies[1]
        assert heads[0] == heads[1]

    def test_counts_its_usage_once(self, session: Session, stream: bool, beta: bool) -> None:
        with scripted(*TURNS) as (model, url), sync_client(url) as client:
            model.usage = {
                "cache_read_input_tokens": 7,
                "cache_creation_input_tokens": 30,
                "cache_creation": {"ephemeral_1h_input_tokens": 20, "ephemeral_5m_input_tokens": 10},
                "service_tier": "priority",
            }
            loop(capture.anthropic(client, session), stream=stream, beta=beta)

        metrics = [event for event in session.events() if isinstance(event, Metric)]
        assert [(100, 14, 7, 30, 20), (100, 11, 7, 30, 20)] == [
            (m.input_tokens, m.output_tokens, m.cache_read_tokens, m.cache_write_tokens, m.cache_write_1h_tokens)
            for m in metrics
        ]
        assert [(MODEL, "tool_use", "priority"), (MODEL, "end_turn", "priority")] == [
            (m.model, m.stop_reason, m.served) for m in metrics
        ]
        assert all(m.api_id.startswith("msg_") and m.request_id.startswith("req_") for m in metrics)
        assert 2 == len({m.request_key for m in metrics})


def test_thinking_is_an_entry_with_its_signature_and_what_the_provider_says_stands_with_the_first(
    session: Session,
) -> None:
    with scripted(*TURNS) as (_, url), sync_client(url) as client:
        loop(capture.anthropic(client, session), stream=True)

    thought = metadata(session)[2]
    assert ("thinking", "c2lnbmVk") == (thought["kind"], thought["signature"])
    assert (MODEL, "tool_use", 14) == (thought["model"], thought["stop_reason"], thought["usage"]["output_tokens"])
    assert thought["response_id"].startswith("msg_") and thought["request_id"].startswith("req_")


# -- ways to ask -------------------------------------------------------------------------------------------------------


def raw(client: Any) -> None:
    client.messages.with_raw_response.create(messages=question(), **ASKED).parse()


def raw_unparsed(client: Any) -> None:
    client.messages.with_raw_response.create(messages=question(), **ASKED)


def raw_stream(client: Any) -> None:
    for _ in client.messages.with_raw_response.create(messages=question(), stream=True, **ASKED).parse():
        pass


def streaming_response(client: Any) -> None:
    with client.messages.with_streaming_response.create(messages=question(), **ASKED) as response:
        response.parse()


def streaming_lines(client: Any) -> None:
    with client.messages.with_streaming_response.create(messages=question(), stream=True, **ASKED) as response:
        for _ in response.iter_lines():
            pass


def events(client: Any) -> None:
    for _ in client.messages.create(messages=question(), stream=True, **ASKED):
        pass


def words(client: Any) -> None:
    with client.messages.stream(messages=question(), **ASKED) as stream:
        for _ in stream.text_stream:
            pass


def options_of_its_own(client: Any) -> None:
    client.with_options(timeout=5).copy(max_retries=0).messages.create(messages=question(), **ASKED)


def with_middleware(client: Any) -> None:
    client.with_middleware(lambda request, call_next: call_next(request)).messages.create(messages=question(), **ASKED)


def an_iterator(client: Any) -> None:
    client.messages.create(messages=iter(question()), **ASKED)


def by_hand(client: Any) -> None:
    client.post("/v1/messages", cast_to=object, body={"messages": question(), **ASKED})


WAYS = [
    *(raw, raw_unparsed, raw_stream, streaming_response, streaming_lines, events, words),
    *(options_of_its_own, with_middleware, an_iterator, by_hand),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_way_to_ask_is_captured(session: Session, way: Any) -> None:
    with scripted([Say(ANSWER)]) as (model, url), sync_client(url) as client:
        way(capture.anthropic(client, session))

        assert on_the_wire(model) == captured(session)
        assert "partial" not in metadata(session)[-1]


async def later_raw(client: Any) -> None:
    await (await client.messages.with_raw_response.create(messages=question(), **ASKED)).parse()


async def later_streaming_response(client: Any) -> None:
    async with client.messages.with_streaming_response.create(messages=question(), **ASKED) as response:
        await response.parse()


async def later_events(client: Any) -> None:
    async for _ in await client.messages.create(messages=question(), stream=True, **ASKED):
        pass


async def later_words(client: Any) -> None:
    async with client.with_options(timeout=5).messages.stream(messages=question(), **ASKED) as stream:
        async for _ in stream.text_stream:
            pass


@pytest.mark.parametrize("way", [later_raw, later_streaming_response, later_events, later_words])
def test_every_way_to_ask_without_waiting_is_captured(session: Session, way: Any) -> None:
    async def run(url: str) -> None:
        async with AsyncAnthropic(api_key="k", base_url=url) as client:
            await way(capture.anthropic(client, session))

    with scripted([Say(ANSWER)]) as (model, url):
        asyncio.run(run(url))

        assert on_the_wire(model) == captured(session)
        assert "partial" not in metadata(session)[-1]


def test_middleware_that_asks_twice_makes_two_requests(session: Session) -> None:
    def twice(request: Any, call_next: Any) -> Any:
        call_next(request)
        return call_next(request.copy(body={**request.json, "messages": question("And now?")}))

    with scripted([Say("one")], [Say("two")]) as (_, url), sync_client(url, middleware=[twice]) as client:
        assert "two" == ask(capture.anthropic(client, session)).content[0].text

    assert [SYSTEM, QUESTION, "one"] == [content for _, content, *_ in captured(session)]
    assert [SYSTEM, "And now?", "two"] == [content for _, content, *_ in captured(session, "conversation:2")]


def test_a_structured_answer_is_captured_as_it_was_said(session: Session) -> None:
    class Size(BaseModel):
        bytes: int

    with scripted([Say('{"bytes": 5}')]) as (model, url), sync_client(url) as client:
        message = capture.anthropic(client, session).messages.parse(
            messages=question(), model=MODEL, max_tokens=9, output_format=Size
        )

        assert Size(bytes=5) == message.parsed_output
        assert on_the_wire(model) == captured(session)


@pytest.mark.parametrize("thread", [None, False], ids=["thread", "whole history"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_runner_is_a_loop(session: Session, stream: bool, thread: Any) -> None:
    @beta_tool
    def read(path: str) -> str:
        """Read a file."""
        return RESULTS["toolu_a"]

    @beta_tool
    def size(path: str, unit: str) -> str:
        """The size of a file."""
        return RESULTS["toolu_b"]

    options: Any = {"model": MODEL, "max_tokens": 9, "stream": stream} | ({} if thread is None else {"thread": thread})
    with scripted(*TURNS) as (model, url), sync_client(url) as client:
        runner = capture.anthropic(client, session).beta.messages.tool_runner(
            messages=question(), tools=[read, size], **options
        )
        runner.until_done()

        sent = [len(request.body["messages"]) for request in model.requests]
        assert [1, 3 if thread is False else 1] == sent
    roles = [role for role, *_ in captured(session)]
    assert ["user", *["assistant"] * 4, "tool", "tool", "assistant"] == roles
    assert [ANSWER] == [line[1] for line in captured(session)[-1:]]


def test_an_async_tool_runner_is_a_loop(session: Session) -> None:
    @beta_async_tool
    async def read(path: str) -> str:
        """Read a file."""
        return "hello"

    async def run(url: str) -> None:
        async with AsyncAnthropic(api_key="k", base_url=url) as client:
            runner = capture.anthropic(client, session).beta.messages.tool_runner(
                messages=question(), tools=[read], model=MODEL, max_tokens=9
            )
            await runner.until_done()

    with scripted([Call("read", {"path": "a"}, id="toolu_a")], [Say("hello")]) as (_, url):
        asyncio.run(run(url))
    assert ["user", "assistant", "tool", "assistant"] == [role for role, *_ in captured(session)]


def test_counting_tokens_is_no_conversation(session: Session) -> None:
    with scripted() as (_, url), sync_client(url) as client:
        assert (
            100
            == capture.anthropic(client, session).messages.count_tokens(messages=question(), model=MODEL).input_tokens
        )
    assert [] == captured(session)


def test_the_client_is_of_its_own_class_and_the_one_that_was_given_stays_as_it_is(session: Session) -> None:
    class OwnClient(Anthropic):
        def __init__(self, *, mark: str, **options: Any) -> None:
            super().__init__(**options, _strict_response_validation=True)
            self.mark = mark

    with scripted([Say("one")], [Say("two")]) as (_, url), sync_client(url, OwnClient, mark="x") as client:
        client.messages  # noqa: B018  a resource that was made before
        before = dict(vars(client))
        wrapped = capture.anthropic(client, session)

        assert (OwnClient, "x") == (type(wrapped), wrapped.mark)
        assert before == vars(client)
        ask(client)
        assert [] == captured(session)
        ask(wrapped)
        assert 3 == len(captured(session))


def test_a_client_that_is_captured_already_is_not_captured_twice(session: Session) -> None:
    with scripted([Say("one")], [Say("two")]) as (_, url), sync_client(url) as client, Session() as other:
        wrapped = capture.anthropic(capture.anthropic(client, session), session)
        ask(wrapped)
        assert 3 == len(captured(session))
        ask(capture.anthropic(wrapped, other), "and now?")
        assert [3, 3] == [len(captured(session)), len(captured(other))]


def test_what_is_no_client_is_refused(session: Session) -> None:
    with pytest.raises(BadRequest, match="no client of Anthropic's SDK"):
        capture.anthropic(object(), session)


# -- what a model may say ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_provider_does_itself_is_marked(session: Session, stream: bool) -> None:
    found = [{"type": "web_search_result", "url": "https://example.org", "title": "t", "encrypted_content": "x"}]
    turn = [
        Block({"type": "redacted_thinking", "data": "sealed"}),
        Block({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}),
        Block({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found}),
        Block({"type": "text", "text": "So it is.", "citations": [{"type": "char_location", "cited_text": "so"}]}),
        Block({"type": "mcp_tool_listing", "mcp_server_name": "s", "tools": []}),
    ]
    with scripted(turn, [Say("bye")]) as (_, url), sync_client(url) as client:
        client = capture.anthropic(client, session)
        if stream:
            with client.beta.messages.stream(messages=question(), **ASKED) as events:
                message = events.get_final_message()
        else:
            message = client.beta.messages.create(messages=question(), **ASKED)
        history = [*question(), {"role": "assistant", "content": message.content}, *question("Thanks.")]
        client.beta.messages.create(messages=history, **ASKED)

    kinds = [about.get("kind") for about in metadata(session)]
    assert [None, None, "thinking", "server_tool", "server_tool", None, "mcp_tool_listing", None, None] == kinds
    sealed = metadata(session)[2]
    assert ("sealed", True) == (sealed["signature"], sealed["redacted"])
    assert ("tool", "web_search", "srvtoolu_1") == tuple(captured(session)[4][i] for i in (0, 2, 3))
    assert "so" == metadata(session)[5]["citations"][0]["cited_text"]


def test_a_reply_that_is_sent_back_without_its_nulls_is_the_same(session: Session) -> None:
    found = [{"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "x", "page_age": None}]
    turn = [
        Block({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}),
        Block({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found}),
        Say("So it is."),
    ]
    with scripted(turn, [Say("bye")]) as (_, url), sync_client(url) as client:
        client = capture.anthropic(client, session)
        answer = client.messages.create(messages=question(), **ASKED)
        said = [block.model_dump(exclude_none=True) for block in answer.content]
        client.messages.create(
            messages=[*question(), {"role": "assistant", "content": said}, *question("Thanks.")], **ASKED
        )

    assert ["web_search", "web_search"] == [name for _, _, name, _ in captured(session) if name]


def test_a_refusal_is_marked(session: Session) -> None:
    with scripted([Say("I cannot.")], []) as (model, url), sync_client(url) as client:
        model.said_of_message = {"stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "cyber"}}
        ask(capture.anthropic(client, session), "one")
        ask(capture.anthropic(client, session), "two")

    assert [None, None, "refusal", None, None, "refusal"] == [about.get("kind") for about in metadata(session)]
    assert {"type": "refusal", "category": "cyber"} == metadata(session)[2]["stop_details"]


def test_pictures_and_documents_are_placeholders_and_their_bytes_are_kept(session: Session) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    document = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}
    content = [{"type": "text", "text": "Look:"}, picture, document]
    with scripted([Say("Nice.")]) as (_, url), sync_client(url) as client:
        capture.anthropic(client, session).messages.create(messages=[{"role": "user", "content": content}], **ASKED)

    assert "Look:\n[image/png, 8 bytes]\n[application/pdf, 5 bytes]" == captured(session)[1][1]
    (prompt,) = [event for event in session.events() if isinstance(event, Prompt)]
    assert ("iVBORw0KGgo=", "JVBERi0=") == tuple(image.data for image in prompt.images if isinstance(image, Image))


def test_what_documents_and_search_results_say_is_in_the_prompt_and_told_apart(session: Session) -> None:
    def document(**source: Any) -> Any:
        return {"type": "document", "source": source, "title": "T"}

    text = {"type": "text", "text": "body"}
    given = [
        document(type="file", file_id="file-1"),
        document(type="file", file_id="file-2"),
        document(type="text", media_type="text/plain", data="in words"),
        document(type="content", content=[{**text, "text": "in blocks"}]),
        document(type="url", url="https://example.com/a.pdf"),
        {"type": "search_result", "source": "https://example.com", "title": "Found", "content": [text]},
        {"type": "container_upload", "file_id": "file-3"},
    ]
    with scripted(*[[Say("ok")] for _ in given]) as (_, url), sync_client(url) as client:
        wrapped = capture.anthropic(client, session)
        for block in given:
            content = [block, {"type": "text", "text": "Cite."}]
            wrapped.messages.create(messages=[{"role": "user", "content": content}], **ASKED)

    assert [
        "[file file-1]\nCite.",
        "[file file-2]\nCite.",
        "T\nin words\nCite.",
        "T\nin blocks\nCite.",
        "[application/pdf]\nCite.",
        "Found\nhttps://example.com\nbody\nCite.",
        "[file file-3]\nCite.",
    ] == [entry.content for entry in session[TranscriptEntry].where(lambda entry: entry.role == "user")]


def test_instructions_in_blocks_are_entries_of_their_own(session: Session) -> None:
    system = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind.", "cache_control": None}]
    with scripted([Say("Yes.")]) as (_, url), sync_client(url) as client:
        ask(capture.anthropic(client, session), system=system)

    assert ["Be brief.", "Be kind."] == [line[1] for line in captured(session) if line[0] == "system"]


# -- failures ----------------------------------------------------------------------------------------------------------


def test_an_overloaded_provider_that_answers_at_last_is_one_entry_with_its_attempts(session: Session) -> None:
    busy = [Refuse(529, "overloaded", {"retry-after-ms": "1"})]
    with scripted(busy, busy, [Say("at last")]) as (_, url), sync_client(url) as client:
        ask(capture.anthropic(client, session))

    assert ["system", "user", "assistant"] == [role for role, *_ in captured(session)]
    assert 3 == metadata(session)[-1]["attempts"]


def test_a_provider_that_refuses_is_an_entry_and_raises_what_it_raised(session: Session) -> None:
    busy = [Refuse(529, "overloaded", {"retry-after-ms": "1"})]
    with scripted(busy, busy, [Say("well")]) as (_, url), sync_client(url, max_retries=1) as client:
        wrapped = capture.anthropic(client, session)
        with pytest.raises(anthropic.APIStatusError) as raised:
            ask(wrapped)
        assert 529 == raised.value.status_code
        ask(wrapped)

    assert ["system", "user", "assistant", "assistant"] == [role for role, *_ in captured(session)]
    failure = metadata(session)[2]
    assert ("error", 529, 2) == (failure["kind"], failure["status"], failure["attempts"])


def test_a_provider_that_is_not_there_is_an_entry(session: Session) -> None:
    with sync_client("http://127.0.0.1:9", max_retries=0) as client, pytest.raises(anthropic.APIConnectionError):
        ask(capture.anthropic(client, session))

    assert ("error", "APIConnectionError") == (metadata(session)[-1]["kind"], metadata(session)[-1]["type"])


def test_a_session_that_cannot_be_written_is_not_the_hosts_concern(caplog: pytest.LogCaptureFixture) -> None:
    session = Session()
    with scripted([Say("one")], [Say("two")]) as (_, url), sync_client(url) as client:
        wrapped = capture.anthropic(client, session)
        session.close()
        assert ["one", "two"] == [ask(wrapped).content[0].text for _ in range(2)]
    assert 1 == caplog.text.count("capture failed")


def test_secrets_are_masked_where_the_caller_asks(session: Session) -> None:
    key = "sk-ant-api03-" + "Zx9" * 31 + "AA"
    with scripted([Say(f"so it is {key}")]) as (model, url), sync_client(url) as client:
        ask(capture.anthropic(client, session, mask=True), f"my key is {key}")
        assert key in str(model.requests[-1].body)
    assert not any(key in str(line) for line in [*captured(session), *session.records()])


# -- other platforms ---------------------------------------------------------------------------------------------------


def test_bedrock_and_vertex_are_captured_too(session: Session) -> None:
    with scripted([Say("from AWS")], [Say("from Google")], [Say("once more")]) as (_, url):
        shared: Any = {"base_url": url, "http_client": SHARED[0]}
        bedrock = AnthropicBedrock(api_key="k", aws_region="eu-west-1", **shared)
        ask(capture.anthropic(bedrock, session), "one")
        wrapped = capture.anthropic(AnthropicVertex(region="eu", project_id="p", access_token="t", **shared), session)
        assert ("eu", "p") == (wrapped.region, wrapped.project_id)
        ask(wrapped, "two")
        with wrapped.with_options(timeout=5).messages.stream(messages=question("three"), **ASKED) as stream:
            stream.until_done()

    sources = ("primary", "conversation:2", "conversation:3")
    said = [content for source in sources for _, content, *_ in captured(session, source) if content != SYSTEM]
    assert ["one", "from AWS", "two", "from Google", "three", "once more"] == said
    assert {MODEL} == {info.language_model for info in session.agents.values()}
