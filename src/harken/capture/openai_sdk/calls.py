"""One call of an API: what is about to be sent, and what came of it, told to an exchange."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from itertools import groupby
from typing import Any
from weakref import WeakValueDictionary

from harken.capture.bodies import HeardBody, decoded, hear, read_body, sent_events
from harken.capture.exchange import Capture, CapturedRequest, Exchange, never_raising
from harken.formats.kit.jsonl import NotJson, Record, parse, parse_document

from .replies import ReadReply, read_chat, read_response, unreadable
from .requests import chat_request, responses_request
from .streams import WholeReply, join_chunks, join_events

CHAT = "/chat/completions"
RESPONSES = "/responses"
COMPACT = "/responses/compact"
_ONE_RESPONSE = re.compile(r"/responses/([^/]+)(?:/cancel)?$")
UNFINISHED = ("queued", "in_progress")
"""How a response that is made in the background stands until it is asked for again."""


class OpenAICalls:
    """The calls of one client, and of its copies, into one session."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.open: WeakValueDictionary[OpenAICall, HeardBody] = WeakValueDictionary()
        """Calls whose body the host is still reading, or has dropped."""
        self.waiting: dict[str, OpenAICall] = {}
        """Calls whose response is made in the background, by its id."""
        self.late: deque[tuple[OpenAICall, bytes, BaseException | None]] = deque()
        """Bodies that ended where nothing could be logged."""
        capture.session.before_close(self.close)

    @never_raising
    def begin(self, options: Any) -> OpenAICall | None:
        """Log a request that is about to be sent; None for one that is no conversation."""
        self.tell_late()
        path = str(options.url).partition("?")[0].rstrip("/")
        method = str(options.method).lower()
        if (named := _ONE_RESPONSE.search(path)) and (first := self.waiting.get(named[1])):
            return OpenAICall(self, RESPONSES, first.exchange, asked_again=True)
        api = next((api for api in (CHAT, COMPACT, RESPONSES) if method == "post" and path.endswith(api)), None)
        body = {**_mapping(options.json_data), **_mapping(options.extra_json)} if api else {}
        if not api or not body:
            return None
        request = (chat_request if api == CHAT else responses_request)(body)
        self._end_abandoned(request)
        exchange = self.capture.request(request)
        return OpenAICall(self, api, exchange, given=request.messages) if exchange is not None else None

    def _end_abandoned(self, request: CapturedRequest) -> None:
        """A host that stopped reading a reply and goes on behind it will not read on: what came of it is told now."""
        for call, body in list(self.open.items()):
            count = len(call.given)
            behind = len(request.messages) > count and call.given == request.messages[:count]
            if behind or (request.follows and body.has(request.follows.encode())):
                body.end()

    @never_raising
    def tell_late(self) -> None:
        """Tell of the bodies that ended where nothing could be logged."""
        while self.late:
            call, body, problem = self.late.popleft()
            call.tell(body, problem)

    @never_raising
    def close(self) -> None:
        """The session is about to be closed: what came until now is all."""
        for body in list(self.open.values()):
            body.end()
        self.tell_late()
        for call in list(self.waiting.values()):
            call.give_up()


