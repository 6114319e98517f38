"""A client whose calls are captured: `harken.capture.openai(client, session)`.

Every call of the SDK, whatever resource and whatever way (`parse`, `stream`, `with_raw_response` …), goes through two
methods of the client: `request` sends it, tries it again and raises; `_process_response` is given the HTTP response
that stood in the end, whose body is read already or is about to be read by the host. Both are replaced on a copy of
the client. The HTTP client below is shared and sees the same requests as before.
"""

from __future__ import annotations

import copy
import inspect
from contextvars import ContextVar
from functools import cached_property
from typing import Any, TypeVar

from harken.capture.exchange import Capture
from harken.capture.mask import Mask
from harken.errors import BadRequest, NotFound
from harken.log import Session

from .calls import OpenAICall, OpenAICalls

ClientT = TypeVar("ClientT")
Listeners = tuple[OpenAICalls, ...]
LISTENERS = "_harken_listeners"
_METHODS = ("request", "_process_response", "copy", "with_options")
_current: ContextVar[tuple[OpenAICall, ...]] = ContextVar("openai_calls", default=())
"""The calls that the request which is being sent in this thread or task is."""


def openai(client: ClientT, session: Session, *, mask: Mask = None) -> ClientT:
    """A client of the same class, whose chat completions and responses are kept in the session as they happen.

    The client that is given stays as it is. `mask` is `True`, or a function from text to text, and masks secrets."""
    try:
        import openai as sdk
    except ImportError:
        raise NotFound("the OpenAI SDK is not installed", hint="`pip install 'harken[openai]'`") from None
    if not isinstance(client, sdk.OpenAI | sdk.AsyncOpenAI):
        raise BadRequest(f"{type(client).__name__} is no client of the OpenAI SDK", hint="`openai.OpenAI()` is one")
    before: Listeners = vars(client).get(LISTENERS, ())
    if any(one.capture.session is session for one in before):
        return client
    twin = copy.copy(client)
    # Resources that were made already belong to the client they were made for.
    made = [name for name in vars(twin) if isinstance(getattr(type(twin), name, None), cached_property)]
    for name in (*made, *(_METHODS if before else ())):
        vars(twin).pop(name, None)
    return _listened(twin, (*before, OpenAICalls(Capture(session, "openai", mask=mask))))


def _listened(client: ClientT, listeners: Listeners) -> ClientT:
    """Have a client's calls heard; and those of every copy of it."""
    cls: Any = type(client)

    def copied(*args: Any, **options: Any) -> Any:
        return _listened(cls.copy(client, *args, **options), listeners)

    own = vars(client)
    own[LISTENERS] = listeners
    own["copy"] = own["with_options"] = copied
    both = _awaited(client, listeners) if inspect.iscoroutinefunction(cls.request) else _called(client, listeners)
    own["request"], own["_process_response"] = both
    return client


def _begin(listeners: Listeners, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[OpenAICall, ...]:
    given = options.get("options", args[1] if len(args) > 1 else None)
    return tuple(call for one in listeners if (call := one.begin(given)) is not None)


def _called(client: Any, listeners: Listeners) -> tuple[Any, Any]:
    cls = type(client)

    def request(*args: Any, **options: Any) -> Any:
        calls = _begin(listeners, args, options)
        token = _current.set(calls)
        try:
            return cls.request(client, *args, **options)
        except BaseException as problem:
            for call in calls:
                call.failed(problem)
            raise
        finally:
            _current.reset(token)

    def process(*args: Any, **options: Any) -> Any:
        for call in _current.get():
            call.heard(options["response"])
        return cls._process_response(client, *args, **options)

    return request, process


def _awaited(client: Any, listeners: Listeners) -> tuple[Any, Any]:
    cls = type(client)

    async def request(*args: Any, **options: Any) -> Any:
        calls = _begin(listeners, args, options)
        token = _current.set(calls)
        try:
            return await cls.request(client, *args, **options)
        except BaseException as problem:
            for call in calls:
                call.failed(problem)
            raise
        finally:
            _current.reset(token)

    async def process(*args: Any, **options: Any) -> Any:
        for call in _current.get():
            call.heard(options["response"])
        return await cls._process_response(client, *args, **options)

    return request, process
