"""A model that says what a script tells it to, over the APIs the real programs speak.

It answers Anthropic Messages (`/v1/messages`), OpenAI Responses (`/v1/responses`) and chat completions, and Gemini
(`:generateContent`, `/interactions`), in one piece or as a stream, and keeps every request it was sent: that list is
the judge of what a program really knew. A script is a list of turns for the main conversation and, by a text their
first message contains, one for each sub-agent.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from support.anthropic_wire import message_object, message_steps
from support.google_wire import contents_chunks, contents_object, interaction_events, interaction_object
from support.openai_wire import compacted, response_object, response_steps

SUMMARY_REQUESTS = (
    "Your task is to create a detailed summary",
    "CONTEXT CHECKPOINT COMPACTION",
    "write a short memento message",
    "Create a structured context checkpoint summary",
    "produce the <state_snapshot> XML",
    "Create a new anchored summary",
    "generate the updated <state_snapshot>",
    "Critically evaluate the <state_snapshot>",
)
"""What the programs say when they want a summary: Claude Code, Codex, Codex before 0.50, pi, Qwen Code, OpenCode, and
Gemini CLI, which has its model look at it a second time."""

TITLE_REQUESTS = ("Generate a concise, single-line task title", "Summarize the user's primary intent or goal")
"""What Codex on a screen and Gemini CLI say when they want a name for a conversation. Claude Code then offers no
tools."""


@dataclass(frozen=True)
class Say:
    """The model says this."""

    text: str


@dataclass(frozen=True)
class Think:
    """The model reasons; the signature is as good as any on loopback."""

    text: str
    signature: str = "c2lnbmVk"


@dataclass(frozen=True)
class Call:
    """The model asks for a tool. Several in one turn are parallel calls."""

    name: str
    input: dict[str, Any]
    id: str = ""
    namespace: str = ""
    """Codex groups some of its tools."""


@dataclass(frozen=True)
class Block:
    """The model says this content block of the Messages API."""

    content: dict[str, Any]


@dataclass(frozen=True)
class Refuse:
    """The provider refuses the request with this status."""

    status: int
    message: str = "refused by the script"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Break:
    """The connection breaks after so many events of the stream."""

    after: int = 3
    saying: Sequence[dict[str, Any]] = ()
    """The last events."""


@dataclass(frozen=True)
class Hold:
    """Nothing more comes after so many events of the stream (or at all) until the gate is opened."""

    gate: threading.Event
    after: int = 3
    reached: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        """Say that it is reached, and wait."""
        self.reached.set()
        self.gate.wait(20)


@dataclass(frozen=True)
class Answer:
    """The provider answers with just this: an object, or a list of events."""

    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


Turn = Sequence[Say | Think | Call | Block | Refuse | Break | Hold | Answer]
Cue = Turn | Callable[[dict[str, Any]], Turn]
"""A turn, or a function that makes one from the request (to name an id that the program chose)."""


@dataclass(frozen=True)
class Request:
    """What a program sent: `kind` is `main`, `aside` (titles and the like), `summary` or a sub-agent's marker."""

    api: str
    kind: str
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class ScriptedModel:
    """The server. Give it turns, start a program against `url`, then read `requests`."""

    log: Path | None = None
    requests: list[Request] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)
    played: list[Turn] = field(default_factory=list)
    """The turns it has answered with."""
    pages: dict[str, list[Any]] = field(default_factory=dict)
    """What is answered to a GET, by its path."""
    input_tokens: int = 100
    """What the model claims the conversation costs: a large number makes a program compact by itself."""
    usage: dict[str, Any] = field(default_factory=dict)
    said_of_message: dict[str, Any] = field(default_factory=dict)
    """What a message of the Messages API has beside what it says, and beside its figures."""
    kept: dict[str, Any] = field(default_factory=dict)
    """Interactions that are made in the background, by the end of the path at which they are asked for."""
    asides: bool = True
    """Whether a request without tools is for a title and the like, as Claude Code's are."""
    _turns: dict[str, list[Cue]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _server: ThreadingHTTPServer | None = None

    def play(self, *turns: Cue, to: str = "main") -> None:
        """Add turns to the script: for the main conversation, or for the sub-agent whose prompt contains `to`."""
        with self._lock:
            self._turns.setdefault(to, []).extend(turns)

    def serve(self, listener: socket.socket) -> None:
        """Answer on a socket that is already bound, in threads of its own, until `close`."""
        model = self

        class Handler(_Handler):
            scripted = model

        self._server = ThreadingHTTPServer(listener.getsockname(), Handler, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = listener
        self._server.daemon_threads = True
        listener.listen(64)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        """Stop answering."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def asked(self, kind: str = "main") -> list[dict[str, Any]]:
        """The bodies of the requests of one kind, in order."""
        with self._lock:
            return [request.body for request in self.requests if request.kind == kind]

    def answer(self, api: str, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> Turn:
        """Note the request and take the next turn of the script it belongs to."""
        with self._lock:
            kind = self._kind(api, body)
            self.requests.append(Request(api, kind, body, dict(headers or {})))
            if self.log is not None:
                with self.log.open("a") as lines:
                    lines.write(json.dumps({"api": api, "kind": kind, "body": body}) + "\n")
            if kind == "aside":
                return [Say("aside")]
            waiting = self._turns.get(kind)
            if kind == "summary" and not waiting:
                return [Say("<summary>What was said so far, in short.</summary>")]
            if not waiting:
                self.surprises.append(f"no turn left for {kind}: {json.dumps(body)[:2000]}")
                return [Say("(the script has ended)")]
            cue = waiting.pop(0)
            turn = cue(body) if callable(cue) else cue
            self.played.append(turn)
            return turn

    def _kind(self, api: str, body: dict[str, Any]) -> str:
        items = body.get({"openai": "input", "google": "contents"}.get(api, "messages"))
        items = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        last = json.dumps(items[-1]) if items else ""
        if any(words in last for words in SUMMARY_REQUESTS):
            return "summary"
        if any(words in last for words in TITLE_REQUESTS) or (
            self.asides and api == "anthropic" and not body.get("tools")
        ):
            return "aside"
        spoken = (at for at, item in enumerate(items) if item.get("role") not in ("user", "system", "developer"))
        opening = json.dumps(items[: next(spoken, len(items))])
        for marker in self._turns:
            if marker not in ("main", "summary") and marker in opening:
                return marker
        return "main"

    def number(self) -> int:
        """A number nobody else has, for ids."""
        with self._lock:
            return next(self._numbers)


class _Handler(BaseHTTPRequestHandler):
    """HTTP in front of the script."""

    scripted: ClassVar[ScriptedModel]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a reply is written in several pieces, and none waits for the other

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the list of requests is the log."""

    def do_HEAD(self) -> None:
        self._reply(200, b"")

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if kept := next((whole for end, whole in self.scripted.kept.items() if path.endswith(end)), None):
            self._reply(200, json.dumps(kept).encode())
            return
        waiting = self.scripted.pages.get(self.path)
        self._reply(200, json.dumps(waiting.pop(0) if waiting else {"data": [], "models": []}).encode())

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.split("?")[0]
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        if path.endswith(("/count_tokens", ":countTokens")):
            self._reply(200, b'{"input_tokens": 100, "totalTokens": 100}')
        elif path.endswith(("/v1/messages", "/invoke", ":rawPredict", ":streamRawPredict")):
            sent = {key.lower(): value for key, value in self.headers.items() if key.lower() != "host"}
            self._messages(self.scripted.answer("anthropic", body, sent), body)
        elif path.endswith((":generateContent", ":streamGenerateContent")):
            self._contents(self.scripted.answer("google", body), streamed="stream" in path)
        elif path.endswith("/interactions"):
            self._interaction(self.scripted.answer("google", body), body)
        elif path.endswith("/chat/completions"):
            self._chat(self.scripted.answer("chat", body), body)
        elif path.endswith("/responses"):
            self._responses(self.scripted.answer("openai", body), body)
        elif path.endswith("/responses/compact"):
            self._respond(self.scripted.answer("openai", body), [], lambda turn: compacted(self.scripted, body, turn))
        else:
            self.scripted.surprises.append(f"POST {self.path}")
            self._reply(404, b'{"error": {"type": "not_found_error", "message": "not part of the script"}}')

    def _answer(self, turn: Turn, events: Callable[[Turn], Iterable[dict[str, Any]]]) -> None:
        refused = next((part for part in turn if isinstance(part, Refuse)), None)
        if refused is None:
            self._stream(events(spoken(turn)), turn)
        else:
            error = {"type": "invalid_request_error", "message": refused.message}
            self._reply(refused.status, json.dumps({"type": "error", "error": error}).encode(), refused.headers)

    def _messages(self, turn: Turn, body: dict[str, Any]) -> None:
        """A message, whole or in events."""
        if body.get("stream"):
            self._answer(turn, lambda turn: message_steps(message_object(self.scripted, body, turn)))
        else:
            self._respond(turn, [], lambda turn: message_object(self.scripted, body, turn))

    def _chat(self, turn: Turn, body: dict[str, Any]) -> None:
        """A completion, whole or in chunks."""
        chunks = chat_chunks(self.scripted, body, spoken(turn)) if body.get("stream") else []
        self._respond(turn, chunks, lambda turn: chat_completion(self.scripted, body, turn))

    def _contents(self, turn: Turn, *, streamed: bool) -> None:
        """What a Gemini model says, whole or in chunks."""
        whole = contents_object(self.scripted, spoken(turn))
        self._respond(turn, contents_chunks(whole) if streamed else [], lambda _: whole)

    def _interaction(self, turn: Turn, body: dict[str, Any]) -> None:
        """An interaction of the Gemini API, whole or in events."""
        whole = interaction_object(self.scripted, body, spoken(turn))
        if body.get("background"):
            self.scripted.kept[f"/interactions/{whole['id']}"] = whole
        self._respond(turn, interaction_events(whole) if body.get("stream") else [], lambda _: whole)

    def _responses(self, turn: Turn, body: dict[str, Any]) -> None:
        """A response, whole or in events. Codex is content with its items; the SDKs want every step."""
        if body.get("stream") and "x-stainless-lang" not in self.headers:
            self._answer(turn, lambda turn: responses_events(self.scripted, turn))
            return
        whole = response_object(self.scripted, body, spoken(turn))
        self._respond(turn, response_steps(whole) if body.get("stream") else [], lambda _: whole)

    def _respond(self, turn: Turn, events: Iterable[dict[str, Any]], whole: Callable[[Turn], dict[str, Any]]) -> None:
        """What OpenAI's SDK is answered: an error, a stream, or all at once."""
        refused = next((part for part in turn if isinstance(part, Refuse)), None)
        if refused is not None:
            error = {"type": "invalid_request_error", "message": refused.message, "param": None, "code": None}
            self._reply(refused.status, json.dumps({"error": error}).encode(), refused.headers)
        elif given := next((part for part in turn if isinstance(part, Answer)), None):
            if isinstance(given.body, list):
                self._stream(given.body, turn)
            else:
                self._reply(
                    200, given.body if isinstance(given.body, bytes) else json.dumps(given.body).encode(), given.headers
                )
        elif events := list(events):
            self._stream(events, turn)
        else:
            for hold in (part for part in turn if isinstance(part, Hold)):
                hold.wait()
            self._reply(200, json.dumps(whole(spoken(turn))).encode())

    def _reply(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        name = f"req_{self.scripted.number():06d}"
        for key, value in {"request-id": name, "x-request-id": name, **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(ConnectionError):  # whoever asked may be gone
                self.wfile.write(body)

    def _stream(self, events: Iterable[dict[str, Any]], turn: Turn) -> None:
        pieces = [_piece(event) for event in events]
        if pieces and "chat.completion.chunk" in pieces[0]:
            pieces.append("data: [DONE]\n\n")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len("".join(pieces).encode())))
        for name in ("request-id", "x-request-id"):
            self.send_header(name, f"req_{self.scripted.number():06d}")
        self.end_headers()
        stops = {part.after: part for part in turn if isinstance(part, Break | Hold)}
        with contextlib.suppress(ConnectionError):
            for number, piece in enumerate(pieces):
                stop = stops.get(number)
                if isinstance(stop, Break):
                    self.close_connection = True
                    self.wfile.write("".join(map(_piece, stop.saying)).encode())
                    return
                if stop is not None:
                    self.wfile.flush()
                    stop.wait()
                self.wfile.write(piece.encode())


def _piece(event: dict[str, Any]) -> str:
    return (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n"


def spoken(turn: Turn) -> Turn:
    """What the model says in a turn."""
    return [part for part in turn if isinstance(part, Say | Think | Call | Block)]


def responses_events(model: ScriptedModel, turn: Turn) -> Iterator[dict[str, Any]]:
    """One turn as the event stream of the Responses API."""
    response = {"id": f"resp_{model.number():06d}", "object": "response", "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": response}
    for index, part in enumerate(turn):
        item = _item(model, part)
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {
        "input_tokens": model.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10 + len(turn),
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": model.input_tokens + 10 + len(turn),
    }
    yield {"type": "response.completed", "response": response | {"status": "completed", "usage": usage}}


def _item(model: ScriptedModel, part: Any) -> dict[str, Any]:
    number = model.number()
    if isinstance(part, Say):
        content = [{"type": "output_text", "text": part.text, "annotations": []}]
        return {"type": "message", "id": f"msg_{number:06d}", "role": "assistant", "content": content}
    if isinstance(part, Think):
        summary = [{"type": "summary_text", "text": part.text}]
        return {"type": "reasoning", "id": f"rs_{number:06d}", "summary": summary, "encrypted_content": part.signature}
    call_id = part.id or f"call_{number:06d}"
    item = {"type": "function_call", "id": f"fc_{number:06d}", "call_id": call_id, "name": part.name}
    item |= {"namespace": part.namespace} if part.namespace else {}
    return item | {"arguments": json.dumps(part.input)}


def chat_completion(model: ScriptedModel, body: dict[str, Any], turn: Turn) -> dict[str, Any]:
    """One turn as a chat completion; reasoning stands where DeepSeek and LiteLLM have it."""
    said = "".join(part.text for part in turn if isinstance(part, Say))
    thought = "".join(part.text for part in turn if isinstance(part, Think))
    calls = [_chat_call(model, part) for part in turn if isinstance(part, Call)]
    message: dict[str, Any] = {"role": "assistant", "content": said or None, "refusal": None}
    message |= {"tool_calls": calls} if calls else {}
    message |= {"reasoning_content": thought} if thought else {}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
    choices = [choice | {"index": number} for number in range(body.get("n") or 1)]
    return {**_chat_frame(model, body, "chat.completion"), "choices": choices, "usage": _chat_usage(model, turn)}


def chat_chunks(model: ScriptedModel, body: dict[str, Any], turn: Turn) -> Iterator[dict[str, Any]]:
    """The same in chunks: words and arguments in two halves, and the usage where it is asked for."""
    frame = _chat_frame(model, body, "chat.completion.chunk")
    whole = chat_completion(model, body, turn)["choices"][0]

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}]}

    yield chunk({"role": "assistant", "content": ""})
    for key in ("reasoning_content", "content"):
        text = whole["message"].get(key) or ""
        halves = (text[: len(text) // 2], text[len(text) // 2 :])
        yield from (chunk({key: half}) for half in halves if half)
    for index, call in enumerate(whole["message"].get("tool_calls", ())):
        given = call["function"]["arguments"]
        yield chunk({"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]})
        for half in (given[: len(given) // 2], given[len(given) // 2 :]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": half}}]})
    yield chunk({}, whole["finish_reason"])
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**frame, "choices": [], "usage": _chat_usage(model, turn)}


def _chat_frame(model: ScriptedModel, body: dict[str, Any], kind: str) -> dict[str, Any]:
    named = {"id": f"chatcmpl-{model.number():06d}", "object": kind, "created": 1_794_738_000}
    return {**named, "model": body.get("model", "scripted")}


def _chat_usage(model: ScriptedModel, turn: Turn) -> dict[str, Any]:
    given, made = model.input_tokens, 10 + len(turn)
    usage = {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
    details = {"prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}}
    return {**usage, **details}


def _chat_call(model: ScriptedModel, part: Call) -> dict[str, Any]:
    asked = {"name": part.name, "arguments": json.dumps(part.input)}
    return {"id": part.id or f"call_{model.number():06d}", "type": "function", "function": asked}
