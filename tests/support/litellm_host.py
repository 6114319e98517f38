"""Programs that use LiteLLM, all in one process of its own: it is slow to import, and leaves threads, connections and
event loops behind. Run with a folder, it plays each against a scripted model and prints what came of it, a line each.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask the network for prices

import litellm

from harken import Session
from harken.capture import TranscriptEntry
from harken.capture import litellm as capturing
from harken.events import Metric
from support.litellm_loop import Json, loop, loop_later, user
from support.openai_loop import (
    QUESTION,
    SYSTEM,
    TURNS,
    captured,
    chat_tools,
    metadata,
    on_the_wire,
    response_tools,
    scripted,
)
from support.scripted_model import Break, Call, Cue, Hold, Refuse, Say, ScriptedModel, Think

Program = Callable[[Any, Json], Any]
PROGRAMS: dict[str, tuple[Program, tuple[Cue, ...]]] = {}
MODEL = "openai/gpt-4o-mini"


def program(*turns: Cue) -> Callable[[Program], Program]:
    """A program that is given a capture and how LiteLLM reaches the model; the model answers with these turns."""

    def added(function: Program) -> Program:
        PROGRAMS[function.__name__] = (function, turns)
        return function

    return added


# -- the wrapper -------------------------------------------------------------------------------------------------------


@program(*TURNS)
def wrapped(capture: Any, how: Json) -> None:
    loop(capture.completion, how)


@program([Say("Hello.")])
def embedded(capture: Any, how: Json) -> None:
    embed = capture.wrap(litellm.embedding)
    assert 1 == len(embed(model="openai/text-embedding-3-small", input=["grass"], mock_response=[0.1]).data)
    capture.completion(messages=[user("Hi.")], **how)


@program([Say("Hello.")])
def counted(capture: Any, how: Json) -> None:
    count = capture.wrap(litellm.token_counter)
    assert litellm.token_counter(model="gpt-4o", messages=[user("Hi.")]) == count(
        model="gpt-4o", messages=[user("Hi.")]
    )
    capture.completion(messages=[user("Hi.")], **how)


@program([Say("Hello.")], [Say("Hello.")])
def in_a_batch(capture: Any, how: Json) -> None:
    batch = capture.wrap(litellm.batch_completion)
    with capture:
        assert 2 == len(batch(messages=[[user("Hi.")], [user("Go.")]], **how))


@program([Say("Hello.")], [Say("Bye.")])
def own_replies(capture: Any, how: Json) -> None:
    def words(messages: list[Json]) -> Any:
        return litellm.completion(messages=messages, **how).choices[0].message.content

    capture.wrap(words)([user("Hi.")])
    capture.wrap(lambda messages: [words(messages)])([user("Go.")])


@program([Say("Hello.")], [Say("Bye.")])
def own_function(capture: Any, how: Json) -> None:
    def ask(messages: list[Json]) -> Any:
        return litellm.completion(messages=messages, **how)

    with capture:
        capture.wrap(ask)([user("Hi.")])
        capture.wrap(ask)(messages=[user("Hi."), {"role": "assistant", "content": "Hello."}, user("Go.")])


@program(*TURNS)
def wrapped_stream(capture: Any, how: Json) -> None:
    loop(capture.completion, how, stream=True)


@program(*TURNS)
def wrapped_async(capture: Any, how: Json) -> None:
    asyncio.run(loop_later(capture.acompletion, how))


@program(*TURNS)
def wrapped_async_stream(capture: Any, how: Json) -> None:
    asyncio.run(loop_later(capture.acompletion, how, stream=True))


@program([Think("A greeting."), Say("Hello.")])
def responses(capture: Any, how: Json) -> None:
    capture.responses(input=QUESTION, instructions=SYSTEM, **how)


@program([Say("Hello there.")], [Say("Go on.")])
def responses_stream(capture: Any, how: Json) -> None:
    for event in capture.responses(input=QUESTION, stream=True, **how):
        last = event
    capture.responses(input="And then?", previous_response_id=last.response.id, **how)


@program([Think("A greeting."), Say("Hello.")])
def thinking(capture: Any, how: Json) -> None:
    for _ in capture.completion(messages=[user("Hi.")], stream=True, stream_options={"include_usage": True}, **how):
        pass


@program([Think("A greeting.", "c2lnbmVk"), Say("Hello."), Call("read", {"path": "a.txt"}, id="toolu_a")])
def anthropic(capture: Any, how: Json) -> None:
    reached = {"api_base": how["api_base"].removesuffix("/v1"), "api_key": "k"}
    tools = chat_tools()
    for _ in capture.completion("anthropic/claude-sonnet-4-5", [user("Hi.")], stream=True, tools=tools, **reached):
        pass


def _messages_api(function: Any, how: Json, **options: Any) -> None:
    """Anthropic's API through LiteLLM, a call and its result."""

    async def ask(messages: list[Json]) -> None:
        reached = {"api_base": how["api_base"], "api_key": "k", "model": how["model"]}
        tools = [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}]
        answer = await function(max_tokens=50, messages=messages, system=SYSTEM, tools=tools, **{**reached, **options})
        if options.get("stream"):
            async for _ in answer:
                pass

    async def talk() -> None:
        call = {"type": "tool_use", "id": "toolu_a", "name": "read", "input": {"path": "a.txt"}}
        result = {"type": "tool_result", "tool_use_id": "toolu_a", "content": "hello"}
        begun = [user("Hi."), {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]}]
        await ask(begun[:1])
        await ask([*begun, {"role": "user", "content": [result]}])

    asyncio.run(talk())


