"""Any provider LiteLLM knows, behind the `agents` extra; imported when the first request is made."""

from __future__ import annotations

import importlib
import logging
import re
import sys
from collections.abc import AsyncIterator, Iterator
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

import msgspec

from harken import clock
from harken.agents.pictures import with_pictures
from harken.errors import BadRequest
from harken.events import Tokens
from harken.events.base import figure

from .base import Message, ModelError, Reply, Request, Streamed, Usage, tool_call

# Too many requests, a server in trouble, a connection that timed out: asking again may help.
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_TOO_LONG = re.compile(
    r"context.{0,10}(length|window|size)|(prompt|input|request|messages?).{0,20}too (long|large)"
    r"|too many (input )?tokens|exceed.{0,40}(context|token limit)",
    re.IGNORECASE,
)
_TIMEOUT = 600.0
_KEY = re.compile(r"""(?i)((?:bearer|api[ _-]?key(?: provided)?)[:=\s'"]{1,4})(?=[^\s'",;]{0,99}[0-9])[^\s'",;]{8,}""")
"""A key of whatever shape, where a provider says that it is one."""
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
"""What they say below an error (prices that could not be fetched) is no business of a conversation."""


class LiteLLMModel:
    """A model by the name LiteLLM gives it, such as `anthropic/claude-sonnet-4-5`; keys come from the environment."""

    def __init__(self, name: str, **options: Any) -> None:
        self._name = name
        self._options = {"timeout": _TIMEOUT, "num_retries": 0, **options}

    @property
    def name(self) -> str:
        """The provider's name of the model."""
        return self._name

    @cached_property
    def window(self) -> int | None:
        """How many tokens it takes in, where LiteLLM knows."""
        try:
            found = _litellm().get_model_info(self._name).get("max_input_tokens")
        except Exception:  # noqa: BLE001  a model LiteLLM has never heard of is reported in many ways
            return None
        return found if isinstance(found, int) and found > 0 else None

    async def complete(self, request: Request) -> Reply:
        """Ask the provider."""
        litellm = _litellm()
        try:
            answer = await litellm.acompletion(**self._asked(request))
        except Exception as problem:
            raise _failure(problem) from problem
        return read_answer(answer)

    async def stream(self, request: Request) -> AsyncIterator[Streamed | Reply]:
        """Ask the provider, and hear it while it answers."""
        litellm = _litellm()
        chunks: list[Any] = []
        try:
            asked = self._asked(request) | {"stream": True, "stream_options": {"include_usage": True}}
            async for chunk in await litellm.acompletion(**asked):
                chunks.append(chunk)
                for piece in pieces_of(chunk):
                    yield piece
            whole = litellm.stream_chunk_builder(chunks, messages=asked["messages"])
        except Exception as problem:
            raise _failure(problem) from problem
        reply = read_answer(whole)
        if reply.usage is not None and reply.usage.cost_usd is None:
            usage = Usage(tokens=reply.usage.tokens, cost_usd=self._cost(whole))
            reply = msgspec.structs.replace(reply, usage=usage)
        yield reply

    def _asked(self, request: Request) -> dict[str, Any]:
        options = self._options | request.options.for_provider()
        asked = {"model": self._name, "messages": self._shown(request), **options}
        return asked | {"tools": request.tools} if request.tools else asked

    def _shown(self, request: Request) -> list[Message]:
        """The messages, with the pictures in results where the model sees any."""
        if not any("images" in message for message in request.messages):
            return request.messages
        try:
            seen = bool(_litellm().supports_vision(self._name))
        except Exception:  # noqa: BLE001  a model LiteLLM has never heard of is reported in many ways
            seen = False
        return with_pictures(request.messages, seen=seen)

    def _cost(self, answer: Any) -> float | None:
        try:
            return float(_litellm().completion_cost(completion_response=answer, model=self._name))
        except Exception:  # noqa: BLE001  a model without a price is reported in many ways
            return None


def pieces_of(chunk: Any) -> Iterator[Streamed]:
    """What a chunk of LiteLLM's says."""
    choices = getattr(chunk, "choices", None) or ()
    delta = getattr(choices[0], "delta", None) if choices else None
    thought, said = (getattr(delta, key, None) for key in ("reasoning_content", "content"))
    if isinstance(thought, str) and thought:
        yield Streamed(kind="thinking", text=thought)
    if isinstance(said, str) and said:
        yield Streamed(text=said)
    for call in getattr(delta, "tool_calls", None) or ():
        if name := getattr(getattr(call, "function", None), "name", None):
            yield Streamed(kind="call", text=str(name))


