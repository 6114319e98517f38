"""A client whose calls are captured: `harken.capture.google(client, session)`.

Everything that a client offers goes through its API client. `models`, `chats` and automatic function calling, whether
they wait or not, come down to its methods `_request` and `_async_request`: those have the body as JSON, try again, and
return parsed chunks, whichever of three HTTP libraries lies below (httpx2, httpx, or aiohttp where it is installed).
`interactions` are made by generated code that borrows only the HTTP client; all of it comes down to `do_request` and
`do_request_async`. These four are heard, on a twin of the client which shares connections and settings with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

from harken.capture.clients import Calling, ClientT, HeardCall, sending
from harken.capture.exchange import Capture, warn_once
from harken.capture.mask import Mask
from harken.errors import BadRequest, NotFound
from harken.log import Session

from .calls import ContentsCall, GoogleCalls, HeardChunks, Outgoing

GoogleListeners = tuple[GoogleCalls, ...]
HEARD = "_harken_heard"


def google(client: ClientT, session: Session, *, mask: Mask = None) -> ClientT:
    """A client of the same class, whose contents, chats and interactions are kept in the session as they happen.

    The client that is given stays as it is. `mask` is `True`, or a function from text to text, and masks secrets."""
    try:
        from google.genai.client import AsyncClient, Client
    except ImportError:
        raise NotFound("Google's GenAI SDK is not installed", hint="`pip install 'harken[google]'`") from None
    if not isinstance(client, Client | AsyncClient):
        raise BadRequest(
            f"{type(client).__name__} is no client of Google's GenAI SDK", hint="`google.genai.Client()` is one"
        )
    api = client._api_client
    before: GoogleListeners = getattr(api, "listeners", ())
    if any(one.capture.session is session for one in before):
        return client
    listeners = (*before, GoogleCalls(Capture(session, "google", mask=mask)))
    return cast(ClientT, _moved(client, _heard_api(api, listeners)))


# -- twins -------------------------------------------------------------------------------------------------------------


def _heard_api(api: Any, listeners: GoogleListeners) -> Any:
    """The API client once more, with all that it knows and opens later in common, and heard."""
    base: Any = getattr(type(api), "heard", type(api))
    twin = object.__new__(_api_class(base))
    twin.__dict__ = api.__dict__
    twin.listeners = listeners
    twin.origin = api  # which closes the connections when nobody needs them any more
    return twin


def _moved(owner: Any, api: Any) -> Any:
    """A client, or a module of one, that goes through another API client."""
    base: Any = getattr(type(owner), "heard", type(owner))
    own = {
        name: _moved(value, api) if getattr(value, "_api_client", None) is owner._api_client else value
        for name, value in vars(owner).items()
    }
    twin = object.__new__(_client_class(base) if hasattr(base, "__del__") else base)
    twin.__dict__ = {**own, "_api_client": api}
    if hasattr(base, "__del__"):
        vars(twin).update(_interactions=None, _harken_origin=owner)
    return twin


@cache
def _client_class(base: Any) -> Any:
    """The class of a client whose interactions are heard, and which closes nothing when it is forgotten."""

    def interactions(self: Any) -> Any:
        made, listeners = base.interactions.fget(self), self._api_client.listeners
        try:
            _hear_interactions(made, listeners)
        except Exception as problem:  # noqa: BLE001  not the host's concern
            warn_once(listeners[-1].capture, problem)
        return made

    own: dict[str, Any] = {"__del__": _nothing, "heard": base}
    if hasattr(base, "interactions"):
        own["interactions"] = property(interactions)
    return type(base.__name__, (base,), {**own, **_named_as(base)})


def _named_as(base: Any) -> dict[str, Any]:
    return {"__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__}


def _nothing(self: object) -> None:
    """What is shared is closed by the client that it came from, or by hand."""


# -- contents ----------------------------------------------------------------------------------------------------------


@cache
def _api_class(base: Any) -> Any:
    """The class of an API client that is heard."""

    def request(self: Any, *args: Any, **options: Any) -> Any:
        with Calling(self.listeners, _outgoing(args, options)) as calls:
            first(args, options)
            return _heard_response(base._request(self, *args, **options), calls)

    async def request_later(self: Any, *args: Any, **options: Any) -> Any:
        with Calling(self.listeners, _outgoing(args, options)) as calls:
            first(args, options)
            return _heard_response(await base._async_request(self, *args, **options), calls)

    def once(self: Any, *args: Any, **options: Any) -> Any:
        sending(_request_in(args, options))
        return base._request_once(self, *args, **options)

    async def once_later(self: Any, *args: Any, **options: Any) -> Any:
        sending(_request_in(args, options))
        return await base._async_request_once(self, *args, **options)

    tries = hasattr(base, "_request_once") and hasattr(base, "_async_request_once")  # older versions try only once

    def first(args: tuple[Any, ...], options: dict[str, Any]) -> None:
        if not tries:
            sending(_request_in(args, options))

    own: dict[str, Any] = {"__slots__": ("listeners", "origin"), "__del__": _nothing, "heard": base}
    own |= {"_request": request, "_async_request": request_later}
    own |= {"_request_once": once, "_async_request_once": once_later} if tries else {}
    return type(base.__name__, (base,), {**own, **_named_as(base)})


def _request_in(args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return options.get("http_request", options.get("request", args[0] if args else None))


def _outgoing(args: tuple[Any, ...], options: dict[str, Any]) -> Outgoing:
    """What is about to be sent, whichever version of the SDK sends it."""
    request = _request_in(args, options)
    streamed = options.get("stream", any(one is True for one in args)) is True
    return Outgoing(str(getattr(request, "method", "")).upper(), str(getattr(request, "url", "")), streamed)


def _heard_response(response: Any, calls: tuple[HeardCall, ...]) -> Any:
    """A response whose chunks are heard while the host reads them."""
    heard: list[HeardChunks] = []
    for call in calls:
        call.heard(response)
        if isinstance(call, ContentsCall) and call.exchange is not None and call.options.streamed:
            heard.append(call.chunks())
            try:
                vars(response)[HEARD] = heard
                response.__class__ = _response_class(cast(Any, type(response)))
            except Exception as problem:  # noqa: BLE001  not the host's concern
                warn_once(call.capture, problem)
    return response


@cache
def _response_class(base: Any) -> Any:
    """The class of a response whose chunks are heard."""
    base = getattr(base, "heard", base)

    def segments(self: Any) -> Any:
        with _Reading(vars(self)[HEARD]) as hear:
            for chunk in base.segments(self):
                hear(chunk)
                yield chunk

    async def async_segments(self: Any) -> Any:
        with _Reading(vars(self)[HEARD]) as hear:
            async for chunk in base.async_segments(self):
                hear(chunk)
                yield chunk

    own = {"segments": segments, "async_segments": async_segments, "heard": base}
    return type(base.__name__, (base,), {**own, **_named_as(base)})


class _Reading:
    """While the host reads a stream: however it ends, what came is told."""

    def __init__(self, heard: list[HeardChunks]) -> None:
        self._heard = heard

    def __enter__(self) -> Callable[[Any], None]:
        return self._hear

    def _hear(self, chunk: Any) -> None:
        for one in self._heard:
            one.hear(chunk)

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        for one in self._heard:
            one.end(problem)


# -- interactions ------------------------------------------------------------------------------------------------------


def _hear_interactions(made: Any, listeners: GoogleListeners) -> None:
    """Have the requests of a client's interactions heard; each attempt passes the hook before a request."""
    own, cls = vars(made), type(made)
    if HEARD in own:
        return

    def do_request(*args: Any, **options: Any) -> Any:
        with Calling(listeners, _outgoing(args, options)) as calls:
            response = cls.do_request(made, *args, **options)
            for call in calls:
                call.heard(response)
            return response

    async def do_request_later(*args: Any, **options: Any) -> Any:
        with Calling(listeners, _outgoing(args, options)) as calls:
            response = await cls.do_request_async(made, *args, **options)
            for call in calls:
                call.heard(response)
            return response

    own[HEARD] = True
    name = "do_request" if hasattr(cls, "do_request") else "do_request_async"
    own[name] = do_request if name == "do_request" else do_request_later
    _hear_attempts(vars(made.sdk_configuration))


def _hear_attempts(configuration: dict[str, Any]) -> None:
    hooks: Any = configuration.get("_hooks")
    later: Any = configuration.get("_async_hooks")

    def before(*args: Any, **options: Any) -> Any:
        return sending(hooks.__class__.before_request(hooks, *args, **options))

    async def before_later(*args: Any, **options: Any) -> Any:
        return sending(await later.__class__.before_request(later, *args, **options))

    if hooks is not None:
        hooks.before_request = before
    if later is not None:
        later.before_request = before_later
