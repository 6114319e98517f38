"""Clients whose calls are heard, for SDKs of one make (OpenAI's, Anthropic's): a copy of the host's client, of the same
class, on which three methods are replaced.

    request             one call of the host: sends it, tries it again, raises
    _build_request      one attempt; it makes what goes over the wire
    _process_response   is given the response that stood in the end, whose body is read or is about to be read

The host's client is left as it is; the HTTP client below is shared and sees the same requests as before.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from harken.log import Session

from .bodies import HeardBody, decoded, hear, read_body
from .exchange import Capture, Exchange, never_raising, warn_once

ClientT = TypeVar("ClientT")
T = TypeVar("T")
Listeners = tuple["CallListener", ...]
LISTENERS = "_harken_listeners"
_METHODS = ("request", "_build_request", "_process_response", "copy", "with_options")
_current: ContextVar[tuple[HeardCall, ...]] = ContextVar("harken_client_calls", default=())
"""The calls that the request which is being sent in this thread or task is."""


class HeardCall(Protocol):
    """One call of the host."""

    def sending(self, request: Any) -> object:
        """An attempt goes out."""

    def heard(self, response: Any) -> object:
        """The response came."""

    def failed(self, problem: BaseException) -> object:
        """The call raised."""


class CallListener(Protocol):
    """Who hears the calls of a client and its copies."""

    capture: Capture

    def begin(self, options: Any) -> HeardCall | None:
        """The call that a request is; None for one that is no conversation."""


class ClientCalls(ABC):
    """The calls of one client, and of its copies, into one session."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.open: WeakValueDictionary[ClientCall, HeardBody] = WeakValueDictionary()
        """Calls whose body the host is still reading, or has dropped."""
        self.late: deque[tuple[ClientCall, bytes, BaseException | None]] = deque()
        """Bodies that ended where nothing could be logged."""
        capture.session.before_close(self.close)

    @abstractmethod
    def begin(self, options: Any) -> ClientCall | None:
        """The call that a request is; None for one that is no conversation."""

    @never_raising
    def tell_late(self) -> None:
        """Tell of the bodies that ended where nothing could be logged."""
        while self.late:
            call, body, problem = self.late.popleft()
            call.told(body, problem)

    @never_raising
    def end_abandoned(self, messages: Sequence[Any], follows: str) -> None:
        """A host that stopped reading a reply and goes on behind it will not read on: what came of it is told now."""
        for call, body in list(self.open.items()):
            behind = len(messages) > len(call.given) and call.given == messages[: len(call.given)]
            if behind or (follows and body.has(follows.encode())):
                body.end()

    @never_raising
    def close(self) -> None:
        """The session is about to be closed: what came until now is all."""
        for body in list(self.open.values()):
            body.end()
        self.tell_late()


class ClientCall(ABC):
    """One call of the host: each attempt to send it, and what came."""

    exchange: Exchange | None = None
    given: Sequence[Any] = ()
    """The messages that were sent."""

    def __init__(self, calls: ClientCalls, options: Any) -> None:
        self.calls = calls
        self.capture = calls.capture
        self.options = options
        self.attempts = 0
        self._response: Any = None

    # What an adapter knows of its SDK

    @abstractmethod
    def send(self, request: Any) -> Exchange | None:
        """Log the request that is about to be sent."""

    @abstractmethod
    def tell(self, exchange: Exchange, response: Any, body: bytes, problem: BaseException | None) -> None:
        """Log what came of the reply."""

    def about(self, problem: BaseException) -> dict[str, Any]:
        """What is known of a failure, as errors of this make say it."""
        said = {"status": "status_code", "request_id": "request_id", "body": "body"}
        return {key: getattr(problem, name, None) for key, name in said.items()}

    # What happens

    @never_raising
    def sending(self, request: Any) -> None:
        """A request goes out: for the first time, again, or, where the host's middleware asks for it, another one after
        a reply."""
        if self.attempts and self._response is None:
            self.attempts += 1
            return
        self.attempts, self._response = 1, None
        self.calls.tell_late()
        self.exchange = self.send(request)

    @never_raising
    def heard(self, response: Any) -> None:
        """A response came; its body is read already, or will be by the host."""
        if self.exchange is None or not response.is_success:
            return
        if (body := read_body(response)) is not None:
            self._response = response
            self.tell(self.exchange, response, body, None)
            return
        # Without its stream: that holds what holds this, and a stream that is dropped must be gone at once.
        self._response = type(response)(response.status_code, headers=response.headers)
        call = copy.copy(self)
        if (heard := hear(response, call.ended)) is not None:
            self.calls.open[call] = heard

    def ended(self, body: bytes, problem: BaseException | None) -> None:
        """A body that the host read itself has come to its end."""
        self.calls.open.pop(self, None)
        # A stream that is thrown away ends wherever its memory is taken back, also in the middle of a write to the log.
        if self.capture.session.lock._is_owned():  # type: ignore[attr-defined]
            self.calls.late.append((self, body, problem))
        else:
            self.told(body, problem)

    @never_raising
    def told(self, body: bytes, problem: BaseException | None) -> None:
        """Log a body that the host read itself."""
        if self.exchange is not None:
            self.tell(self.exchange, self._response, decoded(self._response, body), problem)

    @never_raising
    def failed(self, problem: BaseException) -> None:
        """The call raised."""
        if self.exchange is not None and self._response is None:
            attempts = {"attempts": self.attempts} if self.attempts > 1 else {}
            self.exchange.failed(problem, {**self.about(problem), **attempts})