MESSAGES_API: tuple[Cue, ...] = (
    [Say("I look."), Call("read", {"path": "a.txt"}, id="toolu_a")],
    [Say("It says hello.")],
)


@program(*MESSAGES_API)
def messages_api(capture: Any, how: Json) -> None:
    there = {"model": "anthropic/claude-sonnet-4-5", "api_base": how["api_base"].removesuffix("/v1")}
    with capture:
        _messages_api(capture.wrap(litellm.anthropic_messages), how, **there)


@program(*MESSAGES_API)
def messages_api_by_its_other_name(capture: Any, how: Json) -> None:
    there = {"model": "anthropic/claude-sonnet-4-5", "api_base": how["api_base"].removesuffix("/v1")}
    _messages_api(capture.wrap(litellm.anthropic.messages.acreate), how, **there)


@program(*MESSAGES_API)
def messages_api_of_another_provider(capture: Any, how: Json) -> None:
    with capture:
        _messages_api(capture.wrap(litellm.anthropic_messages), how, model="mistral/small")


@program(*MESSAGES_API)
def messages_api_stream(capture: Any, how: Json) -> None:
    with capture:
        _messages_api(capture.wrap(litellm.anthropic_messages), how, model="mistral/small", stream=True)


@program(*MESSAGES_API)
def messages_api_of_a_router(capture: Any, how: Json) -> None:
    there = {"model": "anthropic/claude-sonnet-4-5", "api_base": how["api_base"].removesuffix("/v1"), "api_key": "k"}
    routed = litellm.Router(model_list=[{"model_name": "claude", "litellm_params": there}])
    ask = capture.wrap(routed.aanthropic_messages)

    async def asked(*, model: str, api_base: str, api_key: str, **options: Any) -> Any:
        return await ask(model="claude", **options)

    with capture:
        _messages_api(asked, how)


@program(*MESSAGES_API)
def told_messages_api(capture: Any, how: Json) -> None:
    there = {"model": "anthropic/claude-sonnet-4-5", "api_base": how["api_base"].removesuffix("/v1")}
    with capture:
        _messages_api(litellm.anthropic_messages, how, **there)


@program([Say("Hello there.")])
def messages_api_left(capture: Any, how: Json) -> None:
    async def ask() -> None:
        reached = {"api_base": how["api_base"], "api_key": "k", "model": "mistral/small"}
        ask = capture.wrap(litellm.anthropic_messages)
        async for chunk in await ask(max_tokens=50, messages=[user("Hi.")], stream=True, **reached):
            if b"Hello" in chunk:
                break

    asyncio.run(ask())


@program([Say("Hello.")], [Say("Bye.")])
def own_stream(capture: Any, how: Json) -> list[str]:
    def words(messages: list[Json]) -> Any:
        yield from litellm.completion(messages=messages, stream=True, **how)

    whole = [chunk.choices[0].delta.content or "" for chunk in capture.wrap(words)([user("Hi.")])]
    left = capture.wrap(words)([user("Bye.")])
    next(left)
    left.close()
    for _ in capture.wrap(lambda messages: iter(["Only ", "words."]))([user("Say.")]):
        pass
    return whole


@program([Say("Hello.")])
def other_api(capture: Any, how: Json) -> None:
    reached = {"api_base": how["api_base"].removesuffix("/v1"), "api_key": "k"}
    with capture:
        capture.responses(input="Hi.", model="anthropic/claude-sonnet-4-5", tools=response_tools(), **reached)


@program([Say("Hello.")])
def choices(capture: Any, how: Json) -> None:
    capture.completion(how.pop("model"), [user("Hi.")], n=2, **how)


