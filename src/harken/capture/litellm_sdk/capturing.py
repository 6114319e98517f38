"""`harken.capture.litellm(session)`: what is sent through LiteLLM and heard from it, kept in a session.

There are two ways in. Calls through the wrapper (`capture.completion` and the others) are captured where they are made:
also a stream that is given up. Calls that somebody else makes are captured as LiteLLM's callbacks tell of them,
which is in the background and misses such streams. A call that goes both ways is captured by the wrapper alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar, Token
from functools import wraps
from typing import Any, Self
from uuid import uuid4
from weakref import ref

import litellm
from litellm.integrations.custom_logger import CustomLogger

from harken.capture.exchange import Capture, never_raising, warn_once
from harken.capture.mask import Mask
from harken.log import Session

from .calls import LiteLLMCall, OpenCalls
from .draining import drain, drain_later
from .replies import NO_CONVERSATION, SpokenApi, api_of, chats_in
from .telling import ToldCalls, remember

_wrapped: dict[str, Callable[[], LiteLLMCall | None]] = {}
"""By LiteLLM's id of a call: the calls that went through a wrapper, which callbacks leave alone. The newest of them."""
_CALL_ID = "litellm_call_id"
"""The argument by which LiteLLM is told what to call a call."""
_inside: ContextVar[bool] = ContextVar("inside_litellm_call", default=False)
"""Whether what LiteLLM does here is done for a call that goes through a wrapper; it makes further calls for some."""


