"""One call of an API: what is about to be sent, and what came of it, told to an exchange."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from harken.capture.bodies import HeardBody, sent_events
from harken.capture.clients import ClientCall, ClientCalls
from harken.capture.exchange import Capture, CapturedRequest, Exchange, never_raising
from harken.formats.kit.gemini import CallIds, content_events, contents_of, instructions_of, text
from harken.formats.kit.gemini_joining import camel
from harken.formats.kit.jsonl import NotJson, Record, encode, parse_document

from .replies import GoogleReply, read_contents, token_in, unreadable
from .steps import UNFINISHED, join_events, read_interaction, step_events, steps_in

_CONTENTS = re.compile(r"([^/:?]+):(?:stream)?[gG]enerateContent(?:\?|$)")
_INTERACTION = re.compile(r"/interactions(?:/([^/?]+)(?:/cancel)?)?/?$")


class Outgoing(NamedTuple):
    """A request of the host, before it is sent."""

    method: str
    url: str
    streamed: bool = False


class GoogleCalls(ClientCalls):
    """The calls of one client into one session."""

    def __init__(self, capture: Capture) -> None:
        self.waiting: dict[str, InteractionCall] = {}
        """Calls whose interaction is made in the background, by its id."""
        self.owners: dict[str, str] = {}
        """By a token to continue with: the interaction that gave it."""
        self.held: dict[str, ContentsCall] = {}
        """Calls whose reply is about to be continued, by the token for that."""
        super().__init__(capture)

    def begin(self, options: Outgoing) -> ClientCall | None:
        """The call that a request is; None for one that is no conversation."""
        if named := _CONTENTS.search(options.url):
            return ContentsCall(self, options, named[1])
        if (named := _INTERACTION.search(options.url.partition("?")[0])) is None:
            return None
        if (first := self.waiting.get(named[1] or "")) is not None:
            return AskedAgain(self, options, first)
        return InteractionCall(self, options) if options.method == "POST" and not named[1] else None

    @never_raising
    def close(self) -> None:
        """The session is about to be closed: what came until now is all."""
        super().close()
        waiting: list[GoogleCall] = [*self.waiting.values(), *self.held.values()]
        for call in waiting:
            call.give_up()

    @never_raising
    def end_held(self, messages: Sequence[Any]) -> None:
        """A host that goes on behind a reply will not have it continued."""
        for token, call in list(self.held.items()):
            if len(messages) > len(call.given) and call.given == messages[: len(call.given)]:
                del self.held[token]
                call.give_up()


class GoogleCall(ClientCall):
    """One call, from the request to the end of its reply."""

    calls: GoogleCalls
    model = ""

    def capture_request(self, request: CapturedRequest) -> Exchange | None:
        """Log a request, behind replies that the host will not read on."""
        self.given = request.messages
        self.calls.end_abandoned(request.messages, request.follows)
        self.calls.end_held(request.messages)
        return self.capture.request(request)

    def reply(self, exchange: Exchange, reply: GoogleReply) -> None:
        """Log a reply that was read."""
        reply.metadata["attempts"] = self.attempts if self.attempts > 1 else None
        exchange.reply(reply.events, usage=reply.usage, metadata=reply.metadata, each=reply.each, entries=reply.entries)

    def give_up(self) -> None:
        """Nobody asks for the rest of the reply any more."""

    def about(self, problem: BaseException) -> dict[str, Any]:
        """What is known of a failure."""
        status = getattr(problem, "code", None) or getattr(problem, "status_code", None)
        return {"status": status, "reason": getattr(problem, "status", None)}


# -- contents ----------------------------------------------------------------------------------------------------------


class HeardChunks(HeardBody):
    """The chunks of a reply, as the SDK has parsed them: whatever HTTP library they came through."""

    def hear(self, chunk: Any) -> None:
        """A chunk came."""
        self._parts.append(encode(chunk) + b"\n")


class ContentsCall(GoogleCall):
    """`generateContent` and `streamGenerateContent`, which everything but interactions comes down to."""

    def __init__(self, calls: GoogleCalls, options: Outgoing, model: str) -> None:
        super().__init__(calls, options)
        self.model = model
        self.ids = CallIds()
        self.hops: list[list[Any]] = []
        """The chunks of each request that the reply took; the SDK asks for the rest of one that was cut."""

    def send(self, request: Any) -> Exchange | None:
        """Log the request that is about to be sent."""
        body = {**camel(request.data)}
        if (first := self.calls.held.pop(text(body, "continuationToken"), None)) is not None:
            self.ids, self.hops, self.given = first.ids, first.hops, first.given
            return first.exchange
        messages = [self.ids.named(content) for content in contents_of(body.pop("contents", []))]
        told = instructions_of(body.pop("systemInstruction", None))
        instructions = [told] if told else []
        return self.capture_request(
            CapturedRequest(
                messages=messages, read=content_events, instructions=instructions, model=self.model, settings=body
            )
        )

    @never_raising
    def heard(self, response: Any) -> None:
        """A response came, whole; or a stream, which `chunks` hears."""
        self._response = True  # not the response itself: that holds what holds this, and a stream must be gone at once
        if self.exchange is not None and not self.options.streamed:
            came = response.response_stream
            self.tell(self.exchange, response, str(came[0] if came else "").encode(errors="replace"), None)

    def chunks(self) -> HeardChunks:
        """Hear the chunks of a stream."""
        heard = HeardChunks(None, self.ended)
        self.calls.open[self] = heard
        return heard

    @never_raising
    def told(self, body: bytes, problem: BaseException | None) -> None:
        """Log what came of a stream."""
        if self.exchange is not None:
            self.tell(self.exchange, None, body, problem)

    def tell(self, exchange: Exchange, response: Any, body: bytes, problem: BaseException | None) -> None:
        """Log what came of the reply."""
        try:
            came = body.splitlines() if self.options.streamed else [body or b"{}"]
            self.hops.append([parse_document(one) for one in came])
        except NotJson:
            self.reply(exchange, unreadable(body))
            return
        if (token := token_in(self.hops[-1])) and not isinstance(problem, GeneratorExit):
            self.calls.held[token] = self
        else:
            self.reply(exchange, self._read(problem))

    def _read(self, problem: BaseException | None) -> GoogleReply:
        return read_contents(self.hops, self.ids, self.model, problem, streamed=self.options.streamed)

    @never_raising
    def failed(self, problem: BaseException) -> None:
        """The call raised; what came before it was continued is kept."""
        if self.hops and self.exchange is not None and self._response is None:
            self.reply(self.exchange, self._read(problem))
        super().failed(problem)

    def give_up(self) -> None:
        """Nobody has the reply continued."""
        if self.exchange is not None:
            self.reply(self.exchange, self._read(None))


# -- interactions ------------------------------------------------------------------------------------------------------


class InteractionCall(GoogleCall):
    """`interactions.create`."""

    background = False
    _unfinished: GoogleReply | None = None

    def send(self, request: Any) -> Exchange | None:
        """Log the request that is about to be sent."""
        body: Record = parse_document(request.content)
        self.model = text(body, "model") or text(body, "agent")
        self.background = body.get("background") is True
        messages: Sequence[Any] = steps_in(body.pop("input", None))
        follows = text(body, "previous_interaction_id")
        if (token := text(body, "continuation_token")) and (owner := self.calls.owners.get(token)):
            messages, follows = (), owner  # the reply goes on, whether or not the input is sent once more
        told = text(body, "system_instruction")
        unsaid = ("model", "system_instruction", "previous_interaction_id", "continuation_token")
        return self.capture_request(
            CapturedRequest(
                messages=messages,
                read=step_events,
                instructions=[told] if told else [],
                model=self.model,
                settings={key: value for key, value in body.items() if key not in unsaid},
                follows=follows,
            )
        )

    @never_raising
    def heard(self, response: Any) -> None:
        """A response came; where the provider refuses, that is all."""
        if response.is_success or self.exchange is None:
            super().heard(response)
        else:
            attempts = self.attempts if self.attempts > 1 else None
            about = {"status": response.status_code, "attempts": attempts}
            self.exchange.failed(InteractionRefused(response), about)

    def tell(self, exchange: Exchange, response: Any, body: bytes, problem: BaseException | None) -> None:
        """Log what came of the reply; an interaction that is made in the background is waited for."""
        streamed = "event-stream" in response.headers.get("content-type", "")
        whole_body: Any
        try:
            if streamed:
                whole_body, whole, error = join_events(_event(one) for one in sent_events(body) if one != b"[DONE]")
            else:
                whole_body, whole, error = parse_document(body), problem is None, None
        except NotJson:
            whole_body = None
        if not isinstance(whole_body, dict):
            self.reply(exchange, unreadable(body))
            return
        reply = read_interaction(whole_body, self.model, whole=whole, error=error, problem=problem)
        name = text(whole_body, "id")
        if token := text(whole_body, "continuation_token"):
            self.calls.owners[token] = name
        if name and text(whole_body, "status") in UNFINISHED and (self.background or not streamed):
            self._unfinished = reply
            self.calls.waiting[name] = self
        else:
            self.calls.waiting.pop(name, None)
            self.reply(exchange, reply)

    def give_up(self) -> None:
        """Nobody asks for it any more."""
        if self.exchange is not None and self._unfinished is not None:
            self._unfinished.metadata["partial"] = True
            self.reply(self.exchange, self._unfinished)


class AskedAgain(InteractionCall):
    """`interactions.get` or `cancel` of one that is made in the background."""

    def __init__(self, calls: GoogleCalls, options: Outgoing, first: InteractionCall) -> None:
        super().__init__(calls, options)
        self.exchange = first.exchange
        self.model = first.model
        self.background = first.background

    def send(self, request: Any) -> Exchange | None:
        """The request was logged when the interaction was begun."""
        return self.exchange

    @never_raising
    def failed(self, problem: BaseException) -> None:
        """It may be asked for once more."""

    @never_raising
    def heard(self, response: Any) -> None:
        """A response came; a refusal says nothing of the interaction."""
        if response.is_success:
            super().heard(response)


class InteractionRefused(Exception):
    """The provider refused an interaction."""

    def __init__(self, response: Any) -> None:
        try:
            said = response.json()
        except Exception:  # noqa: BLE001  not read yet, or no JSON
            said = None
        error = said.get("error") if isinstance(said, dict) else None
        words = error.get("message") if isinstance(error, dict) else error
        super().__init__(str(words or f"HTTP {response.status_code}"))


def _event(data: bytes) -> Any:
    """An event of a stream; the last may be cut."""
    try:
        return parse_document(data)
    except NotJson:
        return None