@program([Say("Hello there, my friend.")], [Say("Yes?")])
def dropped(capture: Any, how: Json) -> str:
    stream = capture.completion(messages=[user("Hi.")], stream=True, **how)
    kind = type(stream).__name__
    assert isinstance(stream, litellm.CustomStreamWrapper)
    for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    del stream, chunk
    gc.collect()
    return kind


@program([Say("Hello there, my friend.")], [Say("Yes?")])
def gone_on_behind(capture: Any, how: Json) -> None:
    stream = capture.completion(messages=[user("Hi.")], stream=True, **how)
    said = next(chunk.choices[0].delta.content for chunk in stream if chunk.choices[0].delta.content)
    capture.completion(messages=[user("Hi."), {"role": "assistant", "content": said}, user("Stop.")], **how)
    assert stream is not None


@program([Say("Hello there, my friend.")])
def closed_early(capture: Any, how: Json) -> None:
    async def ask() -> None:
        stream = await capture.acompletion(messages=[user("Hi.")], stream=True, **how)
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.aclose()

    asyncio.run(ask())


@program([Say("Hello there, my friend."), Break(2)])
def broken(capture: Any, how: Json) -> str:
    try:
        for _ in capture.completion(messages=[user("Hi.")], stream=True, **how):
            pass
    except litellm.exceptions.MidStreamFallbackError as problem:
        return type(problem).__name__
    return "nothing was raised"


_held = Hold(threading.Event(), after=2)


@program([Say("Hello there, my friend."), _held])
def cancelled(capture: Any, how: Json) -> str:
    async def ask() -> None:
        async for _ in await capture.acompletion(messages=[user("Hi.")], stream=True, **how):
            pass

    async def give_up() -> str:
        task = asyncio.create_task(ask())
        await asyncio.to_thread(_held.reached.wait, 20)
        for _ in range(200):  # until what was sent before is read
            await asyncio.sleep(0.001)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "CancelledError"
        finally:
            _held.gate.set()
        return "nothing was raised"

    return asyncio.run(give_up())


@program([Refuse(400)], [Refuse(400)], [Say("Hello.")])
def refused(capture: Any, how: Json) -> list[str]:
    def ask(**options: Any) -> str:
        try:
            capture.completion(messages=[user("Hi.")], **how, **options)
        except litellm.BadRequestError as problem:
            return type(problem).__name__
        return "answered"

    return [ask(), ask(fallbacks=["openai/other"])]


def router(how: Json) -> Any:
    reached = {key: how[key] for key in ("api_base", "api_key")}
    named = {"a": MODEL, "b": "openai/other"}
    models = [{"model_name": key, "litellm_params": {"model": named[key], **reached}} for key in named]
    return litellm.Router(model_list=models, fallbacks=[{"a": ["b"]}], num_retries=1, retry_after=0)


@program([Refuse(500)], [Refuse(500)], [Say("Hello.")])
def routed(capture: Any, how: Json) -> None:
    capture.wrap(router(how).completion)(model="a", messages=[user("Hi.")], max_retries=0)


@program([Refuse(500)], [Say("Hello there.")])
def routed_stream(capture: Any, how: Json) -> None:
    async def ask() -> None:
        asked = capture.wrap(router(how).acompletion)
        async for _ in await asked(model="a", messages=[user("Hi.")], stream=True, max_retries=0):
            pass

    asyncio.run(ask())


@program([Say("Hello.")])
def cached(capture: Any, how: Json) -> None:
    # This release cannot answer from its cache without all that its server needs, for the sake of one class.
    name = "litellm.llms.anthropic.pass_through.messages.response_cache"
    stand_in: Any = types.ModuleType(name)
    stand_in.CachedAnthropicMessagesStreamIterator = type("CachedAnthropicMessagesStreamIterator", (), {})
    sys.modules[name] = stand_in
    litellm.cache = litellm.Cache()
    with capture:
        for ask in (capture.completion, capture.completion, litellm.completion):
            ask(messages=[user("Hi.")], **how)
    litellm.cache = None


@program()
def made_up(capture: Any, how: Json) -> None:
    for _ in capture.completion(messages=[user("Hi.")], stream=True, mock_response="Hello.", **how):
        pass


# -- the callback ------------------------------------------------------------------------------------------------------


@program(*TURNS)
def told(capture: Any, how: Json) -> None:
    with capture:
        loop(litellm.completion, how)


@program([Say("Hello.")])
def told_responses(capture: Any, how: Json) -> None:
    with capture:
        litellm.responses(input="Hi.", **how)


@program()
def told_made_up(capture: Any, how: Json) -> None:
    with capture:
        litellm.completion(messages=[user("Hi.")], mock_response="Hello.", **how)


