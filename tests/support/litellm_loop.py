"""A researcher's loop over LiteLLM: ask, use the tools that are asked for, ask again."""

from __future__ import annotations

from typing import Any

import litellm

from support.openai_loop import QUESTION, RESULTS, SYSTEM, chat_tools

Json = dict[str, Any]


def user(words: str) -> Json:
    return {"role": "user", "content": words}


def joined(chunks: Any, messages: list[Any]) -> Any:
    """The message that chunks are."""
    return litellm.stream_chunk_builder(list(chunks), messages=messages).choices[0].message


def results(message: Any) -> list[Json]:
    return [{"role": "tool", "tool_call_id": one.id, "content": RESULTS[one.id]} for one in message.tool_calls or ()]


def loop(completion: Any, how: Json, *, stream: bool = False) -> None:
    """A researcher's loop: ask, use the tools that are asked for, ask again."""
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, user(QUESTION)]
    while True:
        reply = completion(messages=messages, tools=chat_tools(), stream=stream, **how)
        messages.append(joined(reply, messages) if stream else reply.choices[0].message)
        if not (given := results(messages[-1])):
            return
        messages += given


async def loop_later(completion: Any, how: Json, *, stream: bool = False) -> None:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, user(QUESTION)]
    while True:
        reply = await completion(messages=messages, tools=chat_tools(), stream=stream, **how)
        chunks = [chunk async for chunk in reply] if stream else []
        messages.append(joined(chunks, messages) if stream else reply.choices[0].message)
        if not (given := results(messages[-1])):
            return
        messages += given