def _failure(problem: Exception) -> ModelError:
    """What LiteLLM raised. Each provider raises its own; LiteLLM's have a status, what has none is the network's."""
    said = _without_keys(f"{type(problem).__name__}: {problem}")
    too_long = is_too_long(problem)
    passing = not too_long and _passing(problem)
    return ModelError(said, retryable=passing, too_long=too_long, retry_after=retry_after(problem, clock.now()))


def retry_after(problem: Exception, now: int) -> float | None:
    """After how many seconds a provider wants to be asked again, where it says so; `now` is in microseconds."""
    for source in (problem, getattr(problem, "response", None)):
        for name in ("litellm_response_headers", "headers"):
            headers = getattr(source, name, None)
            found = {str(key).lower(): str(value) for key, value in headers.items()} if headers else {}
            millis, seconds = _number(found.get("retry-after-ms")), _number(found.get("retry-after"))
            if millis is not None or seconds is not None:
                return millis / 1000 if millis is not None else seconds
            if (moment := _date(found.get("retry-after"))) is not None:
                return max(moment - now / 1e6, 0.0)
    return None


def _number(text: str | None) -> float | None:
    """A number of a header; nobody can wait for less than nothing, or for ever."""
    try:
        value = float(text) if text is not None else -1.0
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _date(text: str | None) -> float | None:
    """An instant of a header, in seconds since 1970."""
    try:
        return parsedate_to_datetime(text).timestamp() if text is not None else None
    except (TypeError, ValueError, OverflowError):
        return None


def read_answer(answer: Any) -> Reply:
    """The reply in what LiteLLM gives back."""
    try:
        message = answer.choices[0].message
    except (AttributeError, IndexError):
        raise ModelError("the provider's answer holds no message", retryable=True) from None
    calls = tuple(
        tool_call(str(call.id), str(call.function.name or ""), str(call.function.arguments or "{}"))
        for call in getattr(message, "tool_calls", None) or ()
    )
    content = message.content
    return Reply(
        content=content if isinstance(content, str) and content else None,
        tool_calls=calls,
        thinking=str(getattr(message, "reasoning_content", None) or ""),
        usage=_usage(answer),
        model=str(getattr(answer, "model", None) or ""),
        stop_reason=str(getattr(answer.choices[0], "finish_reason", None) or ""),
        api_id=str(getattr(answer, "id", None) or ""),
    )


def _usage(answer: Any) -> Usage | None:
    usage = getattr(answer, "usage", None)
    if usage is None:
        return None
    details = getattr(usage, "prompt_tokens_details", None)
    hidden = getattr(answer, "_hidden_params", None) or {}
    given = figure(getattr(usage, "prompt_tokens", None))
    read = figure(getattr(details, "cached_tokens", None))
    written = figure(getattr(usage, "cache_creation_input_tokens", None))
    cost = hidden.get("response_cost")
    tokens = Tokens(
        # LiteLLM's figure includes what came from the cache and what went into it.
        input=None if given is None else max(given - (read or 0) - (written or 0), 0),
        output=figure(getattr(usage, "completion_tokens", None)),
        cache_read=read,
        cache_write=written,
    )
    return Usage(tokens=tokens, cost_usd=None if cost is None else float(cost))


def _without_keys(said: str) -> str:
    """What a provider said, without the key that it was asked with: some repeat it, and errors are shown and kept."""
    from harken.secrets import mask  # only who was refused needs it

    return _KEY.sub(r"\1[masked]", mask(said)[0])


def _passing(problem: Exception) -> bool:
    status = getattr(problem, "status_code", None)
    return status is None or status in _PASSING


def is_too_long(problem: Exception) -> bool:
    """Whether a provider refused a request because it is more than the model takes in."""
    if any(kind.__name__ == "ContextWindowExceededError" for kind in type(problem).__mro__):
        return True
    # A provider that LiteLLM does not know so well: a request that was refused, and why.
    return getattr(problem, "status_code", None) in (400, 413, 422) and _TOO_LONG.search(str(problem)) is not None


def _litellm() -> Any:
    if "litellm" not in sys.modules:  # whoever has imported it before us may have set it up
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.ERROR)
    try:
        litellm: Any = importlib.import_module("litellm")
        litellm.suppress_debug_info = True  # it would print its remarks into the conversation
        return litellm
    except ImportError:
        raise BadRequest(
            "this model needs LiteLLM, which is not installed",
            hint="`pip install '.[agents]'` in a clone of Harken; or use scripted:FILE, which needs nothing",
        ) from None
