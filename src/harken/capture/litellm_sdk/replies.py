"""What LiteLLM gives back, as an exchange takes it: a response, or what came through a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from harken.capture.anthropic_sdk import replies as anthropic_replies
from harken.capture.anthropic_sdk.replies import ReadMessage, read_message
from harken.capture.anthropic_sdk.streams import WholeMessage
from harken.capture.anthropic_sdk.wrapping import captured_request, joined_body
from harken.capture.exchange import CapturedRequest
from harken.capture.openai_sdk.replies import ReadReply, read_chat, read_response, unreadable
from harken.capture.openai_sdk.requests import chat_request, responses_request
from harken.capture.openai_sdk.streams import WholeReply, join_chunks, join_events
from harken.events import Metric
from harken.formats.kit.jsonl import Record, encode

from .watching import StreamWatch

_SETTINGS = frozenset({
    "audio", "background", "context_management", "extra_body", "frequency_penalty", "function_call", "functions",
    "include", "instructions", "logit_bias", "logprobs", "max_completion_tokens", "max_output_tokens", "max_tokens",
    "modalities", "n", "parallel_tool_calls", "prediction", "presence_penalty", "previous_response_id",
    "prompt_cache_key", "reasoning", "reasoning_effort", "response_format", "safety_settings", "seed",
    "service_tier", "stop", "stop_sequences", "store", "stream", "stream_options", "system", "temperature", "text",
    "text_format", "thinking", "tool_choice", "tools", "top_k", "top_logprobs", "top_p", "truncation", "user",
    "verbosity", "web_search_options",
})  # fmt: skip
"""What of a call is kept with its request. The other arguments are LiteLLM's own; keys and headers are among them."""


class SpokenApi(NamedTuple):
    """How a request is read."""

    given: str
    """The argument that has the messages."""
    request: Callable[[Mapping[str, Any]], CapturedRequest]

    def asked(self, arguments: Mapping[str, Any]) -> CapturedRequest:
        """What a call says to the model."""
        kept = (self.given, "model")
        return self.request({key: arguments[key] for key in arguments if key in kept or _is_setting(key, arguments)})


def _messages_request(body: Mapping[str, Any]) -> CapturedRequest:
    messages = body.get("messages")
    return captured_request({**body}, messages if isinstance(messages, list) else [], "")


CHAT = SpokenApi("messages", chat_request)
RESPONSES = SpokenApi("input", responses_request)
MESSAGES = SpokenApi("messages", _messages_request)
"""Anthropic's API, whichever provider answers."""
APIS = {"completion": CHAT, "acompletion": CHAT, "responses": RESPONSES, "aresponses": RESPONSES}
APIS["anthropic_messages"] = MESSAGES

NO_CONVERSATION = frozenset({"embedding", "aembedding", "moderation", "amoderation", "speech", "aspeech"})
"""Functions of LiteLLM's that take an `input` as well, and hold no conversation."""


def _is_setting(key: str, arguments: Mapping[str, Any]) -> bool:
    return key in _SETTINGS and arguments[key] is not None


def chats_in(function: Callable[..., Any]) -> SpokenApi:
    """The API of the messages that a function takes."""
    name, module = (str(getattr(function, key, "")) for key in ("__name__", "__module__"))
    speaks_messages = name in _SPEAK_MESSAGES or module.startswith("litellm.anthropic_interface")
    return MESSAGES if speaks_messages else CHAT


_SPEAK_MESSAGES = ("anthropic_messages", "aanthropic_messages", "anthropic_messages_handler")


def api_of(arguments: Mapping[str, Any], chats: SpokenApi = CHAT) -> SpokenApi | None:
    """The API that a call is of, where messages are of this one; None where it is no conversation."""
    if (messages := arguments.get("messages")) is not None:
        several = isinstance(messages, list) and any(isinstance(one, list) for one in messages)
        if several:
            return None  # several conversations at once are calls of their own
        return MESSAGES if _is_anthropics(arguments) else chats
    return RESPONSES if arguments.get("input") is not None else None