@program(*TURNS)
def told_stream(capture: Any, how: Json) -> None:
    with capture:
        loop(litellm.completion, how, stream=True)


@program(*TURNS)
def told_async(capture: Any, how: Json) -> None:
    with capture:
        asyncio.run(loop_later(litellm.acompletion, how))


@program(*TURNS)
def told_async_stream(capture: Any, how: Json) -> None:
    async def run() -> None:
        async with capture:
            await loop_later(litellm.acompletion, how, stream=True)

    asyncio.run(run())


@program(*TURNS)
def not_waited_for(capture: Any, how: Json) -> None:
    async def run() -> None:
        with capture:
            await loop_later(litellm.acompletion, how)

    asyncio.run(run())


@program(*TURNS)
def both_ways(capture: Any, how: Json) -> list[int]:
    litellm.callbacks.append(capture)
    loop(capture.completion, how)
    asyncio.run(asyncio.sleep(0))
    capture.close()
    return [capture in one for one in (litellm.callbacks, litellm.input_callback, litellm.success_callback)]


@program([Refuse(500)], [Refuse(500)], [Say("Hello.")], [Refuse(400)])
def told_failures(capture: Any, how: Json) -> str:
    with capture:
        router(how).completion(model="a", messages=[user("Hi.")], max_retries=0)
        try:
            litellm.completion(messages=[user("And now?")], **how)
        except litellm.BadRequestError as problem:
            return type(problem).__name__
    return "nothing was raised"


@program([Say("Hello there, my friend.")])
def told_dropped(capture: Any, how: Json) -> None:
    with capture:
        for chunk in litellm.completion(messages=[user("Hi.")], stream=True, **how):
            if chunk.choices[0].delta.content:
                break


# -- whatever happens --------------------------------------------------------------------------------------------------


@program([Say("Hello.")], [Say("Hello.")])
def capture_fails(capture: Any, how: Json) -> list[str]:
    def fail(text: str) -> str:
        raise ZeroDivisionError(text)

    capture.capture.mask = fail
    with capture:
        replies = [ask(messages=[user("Hi.")], **how) for ask in (capture.completion, litellm.completion)]
    return [reply.choices[0].message.content for reply in replies]


@program([Say("Your key is sk-ant-api03-" + "Zx9" * 31 + "AA.")])
def masked(capture: Any, how: Json) -> None:
    capturing(capture.capture.session, mask=True).completion(messages=[user("Which key?")], **how)


@program([Say("Hello.")], [Say("Hello.")])
def nothing_added(capture: Any, how: Json) -> None:
    for ask in (litellm.completion, capture.completion):
        ask(messages=[user("Hi.")], temperature=0.5, **how)


def killed(folder: Path) -> Json:
    """A program that is killed while it waits for the model, in a process of its own."""
    hold = Hold(threading.Event())
    with scripted([Say("Hello."), hold]) as (_, url):
        child = os.fork()
        if not child:
            with Session(folder / "killed.jsonl") as session:
                how = {"model": MODEL, "api_base": url, "api_key": "k"}
                capturing(session).completion(messages=[user("Are you there?")], **how)
            os._exit(1)
        assert hold.reached.wait(30)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        hold.gate.set()
    with Session(folder / "killed.jsonl") as session:
        before = captured(session)
        capturing(session).close()
        return {"before": before, "captured": captured(session), "metadata": metadata(session)}


def came_of(name: str) -> Json:
    """Play one program."""
    function, turns = PROGRAMS[name]
    with scripted(*turns) as (model, url), Session() as session:
        how = {"model": MODEL, "api_base": url, "api_key": "k"}
        capture = capturing(session)
        answer = function(capture, how)
        capture.close()
        return {"answer": answer, "requests": [one.body for one in model.requests], **_kept(session, model)}


def _kept(session: Session, model: ScriptedModel) -> Json:
    metrics = [event for event in session.events() if isinstance(event, Metric)]
    return {
        "captured": captured(session),
        "wire": on_the_wire(model) if model.requests and model.requests[-1].api != "anthropic" else [],
        "sources": sorted({entry.source for entry in session[TranscriptEntry].all()}),
        "metadata": metadata(session),
        "entries": [(entry.content, entry.metadata or {}) for entry in session[TranscriptEntry].all()],
        "usage": [(one.input_tokens, one.output_tokens, one.cost_usd) for one in metrics],
        "notices": [json.loads(one.metadata) for one in session.events() if getattr(one, "subtype", "") == "request"],
    }


def main(folder: Path) -> None:
    sys.stdout.write(json.dumps({"name": "killed", **killed(folder)}) + "\n")
    for name in PROGRAMS:
        sys.stdout.write(json.dumps({"name": name, **came_of(name)}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
