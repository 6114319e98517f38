"""One call of an API: what is about to be sent, and what came of it, told to an exchange."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from harken.capture.bodies import sent_events
from harken.capture.clients import ClientCall, ClientCalls
from harken.capture.exchange import Capture, Exchange, never_raising
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


class OpenAICalls(ClientCalls):
    """The calls of one client, and of its copies, into one session."""

    def __init__(self, capture: Capture) -> None:
        self.waiting: dict[str, OpenAICall] = {}
        """Calls whose response is made in the background, by its id."""
        super().__init__(capture)

    @never_raising
    def begin(self, options: Any) -> ClientCall | None:
        """Log a request that is about to be sent; None for one that is no conversation."""
        self.tell_late()
        path = str(options.url).partition("?")[0].rstrip("/")
        method = str(options.method).lower()
        if (named := _ONE_RESPONSE.search(path)) and (first := self.waiting.get(named[1])):
            return ResponseAskedAgain(self, options, RESPONSES, first.exchange)
        api = next((api for api in (CHAT, COMPACT, RESPONSES) if method == "post" and path.endswith(api)), None)
        body = {**_mapping(options.json_data), **_mapping(options.extra_json)} if api else {}
        if not api or not body:
            return None
        request = (chat_request if api == CHAT else responses_request)(body)
        self.end_abandoned(request.messages, request.follows)
        exchange = self.capture.request(request)
        return OpenAICall(self, options, api, exchange, given=request.messages) if exchange is not None else None

    @never_raising
    def close(self) -> None:
        """The session is about to be closed: what came until now is all."""
        super().close()
        for call in list(self.waiting.values()):
            call.give_up()


class OpenAICall(ClientCall):
    """One call, from the request to the end of its reply."""

    calls: OpenAICalls
    exchange: Exchange

    def __init__(
        self, calls: OpenAICalls, options: Any, api: str, exchange: Exchange, *, given: Sequence[Any] = ()
    ) -> None:
        super().__init__(calls, options)
        self.api = api
        self.exchange = exchange
        self.given = given
        self._unfinished: ReadReply | None = None

    def send(self, request: Any) -> Exchange:
        """The request was logged when the call began, as the host gave it."""
        return self.exchange

    def tell(self, exchange: Exchange, response: Any, body: bytes, problem: BaseException | None) -> None:
        """Log what came of the reply; a response that is made in the background is waited for."""
        reply = self._read(response, body)
        if problem is not None:
            reply.metadata["error"] = f"{type(problem).__name__}: {problem}".removesuffix(": ")
        request_id = response.headers.get("x-request-id") or response.headers.get("apim-request-id")
        reply.metadata |= {"request_id": request_id, "attempts": self.attempts if self.attempts > 1 else None}
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

    def _read(self, response: Any, body: bytes) -> ReadReply:
        reply = self._joined(response, body)
        if reply is None:
            return unreadable(body)
        return read_chat(reply) if self.api == CHAT else read_response(reply)

    def _joined(self, response: Any, body: bytes) -> WholeReply | None:
        """The reply in one piece, whether it came so or not; None where it is nothing of the API."""
        if body.lstrip()[:1] == b"{":
            try:
                value = parse_document(body)
            except NotJson:
                return WholeReply({}, whole=False)
            return WholeReply(value, whole=True)
        kind = response.headers.get("content-type", "")
        if body and not kind.startswith("text/event-stream") and b"data:" not in body[:10_000]:
            return None
        data = list(sent_events(body))
        events: list[Record] = [event for event in map(parse, data) if event is not None]
        if self.api == CHAT:
            return join_chunks(events, done=any(one.startswith(b"[DONE]") for one in data))
        return join_events(events)


class ResponseAskedAgain(OpenAICall):
    """A response that is made in the background is asked for, or cancelled."""

    @never_raising
    def failed(self, problem: BaseException) -> None:
        """It may be asked for once more."""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