class OpenAICall:
    """One call, from the request to the end of its reply."""

    def __init__(
        self, calls: OpenAICalls, api: str, exchange: Exchange, *, given: Any = (), asked_again: bool = False
    ) -> None:
        self.calls = calls
        self.capture = calls.capture
        self.api = api
        self.exchange = exchange
        self.given = given
        self._asked_again = asked_again
        """Whether it asks for a response that is made in the background."""
        self._response: Any = None
        self._unfinished: ReadReply | None = None

    def sending(self, request: Any) -> None:
        """An attempt goes out: the call was logged when it began, and the reply says how many there were."""

    @never_raising
    def failed(self, problem: BaseException) -> None:
        """No reply came; a response that is made in the background may be asked for once more."""
        if not self._asked_again:
            status = getattr(problem, "status_code", None)
            about = {"status": status, "request_id": getattr(problem, "request_id", None)}
            request = getattr(problem, "request", None)
            self.exchange.failed(problem, {**about, "body": getattr(problem, "body", None), **_attempts(request)})

    @never_raising
    def heard(self, response: Any) -> None:
        """A response came; its body is read already, or will be by the host."""
        if (body := read_body(response)) is not None:
            self._response = response
            self.tell(body, None)
            return
        # Without its stream: that holds what holds this, and a stream that is dropped must be gone at once.
        self._response = type(response)(response.status_code, headers=response.headers, request=response.request)
        if (heard := hear(response, self._ended)) is not None:
            self.calls.open[self] = heard

    def _ended(self, body: bytes, problem: BaseException | None) -> None:
        self.calls.open.pop(self, None)
        body = decoded(self._response, body)
        # A stream that is thrown away ends wherever its memory is taken back, also in the middle of a write to the log.
        if self.capture.session.lock._is_owned():  # type: ignore[attr-defined]
            self.calls.late.append((self, body, problem))
        else:
            self.tell(body, problem)

    @never_raising
    def tell(self, body: bytes, problem: BaseException | None) -> None:
        """Tell the exchange what came."""
        reply = self._read(body)
        if problem is not None:
            reply.metadata["error"] = f"{type(problem).__name__}: {problem}".removesuffix(": ")
        request_id = self._response.headers.get("x-request-id") or self._response.headers.get("apim-request-id")
        reply.metadata |= {"request_id": request_id, **_attempts(self._response.request)}
        if reply.usage is not None:
            reply.usage = reply.usage.replace(request_id=request_id or "")
        if reply.metadata.get("status") in UNFINISHED and not reply.metadata.get("partial"):
            self._unfinished = reply
            self.calls.waiting[str(reply.metadata.get("response_id"))] = self
        else:
            self._log(reply)

    def _log(self, reply: ReadReply) -> None:
        if self.api == COMPACT and not reply.metadata.get("partial"):
            messages = [list(run) for _, run in groupby(reply.events, lambda event: event.message_id)]
            self.exchange.compacted(messages, usage=reply.usage, metadata=reply.metadata)
            return
        self.calls.waiting.pop(str(reply.metadata.get("response_id")), None)
        thread = reply.metadata.pop("conversation", None)
        thread = thread.get("id") if isinstance(thread, dict) else thread
        self.exchange.reply(
            reply.events,
            usage=reply.usage,
            metadata={**reply.metadata, "thread": thread},
            each=reply.each,
            entries=reply.entries,
            thread=thread if isinstance(thread, str) else "",
        )

    def give_up(self) -> None:
        """Nobody asked for a response that was made in the background."""
        if self._unfinished is not None:
            self._unfinished.metadata["partial"] = True
            self._log(self._unfinished)

    def _read(self, body: bytes) -> ReadReply:
        reply = self._joined(body)
        if reply is None:
            return unreadable(body)
        return read_chat(reply) if self.api == CHAT else read_response(reply)

    def _joined(self, body: bytes) -> WholeReply | None:
        """The reply in one piece, whether it came so or not; None where it is nothing of the API."""
        if body.lstrip()[:1] == b"{":
            try:
                value = parse_document(body)
            except NotJson:
                return WholeReply({}, whole=False)
            return WholeReply(value, whole=True)
        kind = self._response.headers.get("content-type", "")
        if body and not kind.startswith("text/event-stream") and b"data:" not in body[:10_000]:
            return None
        data = list(sent_events(body))
        events: list[Record] = [event for event in map(parse, data) if event is not None]
        if self.api == CHAT:
            return join_chunks(events, done=any(one.startswith(b"[DONE]") for one in data))
        return join_events(events)


def _attempts(request: Any) -> dict[str, int]:
    """How often it was tried, where it was more than once: the SDK says it in a header of the request."""
    tried = str(getattr(request, "headers", {}).get("x-stainless-retry-count", ""))
    return {"attempts": int(tried) + 1} if tried.isdigit() and tried != "0" else {}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
