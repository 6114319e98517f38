"""What a span says of a model: which call, tool or agent it is, and what was sent, heard and used.

The conventions changed several times, and there are others beside them (OpenInference, OpenLLMetry, the AI SDK). Each
thing is looked for under all the names it has had, the newest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from harken.events import Event, Image, Output, ToolCall, ToolResult
from harken.events.base import clean
from harken.formats.kit.jsonl import Record, encode

from .messages import arguments, loaded, message_events, message_of_event, messages_in, result_of
from .spans import TraceSpan, text_of

CALL, TOOL, AGENT = "call", "tool", "agent"
NEW = "harken.messages"
"""On a span that Harken wrote: its messages are what is new in the call, not the whole history."""
REQUEST = "harken.request.id"
"""On such a span: what tells its request from others whose response has the same id."""
DETAILS = ("gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion")
"""Events that say what a span might have said in its own attributes."""

_OPERATIONS = {
    "chat": CALL, "generate_content": CALL, "text_completion": CALL, "completion": CALL, "message": CALL,
    "responses": CALL, "embeddings": CALL, "execute_tool": TOOL, "invoke_agent": AGENT, "invoke_workflow": AGENT,
}  # fmt: skip
_KINDS = {"llm": CALL, "embedding": CALL, "tool": TOOL, "agent": AGENT}
_REQUEST_TYPES = {"chat": CALL, "completion": CALL, "embedding": CALL}


Finder = Callable[[Record, str], list[Record]]
"""From the attributes of a span, and the name or the beginning of one, to the messages there."""


class ModelSpan(msgspec.Struct, kw_only=True):
    """A span about a model."""

    span: TraceSpan
    kind: str
    messages: list[Record] = []
    """What was sent, as far as it is told; usually the whole history."""
    instructions: list[str] = []
    outputs: list[Record] = []
    only_new: bool = False
    asked: str = ""
    """The model that was asked for."""
    model: str = ""
    """The model that answered, else the one that was asked for."""
    response_id: str = ""
    conversation: str = ""
    agent_name: str = ""
    agent_id: str = ""

    @property
    def start(self) -> int:
        """When it began, as far as that is known."""
        return self.span.start or self.span.end or 0

    @property
    def end(self) -> int:
        """When it ended, as far as that is known."""
        return max(self.span.end or 0, self.start)


def kind_of(span: TraceSpan) -> str:
    """`call`, `tool` or `agent`; empty for a span that is about something else."""
    said = span.attributes
    if isinstance(operation := said.get("gen_ai.operation.name"), str) and operation in _OPERATIONS:
        return _OPERATIONS[operation]
    for key in ("openinference.span.kind", "langsmith.span.kind", "traceloop.span.kind"):
        if isinstance(kind := said.get(key), str) and (found := _KINDS.get(kind.lower())):
            return found
    if isinstance(kind := said.get("llm.request.type"), str) and kind in _REQUEST_TYPES:
        return CALL
    if isinstance(operation := said.get("ai.operationId"), str):
        return TOOL if operation == "ai.toolCall" else CALL if operation.startswith("ai.") else ""
    if operation := said.get("gen_ai.operation.name"):
        return ""  # something else that is done with a model's means: a search, the making of an agent
    if not any(key.startswith("gen_ai.") for key in said) and not any(
        e.name.startswith("gen_ai.") for e in span.events
    ):
        return ""
    if "gen_ai.tool.name" in said or "gen_ai.tool.call.id" in said:
        return TOOL
    if any(key in said for key in ("gen_ai.agent.name", "agent_name", "gen_ai.agent.id", "pydantic_ai.all_messages")):
        return AGENT
    return CALL


def read_span(span: TraceSpan) -> ModelSpan | None:
    """What a span says of a model; None where it is about something else."""
    if not (kind := kind_of(span)):
        return None
    span = _with_details(span)
    said = span.attributes
    asked = first_text(said, "gen_ai.request.model", "llm.request.model", "ai.model.id", "model_name")
    answered = first_text(said, "gen_ai.response.model", "llm.response.model", "ai.response.model", "llm.model_name")
    found = ModelSpan(
        span=span,
        kind=kind,
        asked=asked,
        model=answered or asked,
        response_id=first_text(said, "gen_ai.response.id", "llm.response.id", "ai.response.id"),
        conversation=first_text(said, "gen_ai.conversation.id", "session.id", "gcp.vertex.agent.session_id"),
        agent_name=first_text(said, "gen_ai.agent.name", "agent_name", "graph.node.id", "agent.name"),
        agent_id=first_text(said, "gen_ai.agent.id"),
        only_new=said.get(NEW) == "new",
    )
    if kind == AGENT and not found.agent_name:
        found.agent_name = span.name.removeprefix("invoke_agent").removeprefix("agent_run").strip(" []")
    if kind != TOOL:
        found.messages, found.outputs = _told(span)
        parts = _parts(said.get("gen_ai.system_instructions"))
        found.instructions = ["\n".join(parts)] if parts else []
    return found


def _with_details(span: TraceSpan) -> TraceSpan:
    """The span with what events say in its place; what it says itself stands."""
    told = [event.attributes for event in span.events if event.name in DETAILS]
    if not told:
        return span
    merged: Record = {}
    for one in told:
        merged.update(one)
    return msgspec.structs.replace(span, attributes={**merged, **span.attributes})


def first_text(said: Record, *keys: str) -> str:
    """The first of some attributes that is a text."""
    return next((text for key in keys if (text := text_of(said.get(key)))), "")


def _parts(value: Any) -> list[str]:
    """The words of instructions: a text, a list of texts or of parts."""
    value = loaded(value)
    found = []
    for part in value if isinstance(value, list) else [value] if value else []:
        words = part.get("content", part.get("text")) if isinstance(part, dict) else part
        if words is not None:
            found.append(clean(words) if isinstance(words, str) else encode(words).decode())
    return found


# -- what was sent and heard -------------------------------------------------------------------------------------------


def _told(span: TraceSpan) -> tuple[list[Record], list[Record]]:
    """The messages that were sent and those that came back."""
    said = span.attributes
    events = [(event.name, event.attributes) for event in span.events]
    for key in ("events", "all_messages_events"):
        listed = loaded(said.get(key))
        events += [(text_of(one.get("event.name")), one) for one in _records(listed)]
    sent = [message_of_event(name, one) for name, one in events if _is_message(name)]
    heard = [message_of_event(name, one) for name, one in events if name == "gen_ai.choice"]
    return _first(said, sent, _SENT), _first(said, heard, _HEARD)


def _is_message(name: str) -> bool:
    return name.startswith("gen_ai.") and name.endswith(".message") and name.count(".") == 2


def _records(value: object) -> list[Record]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _first(said: Record, by_events: list[Record], ways: Sequence[tuple[Finder, str]]) -> list[Record]:
    """The messages by the first way in which some are told; events come second, behind the newest attribute."""
    for number, (find, key) in enumerate(ways):
        if number == 1 and by_events:
            return by_events
        if messages := find(said, key):
            return messages
    return by_events


def _in_request(said: Record, key: str) -> list[Record]:
    return messages_in(said.get(key), "user")


def _in_answer(said: Record, key: str) -> list[Record]:
    return messages_in(said.get(key), "assistant")


def _of_ai_sdk(said: Record, key: str) -> list[Record]:
    """The answer as the AI SDK tells it."""
    words = text_of(said.get("ai.response.text", said.get("ai.result.text")))
    calls = _records(loaded(said.get("ai.response.toolCalls", said.get("ai.result.toolCalls"))))
    parts: list[Any] = [{"type": "text", "content": words}] if words else []
    parts += [{**call, "type": "tool-call"} for call in calls]
    return [{"role": "assistant", "parts": parts}] if parts else []


_WRAPPERS = ("message", "message_content", "tool_call", "image")


def indexed(said: Record, prefix: str) -> list[Record]:
    """The messages in attributes that are numbered: `gen_ai.prompt.0.content`."""
    tree: Record = {}
    for key, value in said.items():
        if key.startswith(prefix + "."):
            at = tree
            *path, last = key[len(prefix) + 1 :].split(".")
            for step in path[:8]:
                at = at.setdefault(step, {})
                if not isinstance(at, dict):
                    break
            else:
                at[last] = value
    return _records(_listed(tree))


def _listed(value: Any) -> Any:
    """The tree with lists where the keys are numbers, and without objects that only name what is in them."""
    if not isinstance(value, dict):
        return value
    if value and all(key.isascii() and key.isdigit() and len(key) < 7 for key in value):
        return [_listed(value[key]) for key in sorted(value, key=int)]
    if len(value) == 1 and (key := next(iter(value))) in _WRAPPERS and isinstance(value[key], dict):
        return _listed(value[key])
    return {key: _listed(inner) for key, inner in value.items()}


_SENT = (
    (_in_request, "gen_ai.input.messages"),
    (indexed, "gen_ai.prompt"),
    (_in_request, "gen_ai.prompt"),
    (indexed, "llm.input_messages"),
    (indexed, "llm.prompts"),
    (_in_request, "ai.prompt.messages"),
    (_in_request, "ai.prompt"),
    (_in_request, "gcp.vertex.agent.llm_request"),
    (_in_request, "pydantic_ai.all_messages"),
    (_in_request, "input.value"),
)
_HEARD = (
    (_in_answer, "gen_ai.output.messages"),
    (indexed, "gen_ai.completion"),
    (_in_answer, "gen_ai.completion"),
    (indexed, "llm.output_messages"),
    (indexed, "llm.completions"),
    (_of_ai_sdk, "ai.response"),
    (_in_answer, "gcp.vertex.agent.llm_response"),
    (_in_answer, "output.value"),
)


# -- what is made of it ------------------------------------------------------------------------------------------------


def output_events(found: ModelSpan) -> list[Event]:
    """What the model answered. Where it gave several choices the first is what was said, and the others are kept."""
    outputs, others = found.outputs, found.outputs[:0]
    if found.kind == CALL and len(outputs) > 1 and all(map(_is_choice, outputs)):
        outputs, others = outputs[:1], outputs[1:]
    events = [event for one in outputs for event in message_events({"role": "assistant", **one}, found.model)]
    return [*events, *(Output(raw=encode(other)) for other in others)]


def _is_choice(message: Record) -> bool:
    return bool(message.get("finish_reason")) and message.get("role", "assistant") in ("assistant", "model")


def tool_events(found: ModelSpan) -> tuple[ToolCall, ToolResult]:
    """The call and the result that a span of a tool tells of."""
    said, span = found.span.attributes, found.span
    plain = span.name.removeprefix("execute_tool").strip()
    name = first_text(said, "gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name") or plain
    given, answer = loaded(_any(said, _GIVEN)), _any(said, _ANSWER)
    if isinstance(given, dict) and given.keys() == {"input"} and isinstance(given["input"], dict):
        given = given["input"]  # as LangSmith wraps them
    output, images = _answer(answer)
    call = first_text(said, "gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id")
    output = output or failure_of(found)
    result = ToolResult(id=call, name=name, output=output, images=images, is_error=span.failed)
    return ToolCall(id=call, name=name, input=arguments(given)), result


def _answer(answer: Any) -> tuple[str, tuple[Image, ...]]:
    """What a tool answered: content of parts as words and pictures, anything else as it was written."""
    value = loaded(answer)
    inner = value.get("content") if isinstance(value, dict) else value
    return result_of(value if isinstance(inner, list) and inner else answer)


_GIVEN = (
    "gen_ai.tool.call.arguments", "gen_ai.tool.arguments", "tool_arguments", "gcp.vertex.agent.tool_call_args",
    "ai.toolCall.args", "ai.toolCall.input", "input.value", "traceloop.entity.input", "tool.parameters",
)  # fmt: skip
_ANSWER = (
    "gen_ai.tool.call.result", "gen_ai.tool.result", "tool_response", "gcp.vertex.agent.tool_response",
    "ai.toolCall.result", "ai.toolCall.output", "output.value", "traceloop.entity.output",
)  # fmt: skip


def _any(said: Record, keys: Iterable[str]) -> Any:
    return next((said[key] for key in keys if said.get(key) is not None), None)


def failure_of(found: ModelSpan) -> str:
    """Why the span failed; empty where it did not."""
    span = found.span
    if not span.failed:
        return ""
    told = [event.attributes for event in span.events if event.name == "exception"]
    kind = first_text(span.attributes, "error.type", "exception.type")
    words = span.failure or first_text(span.attributes, "error.message", "exception.message")
    for one in told:
        kind = kind or first_text(one, "exception.type")
        words = words or first_text(one, "exception.message")
    if kind and not words.startswith(kind):
        return f"{kind}: {words}" if words else kind
    return words or "the call failed"
