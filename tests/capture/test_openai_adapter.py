"""The specification's switch: an adapter whose configuration says whether a transcript is captured."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harken import Session
from harken.capture import OpenAIAdapter, OpenAIModelConfig
from support.openai_loop import async_client_of, captured, client_of, on_the_wire, scripted
from support.scripted_model import Say

HI: list[Any] = [{"role": "user", "content": "hi"}]


def test_a_transcript_is_captured_where_the_configuration_says_so() -> None:
    with scripted([Say("hello")]) as (model, url), client_of(url) as client, Session() as session:
        config = OpenAIModelConfig(capture_transcript=True, parameters={"temperature": 0})
        reply = OpenAIAdapter(model="gpt-4o", model_config=config, client=client).ask(HI, session=session)

        assert "hello" == reply.choices[0].message.content
        assert on_the_wire(model) == captured(session)
        assert ("gpt-4o", 0) == (model.requests[0].body["model"], model.requests[0].body["temperature"])


def test_nothing_is_captured_without_the_switch() -> None:
    with scripted([Say("hello")]) as (_, url), client_of(url) as client, Session() as session:
        adapter = OpenAIAdapter("gpt-4o", client=client)
        adapter.ask(HI, session=session)

        assert client is adapter.client(session)
        assert [] == captured(session)


def test_a_loop_of_one_adapter_is_one_conversation() -> None:
    with scripted([Say("1")], [Say("2")]) as (model, url), client_of(url) as client, Session() as session:
        adapter = OpenAIAdapter("gpt-4o", model_config=OpenAIModelConfig(capture_transcript=True), client=client)
        first = adapter.ask(HI, session=session).choices[0].message
        adapter.ask([*HI, first, {"role": "user", "content": "more"}], session=session)

        assert on_the_wire(model) == captured(session)


def test_an_asynchronous_client_is_awaited() -> None:
    async def run(url: str, session: Session) -> None:
        async with async_client_of(url) as client:
            config = OpenAIModelConfig(capture_transcript=True)
            await OpenAIAdapter("gpt-4o", model_config=config, client=client).ask(HI, session=session)

    with scripted([Say("hello")]) as (model, url), Session() as session:
        asyncio.run(run(url, session))
        assert on_the_wire(model) == captured(session)


def test_the_sdk_makes_the_client_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted([Say("hello")]) as (model, url), Session() as session:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        adapter = OpenAIAdapter("gpt-4o", model_config=OpenAIModelConfig(capture_transcript=True))
        adapter.ask(HI, session=session)

        assert on_the_wire(model) == captured(session)
        adapter.client(session).close()