def heard_client(client: ClientT, session: Session, listen: Callable[[], CallListener]) -> ClientT:
    """A copy of the client whose calls are heard, beside whoever hears them already."""
    before: Listeners = vars(client).get(LISTENERS, ())
    if any(one.capture.session is session for one in before):
        return client
    twin = copy.copy(client)
    own = vars(twin)
    for name in _METHODS if before else ():
        own.pop(name, None)
    for name, value in list(own.items()):
        if getattr(value, "_client", None) is client:  # a resource, which belongs to the client it was made for
            own[name] = type(value)(twin)
    listened = _listened(twin, (*before, listen()))
    if own.get("_middleware_chain") is not None:
        own["_middleware_chain"] = listened._build_middleware_chain()  # type: ignore[attr-defined]
    return listened


def _listened(client: ClientT, listeners: Listeners) -> ClientT:
    """Have a client's calls heard; and those of every copy of it."""
    cls: Any = type(client)

    def copied(*args: Any, **options: Any) -> Any:
        return _listened(cls.copy(client, *args, **options), listeners)

    def build(*args: Any, **options: Any) -> Any:
        return sending(cls._build_request(client, *args, **options))

    def process(*args: Any, **options: Any) -> Any:
        for call in _current.get():
            call.heard(options["response"])
        return cls._process_response(client, *args, **options)

    def request(*args: Any, **options: Any) -> Any:
        with Calling(listeners, options.get("options", args[1] if len(args) > 1 else None)):
            return cls.request(client, *args, **options)

    async def request_later(*args: Any, **options: Any) -> Any:
        with Calling(listeners, options.get("options", args[1] if len(args) > 1 else None)):
            return await cls.request(client, *args, **options)

    own = vars(client)
    own[LISTENERS] = listeners
    own["copy"] = own["with_options"] = copied
    own["_build_request"], own["_process_response"] = build, process
    own["request"] = request_later if inspect.iscoroutinefunction(cls.request) else request
    return client


def sending(request: T) -> T:
    """An attempt goes out, of the request that is being sent in this thread or task."""
    for call in _current.get():
        call.sending(request)
    return request


class Calling:
    """While a request of the host is being sent: whoever listens knows which one it is, and hears where it fails."""

    def __init__(self, listeners: Sequence[CallListener], given: Any) -> None:
        self._calls = tuple(call for one in listeners if (call := _begun(one, given)) is not None)

    def __enter__(self) -> tuple[HeardCall, ...]:
        self._token = _current.set(self._calls)
        return self._calls

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        with suppress(ValueError):  # a coroutine that was thrown away ends wherever its memory is taken back
            _current.reset(self._token)
        if problem is not None:
            for call in self._calls:
                call.failed(problem)


def _begun(listener: CallListener, options: Any) -> HeardCall | None:
    try:
        return listener.begin(options)
    except Exception as problem:  # noqa: BLE001  not the host's concern
        warn_once(listener.capture, problem)
        return None