class LiteLLMCapture(CustomLogger):  # type: ignore[misc]
    """Captures what goes through LiteLLM.

    `completion`, `acompletion`, `responses` and `aresponses` are LiteLLM's own, captured; `wrap` does the same to any
    function of this kind, as a `Router` has. Inside a `with` block, or in `litellm.callbacks`, it also captures the
    calls that others make. `close` waits for what LiteLLM has still to report."""

    def __init__(self, session: Session, *, mask: Mask = None) -> None:
        super().__init__()
        # LiteLLM takes loggers of one class for the same unless a public field differs.
        self.capture_id = str(uuid4())
        self.capture = Capture(session, "litellm", mask=mask)
        self._calls = OpenCalls(self.capture)
        self._told = ToldCalls(self._calls)
        self.completion = self.wrap(litellm.completion)
        self.acompletion = self.wrap(litellm.acompletion)
        self.responses = self.wrap(litellm.responses)
        self.aresponses = self.wrap(litellm.aresponses)
        session.before_close(self.close)

    # The wrapper

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, captured: one that takes what LiteLLM's `completion` or `responses` takes. Functions of
        LiteLLM's that ask no model, or hold no conversation, stay as they are."""
        taken = inspect.signature(function).parameters
        is_named = _CALL_ID in taken or any(one.kind is one.VAR_KEYWORD for one in taken.values())
        if getattr(function, "__name__", "") in NO_CONVERSATION or (_is_litellms(function) and not is_named):
            return function
        names, chats = tuple(taken), chats_in(function)

        @wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            if (api := api_of(given := _given(names, args, options), chats)) is None:
                return function(*args, **options)
            call, options = self._begin(api, given, options, is_named=is_named)
            token = _inside.set(True)
            try:
                result = function(*args, **options)
            except BaseException as problem:
                self._failed(call, problem)
                raise
            finally:
                _inside.reset(token)
            return self._awaited(call, result) if inspect.isawaitable(result) else self._heard(call, result)

        @wraps(function)
        async def called_later(*args: Any, **options: Any) -> Any:
            if (api := api_of(given := _given(names, args, options), chats)) is None:
                return await function(*args, **options)
            call, options = self._begin(api, given, options, is_named=is_named)
            return await self._awaited(call, function(*args, **options))

        return called_later if inspect.iscoroutinefunction(function) else called

    async def _awaited(self, call: LiteLLMCall | None, result: Any) -> Any:
        token = _inside.set(True)
        try:
            result = await result
        except BaseException as problem:
            self._failed(call, problem)
            raise
        finally:
            _left(token)
        return self._heard(call, result)

    def _begin(
        self, api: SpokenApi, given: Mapping[str, Any], options: dict[str, Any], *, is_named: bool
    ) -> tuple[LiteLLMCall | None, dict[str, Any]]:
        """Log the request, and name the call where it takes a name, so that it is known again where LiteLLM tells of
        it."""
        call = self._calls.begin(api, given)
        if not is_named:
            return call, options
        call_id = str(options.get(_CALL_ID) or uuid4())
        remember(_wrapped, call_id, ref(call) if call is not None else _nothing)
        if self not in litellm.input_callback:
            litellm.input_callback.append(self)  # where it hears of further attempts
        return call, {**options, _CALL_ID: call_id}

    def _heard(self, call: LiteLLMCall | None, result: Any) -> Any:
        if call is not None:
            if hasattr(result, "__next__") or hasattr(result, "__anext__"):
                return call.streams(result) or result
            call.answered(result)
        return result

    def _failed(self, call: LiteLLMCall | None, problem: BaseException) -> None:
        if call is not None:
            call.failed(problem)

    # The callback

    def log_pre_api_call(self, model: Any, messages: Any, kwargs: Any) -> None:
        """LiteLLM is about to send a request, for the first time or again."""
        self._sending(kwargs)

    def log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """A reply came."""
        self._answered(kwargs, response_obj)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """A reply came."""
        self._answered(kwargs, response_obj)

    def log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """An attempt failed."""
        self._attempt_failed(kwargs)

    async def async_log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """An attempt failed."""
        self._attempt_failed(kwargs)

    async def async_post_call_success_deployment_hook(self, request_data: Any, response: Any, call_type: Any) -> None:
        """A reply came that is reported later; kept for a host that does not wait for that."""
        if (call := self._told.open.get(str(_mapping(request_data).get(_CALL_ID)))) is not None:
            call.response = response

    async def async_pre_call_deployment_hook(self, kwargs: Any, call_type: Any) -> None:
        """A request is about to be made in an event loop. Where the host goes on behind a call that LiteLLM has not
        reported yet, that comes first."""
        if self._listens() and self._told.is_behind(_mapping(kwargs).get("messages")):
            try:
                await drain_later(lambda: not self._told.is_behind(kwargs.get("messages")), 1.0)
            except Exception as problem:  # noqa: BLE001
                warn_once(self.capture, problem)

    @never_raising
    def _sending(self, kwargs: Mapping[str, Any]) -> None:
        call_id = str(kwargs.get(_CALL_ID))
        if call_id in _wrapped:
            call = _wrapped[call_id]()
            if call is not None and call.capture is self.capture:
                call.attempts += 1
        elif _inside.get():
            remember(_wrapped, call_id, _nothing)  # part of a call that is captured where it is made
        elif self._listens():
            self._told.sending(call_id, kwargs)

    @never_raising
    def _answered(self, kwargs: Mapping[str, Any], response: Any) -> None:
        call_id = str(kwargs.get(_CALL_ID))
        if call_id not in _wrapped:
            self._told.answered(call_id, kwargs, response)

    @never_raising
    def _attempt_failed(self, kwargs: Mapping[str, Any]) -> None:
        self._told.failed(str(kwargs.get(_CALL_ID)), kwargs.get("exception"))

    def _listens(self) -> bool:
        return any(self in one for one in (litellm.callbacks, litellm.success_callback))

    # From beginning to end

    def __enter__(self) -> Self:
        if self not in litellm.callbacks:
            litellm.callbacks.append(self)
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *problem: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """Wait for what LiteLLM has still to report, and listen no longer. Harmless when done twice."""
        try:
            if self._listens():
                drain(lambda: False)
        except Exception as problem:  # noqa: BLE001
            warn_once(self.capture, problem)
        self._end()

    async def aclose(self) -> None:
        """The same in an event loop, whose own reports can only be waited for there."""
        try:
            if self._listens():
                await drain_later(lambda: not self._told.open)
        except Exception as problem:  # noqa: BLE001
            warn_once(self.capture, problem)
        self._end()

    @never_raising
    def _end(self) -> None:
        litellm.logging_callback_manager.remove_callback_from_all_lists(self)
        if self in litellm.input_callback:
            litellm.input_callback.remove(self)
        self._told.close()
        self._calls.close()


def _given(names: tuple[str, ...], args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call, by their names."""
    return {**dict(zip(names, args, strict=False)), **options}


def _is_litellms(function: Callable[..., Any]) -> bool:
    return str(getattr(function, "__module__", "")).partition(".")[0] == "litellm"


def _nothing() -> None:
    """A call that could not be captured."""


def _left(token: Token[bool]) -> None:
    with suppress(ValueError):  # a coroutine that was thrown away ends in whatever context its memory is taken back
        _inside.reset(token)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