def _is_anthropics(arguments: Mapping[str, Any]) -> bool:
    """Whether messages are such as only Anthropic's API takes: a router's functions do not tell by their names."""
    messages = arguments["messages"]
    contents = [one.get("content") for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    blocks = (block for content in contents if isinstance(content, list) for block in content)
    kinds = {block.get("type") for block in blocks if isinstance(block, dict) and isinstance(block.get("type"), str)}
    return arguments.get("system") is not None or not kinds.isdisjoint(("tool_use", "tool_result"))


def _read(reply: WholeReply) -> ReadReply:
    """LiteLLM sends some calls of one API through the other, and tells callbacks of what came from there."""
    if "output" not in reply.body or "choices" in reply.body:
        return read_chat(reply)
    usage = _mapping(reply.body.get("usage"))
    if "prompt_tokens" in usage:  # the names of the other API, for callbacks
        names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
        names |= {f"{name}_details": f"{other}_details" for name, other in names.items()}
        reply.body["usage"] = {names.get(key, key): value for key, value in usage.items()}
    return read_response(reply)


RoutedReply = ReadReply | ReadMessage
"""A reply of one of the APIs."""


def read_whole(response: Any, told: Mapping[str, Any]) -> RoutedReply:
    """A response in one piece; `told` is what LiteLLM reports of the call in a callback."""
    hidden = {**_mapping(getattr(response, "_hidden_params", None))}
    hidden |= {key: told[key] for key in ("cache_hit", "response_cost") if told.get(key) is not None}
    body = _record(response)
    if isinstance(response, str):  # a function of the host's own may give the words alone
        body = {"choices": [{"message": {"role": "assistant", "content": response}}]}
    elif body.get("type") == "message" and "choices" not in body:
        return _priced(_told(read_message(WholeMessage(body, whole=True), ""), hidden), hidden.get("response_cost"))
    elif not body.keys() & {"choices", "output"}:
        return unreadable(str(response).encode("utf-8", "replace"))
    if usage := _record(getattr(response, "usage", None)):  # by itself: it may be of another class than is declared
        body["usage"] = usage
    found = _told(_read(WholeReply(body, whole=True)), hidden)
    return _priced(found, hidden.get("response_cost"))


def read_stream(api: SpokenApi, watched: StreamWatch, *, made_up: bool) -> RoutedReply:
    """What came through a stream; of one that the host made up no provider says that it is done."""
    hidden = _mapping(watched.about.get("_hidden_params"))
    found: RoutedReply
    if api is MESSAGES or any(isinstance(chunk, bytes) for chunk in watched.chunks[:1]):
        came = b"".join(map(_sent, watched.chunks))
        message = joined_body(came)
        read = anthropic_replies.unreadable(came) if message is None else read_message(message, "")
        found, model = _told(read, hidden), (message.body if message else {}).get("model")
    else:
        reply = _joined(api, watched, made_up=made_up)
        found, model = _told(_read(reply), hidden), reply.body.get("model")
    if found.usage is not None:
        found = _priced(found, _price(hidden.get("litellm_model_name") or model, found.usage))
    if watched.problem is not None:
        found.metadata["error"] = f"{type(watched.problem).__name__}: {watched.problem}".removesuffix(": ")
    return found


def _sent(chunk: Any) -> bytes:
    """A piece of a stream of Anthropic's API: bytes as they come over the wire, or an event by itself."""
    if isinstance(chunk, str | bytes):
        return chunk.encode() if isinstance(chunk, str) else chunk
    return b"data: " + encode(_record(chunk)) + b"\n\n"


def _joined(api: SpokenApi, watched: StreamWatch, *, made_up: bool) -> WholeReply:
    """The reply of one of OpenAI's APIs that chunks are."""
    chunks = [_chunk(chunk) for chunk in watched.chunks]
    about = watched.about
    if api is CHAT:
        reply = join_chunks(chunks, done=watched.exhausted)
        # LiteLLM says that a stream was done when it was cut off, too; it keeps what the provider said of it.
        reasons = (about.get("received_finish_reason"), about.get("intermittent_finish_reason"))
        if about.get("sent_last_chunk") is True and not any(reasons) and not made_up:
            reply = reply._replace(whole=False)
        # It keeps the figures for itself, unless the host asked for them.
        hidden_away = (_mapping(getattr(chunk, "_hidden_params", None)).get("usage") for chunk in watched.chunks)
        usage = _usage([*(getattr(chunk, "usage", None) for chunk in about.get("chunks") or ()), *hidden_away])
        reply.body.update({"usage": usage} if usage else {})
        for choice in reply.body["choices"]:
            _join_thoughts(choice["message"])
    else:
        reply = join_events(chunks)
    return reply


def _chunk(chunk: Any) -> Record:
    """A chunk of a reply; a function of the host's own may give the words alone."""
    return {"choices": [{"index": 0, "delta": {"content": chunk}}]} if isinstance(chunk, str) else _record(chunk)


def _join_thoughts(message: Record) -> None:
    """Thinking comes in pieces without a number; the signature is the last piece of a block."""
    blocks: list[Record] = []
    for piece in message.get("thinking_blocks") or ():
        last = blocks[-1] if blocks else {}
        if piece.get("type") != "thinking" or last.get("type") != "thinking" or last.get("signature"):
            blocks.append(dict(piece))
        else:
            last["thinking"] = str(last.get("thinking") or "") + str(piece.get("thinking") or "")
            last["signature"] = piece.get("signature")
    if blocks:
        message["thinking_blocks"] = blocks


def _usage(said: Iterable[Any]) -> Record:
    """The figures that came with the chunks: some providers tell some at the beginning and the rest at the end."""
    joined: Record = {}
    for one in said:
        joined |= {key: value for key, value in _record(one).items() if value or key not in joined}
    return joined if joined.get("total_tokens") else {}


def _told(found: RoutedReply, hidden: Mapping[str, Any]) -> RoutedReply:
    """With what LiteLLM says of the call beside the reply."""
    headers = _mapping(hidden.get("additional_headers"))
    names = (f"{before}{name}" for before in ("llm_provider-", "") for name in ("x-request-id", "request-id"))
    request_id = next((headers[name] for name in names if isinstance(headers.get(name), str)), None)
    again = [headers.get(f"x-litellm-attempted-{what}") for what in ("retries", "fallbacks")]
    attempts = 1 + sum(count for count in again if isinstance(count, int))
    cached = True if hidden.get("cache_hit") is True else None
    model = str(hidden.get("litellm_model_name") or "")
    provider = hidden.get("custom_llm_provider") or (model.partition("/")[0] if "/" in model else None)
    found.metadata |= {"provider": provider, "request_id": request_id, "cache_hit": cached}
    found.metadata["attempts"] = attempts if attempts > 1 else None
    tokens = found.usage and (found.usage.input_tokens or found.usage.output_tokens or found.usage.cache_read_tokens)
    if cached or not tokens:
        # Nothing was spent: the figures are those of the call that filled the cache. Or nobody said what was: LiteLLM
        # has zeros for that.
        found.usage = None
        if not cached:
            found.metadata.pop("usage", None)
    elif found.usage is not None:
        found.usage = found.usage.replace(request_id=request_id or "")
    return found


def _priced(found: RoutedReply, cost: object) -> RoutedReply:
    """With what LiteLLM says that it cost, which is zero where it does not know."""
    known = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 < cost < float("inf")
    if found.usage is not None and found.usage.cost_usd is None and known:
        found.usage = found.usage.replace(cost_usd=float(cost))  # type: ignore[arg-type]
    return found


def _price(model: Any, usage: Metric) -> float | None:
    """What LiteLLM's list says that a stream cost; it would tell it to callbacks alone."""
    import litellm

    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    spent = litellm.Usage(
        prompt_tokens=(usage.input_tokens or 0) + read + written,
        completion_tokens=usage.output_tokens or 0,
        prompt_tokens_details={"cached_tokens": read, "cache_creation_tokens": written},
    )
    try:
        return float(sum(litellm.cost_per_token(model=model, usage_object=spent)))
    except Exception:  # noqa: BLE001  it raises what it likes where a model is unknown
        return None


def _record(value: Any) -> Record:
    """One of LiteLLM's objects as JSON, without what it does not say."""
    if hasattr(value, "model_dump"):
        value = _said(value.model_dump(mode="json", exclude_none=True, warnings=False))
    return value if isinstance(value, dict) else {}


def _said(value: Any) -> Any:
    """Without LiteLLM's own fields where they say nothing (`{"refusal": null}`): OpenAI refuses what has them."""
    if isinstance(value, dict):
        return {key: _said(one) for key, one in value.items() if key != _OWN_FIELDS or _says_something(one)}
    return [_said(one) for one in value] if isinstance(value, list) else value


_OWN_FIELDS = "provider_specific_fields"


def _says_something(fields: Any) -> bool:
    return any(one is not None for one in fields.values()) if isinstance(fields, dict) else fields is not None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
