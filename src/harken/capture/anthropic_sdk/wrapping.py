"""A client whose messages are captured: `harken.capture.anthropic(client, session)`."""

from __future__ import annotations

from typing import Any

from harken.capture.bodies import sent_events
from harken.capture.clients import ClientCall, ClientCalls, ClientT, heard_client
from harken.capture.exchange import Capture, CapturedRequest, Exchange
from harken.capture.mask import Mask
from harken.errors import BadRequest, NotFound
from harken.formats.anthropic_messages import instructions_in, message_events
from harken.formats.kit.jsonl import NotJson, Record, parse, parse_document
from harken.log import Session

from .replies import read_message, unreadable
from .streams import WholeMessage, framed_events, join_events

MESSAGES = "/v1/messages"
_NO_SETTING = ("messages", "system", "model")


def anthropic(client: ClientT, session: Session, *, mask: Mask = None) -> ClientT:
    """A client of the same class, whose messages are kept in the session as they happen.

    The client that is given stays as it is. `mask` is `True`, or a function from text to text, and masks secrets."""
    try:
        from anthropic._base_client import BaseClient  # of every kind of client: Bedrock's and Vertex' too
    except ImportError:
        raise NotFound("the Anthropic SDK is not installed", hint="`pip install 'harken[anthropic]'`") from None
    if not isinstance(client, BaseClient):
        raise BadRequest(
            f"{type(client).__name__} is no client of Anthropic's SDK", hint="`anthropic.Anthropic()` is one"
        )
    return heard_client(client, session, lambda: AnthropicCalls(Capture(session, "anthropic", mask=mask)))


class AnthropicCalls(ClientCalls):
    """The messages of one client, and of its copies, into one session."""

    def begin(self, options: Any) -> ClientCall | None:
        path = str(options.url).partition("?")[0].rstrip("/")
        ours = path.endswith(MESSAGES) and str(options.method).lower() == "post"
        return AnthropicCall(self, options) if ours else None


class AnthropicCall(ClientCall):
    """One message that is asked for."""

    def send(self, request: Any) -> Exchange | None:
        """What is read is what goes over the wire: the host may have given iterators and objects."""
        body = parse(request.content) or {}
        messages = body.get("messages")
        self.given = messages if isinstance(messages, list) else []
        asked = captured_request(body, self.given, _model(self.options))
        self.calls.end_abandoned(self.given, asked.follows)
        return self.capture.request(asked)

    def tell(self, exchange: Exchange, response: Any, body: bytes, problem: BaseException | None) -> None:
        request_id = response.headers.get("request-id") or response.headers.get("x-amzn-requestid") or ""
        framed = "vnd.amazon.eventstream" in response.headers.get("content-type", "")
        whole = join_events(framed_events(body)) if framed else joined_body(body)
        reply = read_message(whole, request_id) if whole is not None else unreadable(body)
        if problem is not None:
            reply.metadata["error"] = f"{type(problem).__name__}: {problem}".removesuffix(": ")
        exchange.reply(
            reply.events,
            usage=reply.usage,
            metadata={**reply.metadata, "attempts": self.attempts if self.attempts > 1 else None},
            each=reply.each,
            entries=reply.entries,
            also=reply.also,
        )


def captured_request(body: Record, messages: list[Any], model: str) -> CapturedRequest:
    """What a request says."""
    thread = body.get("thread")
    follows = thread.get("previous_message_id") if isinstance(thread, dict) else None
    return CapturedRequest(
        messages=since_compaction(messages),
        read=message_events,
        instructions=instructions_in(body.get("system")),
        model=str(body.get("model") or model),
        settings={key: value for key, value in body.items() if key not in _NO_SETTING},
        follows=follows if isinstance(follows, str) else "",
    )


def since_compaction(messages: list[Any]) -> list[Any]:
    """What the model hears of a history: a summary in it stands for everything before it, also where the host sends
    that all the same."""
    for at in range(len(messages) - 1, -1, -1):
        content = messages[at].get("content") if isinstance(messages[at], dict) else None
        blocks = content if isinstance(content, list) else []
        for place in range(len(blocks) - 1, -1, -1):
            block = blocks[place]
            if isinstance(block, dict) and block.get("type") == "compaction" and block.get("content"):
                return [{**messages[at], "content": blocks[place:]}, *messages[at + 1 :]]
    return messages


def _model(options: Any) -> str:
    """The model as the host named it: Bedrock and Vertex have it in the address."""
    given = options.json_data
    return str(given.get("model") or "") if isinstance(given, dict) else ""


def joined_body(body: bytes) -> WholeMessage | None:
    """The reply in one piece, whether it came so or not; None where it is nothing of the API."""
    if body.lstrip()[:1] == b"{":
        try:
            return WholeMessage(parse_document(body), whole=True)
        except NotJson:
            return WholeMessage({}, whole=False)
    data = list(sent_events(body))
    if body.strip() and not data:
        return None
    return join_events(event for event in map(parse, data) if event is not None)
